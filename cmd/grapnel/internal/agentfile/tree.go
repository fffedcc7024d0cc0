package agentfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Limits of what is read.
const (
	maxBytes = 1 << 20
	maxDepth = 50
)

// parseYAML reads one document. It is nil when there is none.
func (d *decoder) parseYAML(text []byte) *yaml.Node {
	var document, second yaml.Node
	source := yaml.NewDecoder(bytes.NewReader(text))
	err := source.Decode(&document)
	if err == nil && !errors.Is(source.Decode(&second), io.EOF) {
		d.at(Position{second.Line, second.Column}, 3, "a second document begins here: an agent file is one document")
		return nil
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		d.notYAML(err)
		return nil
	case len(document.Content) == 0:
		return nil
	}
	return document.Content[0]
}

func (d *decoder) notYAML(err error) {
	wrong, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		d.at(Position{1, 1}, 0, "this is not YAML: %v", err)
		return
	}
	message := wrong.Message
	if strings.Contains(message, "cannot start any token") && strings.HasPrefix(strings.TrimLeft(d.line(wrong.Mark.Line), " "), "\t") {
		message += ": indent with spaces, not with tabs"
	}
	d.at(Position{max(wrong.Mark.Line, 1), max(wrong.Mark.Column, 1)}, 1, "this is not YAML: %s", message)
}

// parseJSON reads one JSON value as a tree of the same form.
func (d *decoder) parseJSON(text []byte) *yaml.Node {
	p := &jsonTree{text: text, tokens: json.NewDecoder(bytes.NewReader(text))}
	p.tokens.UseNumber()
	root, err := p.value(0)
	at := p.next()
	if errors.Is(err, io.EOF) && len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	if err == nil {
		if _, more := p.tokens.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something stands behind the end of the object")
		}
	}
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ends in the middle")
		}
		d.at(p.place(at), 1, "this is not JSON: %v", err)
		return nil
	}
	return root
}

// jsonTree makes a tree with positions of JSON tokens.
type jsonTree struct {
	text   []byte
	tokens *json.Decoder

	counted, line, lineStart int // how far lines are counted
}

// next is the offset of the next token.
func (p *jsonTree) next() int {
	at := int(p.tokens.InputOffset())
	for at < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[at]) >= 0 {
		at++
	}
	return at
}

func (p *jsonTree) place(offset int) Position {
	offset = min(offset, len(p.text))
	for ; p.counted < offset; p.counted++ {
		if p.text[p.counted] == '\n' {
			p.line, p.lineStart = p.line+1, p.counted+1
		}
	}
	return Position{p.line + 1, utf8.RuneCount(p.text[min(p.lineStart, offset):offset]) + 1}
}

func (p *jsonTree) value(depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	at := p.place(p.next())
	token, err := p.tokens.Token()
	if err != nil {
		return nil, err
	}
	node := &yaml.Node{Kind: yaml.ScalarNode, Line: at.Line, Column: at.Column}
	switch token := token.(type) {
	case nil:
		node.Tag, node.Value = "!!null", "null"
	case bool:
		node.Tag, node.Value = "!!bool", strconv.FormatBool(token)
	case json.Number:
		node.Tag, node.Value = "!!int", token.String()
		if strings.ContainsAny(node.Value, ".eE") {
			node.Tag = "!!float"
		}
	case string:
		node.Tag, node.Value, node.Style = "!!str", token, yaml.DoubleQuotedStyle
	case json.Delim:
		node.Kind, node.Tag = yaml.SequenceNode, "!!seq"
		if token == '{' {
			node.Kind, node.Tag = yaml.MappingNode, "!!map"
		}
		for p.tokens.More() { // of an object these are its names and values in turn
			child, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err = p.tokens.Token()
	}
	return node, err
}

// refuse reports what a tree must not have: aliases, anchors, merge keys, tags of
// one's own, keys that are no text, and depth without end.
func (d *decoder) refuse(n *yaml.Node, depth int) {
	switch {
	case depth > maxDepth:
		d.wrong(n, "nested more than %d deep", maxDepth)
		return
	case n.Kind == yaml.AliasNode:
		d.wrong(n, "aliases are not read: write the value out instead of *%s", n.Value)
		return
	case n.Anchor != "":
		d.wrong(n, "anchors are not read: leave &%s away and write the value out where it is needed", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		d.wrong(n, "tags are not read: leave %s away", n.Tag)
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			switch {
			case child.Tag == "!!merge":
				d.wrong(child, "merge keys are not read: write the keys out instead of <<")
				continue
			case child.Kind != yaml.ScalarNode:
				d.wrong(child, "a key must be a word")
				continue
			}
		}
		d.refuse(child, depth+1)
	}
}
