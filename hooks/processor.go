package hooks

import (
	"context"
	"errors"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// HookProcessor is the middleware that asks the hooks around a run and around a
// step. It stands in both places, once for each: Compiled.AroundRun and
// Compiled.AroundStep.
type HookProcessor struct {
	hooks *Compiled
	run   bool
}

var _ agent.Processor = HookProcessor{}

// AroundRun is the processor for the hooks at InputSubmitted, ExecutionStart,
// AgentFailed and ExecutionEnd.
func (c *Compiled) AroundRun() HookProcessor { return HookProcessor{c, true} }

// AroundStep is the processor for the hooks at StepStart and StepEnd.
func (c *Compiled) AroundStep() HookProcessor { return HookProcessor{c, false} }

// String is how the processor stands in a printed plan.
func (p HookProcessor) String() string { return "HookProcessor" }

// Process asks the hooks before and after next.
func (p HookProcessor) Process(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	if p.run {
		return p.hooks.aroundRun(ctx, s, next)
	}
	return p.hooks.aroundStep(ctx, s, next)
}

// aroundRun: input, start, the run, failure, end.
func (c *Compiled) aroundRun(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	result := c.admit(ctx, s)
	if admitted, err := result.Get(); err == nil && !admitted.Status().Terminal() {
		s = admitted
		result = next(ctx, s)
	}
	return c.finish(ctx, s, result)
}

// admit asks the hooks before the run. A state with a terminal status means that
// the input is denied.
func (c *Compiled) admit(ctx context.Context, s agent.State) mo.Result[agent.State] {
	if len(collect(s)) > 0 {
		next, err := fold(ctx, c, &c.input, s, func(p *runPayload) InputContext { return InputContext{inputView{Common{&p.base}, p}} }, InputSubmitted)
		if err != nil || next.Status().Terminal() {
			return mo.TupleToResult(next, err)
		}
		s = next
	}
	return mo.TupleToResult(fold(ctx, c, &c.execution, s, func(p *runPayload) ExecutionContext {
		return ExecutionContext{inputView{Common{&p.base}, p}}
	}, ExecutionStart))
}

func collect(s agent.State) []agent.Message {
	var out []agent.Message
	for _, m := range s.Input() {
		out = append(out, m)
	}
	return out
}

// fold asks the controls of an input point, in turn, each on what the ones before
// made of the state.
func fold[C Context](ctx context.Context, c *Compiled, m *moment[C], s agent.State, view func(*runPayload) C, at PointName) (agent.State, error) {
	if m.empty() {
		return s, nil
	}
	var last *Outcome
	var effects agent.Effects
	payload := func() *runPayload {
		return &runPayload{base: base{state: s, point: at, frozen: last, step: s.RunStepCount()}, input: collect(s)}
	}
	for _, e := range m.controls {
		o, err := e.consult(ctx, view(payload()))
		if err != nil {
			return s, err
		}
		if o == nil {
			continue
		}
		tellConflicts(ctx, s, at, effects, o.effects)
		effects = effects.Plus(o.effects)
		if o.decision == Deny {
			last = o
			s = denied(s.Apply(o.effects), o)
			break
		}
		if o.decision == Rewrite {
			s = rewritten(s, o)
		}
		s = s.Apply(o.effects)
		if o.decision == StopRun {
			last = o
			s = s.WithStop(*signalOf(o))
			break
		}
		if o.decision != Allow || last == nil {
			last = o
		}
	}
	return s, m.announce(ctx, c.pool, view(payload()))
}

// denied is the state of a run whose input was not let in: the input is gone.
func denied(s agent.State, o *Outcome) agent.State {
	s = withoutInput(s, nil)
	signal := signalOf(o)
	signal.Reason = agent.StopDenied
	return s.WithStop(*signal).WithStatus(agent.StatusDenied)
}

func rewritten(s agent.State, o *Outcome) agent.State { return withoutInput(s, o.input) }

// withoutInput puts messages in the place of the first user message that no run
// has let in, and drops the others.
func withoutInput(s agent.State, instead []agent.Message) agent.State {
	var pending []agent.Message
	placed := false
	for _, m := range s.Pending() {
		if !isInput(m) {
			pending = append(pending, m)
			continue
		}
		if !placed {
			pending = append(pending, instead...)
			placed = true
		}
	}
	if !placed {
		pending = append(pending, instead...)
	}
	return s.WithInput(pending...)
}

func isInput(m agent.Message) bool { return m.Role() == agent.RoleUser && m.Source() == "" }

// finish tells the hooks how the run ended, whatever its end. They are told even
// when the run was cancelled.
func (c *Compiled) finish(ctx context.Context, s agent.State, result mo.Result[agent.State]) mo.Result[agent.State] {
	if c.failed.empty() && c.end.empty() {
		return result
	}
	final, err := result.Get()
	if err != nil {
		failed, ok := errors.AsType[*agent.RunError](err)
		if !ok {
			failed = &agent.RunError{Err: err, State: failedState(ctx, s, err)}
		}
		final, err = failed.State, failed
	}
	ctx = context.WithoutCancel(ctx)
	if final.Status() == agent.StatusFailed && !c.failed.empty() {
		final = c.tellFailed(ctx, final, err)
		err = &agent.RunError{State: final, Err: errors.Unwrap(err)}
	}
	p := &runPayload{base: base{state: final, point: ExecutionEnd, step: final.RunStepCount()}, err: err}
	_ = c.end.announce(ctx, c.pool, EndContext{Common{&p.base}, p}) // the work is done: nothing fails it
	if err != nil {
		return mo.Err[agent.State](err)
	}
	return mo.Ok(final)
}

// failedState is how the run stands that an error ended outside of its steps.
func failedState(ctx context.Context, s agent.State, err error) agent.State {
	if ctx.Err() != nil {
		return s.WithStop(agent.Signal{Reason: agent.StopUser, Message: err.Error(), Source: "context"}).WithStatus(agent.StatusCancelled)
	}
	return s.WithStop(agent.Signal{Reason: agent.StopError, Message: err.Error(), Source: "hooks"}).WithStatus(agent.StatusFailed)
}

func (c *Compiled) tellFailed(ctx context.Context, s agent.State, err error) agent.State {
	p := &runPayload{base: base{state: s, point: AgentFailed, step: s.RunStepCount()}, err: err}
	for _, e := range c.failed.controls {
		o, problem := e.consult(ctx, FailureContext{Common{&p.base}, p})
		if problem == nil && o != nil && o.effects.Len() > 0 {
			s = s.Apply(o.effects)
			p = &runPayload{base: base{state: s, point: AgentFailed, step: s.RunStepCount()}, err: err}
		}
	}
	_ = c.failed.announce(ctx, c.pool, FailureContext{Common{&p.base}, p})
	return s
}

// aroundStep: start, the step, end.
func (c *Compiled) aroundStep(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	if !c.stepStart.empty() {
		started, err := foldStep(ctx, c, &c.stepStart, s, StepStart, func(b *base) StepContext { return StepContext{Common{b}} })
		if err != nil || started.Stopped() {
			return mo.TupleToResult(started, err)
		}
		s = started
	}
	before := s.RunStepCount()
	result := next(ctx, s)
	if c.stepEnd.empty() {
		return result
	}
	after, err := result.Get()
	if err != nil || after.RunStepCount() == before {
		return result
	}
	record, _ := after.LastStep().Get()
	tools, text := totals.Of(after).add(after, record)
	return mo.TupleToResult(foldStep(ctx, c, &c.stepEnd, after, StepEnd, func(b *base) StepEndContext {
		b.step, b.kind = record.Index(), record.Kind()
		p := &stepEndPayload{base: base{state: b.state, point: b.point, frozen: b.frozen, step: b.step, kind: b.kind}, record: record, tools: tools, text: text}
		return StepEndContext{Common{&p.base}, p}
	}))
}

// foldStep asks the controls around a step, in turn. The first Stop ends it.
func foldStep[C Context](ctx context.Context, c *Compiled, m *moment[C], s agent.State, at PointName, view func(*base) C) (agent.State, error) {
	var last *Outcome
	var effects agent.Effects
	payload := func() C {
		return view(&base{state: s, point: at, frozen: last, step: s.RunStepCount()})
	}
	for _, e := range m.controls {
		o, err := e.consult(ctx, payload())
		if err != nil {
			return s, err
		}
		if o == nil {
			continue
		}
		tellConflicts(ctx, s, at, effects, o.effects)
		effects = effects.Plus(o.effects)
		s = s.Apply(o.effects)
		last = o
		if o.decision == StopRun {
			s = s.WithStop(*signalOf(o))
			break
		}
	}
	return s, m.announce(ctx, c.pool, payload())
}
