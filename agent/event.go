package agent

import "context"

// Event is one thing that happened in a run. Its types are in this package and, for hooks, in package hooks.
type Event interface {
	// EventName returns the event's name, such as "step.completed".
	EventName() string
}

// Observer receives all the run's events, in order, as they happen. Logs, timelines and progress displays are built
// from it. Calls for one run never overlap. Observe must return soon and must not call back into the run. It must be
// safe for concurrent use when the agent serves several runs at the same time.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc adapts a func to the Observer interface.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// RunStarted: a run began.
type RunStarted struct{ Run Run }

// StepStarted: step Index began.
type StepStarted struct {
	Run   Run
	Index int
}

// InferenceStarted: the agent asks the model, with the request as hooks have changed it.
type InferenceStarted struct {
	Run  Run
	Step int
	// Inference is the ID of the model call. It is unique within the session.
	Inference string
	State     State
}

// InferenceCompleted: the model answered, with the reply as hooks have changed it, or the call failed with Err. It
// follows an InferenceStarted. Neither is sent when the model was not asked.
type InferenceCompleted struct {
	Run       Run
	Step      int
	Inference string
	Reply     Step
	Err       error
}

// ToolCallStarted: a call is about to run, or is answered without running. Runs says which. Call is the call as hooks
// have changed it. Original is the model's call.
type ToolCallStarted struct {
	Run            Run
	Step           int
	Call, Original ToolCall
	Runs           bool
}

// ToolCallCompleted: a call was answered, with the result as hooks have changed it.
type ToolCallCompleted struct {
	Run    Run
	Step   int
	Result ToolResult
}

// ApprovalRequested: a person, or a hook in a person's place, is asked about a call before it runs. If the answer comes
// later, the run ends as parked.
type ApprovalRequested struct {
	Run       Run
	Step      int
	Call      ToolCall
	Questions Questions
}

// ApprovalCompleted: the question about a call was decided. Approval holds the decision. Its By names a person or a
// hook in a person's place. By is "timeout" when the deadline passed and the questions' OnTimeout decided.
type ApprovalCompleted struct {
	Run      Run
	Step     int
	Call     ToolCall
	Approval Approval
	// Answers are all answers behind the decision. A quorum has an answer from each person.
	Answers []Approval
	// Questions are the call's questions with their answers, without input.
	Questions Questions
}

// StepCompleted: a step was recorded.
type StepCompleted struct {
	Run    Run
	Record StepRecord
}

// Judged: the criteria gave their verdict after a step, or before the first step.
type Judged struct {
	Run        Run
	Step       int // number of steps taken
	Evaluation Evaluation
}

// RunCompleted: a run ended. State holds its terminal status.
type RunCompleted struct {
	State State
	Err   error
}

// RunParked: a run waits for a person, and none of its code is executing. State.Interventions returns the waiting
// calls.
type RunParked struct{ State State }

// RunResumed: a run that was parked or cut off continues. State is the stored state.
type RunResumed struct{ State State }

// EventName returns "run.parked".
func (RunParked) EventName() string { return "run.parked" }

// EventName returns "run.resumed".
func (RunResumed) EventName() string { return "run.resumed" }

// EventName returns "run.started".
func (RunStarted) EventName() string { return "run.started" }

// EventName returns "step.started".
func (StepStarted) EventName() string { return "step.started" }

// EventName returns "inference.started".
func (InferenceStarted) EventName() string { return "inference.started" }

// EventName returns "inference.completed".
func (InferenceCompleted) EventName() string { return "inference.completed" }

// EventName returns "tool_call.started".
func (ToolCallStarted) EventName() string { return "tool_call.started" }

// EventName returns "tool_call.completed".
func (ToolCallCompleted) EventName() string { return "tool_call.completed" }

// EventName returns "approval.requested".
func (ApprovalRequested) EventName() string { return "approval.requested" }

// EventName returns "approval.completed".
func (ApprovalCompleted) EventName() string { return "approval.completed" }

// EventName returns "step.completed".
func (StepCompleted) EventName() string { return "step.completed" }

// EventName returns "judged".
func (Judged) EventName() string { return "judged" }

// EventName returns "run.completed".
func (RunCompleted) EventName() string { return "run.completed" }

// Observed reports whether Emit has an observer. Without one, callers need not create events.
func (s State) Observed() bool {
	l := s.read().live
	return l != nil && (l.watched() || l.listener != nil)
}

// Emit sends an event to the observer and the listeners of s's run. It is for middleware that defines its own events.
func (s State) Emit(ctx context.Context, e Event) {
	l := s.read().live
	if l == nil {
		return
	}
	if l.observer != nil || l.listener != nil {
		l.deliver(ctx, e, l.observer, l.listener)
	}
	if l.onEvent != nil {
		l.onEvent(e)
	}
}

// deliver sends an event to observers, one event at a time.
func (l *live) deliver(ctx context.Context, e Event, observers ...Observer) {
	l.events.Lock()
	defer l.events.Unlock()
	for _, o := range observers {
		if o != nil {
			o.Observe(ctx, e)
		}
	}
}

// watched reports whether anything receives the loop's own events.
func (l *live) watched() bool { return l != nil && (l.observer != nil || l.onEvent != nil) }

// tell sends a loop event to the observer and the stream, if there are any.
func (l *live) tell(ctx context.Context, e Event) {
	if l == nil {
		return
	}
	if l.observer != nil {
		l.deliver(ctx, e, l.observer)
	}
	if l.onEvent != nil {
		l.onEvent(e)
	}
}

// tellStep sends the newest step in s to the observer.
func (l *live) tellStep(ctx context.Context, s State) {
	if l.watched() {
		last := s.LastStep()
		l.tell(ctx, StepCompleted{s.Run(), last})
	}
}
