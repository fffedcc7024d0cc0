package provenance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/policy/internal/condition"
)

// Functions returns the functions for conditions. Values are strings, numbers, and lists and maps of these. An empty
// value (null, an empty string or list) counts as from every source and is not tainted.
//
//	from_user(x)         the user said it
//	from_trusted(x)      … or the operator, or a trusted field
//	from_known(x)        … or a field that known people write
//	from_named(x)        … but from known people only where the user pointed to it
//	from_named_text(x)   … or strangers' text to which the user pointed
//	some_from_user(list), some_from_trusted(list)  … for at least one value in a list
//	sole(x)              … that has no other value of the same kind
//	tainted(x)           strangers brought it in, and no trusted source
//	seen(x)              it was seen anywhere, even if only in strangers' text
//	quoted(text)         the user wrote exactly this, or all strings in a list
//	confirms(code)       a code of a few digits that was first read after a tool changed something
//	origin(x)            "system", "user", "trusted", "known", "untrusted", or "model": the model made it up
//	user_says(words)     the user used a word or phrase, or one in a list
//	user_says_date()     the user named a day of a month
//	confidential(x)      the names of the confidential fields from which a value contains something
//	links(text)          the web addresses in a text; addresses(text): the mail addresses
//	pick(args, names)    the non-empty values of the members whose name is in names, or matches one with "*"; ignoring case
//	rest(args, names)    the values of the other members
//
// These ask what the called tool does and what its arguments are for, as package tools describes them:
//
//	does(effects)        the tool has an effect, or one in a list: "pays"
//	handles(records)     it is about such records: "events"
//	only_reads()         it is known to change nothing
//	takes_nothing()      its schema has no arguments
//	role(args, roles)    the non-empty values of the arguments with a role, or one in a list: "payee"; "" stands for no role
//	roleless(args)       the values of the arguments that are not understood
//
// And these are about requests that a user delegates to a text:
//
//	exposed()            the run has read strangers' text
//	delegated(x, sum)    a text to which the user pointed names x as the only one, and the sum, and x was given to no tool before
//	linked(address)      it is in such a text, and the user named its site
//	invited(people)      the user named them; an address may also come from such a text
//	named_by_strangers(x) strangers' text contains it, even if a trusted field also does, and the user did not say it
//
// A rule that checks from_user(pick(args, names)) must also check pick(args, names).size() == 0, because from_user is
// true for an empty value. Member names count as values, except the names in args itself: see Arguments.
func (t *Tracker) Functions() []condition.Function {
	ask := func(name string, cost uint64, of func(t Trail, value any) bool) condition.Function {
		return t.ask(name, cost, valueIn, of)
	}
	texts := cel.ListType(cel.StringType)
	return append(t.roleFunctions(), []condition.Function{
		ask("from_user", 20, Trail.FromUser),
		ask("from_trusted", 20, Trail.FromTrusted),
		ask("some_from_user", 20, someOf(Trail.FromUser)),
		ask("some_from_trusted", 20, someOf(Trail.FromTrusted)),
		ask("from_known", 20, Trail.FromKnown),
		ask("from_named", 20, Trail.FromNamed),
		ask("from_named_text", 50, Trail.FromNamedText),
		ask("sole", 200, Trail.Sole),
		ask("tainted", 50, Trail.Tainted),
		ask("seen", 50, Trail.Seen),
		ask("quoted", 50, func(t Trail, value any) bool {
			texts, isList := value.([]any)
			if !isList {
				texts = []any{value}
			}
			return lo.EveryBy(texts, func(v any) bool {
				text, ok := v.(string)
				return ok && t.Quoted(text)
			})
		}),
		ask("confirms", 50, Trail.Confirms),
		{
			Name: "origin", Cost: 200,
			Overloads: []condition.Overload{{Args: []*cel.Type{cel.DynType}, Result: cel.StringType}},
			Call: func(in condition.Input, args ...ref.Val) ref.Val {
				value, err := valueIn(in, args[0])
				if err != nil {
					return types.WrapErr(fmt.Errorf("origin: %w", err))
				}
				return types.String(lo.CoalesceOrEmpty(string(t.Of(in.State()).Origin(value).Level), "model"))
			},
			Why: t.why,
		},
		{
			Name: "user_says", Cost: 10,
			Overloads: []condition.Overload{
				{Args: []*cel.Type{cel.StringType}, Result: cel.BoolType}, {Args: []*cel.Type{texts}, Result: cel.BoolType},
			},
			Call: func(in condition.Input, args ...ref.Val) ref.Val {
				words, err := textsOf(args[0])
				if err != nil {
					return types.WrapErr(fmt.Errorf("user_says: %w", err))
				}
				return types.Bool(t.Of(in.State()).Says(words...))
			},
		},
		{
			Name: "user_says_date", Cost: 10,
			Overloads: []condition.Overload{{Result: cel.BoolType}},
			Call: func(in condition.Input, _ ...ref.Val) ref.Val {
				return types.Bool(t.Of(in.State()).SaysDate())
			},
		},
		{
			Name: "confidential", Cost: 50,
			Overloads: []condition.Overload{{Args: []*cel.Type{cel.DynType}, Result: texts}},
			Call: func(in condition.Input, args ...ref.Val) ref.Val {
				value, err := valueIn(in, args[0])
				if err != nil {
					return types.WrapErr(fmt.Errorf("confidential: %w", err))
				}
				return listOf(t.Of(in.State()).Confidential(value))
			},
		},
		inTexts("links", Links),
		inTexts("addresses", Addresses),
		{
			Name: "pick", Cost: 10, Pure: true,
			Overloads: []condition.Overload{{Args: []*cel.Type{cel.DynType, texts}, Result: cel.ListType(cel.DynType)}},
			Call:      func(_ condition.Input, args ...ref.Val) ref.Val { return pick(args[0], args[1], true) },
		},
		{
			Name: "rest", Cost: 10, Pure: true,
			Overloads: []condition.Overload{{Args: []*cel.Type{cel.DynType, texts}, Result: cel.ListType(cel.DynType)}},
			Call:      func(_ condition.Input, args ...ref.Val) ref.Val { return pick(args[0], args[1], false) },
		},
	}...)
}

// ask returns a function that asks about one value, which read converts.
func (t *Tracker) ask(
	name string, cost uint64, read func(in condition.Input, v ref.Val) (any, error), of func(t Trail, value any) bool,
) condition.Function {
	return condition.Function{
		Name: name, Cost: cost,
		Overloads: []condition.Overload{{Args: []*cel.Type{cel.DynType}, Result: cel.BoolType}},
		Call: func(in condition.Input, args ...ref.Val) ref.Val {
			value, err := read(in, args[0])
			if err != nil {
				return types.WrapErr(fmt.Errorf("%s: %w", name, err))
			}
			return types.Bool(of(t.Of(in.State()), value))
		},
		Why: t.why,
	}
}

// someOf returns a function that is true for a list if of is true for any of its values.
func someOf(of func(t Trail, value any) bool) func(t Trail, value any) bool {
	return func(t Trail, value any) bool {
		list, ok := value.([]any)
		if !ok {
			return !isNothing(value) && of(t, value)
		}
		return lo.SomeBy(list, func(v any) bool { return of(t, v) })
	}
}

// why explains a function's result: the places where the value was seen.
func (t *Tracker) why(in condition.Input, args ...ref.Val) string {
	value, err := valueIn(in, args[0])
	if err != nil {
		return ""
	}
	origins := strings.Split(t.Of(in.State()).Origin(value).String(), "\n")
	if len(origins) > 1 {
		origins = origins[1:] // the parts hold the details
	}
	more := ""
	if len(origins) > maxWhy {
		origins, more = origins[:maxWhy], " ..."
	}
	for i := range origins {
		origins[i] = strings.TrimSpace(origins[i])
	}
	return strings.Join(origins, "; ") + more
}

const maxWhy = 5

func inTexts(name string, of func(string) []string) condition.Function {
	return condition.Function{
		Name: name, Cost: 20, Pure: true,
		Overloads: []condition.Overload{{Args: []*cel.Type{cel.DynType}, Result: cel.ListType(cel.StringType)}},
		Call: func(in condition.Input, args ...ref.Val) ref.Val {
			value, err := valueIn(in, args[0])
			if err != nil {
				return types.WrapErr(fmt.Errorf("%s: %w", name, err))
			}
			var out []string
			eachValue(value, func(v any) {
				if s, ok := v.(string); ok {
					out = append(out, of(s)...)
				}
			})
			return listOf(out)
		},
	}
}

func listOf(texts []string) ref.Val {
	return types.NewStringList(types.DefaultTypeAdapter, texts)
}

// pick returns the values of a map's members, sorted by name, whose names match one of the patterns or, if matching
// is false, none of them. It omits empty values.
func pick(of, names ref.Val, matching bool) ref.Val {
	members, ok := of.(traits.Mapper)
	if !ok {
		return types.WrapErr(fmt.Errorf("pick: expected a map such as args, got a %s", of.Type().TypeName()))
	}
	globs, err := textsOf(names)
	if err != nil {
		return types.WrapErr(fmt.Errorf("pick: %w", err))
	}
	for i := range globs {
		globs[i] = strings.ToLower(globs[i])
	}
	var picked []string
	for it := members.Iterator(); it.HasNext() == types.True; {
		if name, ok := it.Next().(types.String); ok && matchesAny(globs, strings.ToLower(string(name))) == matching {
			picked = append(picked, string(name))
		}
	}
	slices.Sort(picked)
	out := make([]ref.Val, 0, len(picked))
	for _, name := range picked {
		if v, ok := members.Find(types.String(name)); ok && !isEmpty(v, 0) {
			out = append(out, v)
		}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, out)
}

// isEmpty reports whether a value is null, an empty string, or a list or map that contains only such values.
func isEmpty(v ref.Val, depth int) bool {
	switch v := v.(type) {
	case types.Null:
		return true
	case types.String:
		return v == ""
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if depth > maxDepth || !isEmpty(it.Next(), depth+1) {
				return false
			}
		}
		return true
	case traits.Mapper:
		return v.Size() == types.IntZero
	}
	return false
}

// textsOf returns a string, or the strings in a list.
func textsOf(v ref.Val) ([]string, error) {
	value, err := goValue(v)
	if err != nil {
		return nil, err
	}
	switch value := value.(type) {
	case string:
		return []string{value}, nil
	case []any:
		out := make([]string, 0, len(value))
		for _, element := range value {
			text, ok := element.(string)
			if !ok {
				return nil, fmt.Errorf("expected a list of strings, but one of its elements is %v", element)
			}
			out = append(out, text)
		}
		return out, nil
	}
	return nil, fmt.Errorf("expected a string or a list of strings, got %v", value)
}

// valueIn converts a condition's value for this package: to Arguments if it is the call's complete arguments.
func valueIn(in condition.Input, v ref.Val) (any, error) {
	value, err := goValue(v)
	if members, ok := value.(map[string]any); ok && in.IsArguments(v) {
		return Arguments(members), err
	}
	return value, err
}

// goValue converts a condition's value to a Go value.
func goValue(v ref.Val) (any, error) {
	r := reader{left: maxValues}
	return r.value(v, 0)
}

const maxValues = 200_000 // per value: a list may contain another list many times

// reader converts the values of conditions, at most left values.
type reader struct{ left int }

func (r *reader) value(v ref.Val, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the value is nested more than %d deep", maxDepth)
	}
	if r.left--; r.left < 0 {
		return nil, fmt.Errorf("the value holds more than %d values", maxValues)
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case types.Int, types.Uint:
		return json.Number(fmt.Sprint(v.Value())), nil
	case types.Double:
		return float64(v), nil
	case types.Timestamp:
		return v.Format("2006-01-02T15:04:05Z07:00"), nil
	case *types.Err:
		return nil, v
	case traits.Mapper:
		out := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			member, err := r.value(v.Get(k), depth+1)
			if err != nil {
				return nil, err
			}
			out[fmt.Sprint(k.Value())] = member
		}
		return out, nil
	case traits.Lister:
		var out []any
		for it := v.Iterator(); it.HasNext() == types.True; {
			element, err := r.value(it.Next(), depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, element)
		}
		return out, nil
	}
	return nil, fmt.Errorf("values of type %s have no origin: use a string, a number, or a list or map of these", v.Type().TypeName())
}
