package hooks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// survive calls the inner executor about a call. An error of it, a stop in the form of an error, and a panic pass the
// hooks after the call as a failed result before anything reports them: the error that it returns, and the value that it
// panics with in turn, are what the hooks left of them.
func (x *HookedToolExecutor) survive(
	ctx context.Context, s agent.State, hooks *toolHooks, p *agent.Prepared, execute func() mo.Result[*agent.ToolResult],
) mo.Result[*agent.ToolResult] {
	result, burst := surviving(hooks.filters(), execute)
	err := result.Error()
	if burst != nil {
		err = burst
	}
	if err == nil {
		return result
	}
	err = x.reviewError(ctx, s, hooks, p, err, true)
	if burst != nil {
		panic(err)
	}
	return mo.Err[*agent.ToolResult](err)
}

// askInner has the inner executor prepare a call. What it fails with passes the hooks after the call, too; their observers
// are told when the call is answered.
func (x *HookedToolExecutor) askInner(ctx context.Context, s agent.State, call *agent.ToolCall) mo.Result[*agent.Prepared] {
	hooks := x.hooks.tools.of(call.Name)
	if hooks == nil || !hooks.filters() {
		return x.inner.Prepare(ctx, s, call)
	}
	result, burst := surviving(true, func() mo.Result[*agent.Prepared] { return x.inner.Prepare(ctx, s, call) })
	err := result.Error()
	if burst != nil {
		err = burst
	}
	if err == nil {
		return result
	}
	err = x.reviewError(ctx, s, hooks, &agent.Prepared{Original: call, Call: call}, err, false)
	if burst != nil {
		panic(err)
	}
	return mo.Err[*agent.Prepared](err)
}

// filters reports whether a hook may take something out of what a call comes to.
func (h *toolHooks) filters() bool { return len(h.failed.controls)+len(h.post.controls) > 0 }

// surviving calls f, and catches what it panics with if that is wanted.
func surviving[T any](wanted bool, f func() mo.Result[T]) (result mo.Result[T], burst *PanicError) {
	if !wanted {
		return f(), nil
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		if value := recover(); value != nil { // else the goroutine ends
			burst = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	result = f()
	returned = true
	return result, nil
}

// reviewError lets the hooks after a call see an error of the executor, and returns what they left of it. That the call waits for
// a run which it has started is no error.
func (x *HookedToolExecutor) reviewError(ctx context.Context, s agent.State, hooks *toolHooks, p *agent.Prepared, err error, announce bool) error {
	if parked, ok := errors.AsType[*agent.ParkedError](err); ok && parked.State.Parked() {
		return err
	}
	r := agent.Answer(p)
	r.Status, r.Reason, r.Err = agent.ToolFailed, agent.ReasonError, err
	r.Content = agent.TextContent(fmt.Sprintf("tool %q: failed: %v", p.Call.Name, err))
	stop, stops := errors.AsType[*agent.SignalError](err)
	switch {
	case stops: // a decision, no failure
		r.Status, r.Reason, r.Stop = agent.ToolExecuted, agent.ReasonRunStopped, &stop.Signal
	case isPanic(err):
		r.Reason = agent.ReasonPanic
	}
	v := reviewOf(s, p, r)
	at := progress{limited: contextOf(ctx, s, p.Original.Index)}
	if aborted := v.run(ctx, x.hooks.pool, hooks, &at, announce); aborted != nil {
		return aborted
	}
	left := v.result.Err
	if !stops || left == err { //nolint:errorlint // this very value
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
