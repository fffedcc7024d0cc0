package provenance

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

const (
	maxParsed = 1 << 20 // in bytes; a longer answer is not parsed for fields and counts as text
	maxDepth  = 64
)

// fieldValue is a value in a tool's answer.
type fieldValue struct {
	path   []string // the lower-case names on the path to it
	value  string
	record int // the number of the mapping in the answer that contains the value, from one; zero outside of mappings
}

// fieldsOf returns every value in a tool's answer. The member names of a mapping are also values, of the field that
// contains the mapping: {"shared_with": {"ann@example.com": "r"}}. Answers are read as JSON or YAML; ok is false for
// any other text.
func fieldsOf(text string) (values []fieldValue, ok bool) {
	if len(text) > maxParsed {
		return nil, false
	}
	text = unwrapAnswer(text)
	if text == "" {
		return nil, false
	}
	var w fieldWalker
	if text[0] == '{' || text[0] == '[' {
		if root, ok := readJSON(text); ok {
			w.walkJSON(root, nil, 0, 0)
			return w.values, true
		}
	}
	var root yaml.Node
	if !strings.ContainsAny(text, ":-{[") {
		return nil, false
	}
	if err := yaml.Load([]byte(text), &root); err != nil || len(root.Content) != 1 || root.Content[0].Kind == yaml.ScalarNode {
		return nil, false
	}
	w.walkYAML(root.Content[0], nil, 0, 0)
	return w.values, true
}

// fieldWalker collects an answer's values.
type fieldWalker struct {
	values  []fieldValue
	records int
}

func (w *fieldWalker) add(path []string, value string, record int) {
	w.values = append(w.values, fieldValue{path, value, record})
}

// unwrapAnswer removes the markers that some defences put around answers to show the model where they begin and end.
func unwrapAnswer(text string) string {
	text = strings.TrimSpace(text)
	for _, pair := range [][2]string{{"<<", ">>"}, {"```json", "```"}, {"```yaml", "```"}, {"```", "```"}} {
		if inner, ok := strings.CutPrefix(text, pair[0]); ok {
			if inner, ok = strings.CutSuffix(inner, pair[1]); ok {
				return strings.Trim(inner, "\r\n")
			}
		}
	}
	return text
}

func readJSON(text string) (root any, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&root) != nil || d.More() {
		return nil, false
	}
	return root, true
}

func (w *fieldWalker) walkJSON(v any, field []string, record, depth int) {
	if depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case string:
		w.add(field, v, record)
	case json.Number:
		w.add(field, v.String(), record)
	case []any:
		for _, element := range v {
			w.walkJSON(element, field, record, depth+1)
		}
	case map[string]any:
		w.records++
		record = w.records
		for _, name := range slices.Sorted(maps.Keys(v)) {
			w.add(field, name, record)
			w.walkJSON(v[name], below(field, name), record, depth+1)
		}
	}
}

func (w *fieldWalker) walkYAML(n *yaml.Node, field []string, record, depth int) {
	if depth > maxDepth {
		return
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag != "!!null" && n.Tag != "!!bool" {
			w.add(field, n.Value, record)
		}
	case yaml.SequenceNode:
		for _, element := range n.Content {
			w.walkYAML(element, field, record, depth+1)
		}
	case yaml.MappingNode:
		w.records++
		record = w.records
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Kind != yaml.ScalarNode {
				continue
			}
			w.add(field, n.Content[i].Value, record)
			w.walkYAML(n.Content[i+1], below(field, n.Content[i].Value), record, depth+1)
		}
	}
}

func below(field []string, name string) []string {
	return append(slices.Clip(field), strings.ToLower(name))
}
