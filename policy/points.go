package policy

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
)

// point is a hook point with the properties that rules need.
type point struct {
	name hooks.PointName
	// control and observe create a hook from a func that accepts any context type.
	control func(name string, f func(ctx context.Context, c hooks.Context) hooks.Result) hooks.Hook
	observe func(name string, f func(ctx context.Context, c hooks.Context) error) hooks.Hook
	// checkValues returns the errors for values that an action's texts name at the point.
	checkValues func(d action.Declared, observer bool, vars map[string]any) error
	// can lists the decisions that a rule can have at the point. adds lists the decisions of can that can also have
	// context and metadata.
	can, adds []string
	// tool is set at tool call points, where tools and arguments can be matched.
	tool bool
	// backwards is set if the point's hooks are called in reverse order.
	backwards bool
	// source is the kind of documents whose defaults apply at the point.
	source source
}

// source is a kind of documents with points and defaults of its own.
type source uint8

const (
	ofAgents    source = iota
	ofPipelines        // by default, runs do not wait for hooks and failures change nothing
	ofRuns             // on the coordinator
)

// denies reports whether a rule can deny at the point.
func (p *point) denies() bool { return slices.Contains(p.can, "deny") }

// object reports whether a rewrite at the point changes an object: arguments or parameters.
func (p *point) object() bool { return p.tool || p.name == hooks.RunStart }

// decides reports whether a rule can decide anything at the point.
func (p *point) decides() bool { return len(p.can) > 0 }

// describePoint returns the properties of a point, from the methods of its context.
func describePoint[C hooks.Context](of hooks.Point[C], from source) *point {
	var none C
	p := &point{name: of.Name(), source: from}
	p.can, p.adds = decisionsOf(none)
	p.checkValues = func(d action.Declared, observer bool, vars map[string]any) error {
		return action.CheckValues(d, of, observer, vars)
	}
	p.observe = func(name string, f func(context.Context, hooks.Context) error) hooks.Hook {
		return hooks.Observe(of, name, func(ctx context.Context, c C) error { return f(ctx, c) })
	}
	p.control = func(name string, f func(context.Context, hooks.Context) hooks.Result) hooks.Hook {
		return hooks.On(of, name, func(ctx context.Context, c C) hooks.Result { return f(ctx, c) })
	}
	a, b := p.observe("a", noCheck), p.observe("b", noCheck)
	p.backwards = hooks.NewSet(a, b).Order(p.name)[0] == "b"
	_, p.tool = any(none).(interface{ Call() hooks.Call })
	return p
}

// lookUps finds a context's method for each decision: the first one that exists. MethodByName is called with constant
// names, because otherwise the linker keeps every exported method in the program.
var lookUps = map[string][]func(reflect.Type) (reflect.Method, bool){
	"allow":   {allowMethod},
	"deny":    {func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("Deny") }},
	"ask":     {func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("AskAbout") }},
	"stop":    {func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("Stop") }},
	"rewrite": {rewriteTextMethod, func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("Rewrite") }},
	"mock":    {func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("Mock") }},
	"replace": {
		func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("ReplaceText") },
		replaceMethod,
	},
	"withhold": {func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("Withhold") }},
	"redact": {
		func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("Filter") },
		replaceMethod,
		func(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("RewriteMessages") },
		rewriteTextMethod,
	},
	"add_context": {allowMethod},
}

func allowMethod(t reflect.Type) (reflect.Method, bool)       { return t.MethodByName("Allow") }
func replaceMethod(t reflect.Type) (reflect.Method, bool)     { return t.MethodByName("Replace") }
func rewriteTextMethod(t reflect.Type) (reflect.Method, bool) { return t.MethodByName("RewriteText") }

// decisionsOf returns the decisions that a context supports, and the decisions that can have effects.
func decisionsOf(c hooks.Context) (can, adds []string) {
	possible := lo.Map(action.Decisions(c), func(d hooks.Decision, _ int) string { return string(d) })
	for _, d := range decisionNames {
		takesEffects := false
		for _, lookUp := range lookUps[d] {
			if m, ok := lookUp(reflect.TypeOf(c)); ok {
				takesEffects = m.Type.IsVariadic()
				if d == "redact" || d == "add_context" && takesEffects {
					possible = append(possible, d)
				}
				break
			}
		}
		if slices.Contains(possible, d) {
			can = append(can, d)
			if takesEffects {
				adds = append(adds, d)
			}
		}
	}
	return can, adds
}

func noCheck(context.Context, hooks.Context) error { return nil }

// points returns all points in the order in which a run fires them. The table is built on first use, so that a program
// without policies starts faster.
var points = sync.OnceValue(func() []*point {
	return []*point{
		describePoint(hooks.AtConversationStart, ofAgents),
		describePoint(hooks.AtInputSubmitted, ofAgents),
		describePoint(hooks.AtExecutionStart, ofAgents),
		describePoint(hooks.AtStepStart, ofAgents),
		describePoint(hooks.AtPreInference, ofAgents),
		describePoint(hooks.AtPostInference, ofAgents),
		describePoint(hooks.AtPreToolUse, ofAgents),
		describePoint(hooks.AtPreCompact, ofAgents),
		describePoint(hooks.AtPostCompact, ofAgents),
		describePoint(hooks.AtCompactFailed, ofAgents),
		describePoint(hooks.AtPreSubagent, ofAgents),
		describePoint(hooks.AtPostSubagent, ofAgents),
		describePoint(hooks.AtSubagentFailed, ofAgents),
		describePoint(hooks.AtInterventionRequested, ofAgents),
		describePoint(hooks.AtInterventionResolved, ofAgents),
		describePoint(hooks.AtToolFailed, ofAgents),
		describePoint(hooks.AtPostToolUse, ofAgents),
		describePoint(hooks.AtStepEnd, ofAgents),
		describePoint(hooks.AtStop, ofAgents),
		describePoint(hooks.AtInterventionStopped, ofAgents),
		describePoint(hooks.AtAgentFailed, ofAgents),
		describePoint(hooks.AtExecutionEnd, ofAgents),
		describePoint(hooks.AtConversationEnd, ofAgents),

		describePoint(hooks.AtSessionStart, ofPipelines),
		describePoint(hooks.AtIterationStart, ofPipelines),
		describePoint(hooks.AtIterationComplete, ofPipelines),
		describePoint(hooks.AtIterationFailed, ofPipelines),
		describePoint(hooks.AtStageComplete, ofPipelines),
		describePoint(hooks.AtSessionComplete, ofPipelines),
		describePoint(hooks.AtRunStart, ofRuns),
		describePoint(hooks.AtRunResult, ofRuns),
		describePoint(hooks.AtRunFailed, ofRuns),
		describePoint(hooks.AtRunTimeout, ofRuns),
		describePoint(hooks.AtRunFinish, ofRuns),
	}
})

func pointOf(name hooks.PointName) *point {
	p, _ := lo.Find(points(), func(p *point) bool { return p.name == name })
	return p
}

// Kind is the kind of a file with rules. It determines the names of points in the file, and the other keys, which other
// packages read.
type Kind uint8

const (
	// Policies are policy files, as docs/policies.md describes them.
	Policies Kind = iota
	// Pipelines are files that describe a pipeline or a stage and may have hooks.
	Pipelines
	// Blueprints are files that describe a coordinator's agent and may have hooks.
	Blueprints
)

func (k Kind) String() string { return [...]string{"policy", "pipeline", "blueprint"}[k] }

// aliases holds the other names of points in each kind of file.
var aliases = map[Kind]map[string]hooks.PointName{
	Pipelines: {
		"on_session_start": hooks.SessionStart, "on_iteration_start": hooks.IterationStart,
		"on_iteration_complete": hooks.IterationComplete, "on_stage_complete": hooks.StageComplete,
		"on_session_complete": hooks.SessionComplete, "on_error": hooks.IterationFailed,
	},
	Blueprints: {
		"on_run_start": hooks.RunStart, "on_run_finish": hooks.RunFinish, "on_result": hooks.RunResult,
		"on_error": hooks.RunFailed, "on_timeout": hooks.RunTimeout, "on_tool_call": hooks.PreToolUse,
	},
}

// pointNamed returns the point with a name in a kind of file.
func pointNamed(kind Kind, name string) *point {
	if also, ok := aliases[kind][name]; ok {
		return pointOf(also)
	}
	if own, ok := hooks.PointNamed(name); ok && kind.fires(own) {
		return pointOf(own)
	}
	return nil
}

// fires reports whether a point fires where files of the kind apply. Only pipelines fire the points in their files.
func (k Kind) fires(name hooks.PointName) bool {
	return k != Pipelines || pointOf(name).source == ofPipelines
}

// pointNames returns all names of points in a kind of file.
func pointNames(kind Kind) []string {
	own := lo.FilterMap(points(), func(p *point, _ int) (string, bool) { return string(p.name), kind.fires(p.name) })
	return append(own, lo.Keys(aliases[kind])...)
}

// whatCan describes the decisions at a point in words.
func (p *point) whatCan() string {
	if !p.decides() {
		return "a rule cannot decide anything there"
	}
	return "there a rule can " + strings.Join(p.can, ", ")
}
