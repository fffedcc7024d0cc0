package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// A Set is an immutable list of hooks in the order they were given. The zero Set is empty.
// Call Compile before use.
type Set struct {
	hooks []Hook
}

// NewSet returns a set with copies of the given hooks.
func NewSet(list ...Hook) Set { return Set{slices.Clone(list)} }

// With returns the set with more hooks at its end. The receiver does not change.
func (s Set) With(more ...Hook) Set { return Set{append(slices.Clip(s.hooks), more...)} }

// IsEmpty reports whether the set has no hooks.
func (s Set) IsEmpty() bool { return len(s.hooks) == 0 }

// All iterates over the hooks in the order they were given.
func (s Set) All() iter.Seq2[int, Hook] { return slices.All(s.hooks) }

// Order returns the names of a point's hooks, in the order in which they are called: controls, then observers, then
// detached hooks.
func (s Set) Order(at PointName) []string {
	info, ok := infoOf(at)
	if !ok {
		return nil
	}
	here := lo.Filter(s.sort(info), func(h Hook, _ int) bool { return slices.Contains(h.points, at) })
	slices.SortStableFunc(here, func(a, b Hook) int { return hookPhase(a) - hookPhase(b) })
	return lo.Map(here, func(h Hook, _ int) string { return h.name })
}

func hookPhase(h Hook) int {
	switch {
	case h.control:
		return 0
	case h.detached:
		return 2
	}
	return 1
}

// sort returns the hooks by priority, high first. Hooks with equal priority keep the order in which they were given. At
// points after something has happened, the order is reversed.
func (s Set) sort(info *pointInfo) []Hook {
	list := slices.Clone(s.hooks)
	slices.SortStableFunc(list, func(a, b Hook) int { return cmp.Compare(b.priority, a.priority) })
	if info.after {
		slices.Reverse(list)
	}
	return list
}

// Compiled is a set of hooks that is ready to use. It can serve any number of runs at the
// same time.
type Compiled struct {
	set   Set
	reach Reach
	pool  *Pool

	// byPoint is a *pointTable. A field of that type would bring its generic types to every package that refers to a Compiled, and
	// each of them would compile all their methods again: half of what is compiled for a small program.
	byPoint any
}

// pointsOf returns the hooks by point. It is no method, because what methods return has types like a field.
func pointsOf(c *Compiled) *pointTable {
	t, _ := c.byPoint.(*pointTable)
	return t
}

// pointTable has each point's hooks.
type pointTable struct {
	input     pointHooks[InputContext]
	execution pointHooks[ExecutionContext]
	stepStart pointHooks[StepContext]
	stepEnd   pointHooks[StepEndContext]
	pre       pointHooks[InferenceContext]
	post      pointHooks[ReplyContext]
	stop      pointHooks[StopContext]
	end       pointHooks[EndContext]
	failed    pointHooks[FailureContext]
	requested pointHooks[InterventionContext]
	resolved  pointHooks[InterventionResolvedContext]
	stopped   pointHooks[InterventionStoppedContext]

	conversationStart pointHooks[ConversationContext]
	conversationEnd   pointHooks[ConversationEndContext]

	preCompact     pointHooks[PreCompactContext]
	postCompact    pointHooks[PostCompactContext]
	compactFailed  pointHooks[CompactFailedContext]
	preSubagent    pointHooks[PreSubagentContext]
	postSubagent   pointHooks[PostSubagentContext]
	subagentFailed pointHooks[SubagentFailedContext]

	pipeline        map[PointName]*pointHooks[PipelineContext] // nil without such hooks
	sessionComplete pointHooks[PipelineEndContext]
	runStart        pointHooks[RunStartContext]
	runResult       pointHooks[RunResultContext]
	runFailed       pointHooks[RunFailedContext]
	runFinish       pointHooks[RunEndContext]
	runTimeout      pointHooks[RunEndContext]

	preTool    pointHooks[ToolContext]
	toolFailed pointHooks[ToolFailureContext]
	postTool   pointHooks[ToolResultContext]
	tools      toolTable
}

// Compile checks the hooks and prepares them for use. tools are the names of the known tools. The hooks for other tools
// are found when a call occurs. The error joins all problems.
func (s Set) Compile(tools ...string) (*Compiled, error) {
	here := Scope{
		Points: PointNames(), LaterAgents: []string{"*"}, Stages: []string{"*"},
		Tools: lo.Map(tools, func(name string, _ int) Tool { return Tool{Name: name} }),
	}
	if len(tools) == 0 {
		here.LaterTools = []string{"*"}
	}
	return s.CompileIn(&Pool{}, Reach{Here: here})
}

// CompileIn works like Compile with more information. reach describes what the hooks can match. background runs the
// detached hooks. A sub-agent's hooks use the background of the agent that starts it. It is not an error if a hook
// cannot match anything: see Gaps.
func (s Set) CompileIn(background *Pool, reach Reach) (*Compiled, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	p := &pointTable{
		input: pointHooksOf(s, AtInputSubmitted), execution: pointHooksOf(s, AtExecutionStart),
		stepStart: pointHooksOf(s, AtStepStart), stepEnd: pointHooksOf(s, AtStepEnd),
		pre: pointHooksOf(s, AtPreInference), post: pointHooksOf(s, AtPostInference),
		stop: pointHooksOf(s, AtStop), end: pointHooksOf(s, AtExecutionEnd), failed: pointHooksOf(s, AtAgentFailed),
		requested: pointHooksOf(s, AtInterventionRequested), resolved: pointHooksOf(s, AtInterventionResolved), stopped: pointHooksOf(s, AtInterventionStopped),
		conversationStart: pointHooksOf(s, AtConversationStart), conversationEnd: pointHooksOf(s, AtConversationEnd),
		preCompact: pointHooksOf(s, AtPreCompact), postCompact: pointHooksOf(s, AtPostCompact), compactFailed: pointHooksOf(s, AtCompactFailed),
		preSubagent: pointHooksOf(s, AtPreSubagent), postSubagent: pointHooksOf(s, AtPostSubagent), subagentFailed: pointHooksOf(s, AtSubagentFailed),
		preTool: pointHooksOf(s, AtPreToolUse), toolFailed: pointHooksOf(s, AtToolFailed), postTool: pointHooksOf(s, AtPostToolUse),
	}
	p.aroundRuns(s)
	p.tools = newToolTable(p, lo.Map(reach.Here.Tools, func(t Tool, _ int) string { return t.Name }))
	return &Compiled{set: s, reach: reach, pool: background, byPoint: p}, nil
}

// aroundRuns compiles the hooks at the points around runs, which few sets have.
func (p *pointTable) aroundRuns(s Set) {
	for _, at := range pipelinePoints {
		if m := pointHooksOf(s, at); !m.empty() {
			if p.pipeline == nil {
				p.pipeline = map[PointName]*pointHooks[PipelineContext]{}
			}
			p.pipeline[at.name] = &m
		}
	}
	p.sessionComplete = pointHooksOf(s, AtSessionComplete)
	p.runStart, p.runResult, p.runFailed = pointHooksOf(s, AtRunStart), pointHooksOf(s, AtRunResult), pointHooksOf(s, AtRunFailed)
	p.runFinish, p.runTimeout = pointHooksOf(s, AtRunFinish), pointHooksOf(s, AtRunTimeout)
}

// HasControls reports whether a point has controls other than shadow controls. It returns false on nil. Events that are
// sent there before the controls were asked must not contain text.
func (c *Compiled) HasControls(at PointName) bool {
	return c != nil && slices.ContainsFunc(c.set.hooks, func(h Hook) bool {
		return h.control && !h.shadow && slices.Contains(h.points, at)
	})
}

// Hooks returns the set that was compiled.
func (c *Compiled) Hooks() Set { return c.set }

// DroppedCount returns how many detached hooks were dropped, in all sets that share a background. They are dropped when
// too many wait, or when they are cancelled before they began.
func (c *Compiled) DroppedCount() int64 {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return c.pool.dropped
}

// Background returns the pool of detached hooks, for an agent's Drain and Cancel.
func (c *Compiled) Background() agent.Background { return c.pool }

// Gaps returns the tools, arguments, agents and points that the hooks name but cannot match where they are installed.
// Callers can print them: a guard for a mistyped tool name guards nothing.
func (c *Compiled) Gaps() []Gap { return c.set.Gaps(c.reach) }

// UnusedHooks returns the names of the hooks that can never match where they are installed.
func (c *Compiled) UnusedHooks() []string {
	return lo.Uniq(lo.FilterMap(c.Gaps(), func(g Gap, _ int) (string, bool) { return g.Hook, g.Never }))
}

// check returns an error that joins all problems of the hooks.
func (s Set) check() error {
	var wrong []error
	seen := map[string]bool{}
	for i, h := range s.hooks {
		name := fmt.Sprintf("hook %q", h.name)
		if h.name == "" {
			name = fmt.Sprintf("hook %d", i+1)
			wrong = append(wrong, fmt.Errorf("%s has no name: events and denials need one", name))
		}
		if seen[h.name] {
			wrong = append(wrong, fmt.Errorf("%s is declared twice: names must be unique", name))
		}
		seen[h.name] = true
		wrong = append(wrong, lo.Map(h.problems(), func(err error, _ int) error { return fmt.Errorf("%s: %w", name, err) })...)
	}
	return errors.Join(wrong...)
}

func (h Hook) problems() []error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if h.fn == nil {
		say("it has no func")
	}
	if len(h.points) == 0 {
		say("it has no point: make it with On, Observe or ObserveAll")
	}
	matcher := And(h.matchers...)
	wrong = append(wrong, splitErrors(matcher.err)...)
	never := len(h.points) > 0 && matcher.err == nil
	for _, at := range h.points {
		info, ok := infoOf(at)
		if !ok {
			say("unknown point %q", at)
			never = false
			continue
		}
		never = never && (matcher.atPoint(info) == no || matcher.needsStep && len(info.kinds) == 0)
		if matcher.needsTool && !info.tool {
			say("%s is not a point of a tool call, so the matcher %s can never match", at, matcher)
		}
		if h.control && !info.decides {
			say("%s is for observers only: use Observe", at)
		}
	}
	if never {
		say("the matcher %s can never match at %s", matcher, strings.Join(lo.Map(h.points, func(at PointName, _ int) string { return string(at) }), ", "))
	}
	if h.shadow && !h.control {
		say("an observer cannot be in shadow: only a control can")
	}
	if h.control && h.detached {
		say("a control cannot be detached: nothing would wait for its answer")
	}
	if h.timeout < 0 {
		say("its time limit is negative: %s", h.timeout)
	}
	if h.policy.tries < 0 || h.policy.delay < 0 {
		say("its failure policy is %s: tries and delay must not be negative", h.policy)
	}
	if h.policy.nested {
		say("its failure policy is %s: what follows a Retry must not be a Retry", h.policy)
	}
	if !h.control && h.policy.kind == failClosed {
		say("an observer cannot fail closed because it cannot prevent anything: make it a control with On, or use Open or Abort")
	}
	if h.policy.kind == failAbort && len(h.points) > 0 && lo.Every(pointsAfterRun, h.points) {
		say("it cannot abort the run, which has ended at %s: use Open, and report the failure in the hook", h.points[0])
	}
	if h.detached && h.policy.kind == failAbort {
		say("a detached hook cannot abort a run that does not wait for it")
	}
	return wrong
}

// pointsAfterRun lists the points at which the run has ended, so that a failure cannot change its end.
var pointsAfterRun = []PointName{ExecutionEnd, InterventionStopped}

// splitErrors returns the errors that are joined in err.
func splitErrors(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return lo.FlatMap(joined.Unwrap(), func(err error, _ int) []error { return splitErrors(err) })
	}
	return lo.Compact([]error{err})
}

// pointHooksOf returns a set's hooks at a point, in calling order.
func pointHooksOf[C Context](s Set, at Point[C]) pointHooks[C] {
	info, _ := infoOf(at.name)
	var m pointHooks[C]
	order := s.Order(at.name)
	waivable := at.name == PreToolUse && slices.ContainsFunc(s.hooks, func(h Hook) bool { return h.waives && !h.shadow })
	for _, h := range s.sort(info) {
		if !slices.Contains(h.points, at.name) {
			continue
		}
		e := &entry[C]{
			name: h.name, info: info, order: slices.Index(order, h.name) + 1,
			timeout: h.timeout, policy: h.policy, detached: h.detached, shadow: h.shadow, origin: h.origin, priority: h.priority,
			waivable: waivable,
		}
		if len(h.matchers) > 0 {
			matcher := And(h.matchers...)
			e.match = &matcher
		}
		switch f := h.fn.(type) {
		case func(context.Context, C) Result:
			e.ask = f
			m.controls = append(m.controls, e)
			continue
		case func(context.Context, C) error:
			e.tell = f
		case func(context.Context, Context) error:
			e.tell = func(ctx context.Context, c C) error { return f(ctx, c) }
		}
		if h.detached {
			e.timeout = detachedTimeout(h.timeout)
			m.detached = append(m.detached, e)
			continue
		}
		m.observers = append(m.observers, e)
	}
	return m
}
