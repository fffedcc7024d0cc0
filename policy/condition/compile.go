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

// compiled is what conditions and expressions are made of. It is safe for concurrent use.
type compiled struct {
	d      *dialect
	text   string
	ast    *cel.Ast
	uses   uses
	run    cel.Program
	judge  judge   // what most often knows without CEL; nil where nothing does
	always ref.Val // what it always is; nil when that depends
	traced func() (cel.Program, error)
	// reasons is the expression taken apart, for explanations.
	reasons func() reason
}

// Compile makes a condition of its text: of an expression of type bool. The error is of type Errors, or says that there is
// no such point.
func (l *Language) Compile(text string, at hooks.PointName) (*Condition, error) {
	c, err := l.compileAt(text, at)
	if err != nil {
		return nil, err
	}
	switch out := c.ast.OutputType(); {
	case out.IsExactType(cel.BoolType):
	case out.IsExactType(cel.DynType):
		// Its type is known when it is evaluated; what is no bool is an error then.
	default:
		return nil, Errors{c.d.wrongAt(text, firstByte(text), "a condition is true or false, and this is a value of type %s",
			cel.FormatCELType(out))}
	}
	return &Condition{c}, nil
}

// Expression makes an expression of its text, of any type. The error is as that of Compile.
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
	if !c.uses.unbounded { // what may cost too much is counted from the beginning
		c.judge = d.judge(ast.NativeRep().Expr())
	}
	return c, nil
}

// checkText parses and checks a text.
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
	return ast, sortErrors(d.stray(text, ast))
}

// sortErrors returns the errors in the order of the text, each place once.
func sortErrors(wrong Errors) Errors {
	slices.SortStableFunc(wrong, func(a, b *Error) int { return a.Offset - b.Offset })
	return slices.CompactFunc(wrong, func(a, b *Error) bool { return a.Offset == b.Offset && a.Message == b.Message })
}

// firstByte returns where the text begins, behind white space.
func firstByte(text string) int { return len(text) - len(strings.TrimLeft(text, " \t\r\n\f")) }

// limits returns the bounds of an evaluation. An expression whose work is bounded by its length and by its values is not
// counted.
func (c *compiled) limits(how cel.EvalOption) []cel.ProgramOption {
	options := []cel.ProgramOption{cel.EvalOptions(how)}
	if c.uses.unbounded {
		options = append(options, cel.InterruptCheckFrequency(64),
			cel.CostTracking(payments{}), cel.CostLimit(c.d.options.CostLimit), cel.CustomDecoratorV2(c.d.prepay))
	}
	return options
}

// fold finds out what the expression is whatever the values are. One that fails whatever they are is wrong.
func (c *compiled) fold() *Error {
	program := c.run
	if c.uses.unbounded && c.d.options.CostLimit > defaultCost {
		var err error // with nothing known, a loop may go on for as long as it may cost
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

// blank is an activation in which nothing is known.
type blank struct{ d *dialect }

// ResolveName returns nothing: no name is known.
func (b *blank) ResolveName(name string) (any, bool) {
	if b.d.names[name] == nil {
		return nil, false
	}
	return types.NewUnknown(1, nil), true
}

// Parent returns nil.
func (b *blank) Parent() cel.Activation { return nil }

// ResolveFunction returns a function whose result is not known.
func (b *blank) ResolveFunction(name string) (functions.LateBoundOp, bool) {
	return func(string, ...ref.Val) ref.Val { return types.NewUnknown(1, nil) }, b.d.functions[name] != nil
}

var _ cel.FunctionActivation = (*blank)(nil)
