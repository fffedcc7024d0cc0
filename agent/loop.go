package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/internal/errguard"
	"github.com/grapnel-go/grapnel/internal/startedrun"
)

// A run's loop, top to bottom: RunWith begins it, takeSteps judges and takes steps, and finishRun reports its end. Run
// middleware is around takeSteps, step middleware around performStep. A run's beginning is in run.go, its end in
// outcome.go. Replies are carried out in perform.go, and approvals are in approve.go.

// RunWith runs the agent as Run does, with settings.
func (a *Agent) RunWith(ctx context.Context, settings RunSettings, s State, input ...Message) mo.Result[State] {
	startedrun.Note(ctx)
	if settings.Hooks != nil {
		extended, err := a.WithHooks(settings.Hooks).Get()
		if err != nil {
			return mo.Err[State](err)
		}
		a = extended
	}
	switch {
	case settings.Resume && len(input) > 0:
		return mo.Err[State](errors.New("resuming a run: input is not allowed: pass it to the next run"))
	case settings.Resume:
		return a.resumeRun(ctx, settings, s)
	case Checkpoint(s).StepOpen():
		return mo.Err[State](fmt.Errorf("running agent %q: %w", a.config.Name, ErrParked))
	}
	s = a.beginRun(ctx, &settings, s.With(input...))
	return a.finishRun(ctx, &settings, s, a.run(startedrun.Within(ctx, s.read().live), s))
}

// takeSteps judges, takes a step and judges again, until the run ends or waits.
func (a *Agent) takeSteps(ctx context.Context, s State) mo.Result[State] {
	if s.read().live == nil {
		return mo.Err[State](errForeign)
	}
	Checkpoint(s).RecordConversationStart() // also without hooks
	s = s.keepRequest().acceptMessages()
	ctx, cancel := s.read().live.account.withTimeLimit(ctx)
	defer cancel()
	for {
		if !Checkpoint(s).StepOpen() { // the criteria judged an open step before it began
			next, end := a.judge(ctx, s)
			if end != nil {
				return *end
			}
			s = next
		}
		next, end := a.checkStep(ctx, s, a.step(ctx, s))
		if end != nil {
			return *end
		}
		s = next
	}
}

// judge asks the criteria, before the first step and after each step, and returns the state with their effects. End is
// the run's result if it ends here, and nil if it continues.
func (a *Agent) judge(ctx context.Context, s State) (next State, end *mo.Result[State]) {
	if ctx.Err() != nil {
		return s, endByError(ctx, s, nil)
	}
	l := s.read().live
	over := l.account.exceededAbove()
	verdict, err := a.config.Criterion.Evaluate(ctx, s).Get()
	if err = errguard.Check(err); err != nil {
		return s, endByError(ctx, s, fmt.Errorf("judging after step %d: %w", s.RunStepCount(), err))
	}
	if over == nil {
		over = l.account.exceededExtra(s)
	}
	if over != nil {
		verdict = Strongest(verdict, Evaluation{Verdict: Forbid, Signal: *over})
	}
	if l.watched() {
		l.tell(ctx, Judged{s.Run(), s.RunStepCount(), verdict})
	}
	s = s.Apply(verdict.Effects).acceptMessages()
	if verdict.Stops() {
		return s, endBySignal(s, verdict.Signal)
	}
	if signal := s.read().signal; signal != nil { // a criterion without Base ignored the signal
		return s, endBySignal(s, *signal)
	}
	if l.watched() {
		l.tell(ctx, StepStarted{s.Run(), s.RunStepCount()})
	}
	return s, nil
}

// performStep asks the model, unless its reply is already there, and carries out the reply.
func (a *Agent) performStep(ctx context.Context, s State) mo.Result[State] {
	l := s.read().live
	switch {
	case l == nil:
		return mo.Err[State](errForeign)
	case s.Stopped():
		return mo.Ok(s)
	case s.read().open != nil:
		return a.performCalls(ctx, s, &s.read().open.reply, s.read().open.started)
	}
	if l.account.above != nil {
		return a.performBelow(ctx, s)
	}
	return a.askModel(ctx, s)
}

// checkStep returns the state that the middleware returned for a step. End is the run's result if it ends here, and nil
// if it continues.
func (a *Agent) checkStep(ctx context.Context, s State, step mo.Result[State]) (next State, end *mo.Result[State]) {
	before, l := s.RunStepCount(), s.read().live
	next, err := step.Get()
	err = errguard.Check(err)
	if failed, recorded := stepErrorOf(s, err); recorded {
		next, err = failed.State, nil // the criteria judge a failed step
	}
	switch {
	case err != nil:
		return s, endByError(ctx, s, err)
	case next.read().live != l:
		return s, failRun(s, fmt.Errorf("step %d: %w", before, errForeign))
	case next.Parked():
		return s, new(mo.Ok(next))
	case next.RunStepCount() <= before && !next.Stopped():
		return s, failRun(s, fmt.Errorf("step %d: a processor returned without taking the step and without stopping the run", before))
	}
	if next = next.acceptMessages(); next.RunStepCount() <= before {
		return next, nil
	}
	if l.account.again != nil { // written only by this goroutine
		next = l.account.keepRepeated(next)
	}
	l.tellStep(ctx, next)
	if l.onStep != nil && !l.onStep(next) {
		return s, new(mo.Ok(next.endAs(StatusCancelled, Signal{Reason: StopUser, Message: "the caller ended the run early", Source: baseSource})))
	}
	return next, nil
}
