package yamlfile

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Kind is what a Node is.
type Kind int

// The kinds of nodes. AbsentNode is that of the zero Node, which is in no file.
const (
	AbsentNode Kind = iota
	NullNode
	TextNode
	NumberNode
	BoolNode
	ListNode
	MappingNode
)

// Node is one value of a file with its place. It may be kept for later problems.
type Node struct {
	file *File
	y    *yaml.Node
}

// Kind returns what the node is.
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

// Raw returns a text, number or bool as it is written, without quotes; empty for others.
func (n Node) Raw() string {
	if n.y == nil {
		return ""
	}
	return n.y.Value
}

// Text returns what the node says, if it is a text; if it is not, that is a problem.
func (n Node) Text() (string, bool) {
	switch n.Kind() {
	case TextNode:
		return n.y.Value, true
	case NumberNode, BoolNode:
		n.Wrong("expected text, got %s: put it in quotes if it is meant so", n.y.Value)
	default:
		n.Wrong("expected text, got %s", n)
	}
	return "", false
}

// Items returns the values of a list; if it is none, that is a problem.
func (n Node) Items() []Node {
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

// Entry is a name in a mapping and what stands under it.
type Entry struct{ Key, Value Node }

// Entries returns the names and values of a mapping in their order, each name once; if it is
// none, that is a problem.
func (n Node) Entries() []Entry {
	if n.Kind() != MappingNode {
		n.Wrong("expected keys with values, got %s", n)
		return nil
	}
	seen := map[string]bool{}
	var out []Entry
	for i := 0; i+1 < len(n.y.Content); i += 2 {
		key, value := n.y.Content[i], n.y.Content[i+1]
		if notKey(key) || seen[key.Value] {
			continue // told of already
		}
		seen[key.Value] = true
		if !isRefused(value) {
			out = append(out, Entry{Node{n.file, key}, Node{n.file, value}})
		}
	}
	return out
}

// Find returns the node below a path of keys and indexes of lists; the zero Node when there
// is none.
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

func (n Node) child(key string) Node {
	for _, e := range n.Entries() {
		if e.Key.Raw() == key {
			return e.Value
		}
	}
	return Node{}
}

// Value returns the node as the values that JSON knows: nil, bool, json.Number, string,
// []any and map[string]any. A number that JSON cannot write is a problem.
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

// Place returns where the node stands; nowhere for the zero Node.
func (n Node) Place() Place {
	if n.y == nil {
		return Place{}
	}
	return Place{n.file, Position{n.y.Line, n.y.Column}, n.width()}
}

// Wrong adds a problem with the node to those of its file. A %w in the format makes an
// error the cause of the problem.
func (n Node) Wrong(format string, args ...any) { n.Place().Wrong(format, args...) }

// Hide keeps what the node says, and what stands behind it in its line, out of what is
// shown of the line: it may be a secret.
func (n Node) Hide() {
	if from, already := n.file.hidden[n.y.Line]; !already || n.y.Column < from {
		n.file.hidden[n.y.Line] = n.y.Column
	}
}

// width returns how many characters of its line the node takes, about.
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

// String returns what the node is, in few words, for the text of a problem.
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
