package guard

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Call is a tool call as the host's model made it.
type Call struct {
	// ID is the host's ID of the call. It may be empty.
	ID string
	// Tool is the tool's name, and Arguments the JSON object of its arguments. Empty means {}.
	Tool, Arguments string
	// Token is from the AskError of the same call, and Answers are people's answers to its questions. Verify an answer's
	// Identity and Roles before setting them.
	Token   string
	Answers []agent.Approval
}

// Shape converts the results of a host's tools. Read must return all text in v, because filters see only that.
type Shape[T any] struct {
	// Read returns v's content. If it fails, the result is withheld.
	Read func(v T) (agent.Content, error)
	// Write returns a result in the host's form: a denial, a mock, a filtered answer.
	Write func(r *agent.ToolResult) T
	// Failed reports whether v is a tool's report of its own failure. Nil means never.
	Failed func(v T) bool
}

// Text is the Shape of tools that return a text.
var Text = Shape[string]{
	Read:  func(v string) (agent.Content, error) { return agent.TextContent(v), nil },
	Write: func(r *agent.ToolResult) string { return r.Text() },
}

// Do judges a call, runs it at most once with exactly the arguments that were judged, and filters the result. A denial, a
// mock and a rejection are results, which the host gives to its model like any other. Run is never called otherwise than
// by Do.
//
// The error is one of these:
//   - an *AskError: a person must approve the call. Nothing has run.
//   - a *StopError: the session has stopped, and the host must end its run. If this call stopped it, the result is valid.
//   - the error of run, unless a filter or a control changed it. A panic of run is such an error.
//   - the error that run has marked with Pause, without its mark. The call has no result. The same call may come again.
//   - any other: the guard could not decide, and nothing has run, or the context has ended.
func Do[T any](
	ctx context.Context, s *Session, c Call, run func(ctx context.Context, arguments string) (T, error), shape Shape[T],
) (T, error) {
	var value, none T
	if s == nil {
		return none, errNoSession
	}
	r, same, err := s.runCall(ctx, c, func(ctx context.Context, arguments string) (*agent.ToolResult, error) {
		var err error
		if value, err = run(ctx, arguments); err != nil {
			return nil, err
		}
		content, err := shape.Read(value)
		if err != nil {
			return &agent.ToolResult{
				Content: agent.TextContent(fmt.Sprintf("tool %q: result withheld: it could not be read: %v", c.Tool, err)),
				Status:  agent.ToolExecuted, Reason: agent.ReasonWithheld,
			}, nil
		}
		given := &agent.ToolResult{Content: content, Status: agent.ToolExecuted}
		if shape.Failed != nil && shape.Failed(value) {
			given.Reason = agent.ReasonError
		}
		return given, nil
	})
	if _, stop := errors.AsType[*StopError](err); r == nil || err != nil && !stop {
		return none, err
	}
	switch {
	case err == nil && r.Status == agent.ToolFailed && r.Err != nil:
		return none, r.Err
	case err == nil && r.Status == agent.ToolFailed:
		return none, errors.New(r.Text())
	case !same:
		value = shape.Write(r)
	}
	return value, err
}

var errNoSession = errors.New("guard: the call belongs to no session: open one with Guard.Session, and pass it on with WithSession")

// Verdict is the decision about a call, for hosts that run calls themselves.
type Verdict struct {
	// Call is the call to run. Its arguments may differ from the model's.
	Call agent.ToolCall
	// Answer is the answer when the call must not run. Nil means that it may run.
	Answer *agent.ToolResult
	// Effects are what the controls add to the conversation.
	Effects agent.Effects

	session *Session
	p       *agent.Prepared
	state   agent.State
	slot    *slot
}

// Decide judges a call, and the host then runs it itself. Prefer Do, which cannot run a denied call. It returns the
// errors that Do returns. An allowed call counts as made. Its outcome is unknown to the rules until Complete.
func (s *Session) Decide(ctx context.Context, c Call) (Verdict, error) {
	if s == nil {
		return Verdict{}, errNoSession
	}
	j, err := s.judge(ctx, c, nil)
	if err != nil {
		return Verdict{}, err
	}
	if j.p.Disposition != agent.DisposeRun {
		r, err := s.finish(j.context(ctx), j)
		if r == nil {
			return Verdict{}, err
		}
		return Verdict{Call: *j.p.Call, Answer: r}, err
	}
	s.wait()
	defer s.leave()
	j.slot.result, j.slot.p = unknownResult(j.p), j.p
	s.open.running--
	return Verdict{Call: *j.p.Call, Effects: j.p.Effects, session: s, p: j.p, state: j.state, slot: j.slot}, nil
}

// Complete passes the result of the host's run through the controls after a call, and records it. It must
// be called once, and returns what the host's model may read. Err is the error of a failed tool.
func (v Verdict) Complete(ctx context.Context, content agent.Content, err error) (*agent.ToolResult, error) {
	if v.p == nil {
		return nil, errors.New("guard: completing a call that did not run")
	}
	j := &judged{session: v.session, p: v.p, state: v.state, slot: v.slot}
	j.run = func(context.Context, string) (*agent.ToolResult, error) {
		return &agent.ToolResult{Content: content, Status: agent.ToolExecuted}, err
	}
	v.session.wait()
	v.session.open.running++
	v.session.leave()
	return v.session.finish(j.context(ctx), j)
}

// Pause marks a host's own interrupt, which run returns because it waits for something. Do then returns err itself, and
// the call can come again, with the same Token.
func Pause(err error) error {
	if err == nil {
		return nil
	}
	return &pausedError{err}
}

type pausedError struct{ error }

func (e *pausedError) Unwrap() error { return e.error }

// AskError says that a person must approve the call before it runs. The host asks, and makes the same call again with
// the Token and the answers. It must keep the Token where the people whom it asks cannot replace it.
type AskError struct {
	// Call is the call that would run.
	Call agent.ToolCall
	// Questions are what to ask. Deadline is when the time for an answer ends, and zero means never.
	Questions agent.Questions
	Deadline  time.Time
	// Token is the sealed question. It is encrypted, and valid for TokenLife.
	Token string
}

func (e *AskError) Error() string {
	return fmt.Sprintf("tool %q: needs approval: %s: ask, and make the call again with the token and the answers", e.Call.Name, e.Questions.Reason())
}

// StopError says that the session has stopped.
type StopError struct {
	Signal agent.Signal
	// Text is the sentence for the model or the user.
	Text string
}

func newStopError(signal agent.Signal) *StopError {
	text := "not executed: run stopped"
	if signal.Source != "" {
		text += " by " + signal.Source
	}
	if signal.Message != "" {
		text += ": " + signal.Message
	}
	return &StopError{signal, text}
}

func (e *StopError) Error() string { return e.Text }

// runFunc runs the host's tool.
type runFunc func(ctx context.Context, arguments string) (*agent.ToolResult, error)

// judged is a judged call.
type judged struct {
	session *Session
	run     runFunc
	slot    *slot
	state   agent.State // in which it was judged
	p       *agent.Prepared
	nonce   string            // of the approval that it uses
	raw     *agent.ToolResult // what the tool returned
	paused  *pausedError
}

type judgedKey struct{}

func (j *judged) context(ctx context.Context) context.Context {
	return context.WithValue(j.session.guard.host.Within(ctx, j.state), judgedKey{}, j)
}

func (s *Session) runCall(ctx context.Context, c Call, run runFunc) (r *agent.ToolResult, same bool, err error) {
	j, err := s.judge(ctx, c, run)
	if err != nil {
		return nil, false, err
	}
	within, cancel := s.budget.within(j.context(ctx))
	defer cancel()
	r, err = s.finish(within, j)
	same = r != nil && j.raw != nil && r.Content.Equal(j.raw.Content) && r.Reason == j.raw.Reason && r.Status == agent.ToolExecuted
	return r, same && r.Reason != agent.ReasonWithheld, err
}

// judge decides on a call. The returned call has its place in the open step.
func (s *Session) judge(ctx context.Context, c Call, run runFunc) (*judged, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if stop := s.StopSignal(); stop != nil {
		return nil, newStopError(*stop)
	}
	if !s.stepped {
		s.closeStep(ctx)
	}
	if c.Arguments == "" {
		c.Arguments = "{}"
	}
	j := &judged{session: s, run: run, state: s.view(), slot: s.place(c)}
	judged := false
	defer func() { // also when Used panics
		if !judged {
			s.drop(j.slot)
		}
	}()
	var asked *agent.Intervention
	if c.Token != "" {
		asked, j.nonce = s.openToken(c)
	}
	err := s.askControls(ctx, j, asked)
	if err == nil && j.p.Approval() != nil && j.nonce != "" {
		var first bool
		if first, err = s.guard.used.Use(ctx, j.nonce, time.Now().Add(2*TokenLife)); err != nil {
			err = fmt.Errorf("guard %q: tool %q: not executed: recording that its approval is used: %w", s.guard.name, c.Tool, err)
		} else if !first { // used before: ask again
			j.nonce = ""
			err = s.askControls(ctx, j, nil)
		}
	} else {
		j.nonce = ""
	}
	if err != nil {
		return nil, err
	}
	if j.p.Disposition == agent.DisposeRun {
		stop := s.StopSignal() // while a person was asked
		if stop == nil {
			stop = s.budget.take()
		}
		if stop != nil {
			s.end(*stop)
			j.p = refuse(j.p, agent.ReasonRunStopped, newStopError(*stop).Text)
		}
	}
	judged = true
	return j, nil
}

// place returns the call's slot in the open step. A repeated call gets its old one.
func (s *Session) place(c Call) *slot {
	if s.open.started.IsZero() {
		s.open.started = time.Now()
	}
	s.open.running++
	call := agent.ToolCall{ID: c.ID, Name: c.Tool, Arguments: c.Arguments}
	for _, old := range s.open.slots {
		if old.left && old.hostID == c.ID && old.call.IsSame(call) {
			old.left = false
			return old
		}
	}
	call.Index = len(s.open.slots)
	for n := 0; call.ID == "" || slices.ContainsFunc(s.open.slots, func(o *slot) bool { return o.call.ID == call.ID }); n++ {
		call.ID = "call_" + strconv.Itoa(s.state.RunStepCount()+len(s.waiting)) + "_" + strconv.Itoa(call.Index+n)
	}
	place := &slot{hostID: c.ID, call: call}
	s.open.slots = append(s.open.slots, place)
	return place
}

// drop leaves a call without a result. It may come again.
func (s *Session) drop(c *slot) {
	c.left = true
	s.open.running--
}

// askControls judges the call of j, or returns an AskError.
func (s *Session) askControls(ctx context.Context, j *judged, asked *agent.Intervention) error {
	p, wait, err := s.guard.host.Prepare(j.context(ctx), j.state, j.slot.call, asked)
	switch {
	case err != nil:
		return fmt.Errorf("guard %q: %w", s.guard.name, err)
	case wait != nil:
		token, err := s.newToken(j.slot.hostID, wait)
		if err != nil {
			return err
		}
		return &AskError{Call: wait.Call, Questions: wait.Questions, Deadline: wait.Deadline, Token: token}
	}
	j.p = p
	return nil
}

// finish runs the call, or handles its answer, and records the result.
func (s *Session) finish(ctx context.Context, j *judged) (*agent.ToolResult, error) {
	r, err := s.guard.host.Execute(ctx, j.state, j.p)
	s.wait()
	defer s.leave()
	if r == nil { // paused
		s.drop(j.slot)
		s.budget.calls.Add(-1)
		if j.nonce != "" {
			err = errors.Join(err, s.guard.used.Release(context.WithoutCancel(ctx), j.nonce))
		}
		if j.paused != nil {
			return nil, j.paused.error
		}
		return nil, err
	}
	j.slot.result, j.slot.p = r, nil
	s.open.running--
	s.recordWaiting(ctx, j.slot)
	if j.slot.hostID != "" {
		s.answered[answered{j.slot.hostID, j.slot.call.Name}] = true
	}
	if r.Stop != nil {
		s.end(*r.Stop)
	}
	if stop := s.StopSignal(); err == nil && stop != nil && (r.Stop != nil || r.Reason == agent.ReasonRunStopped) {
		err = newStopError(*stop)
	}
	if err != nil {
		err = orStop(err, s.guard.name)
	}
	return r, err
}

// orStop returns a stop as it is, and any other error with the guard's name.
func orStop(err error, name string) error {
	if stop, ok := errors.AsType[*StopError](err); ok {
		return stop
	}
	return fmt.Errorf("guard %q: %w", name, err)
}

func refuse(p *agent.Prepared, reason agent.ReasonCode, text string) *agent.Prepared {
	q := *p
	q.Disposition, q.Answer = agent.DisposeAnswer, agent.NotExecuted(p.Call, reason, "", text)
	return &q
}

// unknownResult returns the result for an outcome that the guard does not know.
func unknownResult(p *agent.Prepared) *agent.ToolResult {
	r := &agent.ToolResult{Content: agent.TextContent("the outcome is unknown"), Status: agent.ToolUnknown, Reason: agent.ReasonError}
	return r.To(p)
}

// executor is the innermost executor of a guard: it runs the host's tool.
type executor struct{ tools map[string]bool } // nil for any

// Prepare refuses unknown tools and arguments that are not one unambiguous JSON object.
func (x executor) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	p := &agent.Prepared{Original: c, Call: c, Strict: true}
	reason := agent.ReasonUnknownTool
	if x.tools != nil && !x.tools[c.Name] {
		p.Invalid = fmt.Errorf("unknown tool %q: the guard's Config.Tools does not have it", c.Name)
	}
	if err := strictjson.CheckObject(c.Arguments); err != nil {
		wrong := &agent.ArgumentsError{Malformed: true, Problems: []agent.ArgumentProblem{{Message: err.Error()}}}
		p.Invalid, reason = wrong, wrong.Reason()
	}
	if p.Invalid != nil {
		p.Disposition = agent.DisposeAnswer
		p.Answer = agent.NotExecuted(c, reason, "", fmt.Sprintf("tool %q: not executed: %v", c.Name, p.Invalid))
		p.Answer.Err = p.Invalid
	}
	return mo.Ok(p)
}

// Execute runs the tool of the call that ctx belongs to.
func (executor) Execute(ctx context.Context, _ agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	j, ok := ctx.Value(judgedKey{}).(*judged)
	if !ok || j.run == nil || j.slot.call.ID != p.Original.ID {
		return mo.Err[*agent.ToolResult](errors.New("the guard is not executing this call"))
	}
	run := j.run
	j.run = nil // at most once
	started := time.Now()
	r, err := runSafely(ctx, run, p.Call.Arguments)
	if paused, ok := errors.AsType[*pausedError](err); ok {
		j.paused = paused
		return mo.Err[*agent.ToolResult](&agent.ParkedError{State: agent.Checkpoint(agent.State{}).WithStatus(agent.StatusParked)})
	}
	if err != nil {
		r = &agent.ToolResult{Status: agent.ToolFailed, Reason: agent.ReasonError, Err: err}
		if _, ok := errors.AsType[*hooks.PanicError](err); ok {
			r.Reason = agent.ReasonPanic
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			r.Reason = agent.ReasonCancelled
		}
		r.Content = agent.TextContent(fmt.Sprintf("tool %q: failed: %v", p.Call.Name, err))
	}
	r.Attempts, r.Started, r.Duration = 1, started, time.Since(started)
	j.raw = r
	return mo.Ok(r)
}

// runSafely calls run and returns its panic as an error.
func runSafely(ctx context.Context, run runFunc, arguments string) (r *agent.ToolResult, err error) {
	returned := false
	defer func() {
		if v := recover(); v != nil || !returned {
			r, err = nil, &hooks.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	r, err = run(ctx, arguments)
	returned = true
	return r, err
}

// unlocked is the host's approver, which is asked while other calls of the session go on.
type unlocked struct{ inner agent.Approver }

func (x unlocked) Approve(ctx context.Context, s agent.State, pending []*agent.Prepared) ([]agent.Approval, error) {
	if j, ok := ctx.Value(judgedKey{}).(*judged); ok {
		j.session.leave()
		defer j.session.wait()
	}
	return x.inner.Approve(ctx, s, pending)
}
