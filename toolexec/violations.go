package toolexec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/near"
)

// describeViolations converts the schema library's errors to problems that a model can act on. It returns at most
// agent.MaxArgumentProblems, ordered by path. document is the schema, nil if it is not available. root is the checked
// value.
func describeViolations(document map[string]any, root any, err *jsonschema.ValidationError) []agent.ArgumentProblem {
	r := &reporter{document: document, root: root}
	r.report(err)
	problems := inOrder(r.problems)
	return problems[:min(len(problems), agent.MaxArgumentProblems)]
}

// inOrder returns the problems ordered by path, without duplicates.
func inOrder(problems []agent.ArgumentProblem) []agent.ArgumentProblem {
	slices.SortStableFunc(problems, func(a, b agent.ArgumentProblem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(problems)
}

type reporter struct {
	document map[string]any
	root     any
	problems []agent.ArgumentProblem
}

// isFull reports whether the reporter has as many problems as an error holds.
func (r *reporter) isFull() bool { return len(r.problems) >= agent.MaxArgumentProblems }

// reportCauses reports an error's causes in path order, which the schema library does not keep.
func (r *reporter) reportCauses(err *jsonschema.ValidationError) {
	causes := err.Causes
	if len(causes) > agent.MaxArgumentProblems {
		causes = slices.SortedStableFunc(slices.Values(causes), func(a, b *jsonschema.ValidationError) int {
			return slices.Compare(a.InstanceLocation, b.InstanceLocation)
		})
	}
	for _, cause := range causes {
		if r.isFull() {
			return
		}
		r.report(cause)
	}
}

// add records a problem with the value at err. If member is given, the problem is about that member.
func (r *reporter) add(err *jsonschema.ValidationError, member []string, format string, args ...any) {
	r.problems = append(r.problems, agent.ArgumentProblem{
		Path:    jsonPointer(err.InstanceLocation) + jsonPointer(member),
		Message: fmt.Sprintf(format, args...),
	})
}

// report walks the error tree. Its leaves are the problems.
func (r *reporter) report(err *jsonschema.ValidationError) {
	switch k := err.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		r.reportCauses(err)
	case *kind.AnyOf:
		r.alternatives(err)
	case *kind.OneOf:
		if k.Subschemas != nil {
			r.add(err, nil, "fits more than one of the forms that exclude each other (%s)", formatIndexes(k.Subschemas))
			return
		}
		r.alternatives(err)
	case *kind.Required:
		for _, name := range k.Missing {
			r.missing(err, name, "is missing")
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			r.missing(err, name, fmt.Sprintf("is missing: it must come with %q", k.Prop))
		}
	case *kind.Dependency:
		for _, name := range k.Missing {
			r.missing(err, name, fmt.Sprintf("is missing: it must come with %q", k.Prop))
		}
	case *kind.AdditionalProperties:
		known := slices.Sorted(maps.Keys(asObject(r.schemaAt(err, "properties"))))
		for _, name := range slices.Sorted(slices.Values(k.Properties)) {
			if r.isFull() {
				return
			}
			r.add(err, []string{name}, "%s", unknownMember(name, known))
		}
	case *kind.FalseSchema:
		r.add(err, nil, "is not allowed here")
	case *kind.PropertyNames:
		names := &reporter{document: r.document, root: k.Property}
		names.reportCauses(err)
		reasons := strings.Join(problemTexts(names.problems), ", ")
		if _, ok := asObject(valueAt(r.root, err.InstanceLocation))[k.Property]; !ok {
			// The library can name a sibling here, because it keeps a path that it continues to modify.
			err = &jsonschema.ValidationError{}
			reasons = fmt.Sprintf("member %q: %s", k.Property, reasons)
			r.add(err, nil, "has a name that is not allowed: %s", reasons)
			return
		}
		r.add(err, []string{k.Property}, "has a name that is not allowed: %s", reasons)
	case *kind.Contains, *kind.MinContains:
		r.add(err, nil, "has too few items of the form the schema asks for")
	default:
		r.add(err, nil, "%s", r.value(err))
	}
}

// value returns the message about a single value.
func (r *reporter) value(err *jsonschema.ValidationError) string {
	got := describeValue(valueAt(r.root, err.InstanceLocation))
	switch k := err.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("expected %s, got %s%s", orList(k.Want), got, quotesHint(k.Want, valueAt(r.root, err.InstanceLocation)))
	case *kind.Enum:
		return fmt.Sprintf("must be one of %s; got %s", listOf(k.Want), got)
	case *kind.Const:
		return fmt.Sprintf("must be %s; got %s", listOf([]any{k.Want}), got)
	case *kind.Minimum:
		return fmt.Sprintf("must be at least %s; got %s", formatDecimal(k.Want), got)
	case *kind.Maximum:
		return fmt.Sprintf("must be at most %s; got %s", formatDecimal(k.Want), got)
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("must be more than %s; got %s", formatDecimal(k.Want), got)
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("must be less than %s; got %s", formatDecimal(k.Want), got)
	case *kind.MultipleOf:
		return fmt.Sprintf("must be a multiple of %s; got %s", formatDecimal(k.Want), got)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %s; has %d", pluralize(k.Want, "character"), k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s; has %d", pluralize(k.Want, "character"), k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %s; has %d", pluralize(k.Want, "item"), k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s; has %d", pluralize(k.Want, "item"), k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %s; has %d", pluralize(k.Want, "member"), k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %s; has %d", pluralize(k.Want, "member"), k.Got)
	case *kind.MaxContains:
		return fmt.Sprintf("may have at most %s of that form; has %d", pluralize(k.Want, "item"), len(k.Got))
	case *kind.UniqueItems:
		return fmt.Sprintf("items must differ, but items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %s too many", pluralize(k.Count, "item"))
	case *kind.Pattern:
		return fmt.Sprintf("must match the pattern %s; got %s", clipText(k.Want), got)
	case *kind.Format:
		return fmt.Sprintf("must be a valid %s; got %s", k.Want, got)
	case *kind.Not:
		return "has a form that the schema forbids; got " + got
	}
	return fmt.Sprintf("breaks the schema's %q rule; got %s", strings.Join(err.ErrorKind.KeywordPath(), "/"), got)
}

// missing records that a member is missing, and the value that the schema expects for it.
func (r *reporter) missing(err *jsonschema.ValidationError, name, message string) {
	if expected := describeExpectation(asObject(r.schemaAt(err, "properties", name))); expected != "" {
		message += "; expected " + expected
	}
	r.add(err, []string{name}, "%s", message)
}

// schemaAt returns the part of err's schema below the given names. It returns nil if there is none.
func (r *reporter) schemaAt(err *jsonschema.ValidationError, below ...string) any {
	document, _, _ := strings.Cut(err.SchemaURL, "#")
	if id, _ := r.document["$id"].(string); document != schemaURL && document != strings.TrimSuffix(id, "#") {
		return nil // inside a separate resource in the document
	}
	return valueAt(r.document, slices.Concat(schemaTokens(err.SchemaURL), below))
}

// alternatives reports a value that fits none of several forms. It reports the types that would fit. If the value is
// close to one form, it reports the problems with that form, otherwise the problems with each form.
func (r *reporter) alternatives(err *jsonschema.ValidationError) {
	wanted, near := []string{}, [][]agent.ArgumentProblem{}
	for _, cause := range err.Causes {
		if k, ok := innermostViolation(cause).ErrorKind.(*kind.Type); ok && len(innermostViolation(cause).InstanceLocation) == len(err.InstanceLocation) {
			wanted = append(wanted, k.Want...)
			continue
		}
		near = append(near, describeViolations(r.document, r.root, cause))
	}
	switch len(near) {
	case 0:
		r.add(err, nil, "%s", r.value(&jsonschema.ValidationError{
			InstanceLocation: err.InstanceLocation, ErrorKind: &kind.Type{Want: lo.Uniq(wanted)},
		}))
	case 1:
		r.problems = append(r.problems, near[0]...)
	default:
		forms := lo.Map(near, func(problems []agent.ArgumentProblem, i int) string {
			return fmt.Sprintf("(%d) %s", i+1, strings.Join(problemTexts(problems), ", "))
		})
		if len(forms) > 4 {
			forms = append(forms[:4], "…")
		}
		r.add(err, nil, "fits none of the %d allowed forms: %s", len(err.Causes), strings.Join(forms, " "))
	}
}

// innermostViolation unwraps errors with a single cause.
func innermostViolation(err *jsonschema.ValidationError) *jsonschema.ValidationError {
	for len(err.Causes) == 1 {
		switch err.ErrorKind.(type) {
		case *kind.Reference, *kind.Group, *kind.AllOf:
			err = err.Causes[0]
		default:
			return err
		}
	}
	return err
}

func problemTexts(problems []agent.ArgumentProblem) []string {
	return lo.Map(problems, func(p agent.ArgumentProblem, _ int) string { return p.String() })
}

func formatIndexes(indexes []int) string {
	return strings.Join(lo.Map(indexes, func(i, _ int) string { return strconv.Itoa(i + 1) }), " and ")
}

// unknownMember returns the message about a member that the schema does not have.
func unknownMember(name string, known []string) string {
	if len(known) == 0 {
		return "is not known; no members are allowed here"
	}
	message := "is not known"
	if meant, ok := near.Name(name, known); ok {
		message += fmt.Sprintf("; did you mean %q?", meant)
	}
	shown := lo.Map(known[:min(len(known), shownValues)], func(name string, _ int) string { return strconv.Quote(name) })
	if len(known) > shownValues {
		shown = append(shown, "…")
	}
	return message + "; known: " + strings.Join(shown, ", ")
}
