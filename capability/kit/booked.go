package kit

import "github.com/grapnel-go/grapnel/agent"

// booked holds the current step's calls that are to run, by their position in the step.
type booked struct {
	step  int
	calls map[int]agent.ToolCall
}

// judge prepares for judging a call again, which happens when a person has changed its arguments. It drops bookings for
// another reply.
func (b *booked) judge(s agent.State, call *agent.ToolCall) {
	step := s.StepCount()
	if old, again := b.calls[call.Index]; b.calls == nil || step != b.step || again && old.ID != call.ID {
		b.step, b.calls = step, map[int]agent.ToolCall{}
	}
	delete(b.calls, call.Index)
}

func (b *booked) add(call *agent.ToolCall) { b.calls[call.Index] = *call }
