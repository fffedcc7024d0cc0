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

// newSessionID returns a random session ID.
func newSessionID() SessionID { return SessionID("ses_" + rand.Text()) }

// NewRunID returns a random run ID.
func NewRunID() RunID { return RunID("run_" + rand.Text()) }

// Run identifies a run and its agent and session. It is a plain value.
type Run struct {
	ID      RunID     `json:"id"`
	Session SessionID `json:"session"`
	// Agent is the agent's name.
	Agent string `json:"agent,omitempty"`
	// Parent is the run that started this one, and Root the first run in the chain of parents. Without a parent, Parent
	// is empty and Root is ID.
	Parent RunID `json:"parent,omitempty"`
	Root   RunID `json:"root"`
	// Depth is the number of runs above this one.
	Depth int `json:"depth,omitempty"`
	// Number counts the session's runs from one.
	Number int `json:"number"`
	// Stage and Iteration are the run's position in a pipeline. They are empty and zero elsewhere.
	Stage     string `json:"stage,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	// Started is when the run began.
	Started time.Time `json:"started"`
}

// Run runs the agent on s with input appended, until it is done or stopped, and returns the final state: see its Status
// and StopSignal. A run that waits for a person is returned as parked: see Resume. A failed or cancelled run is an Err
// with a *RunError, which holds the last good state.
func (a *Agent) Run(ctx context.Context, s State, input ...Message) mo.Result[State] {
	return a.RunWith(ctx, RunSettings{}, s, input...)
}

// RunSettings are optional settings for one run.
type RunSettings struct {
	// ID is the run's ID. Empty means a new one.
	ID RunID
	// Session is the session ID if the state has none yet. Empty means a new one.
	Session SessionID
	// Parent is the run that starts this one, as a sub-agent or from a hook.
	Parent Run
	// Stage and Iteration are the run's position in a pipeline.
	Stage     string
	Iteration int
	// Resume continues the state's run, as Agent.Resume does. The fields from ID to Iteration are then ignored, and
	// there must be no input.
	Resume bool
	// Output, when set, is the required form of this run's final answer.
	Output *Output
	// Hooks, when set, are this run's hooks in addition to the agent's: see WithHooks.
	Hooks HookSet
	// Limits apply to this run and the runs below it, in addition to the limits of the agent's criterion. The stricter
	// limit wins. The run's usage before it was resumed counts. Time also interrupts the current step. A state does not
	// hold these limits, so they must be set again to resume the run.
	Limits Limits
	// Idle, with Resume, is how long the run was not running since the state was stored: see State.Elapsed. Zero means
	// the time since the newest question that the run waited for, if there is one.
	Idle time.Duration

	onStep  func(State) bool // called after each step, ends the run by returning false
	onDelta func(Delta)
	onEvent func(Event)
	onEnd   func(State)

	conversation *conversation // of a Session
}

// beginRun returns s at the start of its run.
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

// identity returns a new run's Run value.
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

// ErrParked is returned when a new run is started on a state whose last run is in the middle of a step.
var ErrParked = errors.New("a run of this state is parked or was cut off in a step: answer its questions and call Resume")

// ErrSuspended parks a run that does not wait for an answer, for example because its process shuts down. A processor
// around a step returns it, or the context is cancelled with it as the cause. Resume continues the run. End hooks do
// not fire, because the run has not ended. A step cancelled this way can leave calls in doubt, so continue only from a
// state that was stored earlier.
var ErrSuspended = errors.New("the run is suspended")

// Resume continues a run that was parked or cut off. A parked run needs answers to its questions. If the run was cut
// off, s is a state that was stored during the run. The run keeps its ID. Hooks at InputSubmitted and ExecutionStart do
// not fire again. In an open step the model is not asked again, and StepStart does not fire. The controls judge every
// call that has no answer yet, and an approval counts only for the call that the person saw.
//
// Steps and Stream continue a run when RunSettings.Resume is set.
//
// New input belongs in the next run. A state with messages after the run's own input is an error, because no hook would
// be asked about them.
//
// A state that still waits for an answer, or whose run has ended, is returned unchanged. If ctx is done, a parked run
// ends as cancelled.
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

// idleTime returns how long s's run, which is about to resume, was not running. Given is the caller's value, and zero
// if unknown. A sub-agent was idle as long as the run above.
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
