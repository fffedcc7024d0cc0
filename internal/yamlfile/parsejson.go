package yamlfile

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

// parseJSON parses one JSON value into a tree like a YAML file's.
func (f *File) parseJSON(text []byte) *yaml.Node {
	p := &jsonTree{text: text, tokens: json.NewDecoder(bytes.NewReader(text))}
	p.tokens.UseNumber()
	root, err := p.readValue(0)
	at := p.next()
	if errors.Is(err, io.EOF) && len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	if err == nil {
		if _, more := p.tokens.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("unexpected text after the end of the object")
		}
	}
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("unexpected end of the file")
		}
		f.At(p.positionOf(at)).Wrong("this is not JSON: %v", err)
		return nil
	}
	return root
}

// jsonTree builds a tree with positions from JSON tokens.
type jsonTree struct {
	text   []byte
	tokens *json.Decoder

	counted, line, lineStart int // lines are counted up to the offset counted
}

// next returns the offset of the next token.
func (p *jsonTree) next() int {
	at := int(p.tokens.InputOffset())
	for at < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[at]) >= 0 {
		at++
	}
	return at
}

func (p *jsonTree) positionOf(offset int) Position {
	offset = min(offset, len(p.text))
	for ; p.counted < offset; p.counted++ {
		if p.text[p.counted] == '\n' {
			p.line, p.lineStart = p.line+1, p.counted+1
		}
	}
	return Position{p.line + 1, utf8.RuneCount(p.text[min(p.lineStart, offset):offset]) + 1}
}

func (p *jsonTree) readValue(depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	at := p.positionOf(p.next())
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
		for p.tokens.More() { // an object yields its names and values in turn
			child, err := p.readValue(depth + 1)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err = p.tokens.Token()
	}
	return node, err
}
