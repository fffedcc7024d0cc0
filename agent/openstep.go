package agent

import (
	"slices"
	"time"
)

// openStep is a step that has begun and is not recorded yet: the model has answered. It is not modified once it is part
// of a state.
type openStep struct {
	reply   Step
	started time.Time
	calls   []openCall // one for each call in the reply
}

// openCall is the progress of one call of an open step.
type openCall struct {
	asked  *Intervention // the questions about the call
	begun  *ToolCall     // the call as it began
	input  *callInput    // the input that it has asked for, or nil
	child  State         // the run that it has started, until there is a result
	result *ToolResult   // nil until there is a result
}

func (o *openStep) withCallStates(calls []openCall) *openStep {
	return &openStep{o.reply, o.started, calls}
}

// at returns the progress of call i.
func (o *openStep) at(i int) *openCall {
	if o == nil || i >= len(o.calls) {
		return nil
	}
	return &o.calls[i]
}

// findCall returns the progress of the call with that ID, or nil.
func (o *openStep) findCall(id string) *openCall {
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

// resultOf returns the answer to call i, or nil when it has none yet.
func (o *openStep) resultOf(i int) *ToolResult {
	if c := o.at(i); c != nil {
		return c.result
	}
	return nil
}

// withOpen returns s with another open step. Nil means none.
func (s State) withOpen(open *openStep) State {
	d := s.copyWithFrame()
	d.open = open
	return State{d}
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
			return s.withOpen(open.withCallStates(calls))
		}
	}
	return s
}
