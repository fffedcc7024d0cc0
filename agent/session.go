package agent

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/samber/mo"
)

// ErrSessionBusy is returned when a run is started while another run of the session
// is in progress.
var ErrSessionBusy = errors.New("a run of the session is in progress: wait for it, or use another session")

// Session is a conversation with an agent: several runs in sequence, each on the
// final state of the last one. It is safe for concurrent use; only one run can be in
// progress at a time.
type Session struct {
	agent *Agent

	mu    sync.Mutex
	state State
	busy  bool
}

// Session returns a conversation that continues from s.
func (a *Agent) Session(s State) *Session {
	if s.Session() == "" {
		d := s.copyWithFrame()
		d.session = newSessionID()
		s = State{d}
	}
	return &Session{agent: a, state: s}
}

// ID returns the id of the session.
func (c *Session) ID() SessionID { return c.State().Session() }

// State returns the final state of the last run, also of a failed or cancelled one.
func (c *Session) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Run calls Agent.Run on the state of the session.
func (c *Session) Run(ctx context.Context, input ...Message) mo.Result[State] {
	return c.RunWith(ctx, RunSettings{}, input...)
}

// RunWith runs the agent as Run does, with settings.
func (c *Session) RunWith(ctx context.Context, settings RunSettings, input ...Message) mo.Result[State] {
	var result mo.Result[State]
	if err := c.turn(func(s State, own RunSettings) {
		settings.onEnd = own.onEnd
		result = c.agent.RunWith(ctx, settings, s, input...)
	}); err != nil {
		return mo.Err[State](err)
	}
	return result
}

// Approve records a person's answer about a call that the last run waits for: see
// State.WithApproval. While a run is in progress, it returns ErrSessionBusy.
func (c *Session) Approve(callID string, answer Approval) error {
	return c.turn(func(s State, settings RunSettings) { settings.onEnd(s.WithApproval(callID, answer)) })
}

// Resume calls Agent.Resume on the state of the session.
func (c *Session) Resume(ctx context.Context) mo.Result[State] {
	return c.RunWith(ctx, RunSettings{Resume: true})
}

// Steps calls Agent.Steps on the state of the session.
func (c *Session) Steps(ctx context.Context, input ...Message) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		if err := c.turn(func(s State, settings RunSettings) {
			c.agent.StepsWith(ctx, settings, s, input...)(yield)
		}); err != nil {
			yield(c.State(), err)
		}
	}
}

// Stream calls Agent.Stream on the state of the session.
func (c *Session) Stream(ctx context.Context, input ...Message) iter.Seq2[Progress, error] {
	return func(yield func(Progress, error) bool) {
		if err := c.turn(func(s State, settings RunSettings) {
			c.agent.StreamWith(ctx, settings, s, input...)(yield)
		}); err != nil {
			yield(Progress{State: c.State()}, err)
		}
	}
}

// turn runs one run at a time in the session, and keeps its final state.
func (c *Session) turn(run func(State, RunSettings)) error {
	c.mu.Lock()
	s, busy := c.state, c.busy
	c.busy = true
	c.mu.Unlock()
	if busy {
		return ErrSessionBusy
	}
	defer func() {
		c.mu.Lock()
		c.state, c.busy = s, false
		c.mu.Unlock()
	}()
	run(s, RunSettings{onEnd: func(final State) { s = final }})
	return nil
}
