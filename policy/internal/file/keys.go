package file

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks/pii"
	"github.com/grapnel-go/grapnel/hooks/redact"
	"github.com/grapnel-go/grapnel/policy/internal/points"
)

// key is a key of a mapping, from the tags of the field that it is read into:
//
//   - key is its name, and doc its description in the schema.
//   - words are the texts that it accepts, and range is the smallest and the largest whole number.
//   - form is the name of a form below, if the field's type does not say which values it accepts.
type key struct {
	name, doc, form string
	words           []string
	least, most     int
	index           []int
	of              reflect.Type
}

var keysByType sync.Map // []key by reflect.Type

// keysOf returns the keys that a struct type reads.
func keysOf(t reflect.Type) []key {
	if known, ok := keysByType.Load(t); ok {
		return known.([]key) //nolint:forcetypeassert // stored below
	}
	keys := lo.FilterMap(reflect.VisibleFields(t), func(f reflect.StructField, _ int) (key, bool) {
		k := key{name: f.Tag.Get("key"), doc: f.Tag.Get("doc"), form: f.Tag.Get("form"), index: f.Index, of: f.Type}
		if words := f.Tag.Get("words"); words != "" {
			k.words = strings.Fields(words)
		}
		_, _ = fmt.Sscan(f.Tag.Get("range"), &k.least, &k.most)
		switch k.form {
		case "decision":
			k.words = points.Decisions
		case "type":
			k.words = lo.Map(actionKeys, func(o own, _ int) string { return o.name })
		}
		return k, k.name != ""
	})
	keysByType.Store(t, keys)
	return keys
}

// keysIn returns the keys that structs read.
func keysIn(structs ...any) []key {
	return lo.FlatMap(structs, func(s any, _ int) []key {
		if s == nil {
			return nil // a decision without keys of its own
		}
		return keysOf(reflect.TypeOf(s))
	})
}

// keyNames returns the names of the keys that structs read.
func keyNames(structs ...any) []string {
	return lo.Map(keysIn(structs...), func(k key, _ int) string { return k.name })
}

// form is a JSON Schema.
type form map[string]any

func list(of form) form { return form{"type": "array", "items": of, "minItems": 1} }

func either(forms ...form) form { return form{"anyOf": forms} }

func oneOf(words ...string) form { return form{"type": "string", "enum": words} }

func newMapping(of form) form { return form{"type": "object", "additionalProperties": of} }

func inDefs(name string) form { return form{"$ref": "#/$defs/" + name} }

func wholeForm(least, most int) form {
	return form{"type": "integer", "minimum": least, "maximum": most}
}

// forms returns the forms by their names and by Go types.
var forms = sync.OnceValue(func() map[string]form {
	text, flag, object := form{"type": "string"}, form{"type": "boolean"}, form{"type": "object"}
	texts, cel, seconds := either(text, list(text)), form{"type": []string{"string", "boolean"}}, form{"type": "number", "exclusiveMinimum": 0}
	depth := wholeForm(0, 1000)
	return map[string]form{
		"any":           {},
		"argv":          list(text),
		"cel":           cel,
		"cels":          newMapping(cel),
		"defaults":      inDefs("defaults"),
		"definitions":   newMapping(inDefs("entry")),
		"depth":         either(depth, form{"type": "object", "additionalProperties": false, "properties": form{"min": depth, "max": depth}}),
		"hooks":         inDefs("hooks"),
		"loose":         text,
		"match":         inDefs("match"),
		"matches":       list(inDefs("match")),
		"matches, none": {"type": "array", "items": inDefs("match")},
		"name":          {"type": []string{"string", "number"}, "pattern": namePattern},
		"object":        object,
		"people":        texts,
		"pii":           either(flag, list(oneOf(pii.Kinds()...))),
		"plain":         {"type": []string{"string", "number", "boolean"}},
		"priority":      either(oneOf("guard", "infrastructure", "user", "afterwork"), wholeForm(-1000, 1000)),
		"seconds":       seconds,
		"secrets":       either(flag, list(oneOf(redact.Kinds()...))),
		"text":          text,
		"texts":         texts,
		"variables":     {"type": "object", "propertyNames": form{"pattern": Identifier.String()}},
		"waiver":        inDefs("waiver"),

		"string":                  text,
		"bool":                    flag,
		"*bool":                   flag,
		"[]string":                texts,
		"map[string]string":       newMapping(text),
		"map[string]interface {}": object,
		"interface {}":            {},
		"time.Duration":           either(seconds, form{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`}),
	}
})

// valueForm returns the schema of the key's value.
func (k key) valueForm() form {
	switch {
	case k.words != nil:
		return oneOf(k.words...)
	case k.form == "" && k.most > 0:
		return wholeForm(k.least, k.most)
	}
	return forms()[cmp.Or(k.form, k.of.String())]
}
