package file

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/policy/internal/points"
)

// Schema returns the JSON Schema for policy files.
func Schema(id string) []byte {
	s := newObject(Head{}, "policy")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = id
	s["title"] = "Grapnel policy"
	s["description"] = "Rules that allow, deny, ask, rewrite, redact and act at the moments of an agent's run. See docs/policies.md."
	s["$defs"] = form{
		"entry":    entrySchema(),
		"match":    newObject(Match{}),
		"waiver":   newObject(Waiver{}, keyNames(Waiver{})...),
		"defaults": newObject(Defaults{}),
		"hooks":    hooksSchema(),
	}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // tables of this package
	}
	return append(out, '\n')
}

// newObject returns the schema for a mapping with exactly the keys that a struct reads.
func newObject(of any, required ...string) form {
	properties := form{}
	for _, k := range keysIn(of) {
		properties[k.name] = withDoc(k.valueForm(), k.doc)
	}
	s := form{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// withDoc returns a form with a description.
func withDoc(f form, doc string) form {
	out := form{"description": doc}
	maps.Copy(out, f)
	return out
}

// hooksSchema returns the schema for points, with all their names in policies.
func hooksSchema() form {
	entries := either(inDefs("entry"), form{"type": "array", "items": inDefs("entry")})
	properties := form{}
	for _, p := range points.All() {
		properties[string(p.Name)] = withDoc(entries, "At "+string(p.Name)+" "+p.WhatCan()+".")
	}
	return form{"type": "object", "additionalProperties": entriesOfOtherNames(entries), "properties": properties}
}

// entriesOfOtherNames accepts the many names that other systems have for points. Load checks them.
func entriesOfOtherNames(entries form) form {
	return withDoc(entries, "A point by its name in another system.")
}

// entrySchema returns the schema for a rule or an action. Keys for one decision or one type of action are allowed only
// there; conditions list the required keys.
func entrySchema() form {
	all, docs := map[string]form{}, map[string]string{}
	take := func(of any) {
		for _, k := range keysIn(of) {
			f, doc := k.valueForm(), k.doc
			if known, again := all[k.name]; again && (docs[k.name] != doc || !reflect.DeepEqual(known, f)) {
				f, doc = either(known, f), lo.Ternary(docs[k.name] == doc, doc, docs[k.name]+" / "+doc)
			}
			all[k.name], docs[k.name] = f, doc
		}
	}
	take(Common{})
	take(Decides{})
	take(Acts{})
	var conditions []form
	for _, d := range decisionKeys {
		take(d.keys)
		conditions = append(conditions, allowedKeys("decision", d.name, keyNames(Common{}, Decides{}, d.keys)))
	}
	for _, a := range actionKeys {
		take(a.keys)
		conditions = append(conditions, allowedKeys("type", a.name, keyNames(Common{}, Acts{}, a.keys)))
	}
	for name, doc := range docs {
		all[name] = withDoc(all[name], doc)
	}
	return form{
		"type": "object", "additionalProperties": false, "properties": all, "allOf": conditions,
		"anyOf": []form{{"required": []string{"decision"}}, {"required": []string{"type"}}, {"required": []string{"$ref"}}},
	}
}

// allowedKeys returns a condition that allows keys only if another key has a certain word.
func allowedKeys(name, word string, keys []string) form {
	keys = lo.Uniq(keys)
	slices.Sort(keys)
	return form{
		"if":   form{"properties": form{name: form{"const": word}}, "required": []string{name}},
		"then": form{"propertyNames": form{"enum": keys}},
	}
}
