package hooks

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/reserved"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// HookedToolExecutor wraps an executor with the hooks at PreToolUse, ToolFailed
// and PostToolUse. It is immutable and safe for concurrent use.
type HookedToolExecutor struct {
	inner agent.Executor
	hooks *Compiled
}

var _ agent.AnswerHandler = (*HookedToolExecutor)(nil)

// WrapExecutor wraps an executor with the hooks. In an agent it is one of agent.Config.WrapExecutor. The agent can then
// restrict the innermost executor to effects that tools may have.
func (c *Compiled) WrapExecutor(inner agent.Executor) agent.Executor {
	if pointsOf(c).tools.empty {
		return inner
	}
	return &HookedToolExecutor{inner: inner, hooks: c}
}

// Prepare asks the hooks at PreToolUse about the call.
func (x *HookedToolExecutor) Prepare(ctx context.Context, s agent.State, call *agent.ToolCall) mo.Result[*agent.Prepared] {
	if agent.Checkpoint(s).StepOpen() {
		if begun, original, ok := agent.Checkpoint(s).Begun(call.ID); ok {
			return x.prepareBegun(ctx, s, &begun, &original)
		}
	}
	hooks := pointsOf(x.hooks).tools.hooksFor(call.Name)
	result := x.prepareInner(ctx, s, hooks, call)
	p, err := result.Get()
	if err != nil || p == nil {
		return result
	}
	if p.Original == nil || p.Call == nil {
		p = withCallID(p, call)
	}
	if p.Call != call {
		hooks = pointsOf(x.hooks).tools.hooksFor(p.Call.Name)
	}
	return x.judge(ctx, s, hooks, call, p)
}

// judge asks the hooks at PreToolUse about a prepared call, and records their decision about original, the model's
// call. Calls that no hook matches are recorded, too. Without a record, a call does not run.
func (x *HookedToolExecutor) judge(
	ctx context.Context, s agent.State, hooks *toolHooks, original *agent.ToolCall, p *agent.Prepared,
) mo.Result[*agent.Prepared] {
	if hooks != nil {
		if p = strictlyRead(p); hooks.before && !malformed(p.Invalid) {
			var err error
			if p, err = x.decide(ctx, s, hooks, p).Get(); err != nil {
				return mo.Err[*agent.Prepared](err)
			}
		}
	}
	if x.JudgesCalls() {
		p = agent.Checkpoint(s).RecordJudgement(reserved.InternalToken(), original, p)
	}
	return mo.Ok(p)
}

// JudgesCalls reports whether there are hooks at PreToolUse. If so, every call needs their judgement before it runs.
func (x *HookedToolExecutor) JudgesCalls() bool { return !pointsOf(x.hooks).preTool.empty() }

// prepareRewritten lets the inner executor prepare the call after a hook rewrote it.
func (x *HookedToolExecutor) prepareRewritten(ctx context.Context, s agent.State, call *agent.ToolCall) (*agent.Prepared, error) {
	p, err := x.prepareInner(ctx, s, pointsOf(x.hooks).tools.hooksFor(call.Name), call).Get()
	if err == nil && p == nil {
		err = errors.New("the executor returned no prepared call")
	}
	if err != nil {
		return nil, err
	}
	return withCallID(p, call), nil
}

// withCallID returns a prepared call with its call ID set, if the executor left that to the loop.
func withCallID(p *agent.Prepared, call *agent.ToolCall) *agent.Prepared {
	q := *p
	q.Original = call
	if q.Call == nil {
		q.Call = call
	}
	return &q
}

// strictlyRead checks that a prepared call has unambiguous arguments, because a hook must see
// the same arguments as the tool. It returns a call with ambiguous arguments as answered.
func strictlyRead(p *agent.Prepared) *agent.Prepared {
	if p.Strict || malformed(p.Invalid) {
		return p
	}
	err := strictjson.CheckObject(argumentsOf(*p.Call))
	if err == nil {
		return p
	}
	invalid := &agent.ArgumentsError{Malformed: true, Problems: []agent.ArgumentProblem{{Message: err.Error()}}}
	answer := agent.NotExecuted(p.Call, invalid.Reason(), "", fmt.Sprintf("tool %q: not executed: %v", p.Call.Name, invalid))
	answer.Err = invalid
	q := *p
	q.Disposition, q.Answer, q.Invalid = agent.DisposeAnswer, answer, invalid
	return &q
}

// malformed reports whether the arguments cannot be read, so that no hook can judge them.
func malformed(err error) bool {
	if err == nil {
		return false
	}
	wrong, ok := errors.AsType[*agent.ArgumentsError](err)
	return ok && wrong.Malformed
}

// Execute runs a call, and passes the result to the hooks at ToolFailed and PostToolUse. It refuses the call if the
// hooks at PreToolUse did not judge it, or if other code changed it after that. Such a refusal counts as a failure of
// the hooks, and the tool does not run. For an answered call, see HandleAnswer.
func (x *HookedToolExecutor) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if p.Disposition == agent.DisposeAnswer {
		return x.HandleAnswer(ctx, s, p)
	}
	if p.Call == nil || p.Original == nil {
		return mo.Err[*agent.ToolResult](errors.New("executing: the prepared call has no Call or no Original"))
	}
	hooks := pointsOf(x.hooks).tools.hooksFor(p.Call.Name)
	if x.JudgesCalls() {
		if err := agent.Checkpoint(s).CheckJudgement(p); err != nil {
			return x.HandleAnswer(ctx, s, refuseCall(ctx, s, p, err))
		}
	}
	if hooks == nil || !hooks.after {
		return x.inner.Execute(ctx, s, p)
	}
	inside := hooks.filter
	if inside {
		defer x.filterPanic(ctx, s, hooks, p, &inside)
	}
	result := x.inner.Execute(ctx, s, p)
	inside = false
	return x.reviewResult(ctx, s, hooks, p, result)
}

// reviews reports whether controls after a call see a tool's results.
func (c *Compiled) reviews(tool string) bool {
	h := pointsOf(c).tools.hooksFor(tool)
	return h != nil && h.filter
}

// HandleAnswer passes the answer to a call without a tool run to the hooks at PostToolUse. Such a call was denied,
// mocked, invalid, rejected or stopped.
func (x *HookedToolExecutor) HandleAnswer(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if p.Call == nil || p.Original == nil {
		return agent.HandleAnswer(ctx, x.inner, s, p)
	}
	hooks := pointsOf(x.hooks).tools.hooksFor(p.Call.Name)
	if hooks == nil || !hooks.after {
		return agent.HandleAnswer(ctx, x.inner, s, p)
	}
	inside := hooks.filter
	if inside {
		defer x.filterPanic(ctx, s, hooks, p, &inside)
	}
	result := agent.HandleAnswer(ctx, x.inner, s, p)
	inside = false
	return x.reviewResult(ctx, s, hooks, p, result)
}

// MayAddMessages returns true, because results can contain hooks' messages, which carry the hook's name. The innermost
// executor checks tools' effects.
func (*HookedToolExecutor) MayAddMessages(string) bool { return true }

// guardians is the hook name in answers and events when the hooks as a whole refuse a call.
const guardians = "hooks"

// refuseCall returns p with a refusal as its answer, because it differs from the judged call,
// and tells the observer.
func refuseCall(ctx context.Context, s agent.State, p *agent.Prepared, err error) *agent.Prepared {
	if s.Observed() {
		s.Emit(ctx, Event{
			Kind: HookFailed, Run: s.Run(), Step: s.RunStepCount(), Hook: guardians, Point: PreToolUse, Call: *p.Call,
			Control: true, Attempt: 1, Err: err, Policy: failClosed.String(),
		})
	}
	q := *p
	q.Disposition = agent.DisposeAnswer
	q.Answer = denial(p.Call, &Outcome{hook: guardians, failed: true, reason: err.Error()})
	return &q
}

// tellConflicts tells the observer of metadata in more that an earlier hook has also set.
func tellConflicts(ctx context.Context, s agent.State, at PointName, earlier, more agent.Effects) {
	for _, ev := range conflicts(s, at, earlier, more) {
		s.Emit(ctx, ev)
	}
}

// conflicts returns the events for metadata in more that an earlier hook has also set. It returns none in runs without
// an observer.
func conflicts(s agent.State, at PointName, earlier, more agent.Effects) (out []Event) {
	if !s.Observed() || earlier.Len() == 0 {
		return nil
	}
	for _, e := range more.All() {
		name, scope, _, ok := e.Metadata()
		if !ok {
			continue
		}
		before := e.Source()
		for _, old := range earlier.All() {
			if oldName, oldScope, _, ok := old.Metadata(); ok && oldName == name && oldScope == scope {
				before = old.Source()
			}
		}
		if before != e.Source() {
			out = append(out, Event{
				Kind: HookConflict, Run: s.Run(), Step: s.RunStepCount(), Hook: e.Source(), Point: at,
				Reason: fmt.Sprintf("%s metadata %q was set by %s already; the later value stays", scope, name, before),
			})
		}
	}
	return out
}
