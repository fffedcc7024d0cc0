package agent

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/reserved"
)

// Checkpoint is a State with the methods for code that stores and resumes runs: executors,
// journals, approvers and processors around a run. The conversion costs nothing:
//
//	open := agent.Checkpoint(s).StepOpen()
//
// Its methods read the progress of the open step and its calls (StepOpen, Begun, InDoubt, CallsInDoubt, Child,
// Intervention). They record progress (WithOpenStep, WithCallBegun, WithCallChild, WithCallAnswered, WithExpired,
// Changes), and change the input and status with which a run begins (Pending, WithInput, AcceptInput, WithStatus). Like
// a State, a Checkpoint is immutable and safe for concurrent use.
type Checkpoint State

func (c Checkpoint) read() *stateData { return State(c).read() }

// StepOpen reports whether the next step had begun before the run was parked or cut off. Its reply then exists, and the
// model is not asked again.
func (c Checkpoint) StepOpen() bool { return c.read().open != nil }

// Begun returns the arguments with which a call of the open step began, and the original call with the model's
// arguments. Ok is false when the call has not begun or already has a result.
func (c Checkpoint) Begun(callID string) (begun, original ToolCall, ok bool) {
	open := c.read().open
	call := open.findCall(callID)
	if call == nil || call.begun == nil || call.result != nil {
		return ToolCall{}, ToolCall{}, false
	}
	return *call.begun, open.reply.Message.list()[call.begun.Index], true
}

// InDoubt reports whether a call of the open step may have happened: it has begun and has no result. A call is not in
// doubt while it waits for a parked run that it has started.
func (c Checkpoint) InDoubt(callID string) bool {
	return c.read().open.findCall(callID).mayHaveHappened()
}

// CallsInDoubt returns the IDs of the open step's calls that have begun and may have happened, in call order. The IDs
// of sub-agent calls look like Intervention.CallID. The list is empty when no step is open.
func (c Checkpoint) CallsInDoubt() []string {
	open := c.read().open
	if open == nil {
		return nil
	}
	var names []string
	for i, asked := range open.reply.Message.list() {
		call := open.at(i)
		if call.mayHaveHappened() && call.child.data == nil {
			names = append(names, asked.ID)
		}
		for _, below := range Checkpoint(call.child).CallsInDoubt() {
			names = append(names, open.path(asked.ID, below, nil))
		}
	}
	return names
}

// Child returns the latest state of the child run that a call of the open step has started, so that the tool can resume
// it. Begun is the call as it was when it began. If the call has changed since then, the tool should start a new run.
func (c Checkpoint) Child(callID string) (child State, begun ToolCall, ok bool) {
	call := c.read().open.findCall(callID)
	if call == nil || call.child.data == nil || call.begun == nil {
		return State{}, ToolCall{}, false
	}
	return call.child, *call.begun, true
}

// Intervention returns the intervention for a call, by its CallID.
func (c Checkpoint) Intervention(callID string) (Intervention, bool) {
	if call := c.read().open.findCall(callID); call != nil {
		if call.asked == nil || call.asked.used {
			return Intervention{}, false
		}
		return *call.asked, true
	}
	return lo.Find(State(c).Interventions(), func(i Intervention) bool { return i.CallID() == callID })
}

// Card returns the intervention that asks a person about a prepared call. It has the ID that the stored intervention will have.
func (c Checkpoint) Card(p *Prepared) Intervention {
	i := interventionAbout(p, time.Now())
	i.Round = c.read().open.findCall(p.Original.ID).round() + 1
	return i.WithID(State(c).Run().ID, State(c).RunStepCount())
}

// Resumed reports whether this process resumed the run from a stored state, after it was parked or cut off.
func (c Checkpoint) Resumed() bool {
	l := c.read().live
	return l != nil && l.resumed
}

// ConversationStart reports whether this run must ask the hooks at the start of a conversation, and why the
// conversation starts. It does so when the run is new and no run of its Session has called RecordConversationStart.
func (c Checkpoint) ConversationStart() (source ConversationSource, starts bool) {
	l := c.read().live
	if l == nil || l.resumed || l.conversation == nil || l.conversation.started {
		return "", false
	}
	return l.conversation.source, true
}

// RecordConversationStart records that the hooks have allowed this run's conversation to begin. Package hooks calls it.
// It does nothing in a run without a Session, or in a resumed run.
func (c Checkpoint) RecordConversationStart() {
	if l := c.read().live; l != nil && l.conversation != nil {
		l.conversation.started = true
	}
}

// InferenceID names the run's current or next model call. It is unique within the session and the same throughout one
// step.
func (c Checkpoint) InferenceID() string {
	s := State(c)
	return fmt.Sprintf("%s/%d", s.Run().ID, s.RunStepCount())
}

// CallsTogether returns how many calls begin at the same time as p, including p, so that a journal can record them in
// one commit. The result is one unless Config.Parallel allows more. Executors call it during Execute.
func (c Checkpoint) CallsTogether(p *Prepared) int {
	if live := c.read().live; live != nil && live.begin.width > 1 && p.Original.Index < live.begin.width {
		return live.begin.calls
	}
	return 1
}

// RecordJudgement returns a copy of p with the hooks' decision about a call. Call is the model's call. P holds the call
// to run, and whether it runs. CheckJudgement later compares the call that is about to run with this record, which is
// valid in the run's current step.
//
// P.Call must be set. Only package hooks uses this method. Other modules have no valid pass, and without one it returns
// p.
func (c Checkpoint) RecordJudgement(pass reserved.Pass, call *ToolCall, p *Prepared) *Prepared {
	if !pass.Valid() {
		return p
	}
	return State(c).judge(call, p)
}

// CheckJudgement returns an error when hooks did not judge the call that is about to run, or judged it differently.
// That is so when the tool or arguments have changed since, when the hooks decided that the call does not run, or when
// a needed approval is missing. P.Call and p.Original must be set.
func (c Checkpoint) CheckJudgement(p *Prepared) error { return State(c).judgement(p).check(p) }

// Listen adds o as a listener for this one run. It receives the events that middleware emits, such as hook events. It
// does not receive the loop's own events, which go only to the agent's Observer, so that a listener adds no cost to
// them. Several listeners are called in the order in which they were added.
//
// Call Listen in a processor around the run, before it calls next. The processor must be outside of all middleware that
// emits events. Detached hooks can emit events after the run has ended.
func (c Checkpoint) Listen(o Observer) {
	l := c.read().live
	if l == nil {
		return
	}
	if first := l.listener; first != nil {
		second := o
		o = ObserverFunc(func(ctx context.Context, e Event) { first.Observe(ctx, e); second.Observe(ctx, e) })
	}
	l.listener = o
}

// Pending iterates over all messages that no run has accepted yet, whatever their role, with their transcript index.
func (c Checkpoint) Pending() iter.Seq2[int, Message] {
	d := c.read()
	return d.messages.From(int(d.accepted))
}

// WithInput returns the state with the given messages in place of the messages that no run has accepted yet.
func (c Checkpoint) WithInput(messages ...Message) State {
	d := State(c).copyData()
	d.messages = d.messages.Truncate(int(d.accepted)).Append(messages...)
	return State{d}
}

// AcceptInput returns the state with all its messages marked as accepted, as a run does after its hooks have accepted
// the input. It is for a journal that stores only accepted input, because Resume refuses a state with unaccepted input.
func (c Checkpoint) AcceptInput() State { return State(c).acceptMessages() }

// WithStatus returns the state with the given status. A processor around a run uses it to end the run before it starts.
func (c Checkpoint) WithStatus(status Status) State {
	d := State(c).copyWithFrame()
	d.status = status
	return State{d}
}

// WithOpenStep returns the state with an open step: the model has replied, and no call has been answered yet. A journal
// stores such a state before the calls are decided. A run that resumes from it does not ask the model again.
// Reply.Prior is ignored, because the agent has already applied it.
func (c Checkpoint) WithOpenStep(reply Step, started time.Time) State {
	s := State(c)
	reply.Message = withCallIDs(reply.Message, s.StepCount())
	reply.Prior = Effects{}
	return s.withOpen(&openStep{reply, started, make([]openCall, reply.Message.CallCount())})
}

// WithCallBegun returns a state in which a prepared call of the open step has started. P.Call is the call that runs. It
// is in doubt until it has an answer, and its approval is used up. A run that resumes from this state repeats the call
// with these arguments or not at all, and needs a new answer for every new question.
func (c Checkpoint) WithCallBegun(p *Prepared) State {
	if p == nil || p.Call == nil || p.Original == nil {
		return State(c)
	}
	return State(c).withOpenCall(p.Original.ID, func(call *openCall) { call.begin(State(c), p) })
}

// WithCallChild returns a state in which a begun call of the open step has started another run. Child is that run's
// latest state. It is part of the returned state, also in JSON and in Changes, until the call is answered.
func (c Checkpoint) WithCallChild(callID string, child State) State {
	return State(c).withOpenCall(callID, func(call *openCall) { call.child = child })
}

// WithCallAnswered returns a state in which a call of the open step was answered. A run that resumes from it uses that
// answer.
func (c Checkpoint) WithCallAnswered(r *ToolResult) State {
	s := State(c)
	var used *Spending
	s = s.withOpenCall(r.CallID(), func(call *openCall) {
		if call.child.data != nil {
			used = new(call.child.Spending())
		}
		call.result, call.child = r, State{}
	})
	if used != nil {
		d := s.copyWithFrame()
		d.children = new(cmp.Or(d.children, &noSpending).plus(used))
		return State{d}
	}
	return s
}

// WithExpired returns a parked state in which Questions.OnTimeout has decided every call whose deadline has passed at
// now.
func (c Checkpoint) WithExpired(now time.Time) State {
	s := State(c)
	if !s.Parked() {
		return s
	}
	return s.withAnswers(func(i Intervention) *Approval {
		if !i.expired(now) {
			return nil
		}
		return i.timeout()
	})
}

// Changes returns the JSON form of the changes from an earlier state of the session to this one. Its size and cost do
// not grow with the transcript. Restore builds a state from all changes since the zero State.
//
// If JSON cannot hold a metadata value, Changes returns an error with the value's key.
func (c Checkpoint) Changes(since State) ([]byte, error) {
	form, err := State(c).changesSince(since)
	if err != nil {
		return nil, fmt.Errorf("writing what changed in the state: %w", err)
	}
	return compactJSON(form)
}
