package hooks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// The hooks after the call see every failure of the inner executor before anything reports it: an error, a stop as an
// error, a panic.

// filterPanic panics with the filtered value of the inner executor's panic. It is deferred in runs where a hook may
// filter the value.
func (x *HookedToolExecutor) filterPanic(ctx context.Context, s agent.State, hooks *toolHooks, p *agent.Prepared, inside *bool) {
	if !*inside {
		return
	}
	if err := caughtPanic(recover()); err != nil {
		panic(x.reviewError(ctx, s, hooks, p, err, true))
	}
}

// prepareInner returns the call that the inner executor has prepared. The observers after the call receive a failure
// only when the call is answered.
func (x *HookedToolExecutor) prepareInner(ctx context.Context, s agent.State, hooks *toolHooks, call *agent.ToolCall) (result mo.Result[*agent.Prepared]) {
	if hooks == nil || !hooks.filter {
		return x.inner.Prepare(ctx, s, call)
	}
	inside := true
	defer func() {
		if inside {
			if err := caughtPanic(recover()); err != nil {
				panic(x.reviewError(ctx, s, hooks, &agent.Prepared{Original: call, Call: call}, err, false))
			}
		}
	}()
	result = x.inner.Prepare(ctx, s, call)
	inside = false
	p, err := result.Get()
	stops := p != nil && p.Disposition == agent.DisposeStop && p.Stop != nil && p.Stop.Reason != agent.StopByHook
	if stops { // all the step's answers contain the executor's stop message
		err = &agent.SignalError{Signal: *p.Stop}
	}
	if err == nil {
		return result
	}
	left := x.reviewError(ctx, s, hooks, &agent.Prepared{Original: call, Call: call}, err, false)
	if stop, ok := errors.AsType[*agent.SignalError](left); ok && stops {
		q := *p
		q.Stop = &stop.Signal
		return mo.Ok(&q)
	}
	return mo.Err[*agent.Prepared](left)
}

// caughtPanic converts a recovered value to an error. It returns nil for nil, which recover also returns when the
// goroutine exits.
func caughtPanic(value any) *PanicError {
	if value == nil {
		return nil
	}
	return &PanicError{Value: value, Stack: debug.Stack()}
}

// reviewError passes an executor's error to the hooks after a call, and returns the error as changed by them. It
// returns a ParkedError and an InputError unchanged, without asking the hooks.
func (x *HookedToolExecutor) reviewError(ctx context.Context, s agent.State, hooks *toolHooks, p *agent.Prepared, err error, announce bool) error {
	if parked, ok := errors.AsType[*agent.ParkedError](err); ok && parked.State.Parked() {
		return err
	}
	if asks, ok := errors.AsType[*agent.InputError](err); ok && p.CheckInputRequest(asks) == nil {
		return err
	}
	r := agent.NewResult(p)
	r.Status, r.Reason, r.Err = agent.ToolFailed, agent.ReasonError, err
	r.Content = agent.TextContent(fmt.Sprintf("tool %q: failed: %v", p.Call.Name, err))
	stop, stops := errors.AsType[*agent.SignalError](err)
	switch {
	case stops: // a decision, not a failure
		r.Status, r.Reason, r.Stop = agent.ToolExecuted, agent.ReasonRunStopped, &stop.Signal
	case isPanic(err):
		r.Reason = agent.ReasonPanic
	}
	v := reviewOf(s, p, r)
	if aborted := v.askControls(ctx, x.hooks.pool, hooks, announce); aborted != nil {
		return aborted
	}
	left := v.result.Err
	if !stops || left == err { //nolint:errorlint // compares the value itself
		return left
	}
	signal := agent.Signal{Reason: stop.Signal.Reason}
	if v.result.Stop != nil {
		signal = *v.result.Stop
	}
	return &agent.SignalError{Signal: signal}
}

func isPanic(err error) bool {
	_, ok := errors.AsType[*PanicError](err)
	return ok
}
