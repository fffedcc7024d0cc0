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
// Its methods read the progress of the open step and its calls (StepOpen, Begun, InDoubt,
// CallsInDoubt, Child, Intervention), record progress (WithOpenStep, WithCallBegun,
// WithCallChild, WithCallAnswered, WithExpired, Changes), and change what a run begins with
// (Pending, WithInput, AcceptInput, WithStatus). Like a State it is immutable and safe for
// concurrent use.
type Checkpoint State

func (c Checkpoint) read() *stateData { return State(c).read() }

// StepOpen reports whether the next step had already begun before the run was parked or cut off:
// its reply exists, and the model is not asked again.
func (c Checkpoint) StepOpen() bool { return c.read().open != nil }

// Begun returns a call of the open step with the arguments that it began with, and the original call, with the model's
// arguments. Ok is false when the call has not begun or already has a result.
func (c Checkpoint) Begun(callID string) (begun, original ToolCall, ok bool) {
	open := c.read().open
	call := open.findCall(callID)
	if call == nil || call.begun == nil || call.result != nil {
		return ToolCall{}, ToolCall{}, false
	}
	return *call.begun, open.reply.Message.list()[call.begun.Index], true
}

// InDoubt reports whether a call of the open step may have happened: it has begun and has no result. A call that waits
// for a parked run that it has started is not in doubt.
func (c Checkpoint) InDoubt(callID string) bool {
	return c.read().open.findCall(callID).mayHaveHappened()
}

// CallsInDoubt returns the ids of the calls of the open step that have begun and may have
// happened, in call order. For calls of sub-agents, an id has the form of Intervention.CallID.
// The list is empty when no step is open.
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

// Child returns the latest state of the run that a call of the open step has started, so that
// the tool can resume it; begun is the call as it was when it began. If the call has changed
// since then, the tool should start a new run.
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

// Resumed reports whether the run was resumed in this process from a stored state, after it was
// parked or cut off.
func (c Checkpoint) Resumed() bool {
	l := c.read().live
	return l != nil && l.resumed
}

// ConversationStart reports whether the hooks at the start of a conversation must be asked in this
// run, and why it starts: the run is new, and no run of its Session has called RecordConversationStart.
func (c Checkpoint) ConversationStart() (source ConversationSource, starts bool) {
	l := c.read().live
	if l == nil || l.resumed || l.conversation == nil || l.conversation.started {
		return "", false
	}
	return l.conversation.source, true
}

// RecordConversationStart records that the hooks have let the conversation of this run begin. Package
// hooks calls it. In a run that belongs to no Session, and in a resumed one, it does nothing.
func (c Checkpoint) RecordConversationStart() {
	if l := c.read().live; l != nil && l.conversation != nil {
		l.conversation.started = true
	}
}

// InferenceID names the model call that the run is about to make, or is making: unique
// within the session, the same throughout one step.
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

// RecordJudgement records the hooks' decision about call, the call that the model made: p holds the call to run, and
// whether it runs. CheckJudgement later compares the call that is about to run with this record. The record belongs to
// the run and to the current step, and replaces an earlier one about the same call. In a run, RecordJudgement returns
// p itself. Outside of a run, it stores the record in a copy of p and returns the copy. P.Call must be set. Only
// package hooks uses it; code outside of this module has no valid pass, and without one nothing is recorded.
func (c Checkpoint) RecordJudgement(pass reserved.Pass, call *ToolCall, p *Prepared) *Prepared {
	if !pass.Valid() {
		return p
	}
	if l := c.read().live; l != nil {
		if call.Index >= 0 {
			l.judged.record(State(c).RunStepCount(), call, p)
		}
		return p
	}
	q := *p
	q.keepRest(func(rest *preparedRest) { rest.judged = new(judgementOf(call, p)) })
	return &q
}

// CheckJudgement returns an error when hooks did not judge a call that is about to run, or
// judged it differently: when its tool or arguments have changed since, when the hooks decided
// that it does not run, or when it needs an approval that was not given. P.Call and p.Original
// must be set.
func (c Checkpoint) CheckJudgement(p *Prepared) error {
	if l := c.read().live; l != nil {
		return l.judged.check(State(c).RunStepCount(), p)
	}
	j := p.more().judged
	if j != nil && j.id != p.Original.ID {
		j = nil
	}
	return j.check(p)
}

// Listen adds o as a listener: it receives the events that middleware emits during this one run, such as those of
// hooks. A listener does not receive the loop's own events, which go only to the agent's Observer, so that it adds no
// cost for them. Several listeners are called in the order they were added.
//
// Call Listen in a processor around the run, before it calls next. The processor must be outside of all middleware
// that emits events. Detached hooks can emit events after the run has ended.
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

// Pending iterates over all messages of any role that no run has accepted yet, with their index in the transcript.
func (c Checkpoint) Pending() iter.Seq2[int, Message] {
	d := c.read()
	return d.messages.From(int(d.accepted))
}

// WithInput returns the state with the given messages instead of those that no run has accepted yet.
func (c Checkpoint) WithInput(messages ...Message) State {
	d := State(c).copyData()
	d.messages = d.messages.Truncate(int(d.accepted)).Append(messages...)
	return State{d}
}

// AcceptInput returns the state with all its messages marked as accepted, as a run does after
// its hooks have accepted the input. It is for a journal that stores only accepted input: Resume
// refuses a state with unaccepted input.
func (c Checkpoint) AcceptInput() State { return State(c).acceptMessages() }

// WithStatus returns the state with a status. A processor around a run uses it to end the run
// without starting it.
func (c Checkpoint) WithStatus(status Status) State {
	d := State(c).copyWithFrame()
	d.status = status
	return State{d}
}

// WithOpenStep returns the state with an open step: the model has replied and none of its calls has been answered. A
// journal stores such a state before the calls are decided; a run that is resumed from it does not ask the model
// again. Reply.Prior is ignored: the agent has already applied it.
func (c Checkpoint) WithOpenStep(reply Step, started time.Time) State {
	s := State(c)
	reply.Message = withCallIDs(reply.Message, s.StepCount())
	reply.Prior = Effects{}
	return s.withOpen(&openStep{reply, started, make([]openCall, reply.Message.CallCount())})
}

// WithCallBegun returns a state with an open step in which a prepared call has started: p.Call
// is the call that runs. From then on the call is in doubt until it has an answer, and its
// approval is used up: a run that is resumed from the state repeats the call with these
// arguments or not at all, and needs a new answer for every new question.
func (c Checkpoint) WithCallBegun(p *Prepared) State {
	if p == nil || p.Call == nil || p.Original == nil {
		return State(c)
	}
	return State(c).withOpenCall(p.Original.ID, func(call *openCall) { call.begin(p) })
}

// WithCallChild returns a state with an open step in which a call that had begun has started another run; child is the
// latest state of that run. The child is part of the returned state, also in JSON and in Changes, until the call is
// answered.
func (c Checkpoint) WithCallChild(callID string, child State) State {
	return State(c).withOpenCall(callID, func(call *openCall) { call.child = child })
}

// WithCallAnswered returns a state with an open step in which a call was answered. A run that is
// resumed from it uses that answer.
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

// WithExpired returns a parked state in which every call whose deadline has passed at now is
// decided by Questions.OnTimeout.
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

// Changes returns the JSON form of the difference between the state and an earlier state of its
// session. Its size and cost do not grow with the transcript. Restore builds a state from all
// changes since the zero State.
//
// If JSON cannot hold a metadata value, Changes returns an error with the value's key.
func (c Checkpoint) Changes(since State) ([]byte, error) {
	form, err := State(c).changesSince(since)
	if err != nil {
		return nil, fmt.Errorf("writing what changed in the state: %w", err)
	}
	return compactJSON(form)
}
