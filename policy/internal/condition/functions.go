package condition

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// builtin returns this package's functions.
func (l *Language) builtin() []Function {
	return slices.Concat(counterFunctions(), textFunctions(), l.pathFunctions(), urlFunctions(), hostFunctions(), l.shellFunctions())
}

// textFunctions returns the functions that work on all strings within a value.
func textFunctions() []Function {
	return []Function{{
		Name: "texts", Pure: true,
		Overloads: []Overload{{[]*cel.Type{cel.DynType}, texts}},
		Call: func(_ Input, args ...ref.Val) ref.Val {
			r := textReader{left: maxTexts}
			r.read(args[0], 0)
			if r.err != nil {
				return types.WrapErr(r.err)
			}
			return stringList(r.texts)
		},
	}}
}

const (
	maxTexts     = 200_000 // per value: a list may contain another list many times
	maxTextDepth = 1000
)

// textReader collects the strings and numbers within a value, and its member names.
type textReader struct {
	texts []string
	left  int
	err   error
}

func (r *textReader) read(v ref.Val, depth int) {
	if r.left--; r.left < 0 || depth > maxTextDepth {
		r.err = fmt.Errorf("texts: the value holds more than %d values or is nested more than %d deep", maxTexts, maxTextDepth)
	}
	if r.err != nil {
		return
	}
	switch v := v.(type) {
	case types.String:
		r.texts = append(r.texts, string(v))
	case types.Int, types.Uint, types.Double:
		r.texts = append(r.texts, fmt.Sprint(v.Value()))
	case *types.Err:
		r.err = v
	case traits.Mapper:
		for it := inOrder(v).Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			r.read(key, depth+1)
			r.read(v.Get(key), depth+1)
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			r.read(it.Next(), depth+1)
		}
	}
}

// onText returns a pure function of one string.
func onText(name string, result *cel.Type, of func(text string) (ref.Val, error)) Function {
	return Function{
		Name: name, Pure: true,
		Overloads: []Overload{{[]*cel.Type{cel.StringType}, result}},
		Call: func(_ Input, args ...ref.Val) ref.Val {
			text, _ := Text(args[0])
			return orError(of(text))
		},
	}
}

// matching returns a function that compares a string with a pattern, or with a list of patterns. One must
// match.
func matching(name string, of func(text, pattern string) (bool, error)) Function {
	f := asking(name, func(text string) func(string) (bool, error) {
		return func(pattern string) (bool, error) { return of(text, pattern) }
	})
	f.Pure, f.Cost = true, 2
	return f
}

// asking works like matching, for comparisons that first derive something from the string.
func asking(name string, about func(text string) func(pattern string) (bool, error)) Function {
	return Function{
		Name: name,
		Overloads: []Overload{
			{[]*cel.Type{cel.StringType, cel.StringType}, cel.BoolType},
			{[]*cel.Type{cel.StringType, texts}, cel.BoolType},
		},
		Call: func(_ Input, args ...ref.Val) ref.Val {
			text, _ := Text(args[0])
			return anyOf(args[1], about(text))
		},
	}
}

// anyOf calls ask with a string, or with each string in a list until one returns true. It returns an error if ask
// fails first or an element is not a string.
func anyOf(v ref.Val, ask func(string) (bool, error)) ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		text, _ := Text(v)
		ok, err := ask(text)
		return orError(types.Bool(ok), err)
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		element := it.Next()
		text, isText := Text(element)
		if !isText {
			return types.WrapErr(fmt.Errorf("expected a list of strings, found the %s %s", typeName(element), showValue(element)))
		}
		if ok, err := ask(text); ok || err != nil {
			return orError(types.Bool(ok), err)
		}
	}
	return types.False
}

func orError(v ref.Val, err error) ref.Val {
	if err != nil {
		return types.WrapErr(err)
	}
	return v
}
