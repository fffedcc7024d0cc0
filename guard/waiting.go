package guard

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/reserved"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Complete passes a result through the controls after a call, and records it. Decide has allowed the call in this process, or
// in the one that has saved the session. It returns the result that the host's model may read. Err is a failed tool's error.
// The call is the one with this ID or, without an ID, the oldest one with these arguments. Complete also records calls that
// Decide has not seen. It only filters a second result.
func (s *Session) Complete(ctx context.Context, c Call, content agent.Content, err error) (*agent.ToolResult, error) {
	if s == nil {
		return nil, errNoSession
	}
	s.wait()
	w := s.findWaiting(c)
	if w == nil {
		w = s.placeForeign(ctx, c)
	}
	v := Verdict{Call: *w.p.Call, session: s, state: s.state, slot: w}
	v.p = agent.Checkpoint(s.state).RecordJudgement(reserved.InternalToken(), w.p.Original, w.p)
	s.leave()
	return v.Complete(ctx, content, err)
}

// placeForeign returns a slot when Decide has not seen the call. If the call is complete, no step has the slot.
func (s *Session) placeForeign(ctx context.Context, c Call) *slot {
	s.closeStep(ctx)
	c.Arguments = cmp.Or(c.Arguments, "{}")
	w := s.place(c)
	s.open.running--
	if c.ID != "" && s.answered[answered{c.ID, c.Tool}] {
		s.open.slots = slices.DeleteFunc(s.open.slots, func(o *slot) bool { return o == w })
	}
	call := w.call
	w.p = &agent.Prepared{Original: &call, Call: &call, Strict: true}
	w.result = unknownResult(w.p)
	return w
}

// maxWaiting is how many calls wait for Complete. The outcome of an older one stays unknown.
const maxWaiting = 32

// waitingCall describes a call while the host runs it.
type waitingCall struct {
	HostID  string         `json:"host_id,omitempty"`
	Made    agent.ToolCall `json:"made"` // by the model
	Runs    agent.ToolCall `json:"runs"`
	Started time.Time      `json:"started"`
}

// recordWaiting records a waiting call with the result that it has.
func (s *Session) recordWaiting(ctx context.Context, c *slot) {
	if i := slices.Index(s.waiting, c); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.state = s.guard.host.AddStep(s.state, []agent.ToolCall{c.call}, []*agent.ToolResult{c.result}, c.at)
		s.guard.host.Announce(ctx, s.state)
	}
}

// view returns the state with the waiting calls, whose outcomes are unknown.
func (s *Session) view() agent.State {
	state := s.state
	for _, c := range s.waiting {
		state = s.guard.host.AddStep(state, []agent.ToolCall{c.call}, []*agent.ToolResult{c.result}, c.at)
	}
	return state
}

// findWaiting returns the oldest call of this kind that the host runs, or nil. A host without IDs shows the arguments with which
// the call runs.
func (s *Session) findWaiting(c Call) *slot {
	for _, w := range slices.Concat(s.waiting, s.open.slots) {
		if w.p != nil && w.hostID == c.ID && w.call.Name == c.Tool &&
			(c.ID != "" || isSameJSON(w.p.Call.Arguments, c.Arguments) || isSameJSON(w.call.Arguments, c.Arguments)) {
			return w
		}
	}
	return nil
}

func isSameJSON(a, b string) bool {
	x, errA := strictjson.Canonical(a)
	y, errB := strictjson.Canonical(b)
	return errA == nil && errB == nil && x == y
}

// completeFrom records the result that the host's transcript has for a waiting call, and reports whether there was one.
func (s *Session) completeFrom(m agent.Message) bool {
	if m.CallID() == "" {
		return false
	}
	w := s.findWaiting(Call{ID: m.CallID(), Tool: m.Tool()})
	if w == nil || !slices.Contains(s.waiting, w) {
		return false
	}
	r := &agent.ToolResult{Content: m.Content(), Status: agent.ToolExecuted}
	w.result, w.p = r.To(w.p), nil
	s.answered[answered{w.hostID, w.call.Name}] = true
	s.recordWaiting(context.Background(), w)
	return true
}
