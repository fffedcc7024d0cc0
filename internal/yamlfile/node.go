package yamlfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Kind is the kind of a Node.
type Kind int

// The kinds of nodes. AbsentNode is the kind of the zero Node, which is not in a file.
const (
	AbsentNode Kind = iota
	NullNode
	TextNode
	NumberNode
	BoolNode
	ListNode
	MappingNode
)

// Node is one value in a file with its place. Keep it to report a problem later.
type Node struct {
	file *File
	y    *yaml.Node
}

// Kind returns the kind of the node.
func (n Node) Kind() Kind {
	switch {
	case n.y == nil:
		return AbsentNode
	case n.y.Kind == yaml.MappingNode:
		return MappingNode
	case n.y.Kind == yaml.SequenceNode:
		return ListNode
	}
	switch n.y.Tag {
	case "!!null":
		return NullNode
	case "!!bool":
		return BoolNode
	case "!!int", "!!float":
		return NumberNode
	}
	return TextNode
}

// Raw returns a text, number or bool as written, without quotes. It is empty for other nodes.
func (n Node) Raw() string {
	if n.y == nil {
		return ""
	}
	return n.y.Value
}

// Text returns the node's text, and false if the node is not a text. It reports a problem unless the node is absent.
func (n Node) Text() (string, bool) {
	switch n.Kind() {
	case TextNode:
		return n.y.Value, true
	case NumberNode, BoolNode:
		n.Wrong("expected text, got %s: put it in quotes if it is text", n.y.Value)
	case AbsentNode:
	default:
		n.Wrong("expected text, got %s", n)
	}
	return "", false
}

// Items returns a list's values, and none for an absent node. For any other node, it reports a problem.
func (n Node) Items() []Node {
	if n.Kind() == AbsentNode {
		return nil
	}
	if n.Kind() != ListNode {
		n.Wrong("expected a list, such as [a, b], got %s", n)
		return nil
	}
	out := make([]Node, 0, len(n.y.Content))
	for _, item := range n.y.Content {
		if !isRefused(item) {
			out = append(out, Node{n.file, item})
		}
	}
	return out
}

// Entry is a key in a mapping with its value.
type Entry struct{ Key, Value Node }

// Entries returns the keys and values of a mapping in order, each key once, and none for an absent node. For any
// other node, it reports a problem.
func (n Node) Entries() []Entry {
	if n.Kind() == AbsentNode {
		return nil
	}
	if n.Kind() != MappingNode {
		n.Wrong("expected keys with values, got %s", n)
		return nil
	}
	seen := map[string]bool{}
	var out []Entry
	for i := 0; i+1 < len(n.y.Content); i += 2 {
		key, value := n.y.Content[i], n.y.Content[i+1]
		if notKey(key) || seen[key.Value] {
			continue // reported before
		}
		seen[key.Value] = true
		if !isRefused(value) {
			out = append(out, Entry{Node{n.file, key}, Node{n.file, value}})
		}
	}
	return out
}

// Find returns the node at a path of keys and list indexes, or the zero Node.
func (n Node) Find(path ...any) Node {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			if n.Kind() != MappingNode {
				return Node{}
			}
			n = n.child(step)
		case int:
			if n.Kind() != ListNode || step < 0 || step >= len(n.y.Content) {
				return Node{}
			}
			n = Node{n.file, n.y.Content[step]}
		}
	}
	return n
}

// FindPath works like Find for keys and list indexes with slashes between them. Without any, it returns n.
func (n Node) FindPath(path string) Node {
	if path == "" {
		return n
	}
	for step := range strings.SplitSeq(path, "/") {
		if index, err := strconv.Atoi(step); err == nil && n.Kind() == ListNode {
			n = n.Find(index)
			continue
		}
		n = n.Find(step)
	}
	return n
}

func (n Node) child(key string) Node {
	for _, e := range n.Entries() {
		if e.Key.Raw() == key {
			return e.Value
		}
	}
	return Node{}
}

// Value returns the node's value as JSON types: nil, bool, json.Number, string, []any or map[string]any. It reports a
// problem for a number that JSON cannot express.
func (n Node) Value() any {
	switch n.Kind() {
	case MappingNode:
		out := map[string]any{}
		for _, e := range n.Entries() {
			out[e.Key.Raw()] = e.Value.Value()
		}
		return out
	case ListNode:
		out := []any{}
		for _, item := range n.Items() {
			out = append(out, item.Value())
		}
		return out
	case BoolNode:
		if b, err := strconv.ParseBool(n.y.Value); err == nil {
			return b
		}
	case NumberNode:
		if json.Valid([]byte(n.y.Value)) {
			return json.Number(n.y.Value)
		}
		n.Wrong("expected a number as JSON writes it, got %s: put it in quotes if it is text", n.y.Value)
		return nil
	case TextNode:
		return n.y.Value
	case NullNode, AbsentNode:
	}
	return nil
}

// ComparedValue works like Value for a value that is compared with others, perhaps with strings. It reports unquoted
// scalars that YAML does not keep as written: 1.10 is the number 1.1, 4e3 is 4000, ~ is null and True is true. In
// JSON files, every string is quoted, so nothing is reported.
func (n Node) ComparedValue() any {
	n.reportChanged()
	return n.Value()
}

// reportChanged reports the node's scalars that YAML does not keep as written.
func (n Node) reportChanged() {
	if n.y == nil || n.file.isJSON {
		return
	}
	written := n.y.Value
	switch n.Kind() {
	case ListNode:
		for _, item := range n.Items() {
			item.reportChanged()
		}
	case MappingNode:
		for _, e := range n.Entries() {
			e.Value.reportChanged()
		}
	case NumberNode:
		switch short, err := strictjson.ShortestNumber(written); {
		case !json.Valid([]byte(written)): // Value reports it
		case err != nil:
			n.Wrong("unquoted, %s is a number: write %q for the text", written, written)
		case short != written:
			n.Wrong("unquoted, %s is the number %s: write %q for the text, or %s for the number", written, short, written, short)
		}
	case NullNode:
		if written != "null" && written != "" {
			n.Wrong("unquoted, %s is null: write %q for the text, or null", written, written)
		}
	case BoolNode:
		if lower := strings.ToLower(written); lower != written {
			n.Wrong("unquoted, %s is %s: write %q for the text, or %s", written, lower, written, lower)
		}
	case TextNode:
		if _, err := strconv.ParseFloat(written, 64); n.y.Style == 0 && errors.Is(err, strconv.ErrRange) {
			n.Wrong("unquoted, %s is a number that is too large: write %q for the text", written, written)
		}
	case AbsentNode:
	}
}

// Place returns the node's place. It is the zero Place for the zero Node.
func (n Node) Place() Place {
	if n.y == nil {
		return Place{}
	}
	return Place{n.file, Position{n.y.Line, n.y.Column}, n.width()}
}

// Wrong reports a problem at the node. A %w in the format sets the cause of the problem.
func (n Node) Wrong(format string, args ...any) { n.Place().Wrong(format, args...) }

// Hide omits the node and the rest of its line from shown lines, because the text may be a secret.
func (n Node) Hide() {
	if from, already := n.file.hidden[n.y.Line]; !already || n.y.Column < from {
		n.file.hidden[n.y.Line] = n.y.Column
	}
}

// width returns the approximate number of characters that the node takes in its line.
func (n Node) width() int {
	if n.y.Kind != yaml.ScalarNode || n.y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return 1
	}
	first, _, _ := strings.Cut(n.y.Value, "\n")
	width := len([]rune(first))
	if n.y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		width += 2
	}
	return width
}

// String describes the node in a few words, for a problem.
func (n Node) String() string {
	switch n.Kind() {
	case MappingNode:
		return "a mapping"
	case ListNode:
		return "a list"
	case NullNode, AbsentNode:
		return "nothing"
	case TextNode, NumberNode, BoolNode:
	}
	if text := []rune(n.y.Value); len(text) > 40 {
		return fmt.Sprintf("%q…", string(text[:40]))
	}
	return fmt.Sprintf("%q", n.y.Value)
}
