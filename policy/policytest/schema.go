package policytest

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
)

// schemaID is the URL of the published schema of case files.
const schemaID = "https://raw.githubusercontent.com/grapnel-go/grapnel/" + policy.SchemaVersion + "/docs/policy-test.schema.json"

type form = map[string]any

// Schema returns the JSON Schema of case files, for editors. Open checks more.
func Schema() []byte {
	defs := form{}
	s := schemaOf(reflect.TypeFor[suiteFile](), defs)
	if properties, ok := s["properties"].(form); ok {
		properties[yamlfile.FormatKey] = form{"type": "integer", "minimum": 1, "maximum": suiteFormat}
	}
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = schemaID
	s["title"] = "Cases for a Grapnel policy"
	s["description"] = "The expected results of rules for events and transcripts. See docs/policy-testing.md."
	s["$defs"] = defs
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // tables of this package
	}
	return append(out, '\n')
}

// enumForm returns the schema for a type with fixed values.
func enumForm(list []string) form { return form{"type": "string", "enum": list} }

func textForm() form { return form{"type": "string"} }

// specialForm returns the schema for types with their own ReadNode or Set method.
func specialForm(t reflect.Type, defs form) (form, bool) {
	switch t {
	case reflect.TypeFor[Value](), reflect.TypeFor[response]():
		return form{}, true
	case reflect.TypeFor[Arguments]():
		return form{"type": []string{"object", "string"}}, true
	case reflect.TypeFor[wantedText]():
		return form{"type": "string", "description": "The text itself, or a /regular expression/ that matches in it."}, true
	case reflect.TypeFor[Time]():
		return textForm(), true
	case reflect.TypeFor[time.Duration]():
		return form{"type": "string", "pattern": "^[0-9.]+(ns|us|ms|s|m|h)"}, true
	case reflect.TypeFor[pathList]():
		return form{"type": []string{"string", "array"}, "items": textForm()}, true
	case reflect.TypeFor[Point]():
		names := lo.Map(hooks.PointNames(), func(p hooks.PointName, _ int) string { return string(p) })
		return form{"anyOf": []form{enumForm(names), {"type": "string", "description": "A point by its name in another system."}}}, true
	case reflect.TypeFor[ToolResult]():
		return orText(t, textForm(), defs), true
	case reflect.TypeFor[expectation]():
		return orText(t, enumForm(decisions), defs), true
	case reflect.TypeFor[injectedFault]():
		return orText(t, enumForm(faults), defs), true
	}
	return nil, false
}

// orText returns the schema for a type that a single word may replace.
func orText(t reflect.Type, word form, defs form) form {
	return form{"anyOf": []form{word, objectForm(t, defs)}}
}

func schemaOf(t reflect.Type, defs form) form {
	if f, ok := specialForm(t, defs); ok {
		return f
	}
	switch t.Kind() {
	case reflect.Bool:
		return form{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return form{"type": "integer"}
	case reflect.Float64:
		return form{"type": "number"}
	case reflect.Pointer:
		return schemaOf(t.Elem(), defs)
	case reflect.Slice:
		return form{"type": "array", "items": schemaOf(t.Elem(), defs)}
	case reflect.Map:
		return form{"type": "object", "additionalProperties": schemaOf(t.Elem(), defs)}
	case reflect.Struct:
		return objectForm(t, defs)
	}
	return textForm()
}

// objectForm returns a struct's schema. It adds named structs to the definitions.
func objectForm(t reflect.Type, defs form) form {
	if t == reflect.TypeFor[suiteFile]() {
		return propertyForms(t, defs)
	}
	if _, known := defs[t.Name()]; !known {
		defs[t.Name()] = form{} // for recursive types
		defs[t.Name()] = propertyForms(t, defs)
	}
	return form{"$ref": "#/$defs/" + t.Name()}
}

func propertyForms(t reflect.Type, defs form) form {
	all := form{}
	for _, k := range yamlfile.Keys(t) {
		for f := range t.Fields() {
			if keyOf(f) == k.Name {
				all[k.Name] = schemaOf(f.Type, defs)
			}
		}
	}
	out := form{"type": "object", "additionalProperties": false, "properties": all}
	if required := yamlfile.RequiredKeys(t); len(required) > 0 {
		out["required"] = required
	}
	return out
}

// keyOf returns a field's key.
func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("key"), ",")
	return key
}
