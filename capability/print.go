package capability

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// String prints the composed stack, outermost first: what wraps a run, a step, the
// driver and the executor, which criteria judge, and the hooks at each point in
// the order in which they are called.
func (p Plan) String() string {
	var b strings.Builder
	hooked := !p.hooks.IsEmpty()
	fmt.Fprintf(&b, "agent %q\n", cmp.Or(p.name, "unnamed"))
	line := func(what string, parts ...[]string) {
		fmt.Fprintf(&b, "  %-9s %s\n", what, strings.Join(lo.Flatten(parts), " ▸ "))
	}
	when := func(there bool, name string) []string { return lo.Ternary(there, []string{name}, nil) }
	at := func(names ...hooks.PointName) bool {
		return lo.SomeBy(names, func(n hooks.PointName) bool { return len(p.hooks.Order(n)) > 0 })
	}
	line("run", p.aroundRun.at(Outside).names(), when(hooked, "HookProcessor"), p.aroundRun.at(Inside).names(), []string{"steps"})
	line("step", p.aroundStep.at(Outside).names(), when(hooked, "HookProcessor"), p.aroundStep.at(Inside).names(), []string{"infer, prepare, execute, record"})
	line("driver", p.wrapDriver.at(Outside).names(), when(at(hooks.PreInference, hooks.PostInference), "hooks"), p.wrapDriver.at(Inside).names(), []string{nameOf(p.driver)})
	line("executor", p.wrapExecutor.at(Outside).names(), when(at(hooks.PreToolUse, hooks.PostToolUse, hooks.ToolFailed), "HookedToolExecutor"), p.wrapExecutor.at(Inside).names(), []string{p.executorName()})
	criteria := append([]string{"Base"}, lo.Map(p.criteria, func(c agent.Criterion, _ int) string { return nameOf(c) })...)
	line("judge", when(at(hooks.Stop), "HookContinuationCriterion"), []string{strings.Join(criteria, ", ")})
	if hooked {
		fmt.Fprintln(&b, "  hooks")
		for _, point := range hooks.PointNames() {
			if order := p.hooks.Order(point); len(order) > 0 {
				fmt.Fprintf(&b, "    %-15s %s\n", point, strings.Join(order, ", "))
			}
		}
	}
	return b.String()
}

func (p Plan) executorName() string {
	if p.executor != nil {
		return nameOf(p.executor)
	}
	names := lo.Map(p.tools, func(t toolexec.Tool, _ int) string {
		if t == nil {
			return "nil"
		}
		return t.Spec().Name
	})
	if len(names) == 0 {
		return "no tools"
	}
	return strings.Join(names, ", ")
}

// nameOf is how something calls itself, or its type.
func nameOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case fmt.Stringer:
		return v.String()
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", v), "*")
}
