package agent

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/plog"
)

// State is a session's data: its transcript, its steps, its metadata, and the status of its current or last run. It is
// immutable, one word wide and safe for concurrent use. Methods that change something return a new State. The zero
// State is an empty session that no run has touched.
//
// Middleware changes the next step with Apply, With, WithRequest, WithView and WithStop. It reads Request, Input,
// Observed and Stopped, and sends events with Emit. The methods for executors, journals and processors around a run are
// in Checkpoint.
//
// A State has one versioned JSON form, and reading it back gives an equal state.
type State struct {
	data *stateData
}

// stateData is not modified once the state is made. Each step makes a new one. Data that stays the same throughout a
// run is in its frame.
type stateData struct {
	*frame
	messages plog.Log[Message]
	steps    plog.Log[StepRecord]
	meta     *metadata
	usage    *Usage // of this run

	// accepted is the number of accepted messages. User messages after them are input that the next run must accept
	// first.
	accepted  int32
	failures  int32 // this run's steps in which something failed
	signal    *Signal
	overrides *callOverrides // not kept in JSON
}

// frame is the data of a state's current or last run that seldom changes from step to step. It is not modified once it
// is part of a state.
type frame struct {
	session SessionID
	run     Run
	idle    time.Duration // how long the run was not running since it started
	status  Status
	first   int   // index of this run's first step
	before  Usage // of earlier runs
	// children is the known usage of runs that calls of recorded steps have started. It is nil when there were none.
	children *Spending
	open     *openStep

	// Not kept in JSON:
	request *Request
	live    *live
}

// callOverrides are settings for one model call only.
type callOverrides struct {
	request *Request           // nil for the run's request
	view    *plog.Log[Message] // the messages that the model is shown, nil for the transcript
}

var (
	emptyState   = stateData{frame: &frame{before: noUsage}, usage: &noUsage}
	emptyRequest Request
	noOverrides  callOverrides
)

// toInt32 converts a count or an index to half a word.
func toInt32(n int) int32 { return int32(n) } //nolint:gosec // no session has two billion messages

func (s State) read() *stateData {
	if s.data == nil {
		return &emptyState
	}
	return s.data
}

func (s State) copyData() *stateData {
	d := *s.read()
	return &d
}

// copyWithFrame returns a copy of the data and its frame. The caller may modify both.
func (s State) copyWithFrame() *stateData {
	d := s.copyData()
	f := *d.frame
	d.frame = &f
	return d
}

// oneCall returns the settings for the next model call only.
func (d *stateData) oneCall() callOverrides { return *cmp.Or(d.overrides, &noOverrides) }

// NewState returns a state with the given messages. User messages among them are input that the first run must accept.
func NewState(messages ...Message) State { return State{}.With(messages...) }

// With returns s with messages appended.
func (s State) With(messages ...Message) State {
	if len(messages) == 0 {
		return s
	}
	d := s.copyData()
	d.addMessages(messages...)
	return State{d}
}

// addMessages appends messages to the transcript, and to the view that the model is shown instead of it.
func (d *stateData) addMessages(messages ...Message) {
	d.messages = d.messages.Append(messages...)
	if d.overrides != nil && d.overrides.view != nil {
		d.show(d.overrides.view.Append(messages...))
	}
}

// show sets the view that the model is shown instead of the transcript.
func (d *stateData) show(view plog.Log[Message]) {
	asked := d.oneCall()
	asked.view = &view
	d.overrides = &asked
}

// WithView returns s with a view. The model is shown the given messages instead of the transcript, followed by messages
// that are added later. The view is for one model call and does not change the transcript.
func (s State) WithView(messages ...Message) State {
	d := s.copyData()
	d.show(plog.Of(messages...))
	return State{d}
}

// WithRequest returns s with another request to the model. Like a view, it is for one model call.
func (s State) WithRequest(r Request) State {
	d := s.copyData()
	asked := d.oneCall()
	asked.request = &r
	d.overrides = &asked
	return State{d}
}

// WithStop returns s with a signal that ends the run. Of two signals, the one whose reason ranks higher stays. Of
// equals, the first stays.
func (s State) WithStop(signal Signal) State {
	if old := s.read().signal; old != nil && old.Reason.rank() >= signal.Reason.rank() {
		return s
	}
	d := s.copyData()
	d.signal = &signal
	return State{d}
}

// Session returns the session ID. It is empty before the first run.
func (s State) Session() SessionID { return s.read().session }

// Run returns the current or last run.
func (s State) Run() Run { return s.read().run }

// Status returns the status of the current or last run.
func (s State) Status() Status { return s.read().status }

// StopSignal returns the signal that ended, or will end, the current or last run. It returns the zero
// Signal without such a signal: see Stopped.
func (s State) StopSignal() Signal { return lo.FromPtr(s.read().signal) }

// Stopped reports whether a stop was signalled.
func (s State) Stopped() bool { return s.read().signal != nil }

// Request returns the request to the model, without the messages.
func (s State) Request() Request {
	d := s.read()
	return *cmp.Or(d.oneCall().request, d.request, &emptyRequest)
}

// shownLog returns the log that the message methods read.
func (d *stateData) shownLog() plog.Log[Message] {
	if view := d.oneCall().view; view != nil {
		return *view
	}
	return d.messages
}

// Messages iterates over the messages, oldest first.
func (s State) Messages() iter.Seq2[int, Message] { return s.read().shownLog().All() }

// MessagesFrom iterates over the messages from index i on. It panics when i is negative.
func (s State) MessagesFrom(i int) iter.Seq2[int, Message] { return s.read().shownLog().From(i) }

// MessagesBackward iterates over the messages, newest first.
func (s State) MessagesBackward() iter.Seq2[int, Message] { return s.read().shownLog().Backward() }

// MessageCount returns the number of messages.
func (s State) MessageCount() int { return s.read().shownLog().Len() }

// Message returns message i. It panics when i is out of range.
func (s State) Message(i int) Message { return s.read().shownLog().At(i) }

// LastMessage returns the newest message, or the zero Message.
func (s State) LastMessage() Message {
	last, _ := s.read().shownLog().Last()
	return last
}

// Answer returns the text of the model's last message, which is the final answer when the run is done. If the service
// paused the turn, the text begins with the text of the paused replies.
func (s State) Answer() string {
	for _, m := range s.MessagesBackward() {
		if m.Role() == RoleAssistant {
			return s.pausedText(m) + m.Text()
		}
	}
	return ""
}

// pausedText returns the text of the paused replies that the model's last message continues.
func (s State) pausedText(last Message) (text string) {
	continued := false
	for _, r := range s.RunStepsBackward() {
		switch b := r.read(); {
		case continued && b.paused():
			text = b.message.Text() + text
		case continued || b.message.Text() != last.Text():
			return text
		}
		continued = true
	}
	return text
}

// Steps iterates over all the session's steps, oldest first.
func (s State) Steps() iter.Seq2[int, StepRecord] { return s.read().steps.All() }

// StepCount returns the number of the session's steps.
func (s State) StepCount() int { return s.read().steps.Len() }

// RunSteps iterates over the steps of the current or last run, oldest first.
func (s State) RunSteps() iter.Seq2[int, StepRecord] {
	d := s.read()
	return func(yield func(int, StepRecord) bool) {
		for i, r := range d.steps.From(d.first) {
			if !yield(i-d.first, r) {
				return
			}
		}
	}
}

// RunStepsBackward iterates over the steps of the current or last run, newest first.
func (s State) RunStepsBackward() iter.Seq2[int, StepRecord] {
	d := s.read()
	return func(yield func(int, StepRecord) bool) {
		for i, r := range d.steps.Backward() {
			if i < d.first || !yield(i-d.first, r) {
				return
			}
		}
	}
}

// RunStepCount returns the number of steps of the current or last run.
func (s State) RunStepCount() int { d := s.read(); return d.steps.Len() - d.first }

// LastStep returns the newest step of the current or last run, or the zero StepRecord: see RunStepCount.
func (s State) LastStep() StepRecord {
	if s.RunStepCount() == 0 {
		return StepRecord{}
	}
	last, _ := s.read().steps.Last()
	return last
}

// Usage returns the session's usage. RunUsage returns the usage of its current or last run.
func (s State) Usage() Usage { d := s.read(); return d.before.Add(*d.usage) }

// RunUsage returns the usage of the current or last run.
func (s State) RunUsage() Usage { return *s.read().usage }

// RunFailures returns how many steps of the current or last run had a failed model call or tool.
func (s State) RunFailures() int { return int(s.read().failures) }

// Input iterates over the user messages that no run has accepted yet, with their index in the transcript. A message
// with a Source is not from the user.
func (s State) Input() iter.Seq2[int, Message] {
	d := s.read()
	return func(yield func(int, Message) bool) {
		for i, m := range d.messages.From(int(d.accepted)) {
			if m.Role() == RoleUser && m.Source() == "" && !yield(i, m) {
				return
			}
		}
	}
}

// beginRun returns s at the start of the given run.
func (s State) beginRun(run Run, request *Request, l *live) State {
	d := s.copyData()
	d.frame = &frame{
		session: cmp.Or(d.session, run.Session), run: run, status: StatusRunning,
		first: d.steps.Len(), before: d.before.Add(*d.usage), request: request, live: l,
	}
	d.meta = d.meta.withoutRun()
	d.usage, d.failures, d.signal, d.overrides = &noUsage, 0, nil, nil
	return State{d}
}

// keepRequest keeps the request for the next model call until the run ends.
func (s State) keepRequest() State {
	asked := s.read().oneCall()
	if asked.request == nil {
		return s
	}
	d := s.copyWithFrame()
	d.request, asked.request = asked.request, nil
	d.overrides = &asked
	return State{d}
}

// parkStep returns s parked in a step that waits for answers.
func (s State) parkStep(reply Step, started time.Time, waits []*Intervention) State {
	open := &openStep{reply, started, make([]openCall, len(waits))}
	open.reply.Prior = Effects{}
	for i, asked := range waits {
		if before := s.read().open.at(i); before != nil {
			open.calls[i] = *before
		}
		if asked != nil {
			open.calls[i].ask(asked)
		}
	}
	d := s.acceptMessages().copyWithFrame()
	d.status, d.open, d.overrides = StatusParked, open, nil
	d.keepChildren()
	return State{d}
}

// suspend returns s parked without waiting for an answer.
func (s State) suspend() State {
	d := s.copyWithFrame()
	d.status, d.overrides = StatusParked, nil
	d.keepChildren()
	return State{d}
}

// resumeRun returns s at the start of a resumed run.
func (s State) resumeRun(request *Request, l *live) State {
	d := s.copyWithFrame()
	d.status, d.request, d.live, d.overrides = StatusRunning, request, l, nil
	d.idle += l.idle
	return State{d}
}

// Elapsed returns how long the current or last run has been running. That is the time since it started, without the
// time when it was parked or in no process. Time limits use it. It is zero when there is no run.
func (s State) Elapsed() time.Duration {
	began := s.read().began()
	if began.IsZero() {
		return 0
	}
	return max(time.Since(began), 0)
}

// began returns when the run would have begun if it had always been running. It is zero when there is no run.
func (d *stateData) began() time.Time {
	if d.run.Started.IsZero() {
		return time.Time{}
	}
	return d.run.Started.Add(d.idle)
}

// acceptMessages returns s with all its messages accepted.
func (s State) acceptMessages() State {
	d := s.read()
	if int(d.accepted) == d.messages.Len() {
		return s
	}
	d = s.copyData()
	d.accepted = toInt32(d.messages.Len())
	return State{d}
}

// endAs returns s at the end of its run.
func (s State) endAs(status Status, signal Signal) State {
	d := s.copyWithFrame()
	d.status, d.signal, d.open = status, &signal, nil // a step that is not recorded is dropped
	d.keepChildren()
	return State{d}
}

// release returns s without the data that only a running agent needs.
func (s State) release() State {
	d := s.copyWithFrame()
	d.live, d.request, d.overrides = nil, nil, nil
	return State{d}
}

// record returns s with a step added: the model's message, the answers to its calls, then their effects, all in call
// order. The settings for this one model call are dropped.
func (s State) record(reply *Step, results []*ToolResult, started time.Time, failure *Failure) State {
	if s.read().open != nil {
		s = s.withOpen(nil)
	}
	was := s.read()
	kept, usage := was.begin(reply)
	kept.message, kept.finish, kept.model, kept.id, kept.failure = reply.Message, reply.FinishReason, reply.Model, reply.ID, failure
	kept.index, kept.at = toInt32(was.steps.Len()-was.first), toInt32(was.messages.Len())
	kept.started, kept.took = started.Round(0).Local(), time.Since(started) //nolint:gosmopolitan // StartTime is local
	kept.answers = make([]messageBody, len(results))
	failures := was.failures
	if failure != nil || slices.ContainsFunc(results, func(r *ToolResult) bool { return r.Status == ToolFailed }) {
		failures++
	}
	for i, r := range results {
		kept.answers[i].result = r
	}
	messages := was.messages
	if reply.Message.body != nil {
		messages = messages.Append(reply.Message)
		for i := range kept.answers {
			messages = messages.Append(Message{&kept.answers[i]})
		}
	}
	d := new(stateData)
	d.frame, d.messages, d.steps, d.meta = was.frame, messages, was.steps.Append(StepRecord{kept}), was.meta
	d.usage, d.signal, d.accepted, d.failures = usage, was.signal, toInt32(messages.Len()), failures
	if reply.Message.body == nil {
		d.live.account.addFailure(d)
	}
	if d.live.account.children.Load() != d.children {
		d.frame = new(*d.frame)
		d.keepChildren()
	}
	out := State{d}
	for _, r := range results {
		if r.Effects.Len() > 0 {
			out = out.Apply(r.Effects.From(toolSource + r.Call().Name))
		}
	}
	out = out.Apply(reply.Effects)
	if reply.Stop != nil {
		out = out.WithStop(*reply.Stop)
	}
	for _, r := range results {
		if r.Stop != nil {
			out = out.WithStop(*r.Stop)
		}
	}
	if out.data != d { // messages that effects added are not input
		out.data.accepted = toInt32(out.data.messages.Len())
	}
	return out
}

// begin returns the record of a step, and the run's usage with the step. It stores no usage for the step if the usage
// is unknown.
func (d *stateData) begin(reply *Step) (*stepBody, *Usage) {
	kept, run := new(stepBody), d.usage
	if reply.Usage != noStepUsage {
		kept.usage = new(reply.Usage)
	}
	if reply.Message.body != nil && (kept.usage != nil || run.Cost.IsPresent()) {
		run = new(*run)
		addTo(run, &reply.Usage)
	}
	return kept, run
}
