package toolexec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/grapnel-go/grapnel/agent"
)

// otherCase finds members whose names the schema has only in another case. They are refused even if the schema allows
// unnamed members. Some tools treat both names as the same, but a rule that checks "path" does not see "Path". It
// overwrites the elements of at beyond its length.
func otherCase(s *jsonschema.Schema, value any, at []string) (found []agent.ArgumentProblem) {
	within := func(next any, token string, of ...*jsonschema.Schema) {
		for _, sub := range of {
			found = append(found, otherCase(sub, next, append(at, token))...)
		}
	}
	forms := formsOf(s, nil)
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			for _, form := range forms {
				within(member, name, memberOf(form, name)...)
			}
			if other, ok := otherName(forms, name); ok {
				found = append(found, agent.ArgumentProblem{
					Path: jsonPointer(append(at, name)), Message: fmt.Sprintf("is not known; did you mean %q?", other),
				})
			}
		}
	case []any:
		for _, form := range forms {
			for i, item := range value {
				within(item, strconv.Itoa(i), itemsOf(form, i)...)
			}
		}
	}
	return found
}

// otherName returns a name in the forms that differs from the given name only in case. ok is false if the forms have
// the given name itself.
func otherName(forms []*jsonschema.Schema, name string) (other string, ok bool) {
	for _, form := range forms {
		if form.Properties[name] != nil {
			return "", false
		}
		for known := range form.Properties {
			if strings.EqualFold(name, known) && (!ok || known < other) {
				other, ok = known, true
			}
		}
	}
	return other, ok
}

// memberOf returns the schemas for a member: by its name or, if no schema names it, the schemas for other members.
func memberOf(s *jsonschema.Schema, name string) []*jsonschema.Schema {
	if member := s.Properties[name]; member != nil {
		return []*jsonschema.Schema{member}
	}
	if others, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		return []*jsonschema.Schema{others}
	}
	return nil
}

// formsOf returns the schemas that apply to the same value as s: s itself, the schemas that it refers to, and its
// parts. seen holds the schemas found before.
func formsOf(s *jsonschema.Schema, seen []*jsonschema.Schema) []*jsonschema.Schema {
	if s == nil || slices.Contains(seen, s) {
		return seen
	}
	seen = append(seen, s)
	for _, parts := range [][]*jsonschema.Schema{{s.Ref, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf, slices.Collect(maps.Values(s.DependentSchemas))} {
		for _, part := range parts {
			seen = formsOf(part, seen)
		}
	}
	return seen
}

// itemsOf returns the schemas for item i of an array, for all drafts' keywords.
func itemsOf(s *jsonschema.Schema, i int) []*jsonschema.Schema {
	first := s.PrefixItems
	var rest any = s.Items2020
	switch items := s.Items.(type) {
	case []*jsonschema.Schema:
		first, rest = items, s.AdditionalItems
	case *jsonschema.Schema:
		rest = items
	}
	if i < len(first) {
		return first[i : i+1]
	}
	if one, ok := rest.(*jsonschema.Schema); ok && one != nil {
		return []*jsonschema.Schema{one}
	}
	return nil
}
