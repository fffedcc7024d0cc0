package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A ParkedError is returned by a tool or an executor when a child run that the call has started is parked. State is the
// child's state. The run that made the call parks, too, and its state includes the child's state and questions. When
// the questions are answered and the run resumes, the call is executed again. Its tool then continues from
// Checkpoint.Child.
type ParkedError struct{ State State }

func (e *ParkedError) Error() string {
	run := e.State.Run()
	return fmt.Sprintf("run %s of agent %q is parked", run.ID, run.Agent)
}

// parkedChild returns the run that a call waits for.
func parkedChild(err error) (child State, waits bool) {
	if err == nil {
		return State{}, false
	}
	parked, ok := errors.AsType[*ParkedError](err)
	if !ok || !parked.State.Parked() {
		return State{}, false
	}
	return parked.State, true
}

// pendingCall holds the run or input that an executed call waits for.
type pendingCall struct {
	child State
	input *InputError
}

// pendingIn returns the run or input that a call waits for when its execution ended with err.
func pendingIn(err error) (w pendingCall, waits bool) {
	if child, ok := parkedChild(err); ok {
		return pendingCall{child: child}, true
	}
	if err == nil {
		return w, false
	}
	w.input, waits = errors.AsType[*InputError](err)
	return w, waits
}

// waitsFor returns the list of pending calls with an entry for call i added.
func waitsFor(pending []pendingCall, calls, i int, w pendingCall) []pendingCall {
	if pending == nil {
		pending = make([]pendingCall, calls)
	}
	pending[i] = w
	return pending
}

// underWay reports whether call i has started a run or has an answer.
func (o *openStep) underWay(i int) bool {
	c := o.at(i)
	return c != nil && (c.result != nil || c.child.data != nil)
}

// endsAnyway reports whether the run ends with this step, so that no call needs to wait.
func endsAnyway(ctx context.Context, results []*ToolResult) bool {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrSuspended) {
		return true
	}
	return slices.ContainsFunc(results, func(r *ToolResult) bool { return r != nil && r.Stop != nil })
}

// waitingFor returns s with an open step. Answered calls have their answers, and waiting calls have their runs. A
// person's answers about the other calls are kept, so that the person is not asked again.
func (s State) waitingFor(reply Step, started time.Time, batch []*Prepared, results []*ToolResult, pending []pendingCall) State {
	reply.Prior = Effects{}
	open := &openStep{reply, started, make([]openCall, len(batch))}
	for i, p := range batch {
		c := &open.calls[i]
		if before := s.read().open.at(i); before != nil {
			*c = *before
		}
		switch {
		case results[i] != nil:
			c.result, c.child = results[i], State{}
		case pending[i].child.data != nil:
			c.begin(s, p)
			c.child = pending[i].child
		case pending[i].input != nil:
			c.begin(s, p)
			given, _ := p.Input()
			c.input = &callInput{state: pending[i].input.State, given: given, open: true}
		case c.asked == nil && p.Approval() != nil:
			c.asked = c.approvedIntervention(s, p)
		}
	}
	return s.acceptMessages().withOpen(open)
}

// endChildren answers the calls that have no answer yet, because the run ends. If such a call waits for a run, its executor
// ends that run.
func (a *Agent) endChildren(ctx context.Context, waiting State, batch []*Prepared, results []*ToolResult) error {
	var broken error
	for i, p := range batch {
		if results[i] != nil {
			continue
		}
		q := *p
		q.Disposition = DisposeAnswer
		q.Answer = NotExecuted(p.Call, ReasonRunStopped, "", "no result: the run ended before there was one")
		r, err := a.executeCall(ctx, waiting, i, &q)
		results[i], broken = r, errors.Join(broken, err)
	}
	return broken
}
