package policy

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/samber/lo"

	release "github.com/grapnel-go/grapnel/internal/version"
)

// SchemaVersion is the release of the published schemas. An editor checks a file against the schema of the version that
// the file names.
const SchemaVersion = "v" + release.Next

// SchemaID is the URL of the published policy file schema.
const SchemaID = "https://raw.githubusercontent.com/grapnel-go/grapnel/" + SchemaVersion + "/docs/policy.schema.json"

// Schema returns the JSON Schema for policy files, for editors: it completes keys and points and describes them. Load
// checks more.
func Schema() []byte {
	s := newObject(documentKeys, "policy")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = SchemaID
	s["title"] = "Grapnel policy"
	s["description"] = "Rules that allow, deny, ask, rewrite, redact and act at the moments of an agent's run. See docs/policies.md."
	s["$defs"] = form{
		"entry":    entrySchema(),
		"match":    newObject(matchKeys),
		"waiver":   newObject(waiverKeys, keyNames(waiverKeys)...),
		"defaults": newObject(defaultsKeys),
		"hooks":    hooksSchema(),
	}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // tables of this package
	}
	return append(out, '\n')
}

// newObject returns the schema for a mapping with exactly these keys.
func newObject(keys []key, required ...string) form {
	properties := form{}
	for _, k := range keys {
		properties[k.name] = withDoc(k.form, k.doc)
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
	for _, p := range allPoints() {
		properties[string(p.Name)] = withDoc(entries, "At "+string(p.Name)+" "+p.whatCan()+".")
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
	all := map[string]key{}
	owners := map[string][]string{}
	take := func(owner string, keys []key) {
		for _, k := range keys {
			if known, again := all[k.name]; again && !sameKey(known, k) {
				k.form, k.doc = either(known.form, k.form), lo.Ternary(known.doc == k.doc, k.doc, known.doc+" / "+k.doc)
			}
			all[k.name] = k
			if owner != "" {
				owners[k.name] = append(owners[k.name], owner)
			}
		}
	}
	take("", commonKeys)
	take("", actionCommon)
	take("", decisionCommon)
	for _, d := range decisionNames {
		take(d, decisionKeys()[d])
	}
	for _, t := range actionTypes {
		take(t, actionKeys[t])
	}
	s := newObject(lo.MapToSlice(all, func(_ string, k key) key { return k }))
	s["anyOf"] = []form{{"required": []string{"decision"}}, {"required": []string{"type"}}, {"required": []string{"$ref"}}}
	var conditions []form
	for _, d := range decisionNames {
		conditions = append(conditions, allowedKeys("decision", d, keyNames(commonKeys, decisionCommon, decisionKeys()[d])))
	}
	for _, t := range actionTypes {
		conditions = append(conditions, allowedKeys("type", t, keyNames(commonKeys, actionCommon, actionKeys[t])))
	}
	s["allOf"] = conditions
	return s
}

func sameKey(a, b key) bool {
	return reflect.DeepEqual(a.form, b.form) && a.doc == b.doc
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
