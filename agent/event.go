package agent

import "context"

// Event is one thing that happened in a run. The concrete types are in this
// package and, for hooks, in package hooks.
type Event interface {
	// EventName returns the event's name, such as "step.completed".
	EventName() string
}

// Observer is told of everything that happens, in order, while it happens: the
// source of logs, timelines and progress displays. Calls for one run never
// overlap. It must return soon, must not call back into the run, and must be
// safe for concurrent use when the agent serves several runs at once.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc is an Observer from a plain func.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// RunStarted: a run began.
type RunStarted struct{ Run Run }

// StepStarted: step Index of the run began.
type StepStarted struct {
	Run   Run
	Index int
}

// InferenceStarted: the model is asked, with what the hooks left of the request.
type InferenceStarted struct {
	Run  Run
	Step int
	// Inference is the id of the model call, unique within the session.
	Inference string
	State     State
}

// InferenceCompleted: the model answered, and this is what the hooks left of it;
// or it failed, and Err says how. It follows an InferenceStarted; where the model was not
// asked, neither is told.
type InferenceCompleted struct {
	Run       Run
	Step      int
	Inference string
	Reply     Step
	Err       error
}

// ToolCallStarted: a call is to run, or is answered without running; Runs says
// which. Call is what hooks made of the Original that the model asked for.
type ToolCallStarted struct {
	Run            Run
	Step           int
	Call, Original ToolCall
	Runs           bool
}

// ToolCallCompleted: a call was answered; this is what the hooks let out.
type ToolCallCompleted struct {
	Run    Run
	Step   int
	Result ToolResult
}

// ApprovalRequested: a person, or what answers in a person's place, is asked about a call before it runs.
// Where the answer comes later, the run ends as parked.
type ApprovalRequested struct {
	Run       Run
	Step      int
	Call      ToolCall
	Questions Questions
}

// ApprovalCompleted: a call that needs approval was decided. Approval says how, and By who: a person, a hook
// in a person's place, or "timeout" where the deadline passed and what the questions say for that case counts.
type ApprovalCompleted struct {
	Run      Run
	Step     int
	Call     ToolCall
	Approval Approval
}

// StepCompleted: a step was recorded.
type StepCompleted struct {
	Run    Run
	Record StepRecord
}

// Judged: the criteria gave their verdict after a step, or before the first.
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

// RunParked: a run waits for a person, and nothing of it is under way. Its
// interventions say for what.
type RunParked struct{ State State }

// RunResumed: a run that was parked or cut off goes on. State is as it was stored.
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

// Observed reports whether an observer is told of what Emit tells: without one,
// events need not be made.
func (s State) Observed() bool {
	l := s.read().live
	return l != nil && (l.watched() || l.listener != nil)
}

// Emit tells the observer of the run that s belongs to, and who listens to it, of
// an event. It is for middleware with events of its own.
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

// deliver tells observers of one event at a time.
func (l *live) deliver(ctx context.Context, e Event, observers ...Observer) {
	l.events.Lock()
	defer l.events.Unlock()
	for _, o := range observers {
		if o != nil {
			o.Observe(ctx, e)
		}
	}
}

// watched reports whether the loop's own events are seen.
func (l *live) watched() bool { return l != nil && (l.observer != nil || l.onEvent != nil) }

// tell tells the observer and the stream, if there are any, of an event of the loop.
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

// tellStep tells the observer of the newest step of s.
func (l *live) tellStep(ctx context.Context, s State) {
	if l.watched() {
		last, _ := s.LastStep().Get()
		l.tell(ctx, StepCompleted{s.Run(), last})
	}
}
