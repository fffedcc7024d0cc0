package condition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/grapnel-go/grapnel/hooks"
)

// EvalError is returned when the evaluation of a condition fails. The caller must treat it as a failure, neither as
// true nor as false.
type EvalError struct {
	// Point and Text are the condition's. Offset is the byte offset of the failed part; Line and Column give the same
	// place from 1.
	Point                hooks.PointName
	Text                 string
	Offset, Line, Column int
	// Part is the failed part's text, and Values are its inputs with their types.
	Part   string
	Values []hooks.Fact
	// Err is the cause.
	Err error
}

// Error returns the condition, the place, the cause and the values.
func (e *EvalError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "condition %q at %s, %s: ", shortenText(e.Text), e.Point, place(e.Line, e.Column))
	if e.Part != "" && e.Part != e.Text {
		fmt.Fprintf(&b, "%s: ", shortenText(e.Part))
	}
	b.WriteString(e.Err.Error())
	for i, v := range e.Values {
		b.WriteString([]string{"; ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "%s is %s", v.Name, v.Value)
	}
	return b.String()
}

// Unwrap returns Err.
func (e *EvalError) Unwrap() error { return e.Err }

// failure returns the error with the failed part and its values. It finds them by evaluating again and recording the
// value of each part.
func (c *compiled) failure(ctx context.Context, a cel.Activation, err error) *EvalError {
	e := &EvalError{Point: c.d.point, Text: c.text, Err: errors.New(plainMessage(err))}
	e.setPlace(c.d.wrongAt(c.text, firstByte(c.text), ""))
	if _, inside := errors.AsType[*types.Err](err); !inside {
		return e // stopped from outside: cost limit or panic
	}
	state := c.trace(ctx, a)
	if state == nil {
		return e
	}
	part := c.failedPart(state, err)
	if part == nil {
		return e
	}
	e.setPlace(c.d.wrongAt(c.text, c.offset(part.ID()), ""))
	e.Part = c.source(part)
	for _, named := range c.namedIn(part) {
		if v, ok := state.Value(named.ID()); ok && !types.IsUnknownOrError(v) {
			e.add(hooks.Fact{Name: c.source(named), Value: "the " + typeName(v) + " " + showValue(v)})
		}
	}
	return e
}

func (e *EvalError) add(f hooks.Fact) {
	if f.Name != e.Part && !slices.Contains(e.Values, f) {
		e.Values = append(e.Values, f)
	}
}

func (e *EvalError) setPlace(at *Error) { e.Offset, e.Line, e.Column = at.Offset, at.Line, at.Column }

// failedPart returns the innermost part that failed with this error.
func (c *compiled) failedPart(state trace, err error) ast.Expr {
	var found ast.Expr
	ast.PostOrderVisit(c.ast.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		v, ok := state.Value(e.ID())
		wrong, isError := v.(*types.Err)
		if !ok || found != nil || !isError || wrong.Error() != err.Error() {
			return
		}
		if !strings.Contains(c.source(e), "@") { // not a name that a macro generated
			found = e
		}
	}))
	return found
}

// ours maps CEL's messages to clearer ones.
var ours = []struct{ theirs, ours string }{
	{"no such overload", "the operator or function does not accept values of these types"},
	{"actual cost limit exceeded", "the cost is above the limit"},
	{"divide by zero", "division by zero"},
	{"division by zero", "division by zero"},
	{"modulus by zero", "remainder of a division by zero"},
	{"integer overflow", "the number is too large"},
	{"operation interrupted", "the evaluation was interrupted"},
	{"unsupported conversion to ref.Val", "a value has a type that conditions do not support"},
}

// plainMessage returns an error's message, or a clearer one from the map ours.
func plainMessage(err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "no such key: "); ok {
		return fmt.Sprintf("no member %q: check with has(…) first", name)
	}
	if index, ok := strings.CutPrefix(text, "index out of bounds: "); ok {
		return "no element at index " + index
	}
	for _, word := range ours {
		if strings.Contains(text, word.theirs) {
			return word.ours
		}
	}
	return text
}

func (c *compiled) wrongResult(v ref.Val) error {
	e := &EvalError{Point: c.d.point, Text: c.text, Err: fmt.Errorf("a condition must be a bool, but this is the %s %s", typeName(v), showValue(v))}
	e.setPlace(c.d.wrongAt(c.text, firstByte(c.text), ""))
	return e
}

func typeName(v ref.Val) string { return v.Type().TypeName() }
