package file

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/near"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/points"
)

// fileFormat is the supported version of the format of policy files. It changes when a valid file would get another
// meaning.
const fileFormat = 1

// own is a decision or a type of action, with its own keys.
type own struct {
	name string
	keys any // nil if it has none
}

var decisionKeys = lo.Map(points.Decisions, func(d string, _ int) own {
	return own{d, map[string]any{"ask": Ask{}, "rewrite": Rewrite{}, "mock": Mock{}, "replace": Replace{}, "redact": Redact{}}[d]}
})

var actionKeys = []own{
	{"command", Command{}}, {"shell", Shell{}}, {"http", HTTP{}}, {"webhook", Webhook{}}, {"mcp_tool", MCPTool{}}, {"agent", Agent{}},
	{"spawn", Spawn{}}, {"gate", Gate{}}, {"prompt", Prompt{}}, {"func", Func{}},
}

// newKeys returns a pointer to the zero keys of a decision or a type of action; nil if it has none.
func newKeys(all []own, name string) any {
	one, _ := lo.Find(all, func(o own) bool { return o.name == name })
	if one.keys == nil {
		return nil
	}
	return reflect.New(reflect.TypeOf(one.keys)).Interface()
}

// readRules reads the rules and actions in a part.
func (d *Document) readRules(p *part) {
	for _, e := range p.At("hooks").Entries() {
		at, err := d.Kind.PointNamed(e.Key.Raw())
		if err != nil {
			e.Key.Wrong("%w (rule: points)", err)
			continue
		}
		items := []yamlfile.Node{e.Value}
		if e.Value.Kind() != yamlfile.MappingNode {
			items = e.Value.Items()
		}
		for _, n := range items {
			if n.Kind() != yamlfile.MappingNode {
				n.Wrong("expected a rule or an action, written as keys with values, got %s", n)
				continue
			}
			r := &Rule{Mapping: MappingOf(n), Defaults: p.defaults, Library: p.library, Point: at, PointKey: e.Key.Raw()}
			found := d.mergeDefinition(r, p.library, nil)
			if d.nameRule(r); r.decodeKeys(found) {
				d.Rules = append(d.Rules, r)
			}
		}
	}
}

// nameRule reads the rule's ID. A rule without one is named by its position at its point.
func (d *Document) nameRule(r *Rule) {
	count := scoped{r.Library, string(r.Point.Name)}
	d.counts[count]++
	if n := r.At("id"); n.Kind() != yamlfile.AbsentNode {
		r.ID = key{name: "id", form: "name"}.text(n)
	}
	r.What = fmt.Sprintf("rule %q", r.ID)
	if r.ID == "" {
		r.ID = fmt.Sprintf("%s-%d", r.Point.Name, d.counts[count])
		r.What = fmt.Sprintf("%s, entry %d", r.PointKey, d.counts[count])
	}
}

// decodeKeys reads a rule's keys. It returns false if the rule has no decision and no type. Found is false if its definition is unknown.
func (r *Rule) decodeKeys(found bool) bool {
	hasDecision, hasType := r.Has("decision"), r.Has("type")
	switch {
	case hasDecision && hasType:
		r.Node.Wrong("%s: decision and action are mutually exclusive: remove one of them (rule: one thing)", r.What)
		return false
	case hasDecision:
		if !r.Has("id") {
			r.Place("decision").Wrong("%s: the key %q is missing: events and denials identify the rule by it (rule: names)", r.What, "id")
		}
		r.Keys = newKeys(decisionKeys, r.At("decision").Raw())
		r.Decode(r.What, keyAdvice, &r.Common, &r.Decides, r.Keys)
	case hasType:
		r.Keys = newKeys(actionKeys, r.At("type").Raw())
		r.Decode(r.What, keyAdvice, &r.Common, &r.Acts, r.Keys)
	case found:
		r.reportMissing()
		return false
	default:
		return false
	}
	return true
}

// reportMissing reports that a rule has no decision and no type. One of them may be misspelled.
func (r *Rule) reportMissing() {
	owned := lo.Map(slices.Concat(decisionKeys, actionKeys), func(o own, _ int) any { return o.keys })
	known := keyNames(append([]any{Common{}, Decides{}, Acts{}}, owned...)...)
	for _, e := range r.Entries {
		meant, _ := near.Name(e.Key.Raw(), known)
		if !slices.Contains(known, e.Key.Raw()) && (meant == "decision" || meant == "type") {
			e.Key.Wrong("%s: unknown key %q (did you mean %q?)", r.What, e.Key.Raw(), meant)
			return
		}
	}
	r.Node.Wrong("%s: decision or type is missing: add a decision, or an action by its type (rule: one thing)", r.What)
}

// keyAdvice returns a hint for a rule's keys that belong elsewhere.
func keyAdvice(name string) string {
	has := func(o own) bool { return slices.Contains(keyNames(o.keys), name) }
	if d, ok := lo.Find(decisionKeys, has); ok {
		return fmt.Sprintf("%q belongs to decision: %s", name, d.name)
	}
	if slices.Contains(keyNames(Decides{}), name) {
		return fmt.Sprintf("%q belongs to decisions: an action decides by its answer", name)
	}
	if slices.Contains(keyNames(Acts{}), name) {
		return fmt.Sprintf("%q belongs to actions, not to decisions", name)
	}
	if a, ok := lo.Find(actionKeys, has); ok {
		return fmt.Sprintf("%q belongs to type: %s", name, a.name)
	}
	switch name {
	case "tool", "args":
		return fmt.Sprintf("put %q under match", name)
	case "name":
		return `the name of a rule is its "id", and the name of a definition is its key (rule: names)`
	case "if", "condition":
		return `use "when" for a condition`
	}
	return ""
}

// mergeDefinition adds the keys of the definition in $ref, unless the rule sets them itself, and reports whether the definition is
// known. In is the library policy that contains the reference; it is empty for a user's file.
func (d *Document) mergeDefinition(r *Rule, in string, above []string) bool {
	ref := r.At("$ref")
	r.Mapping = r.without("$ref")
	name, ok := ref.Text()
	if !ok {
		return true
	}
	from := scoped{in, name}
	if in == "" {
		from = scopedName(name)
	}
	definition, known := d.definitions[from]
	switch {
	case !known:
		ref.Wrong("$ref: %s (rule: definitions)", d.unknownDefinition(name))
		return false
	case slices.Contains(above, from.String()):
		ref.Wrong("$ref: the definitions form a cycle: %s (rule: definitions)", strings.Join(append(above, from.String()), " > "))
		return false
	}
	of := MappingOf(definition)
	if repeated := of.At("name"); d.Kind == points.Blueprints && repeated.Kind() != yamlfile.AbsentNode {
		if repeated.Raw() != name {
			repeated.Wrong("definitions: %q has the name %s in it: remove one of the two names, or make them equal (rule: names)", name, repeated)
		}
		of = of.without("name")
	}
	r.Entries = of.with(r.Entries).Entries
	return d.mergeDefinition(r, from.library, append(above, from.String()))
}

// unknownDefinition returns the error for an unknown definition. It suggests a definition of the library with that short
// name.
func (d *Document) unknownDefinition(name string) string {
	known := lo.Map(lo.Keys(d.definitions), func(s scoped, _ int) string { return s.String() })
	slices.Sort(known)
	if full, ok := lo.Find(known, func(one string) bool { return strings.HasSuffix(one, "/"+name) }); ok {
		return fmt.Sprintf("unknown definition %q (did you mean %q?)", name, full)
	}
	return yamlfile.Unknown("definition", name, known)
}
