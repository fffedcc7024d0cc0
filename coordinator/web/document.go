package web

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// A tree is a document while it is edited: nil, bool, json.Number, string, []any, or yamlfile.Pairs, which keep the order of keys. Trees do
// not change.
type tree any

// gone stands for a member that does not exist, or is removed.
type gone struct{}

// parseTree reads a document in YAML or JSON.
func parseTree(text string) (yamlfile.Pairs, error) {
	name := "text.yaml"
	if json.Valid([]byte(text)) {
		name = "text.json"
	}
	file := yamlfile.Parse(name, []byte(text))
	root, _ := file.Root()
	read := treeOf(root)
	members, ok := read.(yamlfile.Pairs)
	if err := file.Err(); err != nil || ok {
		return members, err
	}
	return nil, errors.New("expected members, such as name and type")
}

// treeOf converts a node of a file.
func treeOf(n yamlfile.Node) tree {
	switch n.Kind() {
	case yamlfile.MappingNode:
		all := yamlfile.Pairs{}
		for _, e := range n.Entries() {
			all = append(all, yamlfile.Pair{Key: e.Key.Raw(), Value: treeOf(e.Value)})
		}
		return all
	case yamlfile.ListNode:
		all := []any{}
		for _, item := range n.Items() {
			all = append(all, treeOf(item))
		}
		return all
	case yamlfile.AbsentNode, yamlfile.NullNode, yamlfile.TextNode, yamlfile.NumberNode, yamlfile.BoolNode:
	}
	return n.Value()
}

// treeText returns a tree as YAML, or as JSON if it has invisible characters, which are escapes there.
func treeText(t tree) string {
	text, err := yamlfile.Encode("text.yaml", t)
	if shown := string(text); err == nil && shown == invisible.Escape(shown) {
		return shown
	}
	return approval.Arguments(treeJSON(t)).Text()
}

// treeJSON returns a tree as JSON.
func treeJSON(t tree) []byte {
	text, _ := yamlfile.Encode("text.json", t) // it was read from a text
	return text
}

// jsonText returns JSON as treeText does.
func jsonText(data []byte) string {
	file := yamlfile.Parse("text.json", data)
	root, ok := file.Root()
	if !ok {
		return approval.Arguments(data).Text()
	}
	return treeText(treeOf(root))
}

// findIn returns the member at a path, with dots between names and indexes; gone if there is none.
func findIn(t tree, path string) tree {
	for name := range strings.SplitSeq(path, ".") {
		var next tree = gone{}
		switch in := t.(type) {
		case yamlfile.Pairs:
			next = memberOf(in, name)
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(in) {
				next = in[i]
			}
		}
		t = next
	}
	return t
}

// memberOf returns a member; gone if there is none.
func memberOf(in yamlfile.Pairs, name string) tree {
	if i := indexOf(in, name); i >= 0 {
		return in[i].Value
	}
	return gone{}
}

func indexOf(in yamlfile.Pairs, name string) int {
	return slices.IndexFunc(in, func(p yamlfile.Pair) bool { return p.Key == name })
}

// withMember returns a tree with another member at a path; gone removes it, with what it leaves empty.
func withMember(t tree, path string, value tree) tree {
	name, rest, isBelow := strings.Cut(path, ".")
	change := func(old tree) tree {
		if isBelow {
			return withMember(old, rest, value)
		}
		return value
	}
	if list, ok := t.([]any); ok {
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(list) {
			return t
		}
		list = slices.Clone(list)
		if list[i] = change(list[i]); list[i] == tree(gone{}) {
			list = slices.Delete(list, i, i+1)
		}
		return orGone(list, len(list))
	}
	members, _ := t.(yamlfile.Pairs)
	members = slices.Clone(members)
	i := indexOf(members, name)
	if i < 0 {
		i = len(members)
		members = append(members, yamlfile.Pair{Key: name, Value: gone{}})
	}
	if members[i].Value = change(members[i].Value); members[i].Value == any(gone{}) {
		members = slices.Delete(members, i, i+1)
	}
	return orGone(members, len(members))
}

func orGone(t tree, length int) tree {
	if length == 0 {
		return gone{}
	}
	return t
}

// merge returns a tree that two people have changed, with both changes. Where they have changed the same, mine counts.
func merge(base, mine, theirs tree) tree {
	switch {
	case reflect.DeepEqual(mine, base):
		return theirs
	case reflect.DeepEqual(theirs, base):
		return mine
	}
	own, ok := mine.(yamlfile.Pairs)
	other, both := theirs.(yamlfile.Pairs)
	if !ok || !both {
		return mine
	}
	before, _ := base.(yamlfile.Pairs)
	all := yamlfile.Pairs{}
	for _, p := range slices.Concat(other, own) {
		if indexOf(all, p.Key) >= 0 {
			continue
		}
		if v := merge(memberOf(before, p.Key), memberOf(own, p.Key), memberOf(other, p.Key)); v != tree(gone{}) {
			all = append(all, yamlfile.Pair{Key: p.Key, Value: v})
		}
	}
	return all
}
