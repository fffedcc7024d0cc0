package condition

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
)

// Explain returns the reasons for the condition's value: the evaluated parts joined by && and ||, each followed by
// the values named in it. It evaluates the condition again, which takes some microseconds. Values are shortened, but
// secrets in them are not detected.
func (c *Condition) Explain(ctx context.Context, in Input) []hooks.Fact {
	return c.c.explainFacts(ctx, in)
}

// trace holds the value of each evaluated part of an expression, by the part's ID.
type trace interface {
	Value(id int64) (ref.Val, bool)
}

// trace evaluates again and records the value of each part; nil if that is not possible.
func (c *compiled) trace(ctx context.Context, a cel.Activation) trace {
	program, err := c.traced()
	if err != nil {
		return nil
	}
	eval := func() (ref.Val, *cel.EvalDetails, error) { return program.Eval(a) }
	if c.uses.unbounded && ctx.Done() != nil {
		eval = func() (ref.Val, *cel.EvalDetails, error) { return program.ContextEval(ctx, a) }
	}
	if _, details, _ := eval(); details != nil && details.State() != nil {
		return details.State()
	}
	return nil
}

func (c *compiled) explainFacts(ctx context.Context, in Input) []hooks.Fact {
	if in.event == nil || in.event.point != c.d.point || ctx.Err() != nil {
		return nil
	}
	f := facts{of: c, in: in}
	if c.judge != nil && f.gatherJudged(c.reasons(), false) != unsure {
		return f.list
	}
	f.list = nil
	if f.state = c.trace(ctx, in.event.in(c.d)); f.state != nil {
		f.gatherTraced(c.reasons())
	}
	return f.list
}

// why returns a function's explanation of its result; see Function.Why.
func (c *compiled) why(e ast.Expr, state trace, in Input) string {
	if e.Kind() != ast.CallKind {
		return ""
	}
	call := e.AsCall()
	f := c.d.functions[call.FunctionName()]
	if f == nil || f.Why == nil {
		return ""
	}
	of := call.Args()
	if call.IsMemberFunction() {
		of = append([]ast.Expr{call.Target()}, of...)
	}
	args := make([]ref.Val, len(of))
	for i, arg := range of {
		if v, ok := state.Value(arg.ID()); ok && v != nil {
			args[i] = v
		} else if arg.Kind() == ast.LiteralKind {
			args[i] = arg.AsLiteral()
		} else {
			return ""
		}
	}
	return appendix(f.Why(in, args...))
}

// namedIn returns the values named in a part: variables, the longest paths into them, and calls of functions other
// than operators. It omits loop bodies, because their values change with each iteration.
func (c *compiled) namedIn(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.IdentKind:
		return []ast.Expr{e}
	case ast.SelectKind:
		switch of := e.AsSelect().Operand(); {
		case isPath(e):
			return []ast.Expr{e}
		case isPath(of):
			return nil // has(…) only tests that the member exists
		default:
			return c.namedIn(of)
		}
	case ast.CallKind:
		if isPath(e) {
			return []ast.Expr{e}
		}
		var out []ast.Expr
		call := e.AsCall()
		if call.IsMemberFunction() {
			out = c.namedIn(call.Target())
		}
		for _, arg := range call.Args() {
			out = append(out, c.namedIn(arg)...)
		}
		if c.d.functions[call.FunctionName()] != nil {
			out = append(out, e)
		}
		return out
	case ast.ListKind:
		return lo.FlatMap(e.AsList().Elements(), func(x ast.Expr, _ int) []ast.Expr { return c.namedIn(x) })
	case ast.ComprehensionKind:
		return c.namedIn(e.AsComprehension().IterRange())
	}
	return nil
}

// isPath reports whether an expression is a name, or a field or element of a path.
func isPath(e ast.Expr) bool {
	switch e.Kind() {
	case ast.IdentKind:
		return true
	case ast.SelectKind:
		return !e.AsSelect().IsTestOnly() && isPath(e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		return call.FunctionName() == operators.Index && len(call.Args()) == 2 &&
			isPath(call.Args()[0]) && call.Args()[1].Kind() == ast.LiteralKind
	}
	return false
}

// source returns a part's text.
func (c *compiled) source(e ast.Expr) string {
	text, err := cel.ExprToString(e, c.ast.NativeRep().SourceInfo())
	if err != nil {
		return "?"
	}
	return strings.Join(strings.Fields(text), " ")
}

// offset returns a part's byte offset in the text.
func (c *compiled) offset(id int64) int {
	info := c.ast.NativeRep().SourceInfo()
	return nameBefore(c.text, offsetOf(c.text, info.GetStartLocation(id)))
}

// nameBefore returns the offset of the function name in a call. CEL gives the place of the parenthesis.
func nameBefore(text string, offset int) int {
	if offset >= len(text) || text[offset] != '(' {
		return offset
	}
	for offset > 0 && isNameByte(text[offset-1]) {
		offset--
	}
	return offset
}

// showValue formats a value for people, in at most a few hundred bytes.
func showValue(v ref.Val) string { return shortenText(shownIn(v, 3)) }

func shownIn(v ref.Val, depth int) string {
	switch v := v.(type) {
	case types.String:
		return strconv.Quote(shortenText(string(v)))
	case types.Bool:
		return strconv.FormatBool(bool(v))
	case types.Int:
		return strconv.FormatInt(int64(v), 10)
	case types.Null:
		return "null"
	case types.Timestamp:
		return v.UTC().Format("2006-01-02T15:04:05Z")
	case types.Duration:
		return v.String()
	case *types.Optional:
		if !v.HasValue() {
			return "none"
		}
		return shownIn(v.GetValue(), depth)
	case *types.Err:
		return "failed: " + plainMessage(v)
	case *object:
		return shownObject(v, depth)
	case traits.Lister:
		return "[" + shownElements(v, depth, func(e ref.Val) string { return shownIn(e, depth-1) }) + "]"
	case traits.Mapper:
		return "{" + shownElements(inOrder(v), depth, func(k ref.Val) string {
			return shownIn(k, depth-1) + ": " + shownIn(v.Get(k), depth-1)
		}) + "}"
	}
	return fmt.Sprint(v.Value())
}

func shownObject(o *object, depth int) string {
	if depth == 0 {
		return "…"
	}
	return o.kind.name + "{" + strings.Join(lo.Map(o.kind.order, func(name string, _ int) string {
		return name + ": " + shownIn(o.kind.value[name](o.v), depth-1)
	}), ", ") + "}"
}

// inOrder returns a map's keys in a fixed order, so that its text is always the same.
func inOrder(m traits.Mapper) traits.Lister {
	var keys []ref.Val
	for it := m.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortStableFunc(keys, func(a, b ref.Val) int { return strings.Compare(fmt.Sprint(a.Value()), fmt.Sprint(b.Value())) })
	return types.NewRefValList(types.DefaultTypeAdapter, keys)
}

func shownElements(of traits.Iterable, depth int, show func(ref.Val) string) string {
	const most = 8
	if depth == 0 {
		return "…"
	}
	var out []string
	for it := of.Iterator(); it.HasNext() == types.True; {
		if len(out) == most {
			out = append(out, "…")
			break
		}
		out = append(out, show(it.Next()))
	}
	return strings.Join(out, ", ")
}
