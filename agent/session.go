package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
)

// ErrSessionBusy is returned when a run is started while another run of the session
// is in progress.
var ErrSessionBusy = errors.New("a run of the session is in progress: wait for it, or use another session")

// ErrSessionClosed is returned when a run is started in a session after Close.
var ErrSessionClosed = errors.New("the session is closed: continue from its state with Agent.Session")

// ErrNotOpen is returned for an answer to a question that the session does not ask, or does not ask any more.
var ErrNotOpen = errors.New("the question is not open: it was answered, it has changed, or its deadline has passed")

// Session is a conversation with an agent: several runs in sequence, each on the last run's final state. It is safe for
// concurrent use. Only one run can be in progress at a time.
//
// The first run asks the hooks at ConversationStart before it accepts its input. If they fail and their failure policy
// is closed, the run ends as denied, and the next run asks them again. A resumed run does not ask them. Close calls the
// hooks at ConversationEnd. They are not called in a session that is never closed.
type Session struct {
	agent *Agent

	mu           sync.Mutex
	state        State
	busy, closed bool
	conversation conversation // while a run is in progress, only that run uses it
}

// conversation is the data that a Session's runs share.
type conversation struct {
	source  ConversationSource
	started bool // the hooks at ConversationStart have allowed it
	resumed bool // one of its runs was resumed
}

// ConversationSource says whether a conversation is new.
type ConversationSource string

// The sources of conversations, in the words of Claude Code's SessionStart.
const (
	// ConversationStartup: no run has used the session's state before.
	ConversationStartup ConversationSource = "startup"
	// ConversationResume: the session continues from a state that runs have used.
	ConversationResume ConversationSource = "resume"
)

// CloseReason says why a session was closed. Programs may use their own words.
type CloseReason string

// This module's reasons, in the words of Claude Code's SessionEnd.
const (
	// ClosedByUser: the user left the prompt.
	ClosedByUser CloseReason = "prompt_input_exit"
	// ClosedOtherwise: the program closed the session for another reason.
	ClosedOtherwise CloseReason = "other"
)

// Session returns a conversation that continues from s.
func (a *Agent) Session(s State) *Session {
	if s.Session() == "" {
		d := s.copyWithFrame()
		d.session = newSessionID()
		s = State{d}
	}
	source := ConversationStartup
	if s.Run().ID != "" {
		source = ConversationResume
	}
	return &Session{agent: a, state: s, conversation: conversation{source: source}}
}

// ID returns the session ID.
func (c *Session) ID() SessionID { return c.State().Session() }

// State returns the final state of the last run, even if that run failed or was cancelled.
func (c *Session) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Run calls Agent.Run on the session's state.
func (c *Session) Run(ctx context.Context, input ...Message) mo.Result[State] {
	return c.RunWith(ctx, RunSettings{}, input...)
}

// RunWith runs the agent as Run does, with settings.
func (c *Session) RunWith(ctx context.Context, settings RunSettings, input ...Message) mo.Result[State] {
	var result mo.Result[State]
	if err := c.turn(func(s State, own RunSettings) {
		settings.onEnd, settings.conversation = own.onEnd, own.conversation
		result = c.agent.RunWith(ctx, settings, s, input...)
	}); err != nil {
		return mo.Err[State](err)
	}
	return result
}

// Approve records a person's answer to the Intervention with that ID, if the last run waits for it: see
// State.WithApprovalAt. It returns an error when the answer does not count: ErrNotOpen when the run does not ask that, when it was
// answered, or when its deadline has passed. While a run is in progress, it returns ErrSessionBusy; after Close, ErrSessionClosed.
func (c *Session) Approve(id string, answer Approval) error {
	var refused error
	err := c.turn(func(s State, settings RunSettings) {
		now := time.Now()
		i, ok := lo.Find(s.Interventions(), func(i Intervention) bool { return i.ID == id })
		switch {
		case !ok || i.Answer() != nil || i.expired(now):
			refused = fmt.Errorf("answering %s: %w", id, ErrNotOpen)
		case !answer.Verdict.final() || !i.Takes(answer) || !i.Questions.Admit(answer):
			refused = fmt.Errorf("answering %s: the question does not take this answer", id)
		}
		settings.onEnd(s.WithApprovalAt(id, answer, now))
	})
	return cmp.Or(err, refused)
}

// Resume calls Agent.Resume on the session's state.
func (c *Session) Resume(ctx context.Context) mo.Result[State] {
	return c.RunWith(ctx, RunSettings{Resume: true})
}

// Steps calls Agent.Steps on the session's state.
func (c *Session) Steps(ctx context.Context, input ...Message) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		if err := c.turn(func(s State, settings RunSettings) {
			c.agent.StepsWith(ctx, settings, s, input...)(yield)
		}); err != nil {
			yield(c.State(), err)
		}
	}
}

// Stream calls Agent.Stream on the session's state.
func (c *Session) Stream(ctx context.Context, input ...Message) iter.Seq2[Progress, error] {
	return func(yield func(Progress, error) bool) {
		if err := c.turn(func(s State, settings RunSettings) {
			c.agent.StreamWith(ctx, settings, s, input...)(yield)
		}); err != nil {
			yield(Progress{State: c.State()}, err)
		}
	}
}

// Close works like CloseWith, with the reason ClosedOtherwise.
func (c *Session) Close(ctx context.Context) error { return c.CloseWith(ctx, ClosedOtherwise) }

// CloseWith ends the conversation: later runs return ErrSessionClosed. It calls the agent's hooks at ConversationEnd
// and waits until all of them have returned, also the detached hooks. When ctx is done, it cancels hooks that still
// run. The hooks are not called if no run of the session was resumed or got past ConversationStart.
//
// The error comes from ctx, or from a hook whose failure policy aborts. The session is closed in either case. While a
// run is in progress, CloseWith returns ErrSessionBusy and changes nothing. Closing a session again does nothing.
//
// CloseWith does not wait for the background work of earlier runs, which belongs to the agent: see Agent.Drain.
func (c *Session) CloseWith(ctx context.Context, reason CloseReason) error {
	c.mu.Lock()
	s, busy, again := c.state, c.busy, c.closed
	c.closed = c.closed || !busy
	c.mu.Unlock()
	end := c.agent.config.EndConversation
	switch {
	case busy:
		return ErrSessionBusy
	case again, end == nil, !c.conversation.started && !c.conversation.resumed:
		return nil
	}
	if err := end(ctx, s, reason); err != nil {
		return fmt.Errorf("closing session %s: %w", s.Session(), err)
	}
	return nil
}

// turn runs one run at a time in the session, and keeps its final state.
func (c *Session) turn(run func(State, RunSettings)) error {
	c.mu.Lock()
	s, busy, closed := c.state, c.busy, c.closed
	c.busy = c.busy || !closed
	c.mu.Unlock()
	switch {
	case closed:
		return ErrSessionClosed
	case busy:
		return ErrSessionBusy
	}
	defer func() {
		c.mu.Lock()
		c.state, c.busy = s, false
		c.mu.Unlock()
	}()
	run(s, RunSettings{onEnd: func(final State) { s = final }, conversation: &c.conversation})
	return nil
}
