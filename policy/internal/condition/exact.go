package condition

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// CEL converts a whole number to a double before it compares the two, so that 9007199254740993 equals
// 9007199254740992.0. The comparisons here are exact. They return the error of a number that conditions cannot
// represent, wherever it is in a list or map.

// comparisons holds the operators and functions that compare values.
var comparisons = map[string]func(original operation) operation{
	operators.Equals: func(operation) operation {
		return func(args []ref.Val) ref.Val { return equalValues(args[0], args[1]) }
	},
	operators.NotEquals: func(operation) operation {
		return func(args []ref.Val) ref.Val { return opposite(equalValues(args[0], args[1])) }
	},
	operators.Less:          compareWith(func(order int) bool { return order < 0 }),
	operators.LessEquals:    compareWith(func(order int) bool { return order <= 0 }),
	operators.Greater:       compareWith(func(order int) bool { return order > 0 }),
	operators.GreaterEquals: compareWith(func(order int) bool { return order >= 0 }),
	operators.In:            findIn,
	"double":                exactConversion,
	"math.@max":             amongComparable,
	"math.@min":             amongComparable,
	"distinct":              amongComparable,
	"sort":                  amongComparable,
	"@sortByAssociatedKeys": amongComparable,
	"hasOnly":               amongComparable,
	"hasAny":                amongComparable,
	"hasAll":                amongComparable,
	"hasExactly":            amongComparable,
	"sets.contains":         amongComparable,
	"sets.intersects":       amongComparable,
	"sets.equivalent":       amongComparable,
}

// operation is a CEL function.
type operation func(args []ref.Val) ref.Val

// compareExactly returns the decorator that makes comparisons exact. For expressions with cost tracking, prepay does
// the same.
func (d *dialect) compareExactly(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if c, ok := i.(interpreter.InterpretableCall); ok && comparisons[c.Function()] != nil {
		return d.prepay(i)
	}
	return i, nil
}

// equalValues compares two values. Lists and maps with different elements differ, even if another element is an
// error.
func equalValues(a, b ref.Val) ref.Val {
	if types.IsUnknownOrError(a) {
		return a
	}
	if types.IsUnknownOrError(b) {
		return b
	}
	if order, mixed, _ := compareNumbers(a, b); mixed {
		return types.Bool(order == 0)
	}
	switch a := a.(type) {
	case traits.Lister:
		if b, ok := b.(traits.Lister); ok {
			return equalLists(a, b)
		}
	case traits.Mapper:
		if b, ok := b.(traits.Mapper); ok {
			return equalMaps(a, b)
		}
	}
	return types.Equal(a, b)
}

func equalLists(a, b traits.Lister) ref.Val {
	size := a.Size()
	if size != b.Size() {
		return types.False
	}
	var result ref.Val = types.True
	for i, n := types.Int(0), size.(types.Int); i < n; i++ { //nolint:forcetypeassert // sizes are ints
		switch same := equalValues(a.Get(i), b.Get(i)); {
		case same == types.False:
			return types.False
		case same != types.True && result == types.True:
			result = same
		}
	}
	return result
}

func equalMaps(a, b traits.Mapper) ref.Val {
	if a.Size() != b.Size() {
		return types.False
	}
	var result ref.Val = types.True
	for it := a.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		other, there := b.Find(key)
		if !there {
			return types.False
		}
		switch same := equalValues(a.Get(key), other); {
		case same == types.False:
			return types.False
		case same != types.True && result == types.True:
			result = same
		}
	}
	return result
}

// opposite negates a bool, and returns an error unchanged.
func opposite(v ref.Val) ref.Val {
	if b, ok := v.(types.Bool); ok {
		return !b
	}
	return v
}

// compareWith returns an operator that compares whole numbers with doubles exactly, and other values like CEL.
func compareWith(is func(order int) bool) func(operation) operation {
	return func(original operation) operation {
		return func(args []ref.Val) ref.Val {
			switch order, mixed, known := compareNumbers(args[0], args[1]); {
			case mixed && !known:
				return types.NewErr("NaN values cannot be ordered")
			case mixed:
				return types.Bool(is(order))
			}
			return original(args)
		}
	}
}

// findIn returns the operator in, which reports whether any element of a list equals the value.
func findIn(original operation) operation {
	return func(args []ref.Val) ref.Val {
		list, ok := args[1].(traits.Lister)
		if !ok {
			return original(args)
		}
		var result ref.Val = types.False
		for i, n := types.Int(0), list.Size().(types.Int); i < n; i++ { //nolint:forcetypeassert // sizes are ints
			switch same := equalValues(args[0], list.Get(i)); {
			case same == types.True:
				return types.True
			case same != types.False && result == types.False:
				result = same
			}
		}
		return result
	}
}

// exactConversion returns the conversion to double. A number that would be rounded is an error.
func exactConversion(original operation) operation {
	return func(args []ref.Val) ref.Val {
		out := original(args)
		f, ok := out.(types.Double)
		if !ok {
			return out
		}
		held := true
		switch v := args[0].(type) {
		case types.Int, types.Uint:
			order, mixed, _ := compareNumbers(v, f)
			held = !mixed || order == 0
		case types.String:
			held = !strings.ContainsAny(string(v), "0123456789") || strictjson.IsDouble(strings.TrimLeft(string(v), "+"), float64(f))
		}
		if !held {
			return types.NewErr("the number %s would be rounded as a double", shortenText(fmt.Sprint(args[0].Value())))
		}
		return out
	}
}

// amongComparable returns a function that compares its arguments with each other. It fails for values that CEL would
// compare wrongly: errors, and large doubles beside large whole numbers.
func amongComparable(original operation) operation {
	return func(args []ref.Val) ref.Val {
		var seen largeNumbers
		for _, arg := range args {
			if wrong := seen.add(arg, 0); wrong != nil {
				return wrong
			}
		}
		if seen.whole != nil && seen.double != nil {
			return types.NewErr("the numbers %v and %v cannot be compared exactly here", seen.whole.Value(), seen.double.Value())
		}
		return original(args)
	}
}

// largeNumbers holds a whole number and a double for which a conversion between the two may change the value.
type largeNumbers struct{ whole, double ref.Val }

// add adds the numbers in a value. It returns the first error in it, or nil.
func (l *largeNumbers) add(v ref.Val, depth int) ref.Val {
	if depth > deepest {
		return nil
	}
	switch v := v.(type) {
	case *types.Err:
		return v
	case types.Int:
		if v > exact || v < -exact {
			l.whole = v
		}
	case types.Uint:
		if v > exact {
			l.whole = v
		}
	case types.Double:
		if math.Abs(float64(v)) >= exact {
			l.double = v
		}
	case traits.Lister:
		for i, n := types.Int(0), v.Size().(types.Int); i < n; i++ { //nolint:forcetypeassert // sizes are ints
			if wrong := l.add(v.Get(i), depth+1); wrong != nil {
				return wrong
			}
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if wrong := l.add(v.Get(it.Next()), depth+1); wrong != nil {
				return wrong
			}
		}
	}
	return nil
}

// compareNumbers compares a whole number with a double, in either order. Mixed is false for all other values. Known
// is false for NaN, which has no order and equals nothing.
func compareNumbers(a, b ref.Val) (order int, mixed, known bool) {
	d, ok := b.(types.Double)
	if first, swapped := a.(types.Double); swapped && !ok {
		order, mixed, known = compareNumbers(b, first)
		return -order, mixed, known
	}
	if !ok {
		return 0, false, false
	}
	whole := new(big.Float).SetPrec(64)
	switch a := a.(type) {
	case types.Int:
		whole.SetInt64(int64(a))
	case types.Uint:
		whole.SetUint64(uint64(a))
	default:
		return 0, false, false
	}
	if math.IsNaN(float64(d)) {
		return 1, true, false
	}
	return whole.Cmp(big.NewFloat(float64(d))), true, true
}

// roundedLiterals returns an error for each double literal that CEL has rounded, so that it would be compared as a
// different number.
func (d *dialect) roundedLiterals(text string, checked *cel.Ast) Errors {
	var wrong Errors
	native := checked.NativeRep()
	ast.PostOrderVisit(native.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.LiteralKind {
			return
		}
		f, ok := e.AsLiteral().(types.Double)
		if !ok {
			return
		}
		offset := offsetOf(text, native.SourceInfo().GetStartLocation(e.ID()))
		if number := numberAt(text, offset); number != "" && !strictjson.IsDouble(number, float64(f)) {
			wrong = append(wrong, d.wrongAt(text, offset, "the number %s would be rounded to %s: write a number that a double holds exactly",
				shortenText(number), big.NewFloat(float64(f)).Text('f', -1)))
		}
	}))
	return wrong
}

// numberAt returns the number that begins at an offset, with its sign.
func numberAt(text string, offset int) string {
	end := offset
	for end < len(text) && (strings.IndexByte("0123456789.eE", text[end]) >= 0 ||
		(text[end] == '-' || text[end] == '+') && (end == offset || text[end-1]|0x20 == 'e')) {
		end++
	}
	return text[offset:end]
}
