package guard

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Session is one run of a guarded agent: its conversation and the ledger of its calls. It is safe for concurrent use.
// Calls are judged one after the other, and run at the same time.
type Session struct {
	guard    *Guard
	id       string
	scope    string // what its tokens and ledgers are sealed for
	settings agent.RunSettings
	budget   *budget

	turn chan struct{} // holds a value while a call is judged or the session changes

	// Guarded by turn:
	state    agent.State
	open     openStep
	waiting  []*slot // calls of earlier steps that the host runs, oldest first: state does not have them
	stepped  bool    // the host announces its steps
	synced   map[message]bool
	answered map[answered]bool // calls that the ledger has
	history  []agent.Message
	follow   func()

	stop atomic.Pointer[agent.Signal]
}

// openStep holds the current step's calls, by position.
type openStep struct {
	started time.Time
	slots   []*slot
	running int // calls without a result that may still get one
}

// slot is one call of the open step.
type slot struct {
	hostID string
	call   agent.ToolCall
	result *agent.ToolResult // nil until there is one
	left   bool              // the call waits for an answer, or was paused: it may come again
	p      *agent.Prepared   // while the host runs the call, until Complete; its result is unknown
	at     time.Time         // when its step began
}

// answered identifies an answered call.
type answered struct{ hostID, tool string }

// ledger is the content of a saved ledger. A line end and the state follow it: the state grows with the conversation, and
// inside of the object it would be encoded and scanned twice. Calls and Elapsed count against the limits, with the session's children.
type ledger struct {
	Waiting     []waitingCall `json:"waiting,omitempty"`
	MissesCalls bool          `json:"misses_calls,omitempty"`
	Stop        *agent.Signal `json:"stop,omitempty"`
	Calls       int64         `json:"calls"`
	Elapsed     time.Duration `json:"elapsed_ns"`
}

// message identifies a message of the host's transcript: its digest, and how many equal ones are before it.
type message struct {
	digest [sha256.Size]byte
	number int
}

// foreignSource begins the source of answers to calls that the guard never saw. The tool's name follows.
const foreignSource = "foreign:"

// budget counts against the limits of a session and its children.
type budget struct {
	limits Limits
	began  time.Time
	before atomic.Int64 // nanoseconds that had elapsed when the session was restored
	calls  atomic.Int64
}

// elapsed returns how long the session has run, also before it was restored.
func (b *budget) elapsed() time.Duration { return time.Since(b.began) + time.Duration(b.before.Load()) }

// StopCallsLimit is the reason of a session that has reached Limits.Calls.
const StopCallsLimit agent.StopReason = "calls_limit"

// take counts a call before it runs, and returns a signal when a limit is reached.
func (b *budget) take() *agent.Signal {
	switch n := b.calls.Add(1); {
	case b.limits.Calls > 0 && n > int64(b.limits.Calls):
		return &agent.Signal{Reason: StopCallsLimit, Message: fmt.Sprintf("the limit of %d tool calls is reached", b.limits.Calls)}
	case b.limits.Time > 0 && b.elapsed() >= b.limits.Time:
		return &agent.Signal{Reason: agent.StopTimeLimit, Message: fmt.Sprintf("the time limit of %s is reached", b.limits.Time)}
	}
	return nil
}

// within returns a context that ends when the time is over.
func (b *budget) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.limits.Time <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, b.limits.Time-b.elapsed())
}

// ID returns the session's ID.
func (s *Session) ID() string { return s.id }

// Run identifies the session's run, as events and spans show it.
func (s *Session) Run() agent.Run {
	s.wait()
	defer s.leave()
	return s.state.Run()
}

// lock waits for the session. It returns an error when ctx is done first.
func (s *Session) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Session) wait()  { s.turn <- struct{}{} }
func (s *Session) leave() { <-s.turn }

// begin begins the run, or goes on with the run of a restored state.
func (s *Session) begin(ctx context.Context, state agent.State) {
	g := s.guard
	if s.follow != nil {
		s.follow()
	}
	s.state = g.host.StartRun(g.host.Within(ctx, state), s.settings, state)
	s.follow = func() {}
	g.hooks.Attach(s.state)
	if g.recorder != nil {
		s.follow = g.recorder.Follow(ctx, s.state)
	}
	s.open, s.waiting, s.synced, s.answered = openStep{}, nil, map[message]bool{}, map[answered]bool{}
	for _, step := range s.state.RunSteps() {
		for _, r := range step.Results() {
			s.answered[answered{r.CallID(), r.Tool()}] = true
		}
	}
	counts := map[[sha256.Size]byte]int{}
	for _, m := range s.state.Messages() {
		if m.Role() != agent.RoleTool && m.CallCount() == 0 {
			s.synced[nextMessage(counts, m)] = true
		}
	}
}

func nextMessage(counts map[[sha256.Size]byte]int, m agent.Message) message {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00", m.Role(), m.Source())
	for _, part := range m.Content().Parts() {
		fmt.Fprintf(h, "%s\x00%d\x00%s\x00%s\x00%s\x00", part.Kind, len(part.Text), part.Text, part.URL, part.Data)
	}
	digest := [sha256.Size]byte(h.Sum(nil))
	counts[digest]++
	return message{digest, counts[digest]}
}

// Child opens a session for an agent that one of the session's calls starts. Its input is not the user's: the model of
// s wrote it. ID distinguishes the session's children, such as the ID of that call. Children share the session's limits.
func (s *Session) Child(ctx context.Context, id string, history ...agent.Message) *Session {
	run := s.Run()
	c := s.guard.open(ctx, s.id+"/"+id, withName(s.scope, id), agent.RunSettings{Session: agent.SessionID(s.id + "/" + id), Parent: run}, s.budget)
	c.addMessages(history)
	return c
}

// Foreign returns the answer to a call outside of the guard, for Sync and Session. It is a stranger's text, whatever the
// tool. Use it for every answer in the host's transcript: Sync leaves out those that the guard has given.
func Foreign(call agent.ToolCall, text string) agent.Message {
	r := &agent.ToolResult{Content: agent.TextContent(text), Status: agent.ToolUnknown}
	return agent.ToolAnswer(r.To(&agent.Prepared{Original: &call, Call: &call}))
}

// Sync tells the session what the host's transcript says now. It adds the messages that the session does not know yet,
// so that it is called with the whole transcript. A message that has left the transcript, such as after a compaction,
// is not forgotten. Messages in the user's role without a source count as the user's words: give all others a source
// with Message.WithSource.
//
// Sync also ends the current step, unless calls of it are still running.
func (s *Session) Sync(ctx context.Context, history ...agent.Message) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.leave()
	s.closeStep(ctx)
	s.addMessages(history)
	return nil
}

// addMessages adds the unknown messages.
func (s *Session) addMessages(history []agent.Message) {
	s.history = slices.Clone(history)
	counts := map[[sha256.Size]byte]int{}
	var fresh []agent.Message
	for _, m := range history {
		switch {
		case m.Role() == agent.RoleTool && s.answered[answered{m.CallID(), m.Tool()}]:
			continue
		case m.Role() == agent.RoleTool && s.completeFrom(m):
			continue
		case m.Role() == agent.RoleTool:
			if g := s.guard; g.tools == nil || g.tools[m.Tool()] {
				g.host.MissCalls(s.state)
			}
			m = agent.UserText(m.Text()).WithSource(foreignSource + m.Tool())
		case m.CallCount() > 0:
			m = m.WithCalls()
		}
		key := nextMessage(counts, m)
		if s.synced[key] {
			continue
		}
		s.synced[key] = true
		fresh = append(fresh, m)
	}
	s.state = s.guard.host.Add(s.state, fresh...)
}

// Step tells the session that the model is about to be asked, and fires StepStart. It also ends the step before, unless
// calls of it are still running. It returns a *StopError when the session has stopped.
//
// Messages that hooks add there are part of the ledger, but the host's model does not see them.
func (s *Session) Step(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.leave()
	if stop := s.StopSignal(); stop != nil {
		return newStopError(*stop)
	}
	s.stepped = true
	if !s.closeStep(ctx) {
		return nil
	}
	state, err := s.guard.hooks.AroundStep().Process(s.guard.host.Within(ctx, s.state), s.state,
		func(_ context.Context, s agent.State) mo.Result[agent.State] { return mo.Ok(s) }).Get()
	if err != nil {
		return fmt.Errorf("guard %q: step: %w", s.guard.name, err)
	}
	s.state = state
	if state.Stopped() {
		return newStopError(s.end(state.StopSignal()))
	}
	return nil
}

// closeStep records the open step, and reports whether none is open now.
func (s *Session) closeStep(ctx context.Context) bool {
	if s.open.running > 0 {
		return false
	}
	if after := s.recordOpen(); after != s.state {
		s.state = after
		s.guard.host.Announce(ctx, after)
	}
	for _, c := range s.open.slots {
		if c.p != nil {
			c.at = s.open.started
			s.waiting = append(s.waiting, c)
		}
	}
	s.open = openStep{}
	for len(s.waiting) > maxWaiting {
		s.recordWaiting(ctx, s.waiting[0])
	}
	return true
}

// recordOpen returns the state with the open step's calls.
func (s *Session) recordOpen() agent.State {
	var calls []agent.ToolCall
	var results []*agent.ToolResult
	for _, c := range s.open.slots {
		if c.result != nil && c.p == nil {
			calls, results = append(calls, c.call), append(results, c.result)
		}
	}
	if len(calls) == 0 {
		return s.state
	}
	return s.guard.host.AddStep(s.state, calls, results, s.open.started)
}

// end stops the session, and returns the signal that counts.
func (s *Session) end(signal agent.Signal) agent.Signal {
	s.stop.CompareAndSwap(nil, &signal)
	return *s.stop.Load()
}

// StopSignal returns the signal that stopped the session, or nil. The host must then end its run. No call runs any more.
func (s *Session) StopSignal() *agent.Signal { return s.stop.Load() }

// Save returns the session's ledger, sealed with the guard's key, for the host's own state: everything that rules know
// about earlier calls. Its size grows with the conversation. It holds what the tools answered, encrypted. A
// running call has an unknown outcome in it.
//
// A seal does not prove that a ledger is the newest: a host that restores an older one forgets calls.
func (s *Session) Save() (string, error) {
	s.wait()
	defer s.leave()
	was := s.open
	s.open.slots = slices.Clone(was.slots)
	for i, c := range s.open.slots {
		if c.result == nil && !c.left {
			running := *c
			running.result = unknownResult(&agent.Prepared{Original: &running.call, Call: &running.call})
			s.open.slots[i] = &running
		}
	}
	state := s.recordOpen()
	s.open = was
	stop := s.StopSignal()
	if stop != nil && stop.Reason == agent.StopCompleted { // closed here, which is no stop
		stop = nil
	}
	var waiting []waitingCall
	for _, c := range slices.Concat(s.waiting, s.open.slots) {
		if c.p != nil {
			waiting = append(waiting, waitingCall{c.hostID, *c.p.Original, *c.p.Call, cmp.Or(c.at, s.open.started)})
		}
	}
	data, err := json.Marshal(ledger{
		waiting, agent.Checkpoint(state).MissesCalls(), stop, s.budget.calls.Load(), s.budget.elapsed(),
	})
	stored, failed := state.MarshalJSON()
	if err = errors.Join(err, failed); err != nil {
		return "", fmt.Errorf("guard %q: saving session %q: %w", s.guard.name, s.id, err)
	}
	return s.guard.sealer.seal("ledger", s.scope, slices.Concat(data, []byte{'\n'}, stored)), nil
}

// Restore continues from a ledger that Save has returned, usually in another process. It must be called before the first
// call. Without it, a session whose transcript shows earlier calls does not know them, so that rules that count calls
// deny.
func (s *Session) Restore(ctx context.Context, saved string) error {
	data, err := s.guard.sealer.open("ledger", s.scope, saved)
	var kept ledger
	var state agent.State
	if err == nil {
		about, stored, _ := bytes.Cut(data, []byte{'\n'})
		err = errors.Join(json.Unmarshal(about, &kept), state.UnmarshalJSON(stored))
	}
	if err != nil {
		return fmt.Errorf("guard %q: restoring session %q: %w", s.guard.name, s.id, err)
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.leave()
	if s.open.running+len(s.open.slots) > 0 || s.state.RunStepCount() > 0 {
		return fmt.Errorf("guard %q: restoring session %q: it has judged calls already: restore it first", s.guard.name, s.id)
	}
	if kept.Stop != nil {
		s.end(*kept.Stop)
	}
	s.begin(ctx, state)
	for _, w := range kept.Waiting {
		c := &slot{hostID: w.HostID, call: w.Made, p: &agent.Prepared{Original: &w.Made, Call: &w.Runs, Strict: true}, at: w.Started}
		c.result = unknownResult(c.p)
		s.waiting = append(s.waiting, c)
	}
	if kept.MissesCalls {
		s.guard.host.MissCalls(s.state)
	}
	s.addMessages(s.history)
	if s.settings.Parent.ID == "" { // a child's calls are in its parent's ledger
		s.budget.calls.Add(kept.Calls)
		s.budget.before.Add(int64(kept.Elapsed))
	}
	return nil
}

// Close ends the session's run. It must be called when the conversation, or this process's part of it, is over. No call
// runs afterwards.
func (s *Session) Close(ctx context.Context) error {
	s.wait()
	defer s.leave()
	if s.follow == nil {
		return nil
	}
	s.closeStep(ctx)
	for len(s.waiting) > 0 {
		s.recordWaiting(ctx, s.waiting[0])
	}
	state := s.state
	if stop := s.StopSignal(); stop != nil {
		state = state.WithStop(*stop)
	}
	_, err := s.guard.host.EndRun(ctx, state)
	s.end(agent.Signal{Reason: agent.StopCompleted, Message: "the session is closed"})
	s.follow()
	s.follow = nil
	if _, ended := errors.AsType[*agent.RunError](err); ended { // its signal says so
		return nil
	}
	return err
}

// MissCalls marks the session as one whose earlier calls are unknown, so that rules that count calls deny. An adapter calls
// it when the host gives each call a session of its own.
func (s *Session) MissCalls() {
	s.wait()
	defer s.leave()
	s.guard.host.MissCalls(s.state)
}
