package policy

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/lazy"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// fields is a mapping by key. Reading a missing key returns the zero value. A value of the wrong type is reported as an
// error in the file.
type fields struct {
	node yamlfile.Node // the mapping
	of   map[string]yamlfile.Entry
	keys []string // in file order
}

// fieldsOf reads a mapping, and reports any other value.
func fieldsOf(n yamlfile.Node) fields {
	f := fields{node: n, of: map[string]yamlfile.Entry{}}
	if n.Kind() == yamlfile.AbsentNode {
		return f
	}
	for _, e := range n.Entries() {
		f = f.put(e)
	}
	return f
}

// put returns the fields with another entry. It may change the receiver, because both share a map.
func (f fields) put(e yamlfile.Entry) fields {
	name := e.Key.Raw()
	if _, again := f.of[name]; !again {
		f.keys = append(f.keys, name)
	}
	f.of[name] = e
	return f
}

// with returns the fields with another entry, and does not change the receiver.
func (f fields) with(e yamlfile.Entry) fields {
	f.of, f.keys = maps.Clone(f.of), slices.Clone(f.keys)
	return f.put(e)
}

// only reports unknown keys, with a hint from advice.
func (f fields) only(what string, known []string, advice func(key string) string) {
	for _, name := range f.keys {
		if lo.Contains(known, name) {
			continue
		}
		text := yamlfile.Unknown("key", name, known)
		if advice != nil {
			if more := advice(name); more != "" {
				text = more
			}
		}
		f.of[name].Key.Wrong("%s: %s", what, text)
	}
}

func (f fields) has(key string) bool { _, ok := f.of[key]; return ok }

func (f fields) at(key string) yamlfile.Node { return f.of[key].Value }

// place returns a key's place, or the mapping's place if the key is missing.
func (f fields) place(key string) yamlfile.Place {
	if e, ok := f.of[key]; ok {
		return e.Key.Place()
	}
	return f.node.Place()
}

func (f fields) text(key string) string {
	if !f.has(key) {
		return ""
	}
	text, _ := f.at(key).Text()
	return text
}

// plain returns a text, a number or a bool as written.
func (f fields) plain(key string) string {
	n := f.at(key)
	switch n.Kind() {
	case yamlfile.TextNode, yamlfile.NumberNode, yamlfile.BoolNode:
		return n.Raw()
	case yamlfile.AbsentNode:
		return ""
	case yamlfile.NullNode, yamlfile.ListNode, yamlfile.MappingNode:
	}
	n.Wrong("%s: expected text, got %s", key, n)
	return ""
}

func (f fields) flag(key string, otherwise bool) bool {
	n := f.at(key)
	switch {
	case n.Kind() == yamlfile.AbsentNode:
		return otherwise
	case n.Kind() != yamlfile.BoolNode:
		n.Wrong("%s: expected true or false, got %s", key, n)
		return otherwise
	}
	b, _ := n.Value().(bool)
	return b
}

// number returns a whole number in the range from least to most.
func (f fields) number(key string, least, most, otherwise int) int {
	n := f.at(key)
	if n.Kind() == yamlfile.AbsentNode {
		return otherwise
	}
	return numberIn(n, key, least, most, otherwise)
}

func numberIn(n yamlfile.Node, key string, least, most, otherwise int) int {
	i, err := strconv.Atoi(n.Raw())
	if n.Kind() != yamlfile.NumberNode || err != nil || i < least || i > most {
		n.Wrong("%s: expected a whole number from %d to %d, got %s", key, least, most, n)
		return otherwise
	}
	return i
}

// oneOf returns one of the given words.
func (f fields) oneOf(key string, words ...string) string {
	n := f.at(key)
	if n.Kind() == yamlfile.AbsentNode {
		return ""
	}
	if n.Kind() == yamlfile.TextNode && lo.Contains(words, n.Raw()) {
		return n.Raw()
	}
	if n.Kind() != yamlfile.TextNode {
		n.Wrong("%s: expected one of %s, got %s", key, yamlfile.OneOf(words), n)
		return ""
	}
	n.Wrong("%s", yamlfile.Unknown(key, n.Raw(), words))
	return ""
}

// texts returns a list of texts, or a single one.
func (f fields) texts(key string) []string {
	n := f.at(key)
	switch n.Kind() {
	case yamlfile.AbsentNode:
		return nil
	case yamlfile.ListNode:
		if len(n.Items()) == 0 {
			n.Wrong("%s: the list is empty: add an element, or remove the key", key)
		}
		return lo.FilterMap(n.Items(), func(item yamlfile.Node, _ int) (string, bool) { return item.Text() })
	case yamlfile.TextNode, yamlfile.NullNode, yamlfile.NumberNode, yamlfile.BoolNode, yamlfile.MappingNode:
	}
	if text, ok := n.Text(); ok {
		return []string{text}
	}
	return nil
}

// approvers returns who may answer a question, and how many of them must approve.
func (f fields) approvers() (names []string, quorum int) {
	n := f.at("approvers")
	names = f.texts("approvers")
	places := []yamlfile.Node{n}
	if n.Kind() == yamlfile.ListNode {
		places = n.Items()
	}
	if len(places) == len(names) { // otherwise a value is no text, which is reported already
		for i, name := range names {
			switch {
			case name == "":
				places[i].Wrong("approvers: expected the name or the role of a person, got an empty text")
			case strings.TrimSpace(name) != name:
				places[i].Wrong("approvers: %q begins or ends with a space: remove it", name)
			case slices.Contains(names[:i], name):
				places[i].Wrong("approvers: %q is listed twice: remove one of them", name)
			}
		}
	}
	return names, f.number("quorum", 1, mostApprovals, 0)
}

// argv returns a program with its arguments. It must be a list, because the arguments in a single text are not separated
// clearly.
func (f fields) argv() []string {
	if n := f.at("argv"); n.Kind() == yamlfile.TextNode {
		words := lo.Map(strings.Fields(n.Raw()), func(word string, _ int) string { return strconv.Quote(word) })
		n.Wrong("argv: expected a list, such as [%s]: no shell splits a text", strings.Join(words, ", "))
		return []string{n.Raw()}
	}
	return f.texts("argv")
}

// longest is the maximum duration in a file.
const longest = 366 * 24 * time.Hour

// duration returns a duration with a unit, or a number of seconds.
func (f fields) duration(key string) time.Duration {
	n := f.at(key)
	if n.Kind() == yamlfile.AbsentNode {
		return 0
	}
	d, ok := durationOf(n)
	if !ok {
		n.Wrong("%s: expected a time above zero, such as 5s, 10m, or a number of seconds, got %s", key, n)
	}
	return d
}

func durationOf(n yamlfile.Node) (time.Duration, bool) {
	switch n.Kind() {
	case yamlfile.NumberNode:
		s, err := strconv.ParseFloat(n.Raw(), 64)
		if err != nil || math.IsNaN(s) || s <= 0 || s > longest.Seconds() {
			return 0, false
		}
		return time.Duration(s * float64(time.Second)), true
	case yamlfile.TextNode:
		d, err := time.ParseDuration(n.Raw())
		return d, err == nil && d > 0 && d <= longest
	case yamlfile.AbsentNode, yamlfile.NullNode, yamlfile.BoolNode, yamlfile.ListNode, yamlfile.MappingNode:
	}
	return 0, false
}

// stringsOf reads a mapping of texts.
func (f fields) stringsOf(key string) map[string]string {
	n := f.at(key)
	if n.Kind() == yamlfile.AbsentNode {
		return nil
	}
	out := map[string]string{}
	for _, e := range n.Entries() {
		if text, ok := e.Value.Text(); ok {
			out[e.Key.Raw()] = text
		}
	}
	return out
}

// namePattern matches the names of policies, rules and definitions.
const namePattern = `^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`

var nameForm = lazy.Regexp(namePattern)

const namesAre = "use at most 100 letters, digits, _, - and dots, and begin with a letter, a digit or _"

// name returns a valid name, and reports any other text.
func (f fields) name(key string) string {
	text := f.plain(key)
	if text != "" && !nameForm().MatchString(text) {
		f.at(key).Wrong("%s: invalid name %q: %s", key, text, namesAre)
		return ""
	}
	return strings.TrimSpace(text)
}
