package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/internal/startedrun"
)

// SessionID names a session: a conversation of one or more runs.
type SessionID string

// RunID names a run: one execution of an agent on a session.
type RunID string

// newSessionID returns a random session id.
func newSessionID() SessionID { return SessionID("ses_" + rand.Text()) }

// NewRunID returns a random run id.
func NewRunID() RunID { return RunID("run_" + rand.Text()) }

// Run identifies a run, and the agent and session that it belongs to. It is a plain
// value.
type Run struct {
	ID      RunID     `json:"id"`
	Session SessionID `json:"session"`
	// Agent is the agent's name.
	Agent string `json:"agent,omitempty"`
	// Parent is the run that started this one, and Root the first run in the chain of
	// parents. For a run that no other run started, Parent is empty and Root is ID.
	Parent RunID `json:"parent,omitempty"`
	Root   RunID `json:"root"`
	// Depth is the number of runs above this one.
	Depth int `json:"depth,omitempty"`
	// Number counts the runs of the session from one.
	Number int `json:"number"`
	// Stage and Iteration are the run's position in a pipeline; empty and zero outside
	// of one.
	Stage     string `json:"stage,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	// Started is when the run began.
	Started time.Time `json:"started"`
}

// Run runs the agent on s with input appended, until it is done or stopped, and returns
// the final state: see its Status and StopSignal. A run that waits for a person's later
// answer is returned as parked: see Resume. A run that failed or was cancelled is an Err
// with a *RunError, which holds the last good state.
func (a *Agent) Run(ctx context.Context, s State, input ...Message) mo.Result[State] {
	return a.RunWith(ctx, RunSettings{}, s, input...)
}

// RunSettings are optional settings for one run.
type RunSettings struct {
	// ID is the run's id; empty means a new one.
	ID RunID
	// Session is the id of the session if the state has none yet; empty means a new one.
	Session SessionID
	// Parent is the run that starts this one, as a sub-agent or from a hook.
	Parent Run
	// Stage and Iteration are the run's position in a pipeline.
	Stage     string
	Iteration int
	// Resume continues the run of the state, as Agent.Resume does. The fields from ID to
	// Iteration are ignored then, and there must be no input.
	Resume bool
	// Output, when set, is the required form of this run's final answer.
	Output *Output
	// Hooks, when set, are hooks that this run has in addition to those of the agent:
	// see WithHooks.
	Hooks HookSet
	// Limits are limits of this run and the runs below it, in addition to those of the
	// agent's criterion: the stricter applies. What the run used before it was resumed
	// counts. Time also interrupts the current step. A state does not hold these limits,
	// so they must be set again to resume the run.
	Limits Limits
	// Idle, with Resume, is how long the run was not running since the state was stored:
	// see State.Elapsed. Zero means the time since the last question was asked that the run
	// waited for, if there is one.
	Idle time.Duration

	onStep  func(State) bool // called after each step; false ends the run
	onDelta func(Delta)
	onEvent func(Event)
	onEnd   func(State)

	conversation *conversation // of a Session
}

// beginRun returns s at the start of a run.
func (a *Agent) beginRun(ctx context.Context, settings *RunSettings, s State) State {
	l := &live{observer: a.config.Observer, onDelta: settings.onDelta, onEvent: settings.onEvent, onStep: settings.onStep, conversation: settings.conversation}
	run := a.identity(settings, s)
	s = a.withControls(s.beginRun(run, a.requestOf(settings), l))
	l.account.start(ctx, s, a.limits, settings.Limits)
	l.tell(ctx, RunStarted{s.Run()})
	return s
}

// requestOf returns the request to the model in this run.
func (a *Agent) requestOf(settings *RunSettings) *Request {
	if settings.Output == nil {
		return &a.config.Request
	}
	request := a.config.Request
	request.Output = settings.Output
	return &request
}

// identity returns the Run value of a new run.
func (a *Agent) identity(settings *RunSettings, s State) Run {
	last := s.Run()
	run := Run{
		ID: settings.ID, Session: cmp.Or(s.Session(), settings.Session), Agent: a.config.Name,
		Parent: settings.Parent.ID, Root: settings.Parent.Root, Number: last.Number + 1,
		Stage: settings.Stage, Iteration: settings.Iteration, Started: time.Now(),
	}
	if run.ID == "" {
		run.ID = NewRunID()
	}
	if run.Session == "" {
		run.Session = newSessionID()
	}
	if run.Parent == "" {
		run.Root = run.ID
	} else {
		run.Root = lo.CoalesceOrEmpty(run.Root, run.Parent)
		run.Depth = settings.Parent.Depth + 1
	}
	return run
}

// ErrParked is returned when a new run is started on a state whose last run is in the
// middle of a step.
var ErrParked = errors.New("a run of this state is parked or was cut off in a step: answer its questions and call Resume")

// ErrSuspended parks a run that does not wait for an answer, for example because its
// process shuts down. A processor around a step returns it, or the context is cancelled
// with it as the cause; Resume continues the run. Hooks at the end of a run do not fire,
// because the run has not ended. A step that was cancelled this way can leave calls in
// doubt, so continue only from a state that was stored before.
var ErrSuspended = errors.New("the run is suspended")

// Resume continues a run that was parked, once its questions are answered, or that was
// cut off, from a state that was stored during the run. The run keeps its id; hooks at
// InputSubmitted and ExecutionStart do not fire again. In an open step the model is not
// asked again, and StepStart does not fire; the controls judge every call that has no
// answer yet, and an approval counts only for the call that the person saw.
//
// Steps and Stream continue a run when RunSettings.Resume is set.
//
// New input belongs in the next run: a state with messages after those that the run
// began with is an error, because no hook would be asked about them.
//
// A state that still waits for an answer, or whose run has ended, is returned unchanged.
// If ctx is done, a parked run ends as cancelled.
func (a *Agent) Resume(ctx context.Context, s State) mo.Result[State] {
	return a.RunWith(ctx, RunSettings{Resume: true}, s)
}

func (a *Agent) resumeRun(ctx context.Context, settings RunSettings, s State) mo.Result[State] {
	switch status := s.Status(); {
	case status == StatusNew:
		return mo.Err[State](errors.New("resuming a run: the state has no run: use Run"))
	case status.Terminal():
		return mo.Ok(s)
	case s.hasInput():
		return mo.Err[State](fmt.Errorf("resuming run %s: the state has input that no hook has accepted: "+
			"resume without it, and pass it to the next run", s.Run().ID))
	case s.Waiting() && ctx.Err() == nil:
		return mo.Ok(s)
	case s.Run().Agent != a.config.Name:
		return mo.Err[State](fmt.Errorf("resuming run %s: it belongs to agent %q, not to agent %q", s.Run().ID, s.Run().Agent, a.config.Name))
	}
	if err := a.missing(ctx, s); err != nil {
		return mo.Err[State](err)
	}
	l := &live{
		observer: a.config.Observer, onDelta: settings.onDelta, onEvent: settings.onEvent, onStep: settings.onStep, resumed: true,
		idle: s.idleTime(ctx, settings.Idle),
	}
	if settings.conversation != nil {
		settings.conversation.resumed = true
	}
	l.tell(ctx, RunResumed{s})
	s = a.withControls(s.resumeRun(a.requestOf(&settings), l))
	l.account.start(ctx, s, a.limits, settings.Limits)
	return a.finishRun(ctx, &settings, s, a.run(startedrun.Within(ctx, l), s))
}

// idleTime returns how long the run of s, which is about to be resumed, was not running. Given is what the caller knows. A
// sub-agent was idle as long as the run above.
func (s State) idleTime(ctx context.Context, given time.Duration) time.Duration {
	if given != 0 {
		return max(given, 0)
	}
	if above, ok := startedrun.Above(ctx).(*live); ok && above != nil && above.idle > 0 {
		return above.idle
	}
	var asked time.Time
	for _, i := range s.Interventions() {
		if i.Asked.After(asked) {
			asked = i.Asked
		}
	}
	if asked.IsZero() {
		return 0
	}
	return max(time.Since(asked), 0)
}

// hasInput reports whether the state has input that was not accepted.
func (s State) hasInput() bool {
	for range s.Input() {
		return true
	}
	return false
}
