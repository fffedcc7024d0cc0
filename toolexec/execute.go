package toolexec

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/startedrun"
)

// Execute runs a call under its tool's Policy. Retries are outermost, and each attempt has the time limit. It returns a
// result even if the tool fails or panics. Execute checks the call again if another executor prepared it, or if its
// arguments were changed since. It does not run a call with an answer.
func (e *Executor) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	switch {
	case p.Call == nil || p.Original == nil:
		return mo.Err[*agent.ToolResult](errors.New("executing: the prepared call has no Call or no Original"))
	case p.Disposition == agent.DisposeAnswer && p.Answer != nil:
		return e.HandleAnswer(ctx, s, p)
	case p.Disposition != agent.DisposeRun:
		return mo.Err[*agent.ToolResult](errors.New("executing: the call was neither allowed nor answered"))
	}
	body, _ := p.Carry.(Body) // asserted from any: the runtime caches that conversion, but not one from ready
	r, ok := p.Carry.(ready)
	if !ok || !r.data().of(e, p.Call) {
		again := e.prepareCall(ctx, p.Call)
		if again.Disposition == agent.DisposeAnswer {
			return mo.Ok(again.Answer)
		}
		r = again.Carry.(ready) //nolint:forcetypeassert // set by prepareCall above
		body = r
	}
	if ctx.Err() != nil {
		return mo.Ok(agent.NotExecuted(p.Call, agent.ReasonCancelled, "", "not executed: the run was cancelled"))
	}
	result, parked := e.runCall(ctx, s, p, r.data().tool, body)
	if parked != nil {
		return mo.Err[*agent.ToolResult](parked)
	}
	if e.failRun && result.Status == agent.ToolFailed {
		return mo.Err[*agent.ToolResult](fmt.Errorf("failed: %w", result.Err))
	}
	return mo.Ok(result)
}

// HandleAnswer returns the answer to a rejected call. If the call had started a child run before its own run was cut
// off, its tool ends the child run.
func (e *Executor) HandleAnswer(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if p.Answer == nil || p.Original == nil {
		return mo.Err[*agent.ToolResult](errors.New("answering: the prepared call has no answer, or does not say what was called"))
	}
	if agent.Checkpoint(s).StepOpen() {
		e.endChild(ctx, s, p)
	}
	return mo.Ok(p.Answer)
}

// of reports whether e prepared exactly the call c.
func (p *preparedCall) of(e *Executor, c *agent.ToolCall) bool {
	return p.tool.executor == e && p.prepared.Call.Arguments == c.Arguments && p.prepared.Call.Name == c.Name
}

// endChild lets the tool end the run that a call has started, because the call is answered in another way.
func (e *Executor) endChild(ctx context.Context, s agent.State, p *agent.Prepared) {
	child, begun, ok := agent.Checkpoint(s).Child(p.Original.ID)
	if !ok || child.Status().Terminal() {
		return
	}
	type quitter interface {
		GiveUp(ctx context.Context, c Call)
	}
	if tool := e.tools[begun.Name]; tool != nil {
		if t, ok := tool.tool.(quitter); ok {
			var broken error
			defer recoverPanic(ctx, begun.Name, &broken) // the call is answered even if GiveUp panics
			t.GiveUp(ctx, Call{ToolCall: begun, State: s, Attempt: 1})
		}
	}
}

// runCall runs a call, with retries if needed. It returns the result, or an error if the result comes later.
func (e *Executor) runCall(ctx context.Context, s agent.State, p *agent.Prepared, t *bound, body Body) (*agent.ToolResult, error) {
	call := Call{ToolCall: *p.Call, State: s, Attempt: 1}
	call.Arguments = argumentsOf(p.Call)
	call.Given, call.InputState = p.Input()
	started := time.Now()
	var runs *atomic.Bool // set when the tool has started a run, because a retry would start it again
	if t.policy.Retry.Attempts > 1 {
		ctx, runs = startedrun.Watch(ctx)
	}
	out, err := e.attempt(ctx, t, body, &call)
	for err != nil {
		if runs == nil || runs.Load() {
			break
		}
		again, broken := askRetry(ctx, t, call.Attempt, err)
		if broken != nil {
			err = errors.Join(err, broken)
		}
		if !again {
			break
		}
		if !sleepFor(ctx, t.policy.Retry.wait(call.Attempt)) {
			err = &CancelledError{Cause: context.Cause(ctx), Err: err}
			break
		}
		var unread error
		if body, unread = t.prepareBody(ctx, p.Call); unread != nil { // the last attempt may have modified the decoded arguments
			err = errors.Join(err, unread)
			break
		}
		call.Attempt++
		out, err = e.attempt(ctx, t, body, &call)
	}
	if err != nil {
		if parked, ok := errors.AsType[*agent.ParkedError](err); ok && parked.State.Parked() {
			return nil, parked
		}
		if asks, ok := errors.AsType[*agent.InputError](err); ok {
			wrong := p.CheckInputRequest(asks)
			if wrong == nil {
				return nil, asks
			}
			err = wrong
		}
	}
	took, content := time.Since(started), validText(out.Content)
	result := agent.NewResult(p)
	result.Attempts, result.Started, result.Duration, result.MaxBytes = call.Attempt, started, took, max(t.policy.MaxResultBytes, 0)
	if err != nil {
		t.fail(result, err)
		return result, nil
	}
	result.Status = agent.ToolExecuted
	result.Content, result.Effects, result.Stop = content, out.Effects, out.Stop
	if out.Failed {
		result.Reason = agent.ReasonError
	}
	return result, nil
}

// fail sets the call's result after its tool returned an error. The model receives only text that it can act on.
func (t *bound) fail(r *agent.ToolResult, err error) {
	what := any(err)
	r.Status, r.Reason, r.Err = agent.ToolFailed, agent.ReasonError, err
	switch err.(type) { //nolint:errorlint // only an error of this attempt itself counts, not one that it wraps
	case *PanicError:
		r.Reason, what = agent.ReasonPanic, "it panicked"
	case *TimeoutError:
		r.Reason = agent.ReasonTimeout
	case *CancelledError:
		r.Reason = agent.ReasonCancelled
	}
	if stop, ok := stopIn(err); ok {
		r.Status, r.Reason, r.Stop = agent.ToolExecuted, agent.ReasonRunStopped, &stop.Signal
		text := fmt.Sprintf("tool %q: stopped the run: %s", t.name, stop.Signal.Message)
		r.Content = validText(agent.TextContent(text))
		return
	}
	attempts := ""
	if r.Attempts > 1 {
		attempts = fmt.Sprintf(" after %d attempts", r.Attempts)
	}
	// fmt formats the error, because it recovers a panic in its Error method.
	text := fmt.Sprintf("tool %q: failed%s: %v", t.name, attempts, what)
	r.Content = validText(agent.TextContent(text))
}

// stopIn returns the SignalError with which a tool ends its run. It is a decision and not a failure. A signal that
// cancelled the run is not the tool's own.
func stopIn(err error) (*agent.SignalError, bool) {
	switch err.(type) { //nolint:errorlint // only an error of this attempt itself counts, not one that it wraps
	case *PanicError, *TimeoutError, *CancelledError:
		return nil, false
	}
	return errors.AsType[*agent.SignalError](err)
}

// askRetry calls Retry.again, and recovers a panic.
func askRetry(ctx context.Context, t *bound, n int, err error) (again bool, broken error) {
	defer recoverPanic(ctx, t.name, &broken)
	return t.policy.Retry.again(n, err), nil
}
