package provenance

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/grapnel-go/grapnel/policy/internal/condition"
	"github.com/grapnel-go/grapnel/policy/tools"
)

// roleFunctions returns the functions that ask for a tool's effects and its arguments' roles.
func (t *Tracker) roleFunctions() []condition.Function {
	texts := cel.ListType(cel.StringType)
	oneOrMore := func(result *cel.Type, before ...*cel.Type) []condition.Overload {
		return []condition.Overload{
			{Args: append(slices.Clone(before), cel.StringType), Result: result},
			{Args: append(slices.Clone(before), texts), Result: result},
		}
	}
	values := cel.ListType(cel.DynType)
	return []condition.Function{
		{
			Name: "does", Cost: 5, ByTool: true, Overloads: oneOrMore(cel.BoolType),
			Call: func(in condition.Input, args ...ref.Val) ref.Val {
				d := t.Describe(in.State(), in.Tool())
				found, err := anyText(args[0], func(text string) (bool, error) {
					if e := tools.Effect(text); e.Valid() {
						return d.Does(e), nil
					}
					return false, fmt.Errorf("unknown effect %q", text)
				})
				if err != nil {
					return types.WrapErr(fmt.Errorf("does: %w", err))
				}
				return types.Bool(found)
			},
		},
		{
			Name: "handles", Cost: 5, ByTool: true, Overloads: oneOrMore(cel.BoolType),
			Call: func(in condition.Input, args ...ref.Val) ref.Val {
				d := t.Describe(in.State(), in.Tool())
				found, err := anyText(args[0], func(text string) (bool, error) { return d.Returns(tools.Records(text)), nil })
				if err != nil {
					return types.WrapErr(fmt.Errorf("handles: %w", err))
				}
				return types.Bool(found)
			},
		},
		{
			Name: "only_reads", Cost: 5, ByTool: true, Overloads: []condition.Overload{{Result: cel.BoolType}},
			Call: func(in condition.Input, _ ...ref.Val) ref.Val {
				return types.Bool(t.Describe(in.State(), in.Tool()).OnlyReads())
			},
		},
		{
			Name: "takes_nothing", Cost: 5, ByTool: true, Overloads: []condition.Overload{{Result: cel.BoolType}},
			Call: func(in condition.Input, _ ...ref.Val) ref.Val {
				return types.Bool(t.Describe(in.State(), in.Tool()).NoArguments)
			},
		},
		{
			Name: "role", Cost: 20, Overloads: oneOrMore(values, cel.DynType),
			Call: func(in condition.Input, args ...ref.Val) ref.Val {
				d := t.Describe(in.State(), in.Tool())
				return pickWith(args[0], func(name string) bool {
					role := d.Role(name)
					found, _ := anyText(args[1], func(text string) (bool, error) { return text == string(role), nil })
					return found
				})
			},
		},
		{
			Name: "roleless", Cost: 20, Overloads: []condition.Overload{{Args: []*cel.Type{cel.DynType}, Result: values}},
			Call: func(in condition.Input, args ...ref.Val) ref.Val {
				d := t.Describe(in.State(), in.Tool())
				return pickWith(args[0], func(name string) bool { return d.Role(name) == tools.Unknown })
			},
		},
		{
			Name: "exposed", Cost: 5, Overloads: []condition.Overload{{Result: cel.BoolType}},
			Call: func(in condition.Input, _ ...ref.Val) ref.Val { return types.Bool(t.Of(in.State()).Exposed()) },
		},
		{
			Name: "delegated", Cost: 200, Overloads: []condition.Overload{{Args: []*cel.Type{cel.DynType, cel.DynType}, Result: cel.BoolType}},
			Call: func(in condition.Input, args ...ref.Val) ref.Val {
				who, err := goValue(args[0])
				if err != nil {
					return types.WrapErr(fmt.Errorf("delegated: %w", err))
				}
				what, err := goValue(args[1])
				if err != nil {
					return types.WrapErr(fmt.Errorf("delegated: %w", err))
				}
				return types.Bool(t.Of(in.State()).Delegated(who, what))
			},
			Why: t.why,
		},
		t.ask("invited", 100, plainValue, Trail.Invited),
		t.ask("named_by_strangers", 50, plainValue, Trail.NamedByStrangers),
		t.ask("linked", 50, plainValue, Trail.Linked),
	}
}

// plainValue converts a value. Unlike valueIn, it treats the call's complete arguments like any other value.
func plainValue(_ condition.Input, v ref.Val) (any, error) { return goValue(v) }

// anyText reports whether test is true for a string, or for any string in a list.
func anyText(v ref.Val, test func(text string) (bool, error)) (bool, error) {
	if text, ok := v.(types.String); ok {
		return test(string(text))
	}
	list, ok := v.(traits.Lister)
	if !ok {
		return false, fmt.Errorf("expected a string or a list of strings, got a %s", v.Type().TypeName())
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		text, ok := it.Next().(types.String)
		if !ok {
			return false, fmt.Errorf("expected a list of strings, got one with a %s", text.Type().TypeName())
		}
		if found, err := test(string(text)); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// pickWith returns the values of a map's members whose names pass a test, sorted by name. It omits empty values.
func pickWith(of ref.Val, test func(name string) bool) ref.Val {
	members, ok := of.(traits.Mapper)
	if !ok {
		return types.WrapErr(fmt.Errorf("expected a map such as args, got a %s", of.Type().TypeName()))
	}
	var picked []string
	for it := members.Iterator(); it.HasNext() == types.True; {
		if name, ok := it.Next().(types.String); ok && test(string(name)) {
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
