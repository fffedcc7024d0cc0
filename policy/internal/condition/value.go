package condition

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// compileValue returns a function that evaluates an expression without CEL: a constant, the arguments, or a Function
// call with such values. It is nil for other expressions. The function returns nil if only CEL can evaluate the
// value.
func (d *dialect) compileValue(e ast.Expr) func(ev *event) ref.Val {
	switch {
	case e.Kind() == ast.IdentKind && e.AsIdent() == "args" && d.names["args"] != nil:
		return func(ev *event) ref.Val {
			if members, ok := ev.arguments().(map[string]any); ok {
				return types.NewStringInterfaceMap(types.DefaultTypeAdapter, members)
			}
			return nil
		}
	case e.Kind() == ast.CallKind && d.functions[e.AsCall().FunctionName()] != nil:
		return d.compileCall(e.AsCall())
	}
	if constant := d.constantValue(e); constant != nil {
		return func(*event) ref.Val { return constant }
	}
	of := d.operand(e)
	if of == nil {
		return nil
	}
	return func(ev *event) ref.Val {
		if text := of(ev); text.kind == textKind {
			return types.String(text.text)
		}
		return nil
	}
}

// compileCall returns a function that evaluates a Function call; nil if only CEL can.
func (d *dialect) compileCall(c ast.CallExpr) func(ev *event) ref.Val {
	f, exprs := d.functions[c.FunctionName()], c.Args()
	if c.IsMemberFunction() {
		exprs = slices.Concat([]ast.Expr{c.Target()}, exprs)
	}
	args := make([]func(ev *event) ref.Val, len(exprs))
	constants := make([]ref.Val, len(exprs))
	for i, e := range exprs {
		constants[i] = d.constantValue(e)
		if args[i] = d.compileValue(e); args[i] == nil {
			return nil
		}
	}
	fits := slices.IndexFunc(f.Overloads, func(o Overload) bool { return slices.EqualFunc(o.Args, constants, mayAccept) })
	if fits < 0 {
		return nil
	}
	parameters := f.Overloads[fits].Args
	call := func(ev *event) (result ref.Val) {
		values := make([]ref.Val, len(args))
		for i, arg := range args {
			if values[i] = arg(ev); values[i] == nil {
				return nil
			}
			if _, isText := values[i].(types.String); !isText && parameters[i].IsExactType(cel.StringType) {
				return nil
			}
		}
		defer func() {
			if recover() != nil {
				result = nil // CEL reports the error
			}
		}()
		in := Input{ev}
		if f.Pure {
			in = Input{}
		}
		if result = f.Call(in, values...); types.IsUnknownOrError(result) {
			return nil
		}
		return result
	}
	if key := d.keyOf(c); key != "" {
		return func(ev *event) ref.Val { return ev.callOnce(key, call) }
	}
	return call
}

// keyOf returns a key that identifies the result of calling one of Options.Functions among all results for an
// event: its arguments are constants, the tool call's arguments, or calls of the same kind. It is empty for other
// calls.
func (d *dialect) keyOf(c ast.CallExpr) string {
	f := d.functions[c.FunctionName()]
	if f == nil || !f.once || c.IsMemberFunction() {
		return ""
	}
	var key strings.Builder
	fmt.Fprintf(&key, "%d %s(", d.number, f.Name)
	for _, arg := range c.Args() {
		switch constant := d.constantValue(arg); {
		case constant != nil:
			fmt.Fprintf(&key, "%q,", constant.Value())
		case arg.Kind() == ast.IdentKind && arg.AsIdent() == "args":
			key.WriteString("args,")
		case arg.Kind() == ast.CallKind && d.keyOf(arg.AsCall()) != "":
			key.WriteString(d.keyOf(arg.AsCall()) + ",")
		default:
			return ""
		}
	}
	return key.String() + ")"
}

// mayAccept reports whether a parameter accepts a constant. For nil, which stands for a value that is not known yet,
// it reports whether the value's type can be checked later.
func mayAccept(parameter *cel.Type, constant ref.Val) bool {
	if constant == nil {
		return parameter.IsExactType(cel.DynType) || parameter.IsExactType(cel.StringType)
	}
	return parameter.IsExactType(cel.DynType) || parameter.IsExactType(typeOf(constant))
}

// sizeOperand returns a function that computes a list's size without CEL; nil for other expressions.
func (d *dialect) sizeOperand(c ast.CallExpr) func(ev *event) scalar {
	of := c.Target()
	if !c.IsMemberFunction() {
		of = c.Args()[0]
	}
	if of.Kind() != ast.CallKind {
		return nil
	}
	value := d.compileValue(of)
	if value == nil {
		return nil
	}
	return func(ev *event) scalar {
		if list, ok := value(ev).(traits.Lister); ok {
			return scalarOf(list.Size())
		}
		return scalar{}
	}
}

// conditional returns the judge for a ternary expression.
func (d *dialect) conditional(args []ast.Expr) judge {
	which, then, otherwise := d.judge(args[0]), d.judge(args[1]), d.judge(args[2])
	if which == nil || then == nil || otherwise == nil {
		return nil
	}
	return func(ev *event) verdict {
		switch which(ev) {
		case yes:
			return then(ev)
		case no:
			return otherwise(ev)
		default:
			return unsure
		}
	}
}
