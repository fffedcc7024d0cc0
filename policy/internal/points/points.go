// Package points has the one table of hook points for package policy and its tests, with constructors of hooks that accept any
// context.
package points

import (
	"context"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
)

// Point is a hook point, without the type of its context.
type Point struct {
	Name hooks.PointName
	// Control and Observe create a hook from a func that accepts any context type.
	Control func(name string, f func(ctx context.Context, c hooks.Context) hooks.Result) hooks.Hook
	Observe func(name string, f func(ctx context.Context, c hooks.Context) error) hooks.Hook
	// CheckValues returns the errors for values that an action's texts name at the point.
	CheckValues func(d action.Declared, observer bool, vars map[string]any) error
	// Can lists the decisions that a rule can have at the point, Adds the ones of them that can also have context and metadata.
	Can, Adds []string
	// Tool is set at tool call points, where tools and arguments can be matched.
	Tool bool
	// Backwards is set if the point's hooks are called in reverse order.
	Backwards bool
	// Source is the kind of documents whose defaults apply at the point.
	Source Source
}

// Source is a kind of documents with points and defaults of its own.
type Source uint8

// The kinds of documents.
const (
	OfAgents    Source = iota
	OfPipelines        // by default, runs do not wait for hooks and failures change nothing
	OfRuns             // on the coordinator
)

func describe[C hooks.Context](of hooks.Point[C], from Source) *Point {
	var none C
	p := &Point{Name: of.Name(), Source: from}
	p.CheckValues = func(d action.Declared, observer bool, vars map[string]any) error {
		return action.CheckValues(d, of, observer, vars)
	}
	p.Observe = func(name string, f func(context.Context, hooks.Context) error) hooks.Hook {
		return hooks.Observe(of, name, func(ctx context.Context, c C) error { return f(ctx, c) })
	}
	p.Control = func(name string, f func(context.Context, hooks.Context) hooks.Result) hooks.Hook {
		return hooks.On(of, name, func(ctx context.Context, c C) hooks.Result { return f(ctx, c) })
	}
	p.Backwards = hooks.NewSet(p.Observe("a", NoCheck), p.Observe("b", NoCheck)).Order(p.Name)[0] == "b"
	p.Can, p.Adds = decisionsOf(none)
	_, p.Tool = any(none).(interface{ Call() hooks.Call })
	return p
}

// NoCheck accepts every event.
func NoCheck(context.Context, hooks.Context) error { return nil }

// All returns all points in the order in which a run fires them. The table is built on first use, so that a program without
// policies starts faster.
var All = sync.OnceValue(func() []*Point {
	return []*Point{
		describe(hooks.AtConversationStart, OfAgents),
		describe(hooks.AtInputSubmitted, OfAgents),
		describe(hooks.AtExecutionStart, OfAgents),
		describe(hooks.AtStepStart, OfAgents),
		describe(hooks.AtPreInference, OfAgents),
		describe(hooks.AtPostInference, OfAgents),
		describe(hooks.AtPreToolUse, OfAgents),
		describe(hooks.AtPreCompact, OfAgents),
		describe(hooks.AtPostCompact, OfAgents),
		describe(hooks.AtCompactFailed, OfAgents),
		describe(hooks.AtPreSubagent, OfAgents),
		describe(hooks.AtPostSubagent, OfAgents),
		describe(hooks.AtSubagentFailed, OfAgents),
		describe(hooks.AtInterventionRequested, OfAgents),
		describe(hooks.AtInterventionResolved, OfAgents),
		describe(hooks.AtToolFailed, OfAgents),
		describe(hooks.AtPostToolUse, OfAgents),
		describe(hooks.AtStepEnd, OfAgents),
		describe(hooks.AtStop, OfAgents),
		describe(hooks.AtInterventionStopped, OfAgents),
		describe(hooks.AtAgentFailed, OfAgents),
		describe(hooks.AtExecutionEnd, OfAgents),
		describe(hooks.AtConversationEnd, OfAgents),
		describe(hooks.AtSessionStart, OfPipelines),
		describe(hooks.AtIterationStart, OfPipelines),
		describe(hooks.AtIterationComplete, OfPipelines),
		describe(hooks.AtIterationFailed, OfPipelines),
		describe(hooks.AtStageComplete, OfPipelines),
		describe(hooks.AtSessionComplete, OfPipelines),
		describe(hooks.AtRunStart, OfRuns),
		describe(hooks.AtRunResult, OfRuns),
		describe(hooks.AtRunFailed, OfRuns),
		describe(hooks.AtRunTimeout, OfRuns),
		describe(hooks.AtRunFinish, OfRuns),
	}
})

// ByName returns the point with a name; nil if it is unknown.
func ByName(name hooks.PointName) *Point {
	p, _ := lo.Find(All(), func(p *Point) bool { return p.Name == name })
	return p
}
