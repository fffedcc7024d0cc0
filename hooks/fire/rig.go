package fire

import (
	"context"
	"errors"
	"slices"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/reserved"
)

// rig holds the parts of an agent that reaches a moment: a scripted model, and the hooks,
// which are installed only in the moment's step.
type rig struct {
	Moment

	hooks *hooks.Compiled
}

// theirs is the source of the rig's effects.
const theirs = "moment"

func (r rig) config(observer agent.Observer) agent.Config {
	criterion := agent.CriterionFunc(r.judge)
	return agent.Config{
		Name:         r.run.Agent,
		Driver:       agent.DriverFunc(r.answer),
		WrapDriver:   []func(agent.Driver) agent.Driver{r.atItsStep},
		Executor:     r.executorInside(),
		Approver:     r.person(),
		WrapApprover: []func(agent.Approver) agent.Approver{r.hooks.WrapApprover},
		WrapExecutor: []func(agent.Executor) agent.Executor{func(inner agent.Executor) agent.Executor {
			return oneStep{step: len(r.before), there: r.hooks.WrapExecutor(inner), elsewhere: inner}
		}},
		AroundRun:  []agent.Processor{agent.ProcessorFunc(r.begin), r.hooks.AroundRun(), agent.ProcessorFunc(r.endRun)},
		AroundStep: []agent.Processor{agent.ProcessorFunc(r.step)},
		Criterion:  oneVerdict{step: len(r.before) + 1, there: r.hooks.WrapCriterion(criterion, 0), elsewhere: criterion},
		Request:    r.request,
		Observer:   observer,
		Background: []agent.Background{r.hooks.Background()},
		EndConversation: func(ctx context.Context, s agent.State, reason agent.CloseReason) error {
			return r.hooks.EndConversation(ctx, s, reason, observer)
		},
	}
}

// person returns the approver at an intervention's points; nil elsewhere.
func (r rig) person() agent.Approver {
	if r.approval == nil {
		return nil
	}
	return agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) { return *r.approval, nil })
}

// unnamedParent is the parent run's ID if the moment does not name it.
const unnamedParent = agent.RunID("run_parent")

// settings returns the settings that place the run: IDs, agent, stage.
func (r rig) settings() agent.RunSettings {
	settings := agent.RunSettings{ID: r.run.ID, Stage: r.run.Stage, Iteration: r.run.Iteration}
	if r.run.Depth > 0 || r.run.Parent != "" {
		settings.Parent = agent.Run{
			ID: lo.CoalesceOrEmpty(r.run.Parent, unnamedParent), Root: r.run.Root, Depth: max(r.run.Depth-1, 0),
		}
	}
	return settings
}

// begin applies the effects that precede the run.
func (r rig) begin(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	effects := r.effects
	if r.continuations > 0 {
		effects = append(slices.Clip(effects), agent.ReservedKey[int](reserved.InternalToken(), "hooks.continuations", agent.ScopeRun).Set(r.continuations))
	}
	return next(ctx, s.Apply(agent.EffectsOf(effects...).From(theirs)))
}

// endRun makes the run end with the moment's status and signal.
func (r rig) endRun(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	signal := r.signal
	switch r.status {
	case "":
		return next(ctx, s)
	case agent.StatusDenied: // before any step
		s = agent.Checkpoint(s).WithInput()
	default:
		final, err := next(ctx, s).Get()
		if err != nil {
			return mo.Err[agent.State](err)
		}
		s = final
	}
	signal.Reason = lo.CoalesceOrEmpty(signal.Reason, usualReasons[r.status])
	return mo.Ok(agent.Checkpoint(s.WithStop(signal)).WithStatus(r.status))
}

// usualReasons maps a status to the default stop reason for a moment.
var usualReasons = map[agent.Status]agent.StopReason{
	agent.StatusDone: agent.StopCompleted, agent.StatusStopped: agent.StopByHook, agent.StatusFailed: agent.StopError,
	agent.StatusDenied: agent.StopDenied, agent.StatusCancelled: agent.StopUser, agent.StatusInterrupted: agent.StopRejected,
}

// step installs the hooks around the moment's step.
func (r rig) step(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	switch taken := s.RunStepCount(); {
	case taken == len(r.before):
		s, err := r.playOn(ctx, s)
		if err != nil {
			return mo.Err[agent.State](&agent.RunError{State: s, Err: err})
		}
		return r.hooks.AroundStep().Process(ctx, s, next)
	case taken < len(r.before):
		return counting.AroundStep().Process(ctx, s, next)
	}
	return next(ctx, s)
}

// playOn fires the points that belong to other packages, such as compaction points.
func (r rig) playOn(ctx context.Context, s agent.State) (agent.State, error) {
	var err error
	switch r.at {
	case hooks.PreCompact:
		_, err = r.hooks.PreCompact(ctx, s, r.compaction)
	case hooks.PostCompact:
		r.hooks.PostCompact(ctx, s, r.compaction)
	case hooks.CompactFailed:
		r.hooks.CompactFailed(ctx, s, r.compaction)
	case hooks.PreSubagent:
		_, _, err = r.hooks.PreSubagent(ctx, s, r.subagent)
	case hooks.PostSubagent:
		_, _, err = r.hooks.PostSubagent(ctx, s, r.subagent)
	case hooks.SubagentFailed:
		r.hooks.SubagentFailed(ctx, s, r.subagent)
	}
	return s, err
}

// counting holds a hook that does nothing. If a run has a hook at StepEnd, its step totals are kept for later hooks.
var counting = lo.Must(hooks.NewSet(hooks.ObserveAll(theirs, func(context.Context, hooks.Context) error { return nil }, hooks.StepEnd)).Compile())

// judge implements the criterion. It continues the run through all steps before the moment, and for one step after a tool call.
func (r rig) judge(ctx context.Context, s agent.State) (agent.Evaluation, error) {
	verdict, err := agent.Base.Evaluate(ctx, s).Get()
	taken := s.RunStepCount()
	switch {
	case err != nil || verdict.Verdict == agent.Forbid:
	case taken > 0 && taken <= len(r.before):
		return agent.Evaluation{Verdict: agent.RequestContinuation}, nil
	case verdict.Verdict == agent.AllowStop && r.signal.Reason.Soft():
		verdict.Signal = r.signal
	}
	return verdict, err
}

// answer implements the driver. It returns the steps before the moment, the moment's own step, then "done".
func (r rig) answer(_ context.Context, s agent.State) (agent.Step, error) {
	taken := s.RunStepCount()
	reply := agent.Step{Message: agent.Assistant("done")}
	switch {
	case taken < len(r.before):
		reply = r.before[taken]
	case taken == len(r.before) && r.broken != nil:
		return agent.Step{}, r.broken
	case taken == len(r.before) && r.reply.Message.Role() != "":
		reply = r.reply
	}
	if reply.Message.Role() == "" {
		reply.Message = agent.Assistant("")
	}
	reply.Model = lo.CoalesceOrEmpty(reply.Model, "script")
	reply.FinishReason = lo.CoalesceOrEmpty(reply.FinishReason,
		lo.Ternary(reply.Message.CallCount() > 0, agent.FinishToolCalls, agent.FinishStop))
	return reply, nil
}

// atItsStep wraps the model in the hooks for the moment's step.
func (r rig) atItsStep(inner agent.Driver) agent.Driver {
	hooked := r.hooks.WrapDriver(inner)
	return agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
		if s.RunStepCount() != len(r.before) {
			return inner.Next(ctx, s).Get()
		}
		return hooked.Next(ctx, s).Get()
	})
}

func (r rig) executorInside() agent.Executor {
	if r.executor != nil {
		return r.executor
	}
	return tools{r}
}

// tools answers calls in the moment's step with the moment's result, others with "ok".
type tools struct{ rig }

// Prepare decides that the tool runs, unless the moment sets another disposition.
func (x tools) Prepare(_ context.Context, s agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	p := &agent.Prepared{Original: c, Call: c}
	if taken := s.RunStepCount(); taken != len(x.before) {
		if before, ok := x.answered(taken, c); ok && !before.Executed() {
			p.Disposition, p.Answer = agent.DisposeAnswer, before.To(p)
		}
		return mo.Ok(p)
	}
	if x.approval != nil {
		p.Disposition = agent.DisposeAsk
		p.SetQuestions(agent.Questions{{By: theirs, Reason: lo.CoalesceOrEmpty(x.question, "a person must look at it")}})
	} else if asked := x.reply.Message.Call(c.Index); x.invalid != nil && c.Arguments == asked.Arguments {
		reason := agent.ReasonInvalid
		if wrong, ok := errors.AsType[*agent.ArgumentsError](x.invalid); ok {
			reason = wrong.Reason()
		}
		p.Invalid, p.Disposition = x.invalid, agent.DisposeAnswer
		p.Answer = agent.NotExecuted(c, reason, "", x.invalid.Error())
		p.Answer.Err = x.invalid
	} else if x.result.Status == agent.ToolNotExecuted || x.result.Status == agent.ToolMocked {
		p.Disposition, p.Answer = agent.DisposeAnswer, x.result.To(p)
	}
	return mo.Ok(p)
}

// Execute returns the call's result.
func (x tools) Execute(_ context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if p.Disposition == agent.DisposeAnswer {
		return mo.Ok(p.Answer)
	}
	answer := successResult("ok")
	taken := s.RunStepCount()
	if taken == len(x.before) && x.result.Status != "" {
		answer = x.result
	} else if before, ok := x.answered(taken, p.Call); ok {
		answer = before
	}
	return mo.Ok(answer.To(p))
}

// answered returns the result that Answering set for a call in a step before the moment.
func (x tools) answered(step int, c *agent.ToolCall) (agent.ToolResult, bool) {
	if x.answers == nil || step >= len(x.before) {
		return agent.ToolResult{}, false
	}
	r, ok := x.answers(step, *c)
	r.Status = lo.CoalesceOrEmpty(r.Status, agent.ToolExecuted)
	return r, ok
}

// oneStep is an executor that uses a different executor in one step.
type oneStep struct {
	step             int
	there, elsewhere agent.Executor
}

func (x oneStep) in(s agent.State) agent.Executor {
	if s.RunStepCount() == x.step {
		return x.there
	}
	return x.elsewhere
}

// Prepare lets the step's executor prepare the call.
func (x oneStep) Prepare(ctx context.Context, s agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	return x.in(s).Prepare(ctx, s, c)
}

// Execute lets the step's executor execute the call.
func (x oneStep) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	return x.in(s).Execute(ctx, s, p)
}

// HandleAnswer lets the step's executor answer the call.
func (x oneStep) HandleAnswer(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	return agent.HandleAnswer(ctx, x.in(s), s, p)
}

// oneVerdict is a criterion that uses a different criterion after some number of steps.
type oneVerdict struct {
	step             int
	there, elsewhere agent.Criterion
}

// Evaluate asks the criterion for the current number of steps.
func (x oneVerdict) Evaluate(ctx context.Context, s agent.State) mo.Result[agent.Evaluation] {
	if s.RunStepCount() == x.step {
		return x.there.Evaluate(ctx, s)
	}
	return x.elsewhere.Evaluate(ctx, s)
}
