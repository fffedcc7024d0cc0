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

// reason is an expression prepared for explaining: parts joined by && or ||, the negation of such parts, or one part
// with the values named in it.
type reason struct {
	joins   []reason
	end     verdict // for joined parts: the value of a part that ends the evaluation
	negated *reason

	labelled

	judge  judge // nil if the part needs CEL
	values []labelled
}

// labelled is a part of an expression with its text.
type labelled struct {
	expr  ast.Expr
	name  string
	value func(ev *event) ref.Val // nil if the value needs CEL
	why   func(ev *event) string  // nil if the value is not explained
}

// whyIn returns the explanation of a value, or "".
func (n labelled) whyIn(ev *event) string {
	if n.why == nil {
		return ""
	}
	return n.why(ev)
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
		labelled: labelled{expr: e, name: c.source(e), why: c.d.whyOf(e)},
		values: lo.Map(c.namedIn(e), func(e ast.Expr, _ int) labelled {
			return labelled{e, c.source(e), c.d.valueOf(e), c.d.whyOf(e)}
		}),
	}
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.LogicalNot && decides(e) {
		of := c.reasonOf(e.AsCall().Args()[0])
		r.negated = &of
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

// whyOf returns a function that explains the result of a Function call without CEL; nil for other expressions.
func (d *dialect) whyOf(e ast.Expr) func(ev *event) string {
	if e.Kind() != ast.CallKind {
		return nil
	}
	f := d.functions[e.AsCall().FunctionName()]
	if f == nil || f.Why == nil || e.AsCall().IsMemberFunction() {
		return nil
	}
	args := lo.Map(e.AsCall().Args(), func(arg ast.Expr, _ int) func(ev *event) ref.Val { return d.compileValue(arg) })
	return func(ev *event) string {
		values := make([]ref.Val, len(args))
		for i, arg := range args {
			if values[i] = arg(ev); values[i] == nil {
				return ""
			}
		}
		return appendix(f.Why(Input{ev}, values...))
	}
}

// appendix formats an explanation to follow a value.
func appendix(why string) string {
	if why != "" {
		return ": " + why
	}
	return ""
}

// valueOf returns a function that computes a named value without CEL; nil if only CEL can.
func (d *dialect) valueOf(e ast.Expr) func(ev *event) ref.Val {
	if e.Kind() == ast.IdentKind {
		v := d.names[e.AsIdent()]
		if v == nil {
			return nil
		}
		return func(ev *event) ref.Val { return d.env.CELTypeAdapter().NativeToValue(v.value(ev)) }
	}
	if p := d.argument(e); p != nil {
		return func(ev *event) ref.Val {
			if t, at, there := p.in(ev); there == yes {
				return t.nodeValue(at)
			}
			return nil
		}
	}
	return d.compileValue(e)
}

// facts collects an expression's explanation.
type facts struct {
	of    *compiled
	in    Input
	state trace
	list  []hooks.Fact
}

// gatherJudged collects the facts that can be computed without CEL. It returns unsure if CEL is needed. Parts within
// a negation add only the values named in them.
func (f *facts) gatherJudged(r reason, within bool) verdict {
	switch {
	case r.negated != nil:
		labels := !within && !f.has(r.labelled)
		at := len(f.list)
		if labels {
			f.add(r.labelled, "")
		}
		v := f.gatherJudged(*r.negated, true).not()
		if labels {
			f.list[at].Value = strconv.FormatBool(v == yes)
		}
		return v
	case r.joins != nil:
		for _, part := range r.joins {
			if v := f.gatherJudged(part, within); v == r.end || v == unsure {
				return v
			}
		}
		return r.end.not()
	case r.judge == nil:
		return unsure
	}
	v := r.judge(f.in.event)
	if v == unsure {
		return unsure
	}
	if !within {
		f.add(r.labelled, strconv.FormatBool(v == yes)+r.whyIn(f.in.event))
	}
	for _, n := range r.values {
		if f.has(n) {
			continue
		}
		value := n.value(f.in.event)
		if value == nil {
			return unsure
		}
		f.add(n, showValue(value)+n.whyIn(f.in.event))
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

// has reports whether the list already has a fact with that name, or needs none.
func (f *facts) has(n labelled) bool {
	return n.expr.Kind() == ast.LiteralKind || slices.ContainsFunc(f.list, func(g hooks.Fact) bool { return g.Name == n.name })
}

func (f *facts) add(n labelled, value string) {
	if f.has(n) {
		return
	}
	if f.list == nil {
		f.list = make([]hooks.Fact, 0, 4) // enough for most conditions
	}
	f.list = append(f.list, hooks.Fact{Name: n.name, Value: value})
}
