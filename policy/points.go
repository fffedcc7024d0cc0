package policy

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/internal/points"
)

// point is a hook point with the properties that rules need.
type point struct {
	*points.Point

	// can lists the decisions that a rule can have at the point. adds lists the decisions of can that can also have
	// context and metadata.
	can, adds []string
}

// denies reports whether a rule can deny at the point.
func (p *point) denies() bool { return slices.Contains(p.can, "deny") }

// object reports whether a rewrite at the point changes an object: arguments or parameters.
func (p *point) object() bool { return p.Tool || p.Name == hooks.RunStart }

// decides reports whether a rule can decide anything at the point.
func (p *point) decides() bool { return len(p.can) > 0 }

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

// allPoints returns all points in the order in which a run fires them.
var allPoints = sync.OnceValue(func() []*point {
	return lo.Map(points.All(), func(p *points.Point, _ int) *point {
		can, adds := decisionsOf(p.Context)
		return &point{p, can, adds}
	})
})

func pointOf(name hooks.PointName) *point {
	p, _ := lo.Find(allPoints(), func(p *point) bool { return p.Name == name })
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
	return k != Pipelines || pointOf(name).Source == points.OfPipelines
}

// pointNames returns all names of points in a kind of file.
func pointNames(kind Kind) []string {
	own := lo.FilterMap(allPoints(), func(p *point, _ int) (string, bool) { return string(p.Name), kind.fires(p.Name) })
	return append(own, lo.Keys(aliases[kind])...)
}

// whatCan describes the decisions at a point in words.
func (p *point) whatCan() string {
	if !p.decides() {
		return "a rule cannot decide anything there"
	}
	return "there a rule can " + strings.Join(p.can, ", ")
}
