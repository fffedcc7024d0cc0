package condition

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"github.com/samber/lo"
)

// uses lists the names in an expression, and whether its work is bounded.
type uses struct {
	names map[string]bool
	// unbounded is set if the sizes of the expression and its values do not bound the work: it has a loop, or text
	// that may grow.
	unbounded bool
}

// bounded holds the functions whose work and results are no larger than their arguments.
var bounded = lo.Keyify([]string{
	operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.Equals,
	operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate, operators.In, operators.Index,
	operators.OptIndex, operators.OptSelect, operators.NotStrictlyFalse,
	"contains", "startsWith", "endsWith", "size", "int", "uint", "double", "string", "bool", "bytes", "type", "dyn",
	"timestamp", "duration", "lowerAscii", "upperAscii", "trim", "charAt", "substring",
	"getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes",
	"getSeconds", "getMilliseconds", "optional.of", "optional.none", "hasValue", "value", "or", "orValue", "matches",
	"math.@max", "math.@min", "math.abs", "math.sign", "math.ceil", "math.floor", "math.round", "math.trunc",
})

func (d *dialect) isBounded(function string) bool {
	_, ok := bounded[function]
	return ok || d.functions[function] != nil
}

// isSum reports whether a call of + adds numbers, as opposed to strings or lists.
func isSum(function string, result *cel.Type) bool {
	switch result.Kind() {
	case types.IntKind, types.UintKind, types.DoubleKind, types.DurationKind, types.TimestampKind:
		return function == operators.Add
	}
	return false
}

func (d *dialect) usesOf(a *cel.Ast) uses {
	u := uses{names: map[string]bool{}}
	ast.PostOrderVisit(a.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			u.names[e.AsIdent()] = true
		case ast.CallKind:
			name := e.AsCall().FunctionName()
			u.names[name] = true
			u.unbounded = u.unbounded || !d.isBounded(name) && !isSum(name, a.NativeRep().GetType(e.ID()))
		case ast.ComprehensionKind:
			u.unbounded = true
		}
	}))
	return u
}
