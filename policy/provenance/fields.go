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

// eachField calls f for every value in a tool's answer, with the lower-case names on the path to it. The names of a
// mapping's members are values too, of the field that holds the mapping: {"shared_with": {"ann@example.com": "r"}}.
// Answers are read as JSON or YAML. For any other text it returns false without calling f.
func eachField(text string, f func(field []string, value string)) bool {
	if len(text) > maxParsed {
		return false
	}
	text = unwrapAnswer(text)
	if text == "" {
		return false
	}
	if text[0] == '{' || text[0] == '[' {
		if root, ok := readJSON(text); ok {
			walkJSON(root, nil, 0, f)
			return true
		}
	}
	var root yaml.Node
	if !strings.ContainsAny(text, ":-{[") {
		return false
	}
	if err := yaml.Load([]byte(text), &root); err != nil || len(root.Content) != 1 || root.Content[0].Kind == yaml.ScalarNode {
		return false
	}
	walkYAML(root.Content[0], nil, 0, f)
	return true
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

func walkJSON(v any, field []string, depth int, f func([]string, string)) {
	if depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case string:
		f(field, v)
	case json.Number:
		f(field, v.String())
	case []any:
		for _, element := range v {
			walkJSON(element, field, depth+1, f)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			f(field, name)
			walkJSON(v[name], below(field, name), depth+1, f)
		}
	}
}

func walkYAML(n *yaml.Node, field []string, depth int, f func([]string, string)) {
	if depth > maxDepth {
		return
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag != "!!null" && n.Tag != "!!bool" {
			f(field, n.Value)
		}
	case yaml.SequenceNode:
		for _, element := range n.Content {
			walkYAML(element, field, depth+1, f)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Kind != yaml.ScalarNode {
				continue
			}
			f(field, n.Content[i].Value)
			walkYAML(n.Content[i+1], below(field, n.Content[i].Value), depth+1, f)
		}
	}
}

func below(field []string, name string) []string {
	return append(slices.Clip(field), strings.ToLower(name))
}
