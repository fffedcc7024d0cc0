package kit

import "github.com/grapnel-go/grapnel/agent"

// booked is the calls of the step under way that are to run, by their place in it.
type booked struct {
	step  int
	calls map[int]agent.ToolCall
}

// judge makes ready for a call to be judged: again, if it was before, as when a person
// has changed its arguments. What is booked for another reply is not counted.
func (b *booked) judge(s agent.State, call *agent.ToolCall) {
	step := s.StepCount()
	if old, again := b.calls[call.Index]; b.calls == nil || step != b.step || again && old.ID != call.ID {
		b.step, b.calls = step, map[int]agent.ToolCall{}
	}
	delete(b.calls, call.Index)
}

func (b *booked) add(call *agent.ToolCall) { b.calls[call.Index] = *call }
