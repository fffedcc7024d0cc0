package agent

import (
	"slices"
	"time"
)

// openStep is a step that has begun and is not recorded: the model has answered. It is
// never written once it is part of a state.
type openStep struct {
	reply   Step
	started time.Time
	calls   []openCall // one for each call of the reply
}

// openCall is how far one call of an open step has come.
type openCall struct {
	asked  *Intervention // a person is asked about it
	begun  *ToolCall     // what was started
	child  State         // the run that it has started, while there is no result
	result *ToolResult   // what came of it
}

func (o *openStep) with(calls []openCall) *openStep {
	return &openStep{o.reply, o.started, calls}
}

// at returns how far call i has come.
func (o *openStep) at(i int) *openCall {
	if o == nil || i >= len(o.calls) {
		return nil
	}
	return &o.calls[i]
}

// call returns how far the call of that id has come; nil when there is none.
func (o *openStep) call(id string) *openCall {
	if o == nil {
		return nil
	}
	for i, c := range o.reply.Message.list() {
		if c.ID == id {
			return o.at(i)
		}
	}
	return nil
}

// result returns the answer that call i has already; nil when it has none.
func (o *openStep) result(i int) *ToolResult {
	if c := o.at(i); c != nil {
		return c.result
	}
	return nil
}

// reopened returns s with another open step, or none.
func (s State) reopened(open *openStep) State {
	d := s.framed()
	d.open = open
	return State{d}
}

// WithOpenStep returns s with a step begun: the model's reply is there and none of its
// calls has been answered. A journal keeps such a state before the calls are decided
// upon; a run that is resumed from it does not ask the model again. Reply.Prior has
// been applied to s.
func (s State) WithOpenStep(reply Step, started time.Time) State {
	reply.Message = withCallIDs(reply.Message, s.StepCount())
	reply.Prior = Effects{}
	return s.reopened(&openStep{reply, started, make([]openCall, reply.Message.CallCount())})
}

// WithCallBegun returns a state with an open step in which a prepared call has started:
// p.Call is what runs. From then on the call is in doubt until it has an answer, and the
// approval that it had is used up: a run that is resumed from the state repeats the call
// with these arguments or not at all, and needs a new answer for every new question.
func (s State) WithCallBegun(p *Prepared) State {
	if p == nil || p.Call == nil || p.Original == nil {
		return s
	}
	return s.withOpenCall(p.Original.ID, func(c *openCall) { c.begin(p) })
}

// WithCallAnswered returns a state with an open step in which a call was answered. A
// run that is resumed from it takes the answer as it is.
func (s State) WithCallAnswered(r *ToolResult) State {
	return s.withOpenCall(r.CallID(), func(c *openCall) { c.result, c.child = r, State{} })
}

// WithCallChild returns a state with an open step in which a call, that was begun, has
// started a run of its own: child is how far that has come. It is part of this state, in
// JSON and in Changes as well, until the call is answered.
func (s State) WithCallChild(callID string, child State) State {
	return s.withOpenCall(callID, func(c *openCall) { c.child = child })
}

// Child returns the run that a call of the open step has started, as far as it has come, for
// the tool that goes on with it; begun is the call as it was then. A call that has become
// another one since had better begin again.
func (s State) Child(callID string) (child State, begun ToolCall, ok bool) {
	c := s.read().open.call(callID)
	if c == nil || c.child.data == nil || c.begun == nil {
		return State{}, ToolCall{}, false
	}
	return c.child, *c.begun, true
}

func (s State) withOpenCall(id string, change func(*openCall)) State {
	open := s.read().open
	if open == nil {
		return s
	}
	for i, c := range open.reply.Message.list() {
		if c.ID == id && i < len(open.calls) {
			calls := slices.Clone(open.calls)
			change(&calls[i])
			return s.reopened(open.with(calls))
		}
	}
	return s
}
