package condition

import (
	"slices"
	"sync"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"github.com/grapnel-go/grapnel/agent"
)

// Most conditions on effects are false for most tools, whatever the call: does("pays") && … for a tool that reads. A
// gate evaluates only functions that depend on nothing but the tool (Function.ByTool), and is unsure about
// everything else. In CEL, a false part makes a conjunction false even if another part fails. If a gate is
// false, the whole condition is therefore false.

// gate returns an expression's gate; nil if no part of it depends on the tool alone.
func (d *dialect) gate(e ast.Expr) judge {
	if e.Kind() != ast.CallKind {
		return nil
	}
	c := e.AsCall()
	switch name := c.FunctionName(); name {
	case operators.LogicalAnd, operators.LogicalOr:
		return d.gateOfJoined(c.Args(), verdictOf(name == operators.LogicalOr))
	case operators.LogicalNot:
		if of := d.gate(c.Args()[0]); of != nil {
			return func(ev *event) verdict { return of(ev).not() }
		}
	default:
		f := d.functions[name]
		if f == nil || !f.ByTool || slices.ContainsFunc(c.Args(), func(arg ast.Expr) bool { return d.constantValue(arg) == nil }) {
			return nil
		}
		if call := d.compileCall(c); call != nil {
			return func(ev *event) verdict { return scalarOf(call(ev)).truth() }
		}
	}
	return nil
}

// gateOfJoined returns the gate for parts joined by && or ||. A part with the verdict end decides.
func (d *dialect) gateOfJoined(parts []ast.Expr, end verdict) judge {
	var gates []judge
	for _, part := range parts {
		if g := d.gate(part); g != nil {
			gates = append(gates, g)
		}
	}
	if len(gates) == 0 {
		return nil
	}
	otherwise := end.not()
	if len(gates) < len(parts) {
		otherwise = unsure
	}
	return func(ev *event) verdict {
		said := otherwise
		for _, g := range gates {
			switch g(ev) {
			case end:
				return end
			case unsure:
				said = unsure
			default:
			}
		}
		return said
	}
}

// toolGates caches the gates' verdicts for one tool.
type toolGates struct {
	spec agent.ToolSpec
	said sync.Map // *compiled to verdict
}

// excludes reports whether a condition is false for all calls of m's tool.
func (t *toolGates) excludes(c *compiled, ev *event) bool {
	said, known := t.said.Load(c)
	if !known {
		said = c.gate(ev)
		t.said.Store(c, said)
	}
	return said == no
}

// gatesOf returns the gate cache for a tool of the agent whose state is s; nil if the agent lacks the tool. The
// caller holds the lock.
func (r *memory) gatesOf(s agent.State, tool string) *toolGates {
	spec, ok := s.Request().Tools.ByName(tool)
	if !ok {
		return nil
	}
	t := r.gates[tool]
	if t == nil || t.spec != spec {
		if r.gates == nil {
			r.gates = map[string]*toolGates{}
		}
		t = &toolGates{spec: spec}
		r.gates[tool] = t
	}
	return t
}
