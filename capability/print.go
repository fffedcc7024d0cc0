package capability

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/nils"
	"github.com/grapnel-go/grapnel/toolexec"
)

// String prints the composed stack, outermost first: the middleware of run, step, driver and executor, the criteria,
// the approver and the observers. The hooks follow for each point, in calling order: controls, observers, detached
// hooks. Points without hooks, and parts that were not set, are omitted.
func (p Plan) String() string {
	unused := p.unusedHooks()
	if whole, err := p.withMadeTools(); err == nil { // Build returns the error
		p = whole
	}
	t := &table{}
	fmt.Fprintf(t, "agent %q\n", cmp.Or(p.name, "unnamed"))
	t.line("request", " · ", lo.Compact([]string{p.request.Model, quoteText(p.request.Instructions)})...)
	t.stack("run", p.aroundRun.namesAt(Outside), p.hookPlace("HookProcessor", hooks.PointNames()...), p.aroundRun.namesAt(Inside),
		"steps")
	t.stack("step", p.aroundStep.namesAt(Outside), p.hookPlace("HookProcessor", hooks.PointNames()...), p.aroundStep.namesAt(Inside),
		"infer, prepare, execute, record")
	t.stack("driver", p.wrapDriver.namesAt(Outside), p.hookPlace("HookedDriver", hooks.PreInference, hooks.PostInference),
		p.wrapDriver.namesAt(Inside), nameOf(p.driver))
	t.stack("executor", p.wrapExecutor.namesAt(Outside),
		p.hookPlace("HookedToolExecutor", hooks.PreToolUse, hooks.PostToolUse, hooks.ToolFailed),
		p.wrapExecutor.namesAt(Inside), p.executorName())
	criteria := append([]string{"Base"}, namesOf(p.allCriteria()[1:])...)
	t.stack("judge", nil, p.hookPlace("HookContinuationCriterion", hooks.Stop), nil, strings.Join(criteria, ", "))
	if p.approver != nil {
		t.line("approval", "", nameOf(p.approver))
	}
	t.line("observers", ", ", namesOf(p.observers)...)
	for _, point := range hooks.PointNames() {
		t.line(string(point), "; ", lo.Compact([]string{
			p.hookNames("asks ", point, hooks.Hook.Control),
			p.hookNames("tells ", point, func(h hooks.Hook) bool { return !h.Control() && !h.IsDetached() }),
			p.hookNames("starts ", point, hooks.Hook.IsDetached),
		})...)
	}
	if len(unused) > 0 {
		t.line("unused", "", strings.Join(unused, ", ")+": for what neither the agent nor its sub-agents have")
	}
	return t.String()
}

// unusedHooks returns the names of the hooks that can never match.
func (p Plan) unusedHooks() []string {
	return lo.Uniq(lo.FilterMap(p.Gaps(), func(g hooks.Gap, _ int) (string, bool) { return g.Hook, g.Never }))
}

// hookPlace returns the name of the part that calls the hooks, if one of the points has a hook.
func (p Plan) hookPlace(name string, points ...hooks.PointName) []string {
	there := lo.SomeBy(points, func(at hooks.PointName) bool { return len(p.hooks.Order(at)) > 0 })
	return lo.Ternary(there, []string{name}, nil)
}

// hookNames returns the names of the hooks of one sort at a point, after the verb for that sort.
func (p Plan) hookNames(verb string, at hooks.PointName, sort func(hooks.Hook) bool) string {
	var some hooks.Set
	for _, h := range p.hooks.All() {
		if sort(h) {
			some = some.With(h)
		}
	}
	order := some.Order(at)
	if len(order) == 0 {
		return ""
	}
	return verb + strings.Join(order, ", ")
}

func (p Plan) executorName() string {
	tools := lo.Map(p.tools, func(t toolexec.Tool, _ int) string {
		if nils.Is(t) {
			return "nil"
		}
		return t.Spec().Name
	})
	text := cmp.Or(strings.Join(tools, ", "), "no tools")
	if p.executor != nil {
		text = nameOf(p.executor)
	}
	if p.parallel > 1 {
		text += fmt.Sprintf(" (%d at once)", p.parallel)
	}
	return text
}

// table builds lines that begin with a word of at most 14 letters.
type table struct{ strings.Builder }

// line writes a line with the parts, unless there are none.
func (t *table) line(word, between string, parts ...string) {
	if len(parts) > 0 {
		fmt.Fprintf(t, "  %-14s %s\n", word, strings.Join(parts, between))
	}
}

// stack writes the wrappers, outermost first, and the innermost part.
func (t *table) stack(word string, outside, hooked, inside []string, innermost string) {
	t.line(word, " ▸ ", lo.Flatten([][]string{outside, hooked, inside, {innermost}})...)
}

func namesOf[T any](list []T) []string {
	return lo.Map(list, func(v T, _ int) string { return nameOf(v) })
}

// nameOf returns the String of a value, or its type.
func nameOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case fmt.Stringer:
		return v.String()
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", v), "*")
}

// quoteText returns the beginning of a text, in quotes. An empty text stays empty.
func quoteText(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return lo.Ternary(text == "", "", fmt.Sprintf("%q", text))
}
