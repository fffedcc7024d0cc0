package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/samber/lo"
)

// anyObject is the schema of a tool without parameters.
const anyObject = `{"type":"object","properties":{}}`

// combining lists the keywords that services refuse at the top of a tool's schema, although JSON Schema allows them
// there.
var combining = []string{"$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else"}

// ToolSchema returns a tool's parameters in the format that services accept: at the top an object with its members,
// without alternatives. Most schemas are sent unchanged. Otherwise, the members of all alternatives become members of
// the object, required if every alternative requires them. The description then lists the alternatives. The arguments
// are checked against the original schema before a tool runs. An error completes "the parameters of tool …".
func ToolSchema(schema string) (string, error) {
	if schema == "" {
		return anyObject, nil
	}
	if !IsObject(schema) {
		return "", errors.New("are not a JSON object")
	}
	top := fieldsOf([]byte(schema))
	kind, typed := top.get("type")
	if typed && !allowsObject(kind) {
		return "", errors.New(`do not describe an object: the type of the schema must be "object"`)
	}
	_, listed := top.get("properties")
	combined := slices.ContainsFunc(top, func(f field) bool { return slices.Contains(combining, f.name) })
	if string(kind) == `"object"` && listed && !combined {
		return schema, nil
	}
	m := merging{root: top}
	return m.object(m.flatten(top, 0)), nil
}

// allowsObject reports whether a type, or one of several, is object.
func allowsObject(kind json.RawMessage) bool {
	var several []string
	return string(kind) == `"object"` || json.Unmarshal(kind, &several) == nil && slices.Contains(several, "object")
}

// field is a member of a JSON object.
type field struct {
	name  string
	value json.RawMessage
}

type fields []field

// fieldsOf returns an object's members in their order; nil for any other value.
func fieldsOf(raw []byte) (out fields) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := dec.Token(); err != nil || begin != json.Delim('{') {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return out
		}
		text, _ := name.(string)
		out = append(out, field{text, value})
	}
	return out
}

func (f fields) get(name string) (json.RawMessage, bool) {
	i := slices.IndexFunc(f, func(one field) bool { return one.name == name })
	if i < 0 {
		return nil, false
	}
	return f[i].value, true
}

// list returns a member's elements; nil when the member is not a list.
func (f fields) list(name string) (out []json.RawMessage) {
	raw, _ := f.get(name)
	_ = json.Unmarshal(raw, &out)
	return out
}

// text returns a member that is text; "" for any other.
func (f fields) text(name string) (out string) {
	raw, _ := f.get(name)
	_ = json.Unmarshal(raw, &out)
	return out
}

// names returns a list's elements as text; nil when it is not a list of texts.
func (f fields) names(name string) (out []string) {
	raw, _ := f.get(name)
	_ = json.Unmarshal(raw, &out)
	return out
}

// merging merges a schema's parts into one object.
type merging struct {
	root   fields
	merged int // the number of schemas so far
}

// The limits for merging. Parts beyond them are described, and their members are not listed.
const (
	mergeDepth = 8
	mergeCount = 500
)

// members are an object's members, in their order, with their schemas.
type members struct {
	names    []string
	schemas  map[string][]string
	required []string
}

func (m *members) add(name, schema string) {
	if m.schemas == nil {
		m.schemas = map[string][]string{}
	}
	if _, ok := m.schemas[name]; !ok {
		m.names = append(m.names, name)
	}
	if !slices.Contains(m.schemas[name], schema) {
		m.schemas[name] = append(m.schemas[name], schema)
	}
}

func (m *members) addAll(other members) {
	for _, name := range other.names {
		for _, schema := range other.schemas[name] {
			m.add(name, schema)
		}
	}
}

func (m *members) require(names ...string) {
	for _, name := range names {
		if !slices.Contains(m.required, name) {
			m.required = append(m.required, name)
		}
	}
}

// flatten returns the members of a schema, including all its parts about the same object.
func (m *merging) flatten(schema fields, depth int) (out members) {
	if m.merged++; depth > mergeDepth || m.merged > mergeCount {
		return out
	}
	properties, _ := schema.get("properties")
	for _, property := range fieldsOf(properties) {
		out.add(property.name, compactJSON(property.value))
	}
	out.require(schema.names("required")...)
	all := schema.list("allOf")
	if ref := schema.text("$ref"); ref != "" {
		all = append(all, m.resolve(ref))
	}
	for _, part := range all {
		inner := m.flatten(fieldsOf(part), depth+1)
		out.addAll(inner)
		out.require(inner.required...)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		var always []string // what every alternative requires
		for i, part := range schema.list(word) {
			inner := m.flatten(fieldsOf(part), depth+1)
			out.addAll(inner)
			if i == 0 {
				always = slices.Clone(inner.required)
			}
			always = slices.DeleteFunc(always, func(name string) bool { return !slices.Contains(inner.required, name) })
		}
		out.require(always...)
	}
	for _, word := range []string{"then", "else"} {
		if part, ok := schema.get(word); ok {
			out.addAll(m.flatten(fieldsOf(part), depth+1))
		}
	}
	return out
}

// resolve returns the schema that a reference inside the document names; nil when there is none.
func (m *merging) resolve(ref string) (at json.RawMessage) {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	inside := m.root
	for step := range strings.SplitSeq(path, "/") {
		at, _ = inside.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		inside = fieldsOf(at)
	}
	return at
}

// object returns the schema as an object with the members and its other keywords. It describes the removed keywords.
func (m *merging) object(all members) string {
	var described, properties []string
	out := bytes.NewBufferString(`{"type":"object"`)
	set := func(name, raw string) { out.WriteString("," + quote(name) + ":" + raw) }
	for _, f := range m.root {
		switch {
		case slices.Contains(combining, f.name):
			described = append(described, quote(f.name)+":"+compactJSON(f.value))
		case f.name == "additionalProperties" && string(f.value) == "false": // it would forbid members of alternatives
		case !slices.Contains([]string{"type", "properties", "required", "description"}, f.name):
			set(f.name, string(f.value))
		}
	}
	for _, name := range all.names {
		schema := all.schemas[name][0]
		if len(all.schemas[name]) > 1 {
			schema = `{"anyOf":[` + strings.Join(all.schemas[name], ",") + `]}`
		}
		properties = append(properties, quote(name)+":"+schema)
	}
	set("properties", "{"+strings.Join(properties, ",")+"}")
	if len(all.required) > 0 {
		set("required", "["+strings.Join(lo.Map(all.required, func(name string, _ int) string { return quote(name) }), ",")+"]")
	}
	description := m.root.text("description")
	if len(described) > 0 {
		description = strings.TrimSpace(description + "\nThe arguments must also match this JSON Schema: {" + strings.Join(described, ",") + "}")
	}
	if description != "" {
		set("description", quote(description))
	}
	return out.String() + "}"
}

func quote(text string) string {
	raw, _ := json.Marshal(text) //nolint:errchkjson // a string
	return string(raw)
}

func compactJSON(raw []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}
