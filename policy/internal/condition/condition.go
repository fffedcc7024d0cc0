package condition

import (
	"context"
	"errors"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/grapnel-go/grapnel/hooks"
)

// Condition is an expression that is true or false. It is immutable and safe for concurrent use by any number of
// runs. Create it with Language.Compile.
type Condition struct{ c *compiled }

// Test evaluates the condition. The error is an *EvalError (a missing field, a division by zero, values of the wrong
// type, a cost above the limit), or the context's cause if the context has ended.
func (c *Condition) Test(ctx context.Context, in Input) (bool, error) {
	if ev := in.event; ev != nil && ev.point == c.c.d.point && ctx.Err() == nil {
		if c.c.gate != nil && ev.gates != nil && ev.gates.excludes(c.c, ev) {
			return false, nil
		}
		if c.c.judge != nil {
			if said := c.c.judge(ev); said != unsure {
				return said == yes, nil
			}
		}
	}
	v, err := c.c.evaluate(ctx, in)
	if err != nil {
		return false, err
	}
	if b, ok := v.(types.Bool); ok {
		return bool(b), nil
	}
	return false, c.c.wrongResult(v)
}

// String returns the condition's text.
func (c *Condition) String() string { return c.c.text }

// Constant returns the value of a condition that is the same for all inputs; known is false if the value depends on
// the input. The variables vars.* count as input, because users change them.
func (c *Condition) Constant() (value, known bool) {
	b, ok := c.c.always.(types.Bool)
	return bool(b), ok
}

// Uses reports whether the condition names a variable or function: "args", "calls", "vars.workspace".
func (c *Condition) Uses(name string) bool { return c.c.uses.names[name] }

// Expression is an expression of any type, for values that a policy sets. It is immutable and safe for concurrent use
// by any number of runs. Create it with Language.Expression.
type Expression struct{ c *compiled }

// Value evaluates the expression and returns a CEL value. It returns the same errors as Condition.Test.
func (e *Expression) Value(ctx context.Context, in Input) (ref.Val, error) {
	return e.c.evaluate(ctx, in)
}

// Type returns the value's type in CEL's notation: "string", "list(int)", or "dyn" if it is known only at evaluation.
func (e *Expression) Type() string { return cel.FormatCELType(e.c.ast.OutputType()) }

// String returns the expression's text.
func (e *Expression) String() string { return e.c.text }

// Uses works like Condition.Uses.
func (e *Expression) Uses(name string) bool { return e.c.uses.names[name] }

// Explain works like Condition.Explain.
func (e *Expression) Explain(ctx context.Context, in Input) []hooks.Fact {
	return e.c.explainFacts(ctx, in)
}

var errNoInput = errors.New("the input is empty: create it with Of")

func (c *compiled) evaluate(ctx context.Context, in Input) (ref.Val, error) {
	if in.event == nil {
		return nil, errNoInput
	}
	if in.event.point != c.d.point {
		return nil, fmt.Errorf("condition %q was compiled for %s and cannot be evaluated at %s", shortenText(c.text), c.d.point, in.event.point)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	a := in.event.in(c.d)
	var v ref.Val
	var err error
	if c.uses.unbounded && ctx.Done() != nil {
		v, _, err = c.run.ContextEval(ctx, a)
	} else {
		v, _, err = c.run.Eval(a)
	}
	if err == nil && types.IsUnknown(v) {
		err = errors.New("a value is unknown")
	}
	if err == nil && c.uses.unbounded {
		err = c.checkSize(v)
	}
	if err == nil {
		return v, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, c.failure(ctx, a, err)
}

// checkSize returns an error if the result is larger than the cost limit allows. A list may contain another list many
// times, so an expression can build a huge value with little work and memory.
func (c *compiled) checkSize(v ref.Val) error {
	most := times(int(min(c.d.options.CostLimit, largest)), perValue)
	if sizeOf(v, most) > most {
		return errTooLarge
	}
	return nil
}

var errTooLarge = errors.New("the result is larger than the cost limit allows")
