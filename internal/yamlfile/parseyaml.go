package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// parseYAML parses one document. It returns nil if the text has none.
func (f *File) parseYAML(text []byte) *yaml.Node {
	var document, second yaml.Node
	source := yaml.NewDecoder(bytes.NewReader(text))
	err := source.Decode(&document)
	if err == nil && !errors.Is(source.Decode(&second), io.EOF) {
		f.At(Position{second.Line, second.Column}).Wide(3).Wrong("a second document begins here: a file is one document")
		return nil
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		f.notYAML(text, err)
		return nil
	case len(document.Content) == 0:
		return nil
	}
	return document.Content[0]
}

func (f *File) notYAML(text []byte, err error) {
	if place, what := oddByte(text); what != "" {
		f.At(place).Wrong("this is not YAML: %s", what)
		return
	}
	wrong, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		f.At(Position{1, 1}).Wrong("this is not YAML: %v", err)
		return
	}
	message := wrong.Message
	if strings.Contains(message, "cannot start any token") && strings.HasPrefix(strings.TrimLeft(f.line(wrong.Mark.Line), " "), "\t") {
		message += ": indent with spaces, not with tabs"
	}
	f.At(Position{max(wrong.Mark.Line, 1), max(wrong.Mark.Column, 1)}).Wrong("this is not YAML: %s", message)
}

// oddByte returns the position and a description of the first byte that YAML does not allow. The YAML parser itself
// reports such a byte at the beginning of the file.
func oddByte(text []byte) (at Position, what string) {
	at = Position{Line: 1, Column: 1}
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			return at, fmt.Sprintf("the byte %#02x is not valid UTF-8", text[0])
		case r < ' ' && !strings.ContainsRune("\t\n\r", r), r == 0x7f:
			return at, fmt.Sprintf("control character %U: write it as an escape in quotes", r)
		case r == '\n', r == '\r' && !bytes.HasPrefix(text, []byte("\r\n")):
			at = Position{Line: at.Line + 1}
		}
		at.Column++
		text = text[size:]
	}
	return Position{}, ""
}

// refuse reports unsupported parts of a tree: aliases, anchors, merge keys, custom tags, keys that are not text or
// occur twice, and too deep nesting. It returns false if the tree is too deep to examine.
func (f *File) refuse(y *yaml.Node, depth int) bool {
	n := Node{f, y}
	switch {
	case depth > maxDepth:
		n.Wrong("nested more than %d deep", maxDepth)
		return false
	case y.Kind == yaml.AliasNode:
		n.Wrong("aliases are not supported: write the value instead of *%s", y.Value)
		return true
	case y.Anchor != "":
		n.Wrong("anchors are not supported: remove &%s and write the value where it is needed", y.Anchor)
	case y.Style&yaml.TaggedStyle != 0:
		n.Wrong("tags are not supported: remove %s", y.Tag)
	}
	shallow := true
	first := map[string]*yaml.Node{}
	for i, child := range y.Content {
		if y.Kind == yaml.MappingNode && i%2 == 0 && f.refuseKey(child, first) {
			continue
		}
		shallow = f.refuse(child, depth+1) && shallow
	}
	return shallow
}

// refuseKey reports a key's problems. First holds the earlier keys.
func (f *File) refuseKey(key *yaml.Node, first map[string]*yaml.Node) bool {
	n := Node{f, key}
	switch earlier, again := first[key.Value]; {
	case key.Tag == "!!merge":
		n.Wrong("merge keys are not supported: write the keys instead of <<")
	case key.Kind != yaml.ScalarNode && key.Kind != yaml.AliasNode:
		n.Wrong("a key must be a word")
	case key.Kind == yaml.ScalarNode && again:
		n.Wrong("the key %q is declared twice: the first is in line %d", key.Value, earlier.Line)
	default:
		first[key.Value] = key
		return false
	}
	return true
}

// isRefused reports whether refuse has reported the value as unsupported.
func isRefused(y *yaml.Node) bool {
	return y.Kind == yaml.AliasNode || y.Style&yaml.TaggedStyle != 0
}

func notKey(y *yaml.Node) bool { return y.Kind != yaml.ScalarNode || y.Tag == "!!merge" }
