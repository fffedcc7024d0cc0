package yamlfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Writer is a type that defines how it is written: YAMLValue returns a value of simpler types to write instead.
type Writer interface{ YAMLValue() any }

// Pairs is a mapping that keeps the order of its keys.
type Pairs []Pair

// Pair is a key and its value.
type Pair struct {
	Key   string
	Value any
}

// Encode writes a value in the format that Decode reads: JSON if the name ends in .json, otherwise YAML. It omits
// fields with zero values. Struct keys are in field order, map keys are sorted.
func Encode(name string, from any) ([]byte, error) {
	tree, err := encodeValue(reflect.ValueOf(from))
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(filepath.Ext(name), ".json") {
		var compact, out bytes.Buffer
		if err := writeJSON(&compact, tree); err != nil {
			return nil, err
		}
		if err := json.Indent(&out, compact.Bytes(), "", "  "); err != nil {
			return nil, fmt.Errorf("writing JSON: %w", err)
		}
		out.WriteByte('\n')
		return out.Bytes(), nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(tree); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return out.Bytes(), nil
}

func scalarNode(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

func textNode(text string) *yaml.Node {
	n := scalarNode("!!str", text)
	if strings.ContainsAny(text, "\r\u0085\u2028\u2029\ufeff") {
		n.Style = yaml.DoubleQuotedStyle // other styles fold these characters
	}
	return n
}

func numberNode(text string) *yaml.Node {
	if strings.ContainsAny(text, ".eE") {
		return scalarNode("!!float", text)
	}
	return scalarNode("!!int", text)
}

// encodeValue returns the tree of a value.
func encodeValue(v reflect.Value) (*yaml.Node, error) {
	if !v.IsValid() {
		return scalarNode("!!null", "null"), nil
	}
	switch from := v.Interface().(type) {
	case Writer:
		return encodeValue(reflect.ValueOf(from.YAMLValue()))
	case Pairs:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, p := range from {
			value, err := encodeValue(reflect.ValueOf(p.Value))
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, textNode(p.Key), value)
		}
		return n, nil
	case json.Number:
		return numberNode(from.String()), nil
	case time.Duration:
		return textNode(from.String()), nil
	}
	switch v.Kind() {
	case reflect.String:
		return textNode(v.String()), nil
	case reflect.Bool:
		return scalarNode("!!bool", strconv.FormatBool(v.Bool())), nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return numberNode(strconv.FormatInt(v.Int(), 10)), nil
	case reflect.Float64:
		return numberNode(strconv.FormatFloat(v.Float(), 'g', -1, 64)), nil
	case reflect.Pointer, reflect.Interface:
		return encodeValue(v.Elem())
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for i := range v.Len() {
			item, err := encodeValue(v.Index(i))
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		return n, nil
	case reflect.Map:
		return encodedMap(v)
	case reflect.Struct:
		return encodedStruct(v)
	}
	return nil, fmt.Errorf("writing a file: cannot encode a %s", v.Type())
}

func encodedMap(v reflect.Value) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		value, err := encodeValue(v.MapIndex(key))
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, textNode(key.String()), value)
	}
	return n, nil
}

func encodedStruct(v reflect.Value) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, key := range Keys(v.Type()) {
		field := v.FieldByIndex(key.index)
		if field.IsZero() {
			continue
		}
		value, err := encodeValue(field)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, textNode(key.Name), value)
	}
	return n, nil
}

// writeJSON writes a tree and keeps the order of its keys.
func writeJSON(out *bytes.Buffer, n *yaml.Node) error {
	switch {
	case n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode:
		open, end := byte('['), byte(']')
		if n.Kind == yaml.MappingNode {
			open, end = '{', '}'
		}
		out.WriteByte(open)
		for i, child := range n.Content {
			switch {
			case n.Kind == yaml.MappingNode && i%2 == 1:
				out.WriteByte(':')
			case i > 0:
				out.WriteByte(',')
			}
			if err := writeJSON(out, child); err != nil {
				return err
			}
		}
		out.WriteByte(end)
		return nil
	case n.Tag != "!!str":
		out.WriteString(n.Value)
		return nil
	}
	text, err := json.Marshal(n.Value)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	out.Write(text)
	return nil
}
