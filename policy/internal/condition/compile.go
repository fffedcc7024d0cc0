package condition

import (
	"context"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/grapnel-go/grapnel/hooks"
)

// compiled is the checked program behind a Condition or an Expression. It is safe for concurrent use.
type compiled struct {
	d      *dialect
	text   string
	ast    *cel.Ast
	uses   uses
	run    cel.Program
	judge  judge   // evaluates most inputs without CEL; nil if the expression needs CEL
	gate   judge   // excludes tools; nil if no part of the expression depends on the tool alone
	always ref.Val // the constant value; nil if the value depends on the input
	traced func() (cel.Program, error)
	// reasons returns the parts of the expression, for explanations.
	reasons func() reason
}

// Compile compiles a condition, which is an expression of type bool. The error is of type Errors, unless the hook
// point is unknown.
func (l *Language) Compile(text string, at hooks.PointName) (*Condition, error) {
	c, err := l.compileAt(text, at)
	if err != nil {
		return nil, err
	}
	switch out := c.ast.OutputType(); {
	case out.IsExactType(cel.BoolType):
	case out.IsExactType(cel.DynType):
		// The type is known only at evaluation; any type other than bool is an error then.
	default:
		return nil, Errors{c.d.wrongAt(text, firstByte(text), "a condition must be a bool, but this expression is of type %s",
			cel.FormatCELType(out))}
	}
	return &Condition{c}, nil
}

// Expression compiles an expression of any type. It returns the same errors as Compile.
func (l *Language) Expression(text string, at hooks.PointName) (*Expression, error) {
	c, err := l.compileAt(text, at)
	if err != nil {
		return nil, err
	}
	return &Expression{c}, nil
}

func (l *Language) compileAt(text string, at hooks.PointName) (*compiled, error) {
	d, err := l.dialectAt(at)
	if err != nil {
		return nil, err
	}
	ast, wrong := d.checkText(text)
	if len(wrong) > 0 {
		return nil, wrong
	}
	c := &compiled{d: d, text: text, ast: ast, uses: d.usesOf(ast)}
	c.traced = sync.OnceValues(func() (cel.Program, error) {
		return d.env.Program(ast, c.limits(cel.OptTrackState)...)
	})
	c.reasons = sync.OnceValue(func() reason { return c.reasonOf(ast.NativeRep().Expr()) })
	if c.run, err = d.env.Program(ast, c.limits(cel.OptOptimize)...); err != nil {
		return nil, Errors{d.wrongAt(text, firstByte(text), "%s", err)}
	}
	if err := c.fold(); err != nil {
		return nil, Errors{err}
	}
	c.gate = d.gate(ast.NativeRep().Expr())
	c.judge = d.judge(ast.NativeRep().Expr())
	return c, nil
}

// checkText parses and checks an expression.
func (d *dialect) checkText(text string) (*cel.Ast, Errors) {
	switch {
	case len(text) > maxText:
		return nil, Errors{d.wrongAt(text, maxText, "the condition is longer than %d bytes", maxText)}
	case !utf8.ValidString(text):
		return nil, Errors{d.wrongAt(text, 0, "the condition is not UTF-8 text")}
	case firstByte(text) == len(text):
		return nil, Errors{d.wrongAt(text, 0, "the condition is empty")}
	}
	plain, wrong := d.plain(text)
	if len(wrong) > 0 {
		return nil, wrong
	}
	ast, issues := d.env.Compile(plain)
	if issues.Err() != nil {
		for _, issue := range issues.Errors() {
			wrong = append(wrong, d.explainIssue(text, plain, issue))
		}
		return nil, sortErrors(wrong)
	}
	return ast, sortErrors(append(d.stray(text, ast), d.roundedLiterals(text, ast)...))
}

// sortErrors sorts the errors by their position and removes duplicates.
func sortErrors(wrong Errors) Errors {
	slices.SortStableFunc(wrong, func(a, b *Error) int { return a.Offset - b.Offset })
	return slices.CompactFunc(wrong, func(a, b *Error) bool { return a.Offset == b.Offset && a.Message == b.Message })
}

// firstByte returns the offset of the first byte that is not white space.
func firstByte(text string) int { return len(text) - len(strings.TrimLeft(text, " \t\r\n\f")) }

// limits returns the CEL options that bound an evaluation. Cost is not tracked if the sizes of the expression and its
// values already bound the work.
func (c *compiled) limits(how cel.EvalOption) []cel.ProgramOption {
	options := []cel.ProgramOption{cel.EvalOptions(how)}
	if c.uses.unbounded {
		options = append(options, cel.InterruptCheckFrequency(64),
			cel.CostTracking(payments{}), cel.CostLimit(c.d.options.CostLimit), cel.CustomDecoratorV2(c.d.prepay))
	} else {
		options = append(options, cel.CustomDecoratorV2(c.d.compareExactly))
	}
	return options
}

// fold evaluates the expression with all values unknown. A result is a constant; an error means that the expression
// always fails.
func (c *compiled) fold() *Error {
	program := c.run
	if c.uses.unbounded && c.d.options.CostLimit > defaultCost {
		var err error // with unknown values, a loop may run until it reaches the cost limit
		if program, err = c.d.env.Program(c.ast, append(c.limits(cel.OptOptimize), cel.CostLimit(defaultCost))...); err != nil {
			return c.d.wrongAt(c.text, firstByte(c.text), "%s", err)
		}
	}
	out, _, err := program.Eval(&blank{c.d})
	switch {
	case err != nil && types.IsError(out):
		e := c.failure(context.Background(), &blank{c.d}, err)
		wrong := c.d.wrongAt(c.text, e.Offset, "this always fails: %s", e.Err)
		return wrong
	case err == nil && !types.IsUnknown(out):
		c.always = out
	}
	return nil
}

// blank is an activation in which every value is unknown.
type blank struct{ d *dialect }

// ResolveName returns an unknown value for every name of the dialect.
func (b *blank) ResolveName(name string) (any, bool) {
	if b.d.names[name] == nil {
		return nil, false
	}
	return types.NewUnknown(1, nil), true
}

// Parent returns nil.
func (b *blank) Parent() cel.Activation { return nil }

// ResolveFunction returns a function whose result is unknown.
func (b *blank) ResolveFunction(name string) (functions.LateBoundOp, bool) {
	return func(string, ...ref.Val) ref.Val { return types.NewUnknown(1, nil) }, b.d.functions[name] != nil
}

var _ cel.FunctionActivation = (*blank)(nil)
