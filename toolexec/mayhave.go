package toolexec

import (
	"maps"
	"slices"
	"strconv"

	"github.com/samber/lo"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// MayHave reports whether arguments that the schema accepts can have a value at a path. steps are member names and list
// indexes. wild says which steps match every element. kind is the value's JSON type, empty for any: string, integer for
// a whole number, number for another, boolean, null, array or object. Members that a schema does not name are possible
// unless it excludes them. If the schema is too complex to decide, the result is true.
func (s *Schema) MayHave(steps []string, wild []bool, kind string) bool {
	return s == nil || mayHavePath(s.compiled, path{steps, wild, kind, map[question]bool{}})
}

// Names returns the schema's member names, in order.
func (s *Schema) Names() []string {
	if s == nil {
		return nil
	}
	names := map[string]bool{}
	for _, form := range formsOf(s.compiled, nil) {
		for name := range form.Properties {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// path is a path into arguments, with the type of its last value.
type path struct {
	steps []string
	wild  []bool
	kind  string
	known map[question]bool // answers
}

// question asks whether a schema allows a value at the rest of a path.
type question struct {
	s    *jsonschema.Schema
	rest int // number of remaining steps
}

func (p path) next() path { return path{p.steps[1:], p.wild[1:], p.kind, p.known} }

// mayHavePath implements MayHave for a value under s. Each question is answered once. Until the answer is known, it
// counts as true, so that a schema that refers to itself does not recurse forever.
func mayHavePath(s *jsonschema.Schema, p path) bool {
	if s == nil {
		return true
	}
	asked := question{s, len(p.steps)}
	known, ok := p.known[asked]
	if !ok {
		p.known[asked] = true
		known = mayHaveAt(s, p)
		p.known[asked] = known
	}
	return known
}

// mayHaveAt implements mayHavePath without the cache.
func mayHaveAt(s *jsonschema.Schema, p path) bool {
	may := func(part *jsonschema.Schema) bool { return mayHavePath(part, p) }
	switch {
	case s.Bool != nil:
		return *s.Bool
	case s.DynamicRef != nil || s.RecursiveRef != nil: // the meaning depends on the schema that refers to it
		return true
	case !may(s.Ref) || !lo.EveryBy(s.AllOf, may):
		return false
	case len(s.AnyOf) > 0 && !lo.SomeBy(s.AnyOf, may), len(s.OneOf) > 0 && !lo.SomeBy(s.OneOf, may):
		return false
	case len(p.steps) == 0:
		return mayBeKind(s, p.kind)
	}
	return mayBeKind(s, "object") && mayHaveMember(s, p) || mayBeKind(s, "array") && mayHaveElement(s, p)
}

// mayBeKind reports whether a value under s may have a JSON type.
func mayBeKind(s *jsonschema.Schema, kind string) bool {
	if kind == "" || s.Types == nil || s.Types.IsEmpty() {
		return true
	}
	return mayBe(s.Types, kind) || kind == "integer" && mayBe(s.Types, "number")
}

// mayHaveMember reports whether an object under s may have the first step as a member, with the rest inside that
// member.
func mayHaveMember(s *jsonschema.Schema, p path) bool {
	rest := p.next()
	within := func(of *jsonschema.Schema) bool { return mayHavePath(of, rest) }
	if p.wild[0] {
		return lo.SomeBy(lo.Values(s.Properties), within) || lo.SomeBy(lo.Values(s.PatternProperties), within) || mayHaveOther(s, "", within)
	}
	named := s.Properties[p.steps[0]]
	if named != nil && !within(named) {
		return false
	}
	matched := named != nil
	for pattern, of := range s.PatternProperties {
		if pattern.MatchString(p.steps[0]) {
			matched = true
			if !within(of) {
				return false
			}
		}
	}
	return matched || mayHaveOther(s, p.steps[0], within)
}

// mayHaveOther reports whether an object under s may have members that s does not name. name is such a member; empty
// means any.
func mayHaveOther(s *jsonschema.Schema, name string, within func(*jsonschema.Schema) bool) bool {
	switch others := s.AdditionalProperties.(type) {
	case bool:
		return others
	case *jsonschema.Schema:
		return within(others)
	}
	if s.UnevaluatedProperties == nil || within(s.UnevaluatedProperties) {
		return true
	}
	return lo.SomeBy(formsOf(s, nil), func(form *jsonschema.Schema) bool { // members that another schema of the same object evaluates
		closed, isBool := form.AdditionalProperties.(bool)
		switch {
		case form == s:
			return false
		case name == "":
			return len(form.Properties)+len(form.PatternProperties) > 0
		}
		patterned := lo.SomeBy(lo.Keys(form.PatternProperties), func(p jsonschema.Regexp) bool { return p.MatchString(name) })
		return form.Properties[name] != nil || patterned || form.AdditionalProperties != nil && (!isBool || closed)
	})
}

// mayHaveElement reports whether a list under s may have the first step as an element, with the rest inside that
// element.
func mayHaveElement(s *jsonschema.Schema, p path) bool {
	rest := p.next()
	within := func(of *jsonschema.Schema) bool { return mayHavePath(of, rest) }
	i, err := strconv.Atoi(p.steps[0])
	switch {
	case p.wild[0]:
		first, others := itemSchemas(s)
		return lo.SomeBy(first, within) || mayHaveMore(others, within)
	case err != nil || i < 0 || strconv.Itoa(i) != p.steps[0]:
		return false
	case s.MaxItems != nil && i >= *s.MaxItems:
		return false
	}
	first, others := itemSchemas(s)
	if i < len(first) {
		return within(first[i])
	}
	return mayHaveMore(others, within)
}

// itemSchemas returns the schemas for a list's first elements, and the schema for the other elements: a schema, a bool
// or nil.
func itemSchemas(s *jsonschema.Schema) (first []*jsonschema.Schema, others any) {
	switch items := s.Items.(type) { // draft 2019 and before
	case []*jsonschema.Schema:
		return items, s.AdditionalItems
	case nil:
	default:
		return nil, items
	}
	if s.Items2020 == nil {
		return s.PrefixItems, nil
	}
	return s.PrefixItems, s.Items2020
}

func mayHaveMore(others any, within func(*jsonschema.Schema) bool) bool {
	switch others := others.(type) {
	case bool:
		return others
	case *jsonschema.Schema:
		return within(others)
	}
	return true
}
