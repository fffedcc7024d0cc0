package condition

import (
	"slices"
	"strconv"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types/ref"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
)

// reason is an expression prepared for explaining: either parts joined by && or ||, or one part with the values named in
// it.
type reason struct {
	joins []reason
	end   verdict // of joined parts: the value of a part that ends the evaluation

	labelled

	judge  judge // nil if the part needs CEL
	values []labelled
}

// labelled is a part of an expression with its text.
type labelled struct {
	expr  ast.Expr
	name  string
	value func(m *moment) ref.Val // nil if the value needs CEL
}

// reasonOf splits an expression into a reason.
func (c *compiled) reasonOf(e ast.Expr) reason {
	if e.Kind() == ast.CallKind {
		switch name := e.AsCall().FunctionName(); name {
		case operators.LogicalAnd, operators.LogicalOr:
			parts := lo.Map(e.AsCall().Args(), func(arg ast.Expr, _ int) reason { return c.reasonOf(arg) })
			return reason{joins: parts, end: verdictOf(name == operators.LogicalOr)}
		}
	}
	r := reason{
		labelled: labelled{expr: e, name: c.source(e)},
		values:   lo.Map(c.namedIn(e), func(e ast.Expr, _ int) labelled { return labelled{e, c.source(e), c.d.valueOf(e)} }),
	}
	if !decides(e) && lo.EveryBy(r.values, func(n labelled) bool { return n.value != nil }) {
		r.judge = c.d.judge(e)
	}
	return r
}

// decides reports whether an expression, or the operand of a negation, may skip some of its parts.
func decides(e ast.Expr) bool {
	if e.Kind() != ast.CallKind {
		return false
	}
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.Conditional:
		return true
	case operators.LogicalNot:
		return decides(e.AsCall().Args()[0])
	}
	return false
}

// valueOf returns a function that reads the value of a variable or an argument; nil for other expressions.
func (d *dialect) valueOf(e ast.Expr) func(m *moment) ref.Val {
	if e.Kind() == ast.IdentKind {
		v := d.names[e.AsIdent()]
		if v == nil {
			return nil
		}
		return func(m *moment) ref.Val { return d.env.CELTypeAdapter().NativeToValue(v.value(m)) }
	}
	if p := d.argument(e); p != nil {
		return func(m *moment) ref.Val {
			if t, at, there := p.in(m); there == yes {
				return t.nodeValue(at)
			}
			return nil
		}
	}
	return nil
}

// facts collects the explanation of an expression.
type facts struct {
	of    *compiled
	in    Input
	state trace
	list  []hooks.Fact
}

// gatherJudged collects the facts that can be computed without CEL. It returns unsure when CEL is needed.
func (f *facts) gatherJudged(r reason) verdict {
	for _, part := range r.joins {
		if v := f.gatherJudged(part); v == r.end || v == unsure {
			return v
		}
	}
	switch {
	case r.joins != nil:
		return r.end.not()
	case r.judge == nil:
		return unsure
	}
	v := r.judge(f.in.m)
	if v == unsure {
		return unsure
	}
	f.add(r.labelled, strconv.FormatBool(v == yes))
	for _, n := range r.values {
		f.add(n, showValue(n.value(f.in.m)))
	}
	return v
}

// gatherTraced collects the values of the parts that CEL evaluated.
func (f *facts) gatherTraced(r reason) {
	for _, part := range r.joins {
		f.gatherTraced(part)
	}
	if r.joins != nil {
		return
	}
	for _, n := range slices.Concat([]labelled{r.labelled}, r.values) {
		if v, ok := f.state.Value(n.expr.ID()); ok && v != nil {
			f.add(n, showValue(v)+f.of.why(n.expr, f.state, f.in))
		}
	}
}

func (f *facts) add(n labelled, value string) {
	if n.expr.Kind() == ast.LiteralKind || slices.ContainsFunc(f.list, func(g hooks.Fact) bool { return g.Name == n.name }) {
		return
	}
	if f.list == nil {
		f.list = make([]hooks.Fact, 0, 4) // enough for most conditions
	}
	f.list = append(f.list, hooks.Fact{Name: n.name, Value: value})
}
