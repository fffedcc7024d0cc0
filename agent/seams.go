package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/mo"
)

// Driver asks a model for its next turn. Next must not keep the state, must
// return soon after ctx is done, and must be safe for concurrent use. What the
// model is asked with is in s.Messages() and s.Request().
type Driver interface {
	Next(ctx context.Context, s State) mo.Result[Step]
}

// Streamer is a Driver that can tell of a turn while it arrives. Stream calls
// emit on its own goroutine, in order, never after it returned, and answers with
// the same whole Step that Next would.
type Streamer interface {
	Driver
	Stream(ctx context.Context, s State, emit func(Delta)) mo.Result[Step]
}

// DriverFunc is a Driver from a plain func.
type DriverFunc func(ctx context.Context, s State) (Step, error)

// Next calls f.
func (f DriverFunc) Next(ctx context.Context, s State) mo.Result[Step] {
	return mo.TupleToResult(f(ctx, s))
}

// Delta is a piece of a reply on its way.
type Delta struct {
	// Text is new text of the answer.
	Text string
	// Reasoning is new text of the model's thinking.
	Reasoning string
	// Call, with CallIndex, is a piece of a tool call: ID and Name come whole with
	// the first piece, Arguments in pieces.
	Call      ToolCall
	CallIndex int
}

// Executor runs tool calls, in two phases: Prepare decides and runs nothing, Execute runs
// the call. Prepare is called once for each call, in call order and before any Execute of
// the step. Execute is called once for each call that runs, and for no other: a call that
// was denied, mocked or stopped has its answer, and the agent records that without calling
// Execute. An executor that wants to see such calls is an AnswerHandler. Execute may be
// called for several calls at once. Both must be safe for concurrent use.
//
// Effects of a tool carry its name as their source. A tool that sets metadata of the
// framework has failed, and so has one that appends a message in the role of the user or of
// the system, unless the executor has a method MayAddMessages(tool string) bool that says it
// may: see toolexec.Policy.
//
// A tool that fails is an answer, not an error: an Err from either ends the run. The call
// that Prepare is given must not be written. A wrapper hands on what the executor below it
// prepared, or a copy: hooks refuse to run a call whose tool or arguments changed after they
// judged it, or that they did not judge.
type Executor interface {
	Prepare(ctx context.Context, s State, c *ToolCall) mo.Result[*Prepared]
	Execute(ctx context.Context, s State, p *Prepared) mo.Result[*ToolResult]
}

// Disposition says what is to be done with a call.
type Disposition uint8

// The dispositions.
const (
	// DisposeRun: run the tool.
	DisposeRun Disposition = iota
	// DisposeAnswer: Prepared.Answer is the answer; the tool does not run.
	DisposeAnswer
	// DisposeAsk: a person must say yes first.
	DisposeAsk
	// DisposeStop: the run ends; no call of the step runs.
	DisposeStop
)

// Prepared is a call that was decided upon. It must not be changed once it was
// returned from Prepare.
type Prepared struct {
	// Original is what the model asked; Call is what is to run. What they point to
	// must not be written: it may be the model's message.
	Original *ToolCall
	Call     *ToolCall
	// Disposition says which of the following counts.
	Disposition Disposition
	// Strict says that the executor has read the arguments of Call strictly: they are one
	// JSON object with a single reading. Hooks read them themselves where it is false.
	Strict bool
	// Repeats says that the tool may run again when a call has begun and has no result:
	// the executor sets it for tools that only read, or that keep to the idempotency key.
	// A person is asked about other calls before they run again.
	Repeats bool
	// Begun says that the call had begun before the run was parked or cut off, so that its
	// arguments stay as they are. The loop sets it.
	Begun bool

	inDoubt bool // the call may have happened: see Checkpoint.InDoubt

	// Answer is the given answer of DisposeAnswer: denied, invalid, mocked. With
	// DisposeAsk it may hold the mock that answers once a person said yes.
	Answer *ToolResult
	// Invalid says what is wrong with the arguments, or that no such tool exists;
	// nil when nothing is.
	Invalid error
	// Stop is the signal of DisposeStop. On an answered call it ends the run after
	// the step.
	Stop *Signal
	// Effects is what the decision wants changed in the state.
	Effects Effects
	// Carry is for the executor that made the value, to find again in Execute.
	Carry any

	rest *preparedRest // nil for most calls; it is never written
}

// preparedRest is what the framework keeps of few prepared calls.
type preparedRest struct {
	questions Questions
	approval  *Approval
	effects   Effects    // what the executor's Prepare wants changed: a part of the result
	judged    *judgement // by hooks, outside of a run
	granted   string     // the id of the call that a person, or what answers in a person's place, has approved
}

var noRest preparedRest

// more returns what is kept of the call besides its fields.
func (p *Prepared) more() *preparedRest {
	if p.rest == nil {
		return &noRest
	}
	return p.rest
}

// keepRest changes what is kept of the call, in a copy of its own.
func (p *Prepared) keepRest(change func(*preparedRest)) {
	rest := *p.more()
	change(&rest)
	p.rest = &rest
}

// Questions returns what DisposeAsk wants a person to be asked.
func (p *Prepared) Questions() Questions { return p.more().questions }

// SetQuestions says what DisposeAsk wants a person to be asked, while p is being made. The
// loop adds an empty question when there is none.
func (p *Prepared) SetQuestions(q Questions) {
	p.keepRest(func(rest *preparedRest) { rest.questions = q })
}

// Approval returns the person's approval of the call; nil when none was needed.
func (p *Prepared) Approval() *Approval { return p.more().approval }

// Approver asks a person about the calls of one step that need approval. It answers
// for each pending call, in order; an answer is one to every open question of its call.
// An Err ends the run. It must be safe for concurrent use.
type Approver interface {
	Approve(ctx context.Context, s State, pending []*Prepared) mo.Result[[]Approval]
}

// ApproverFunc is an Approver from a plain func that is asked call by call, with a
// context that ends with the time for an answer: see Questions.Within.
type ApproverFunc func(ctx context.Context, s State, p *Prepared) (Approval, error)

// Approve calls f for each pending call.
func (f ApproverFunc) Approve(ctx context.Context, s State, pending []*Prepared) mo.Result[[]Approval] {
	out := make([]Approval, len(pending))
	for i, p := range pending {
		if ctx.Err() != nil {
			return mo.Err[[]Approval](context.Cause(ctx))
		}
		a, err := f.askWithin(ctx, s, p)
		if err != nil {
			return mo.Err[[]Approval](err)
		}
		out[i] = a
	}
	return mo.Ok(out)
}

// askWithin asks for as long as the question allows.
func (f ApproverFunc) askWithin(ctx context.Context, s State, p *Prepared) (Approval, error) {
	allowed := p.Questions().Within()
	if allowed <= 0 {
		return f(ctx, s, p)
	}
	limited, cancel := context.WithTimeoutCause(ctx, allowed, errNoAnswer)
	defer cancel()
	a, err := f(limited, s, p)
	if ctx.Err() == nil && errors.Is(context.Cause(limited), errNoAnswer) && (err != nil || a.Verdict != Park) { // an answer after the deadline is none
		return Approval{Verdict: p.Questions().OnTimeout(), By: byTimeout, Reason: errNoAnswer.Error()}, nil
	}
	return a, err
}

var errNoAnswer = errors.New("no answer came in time")

// byTimeout is who has answered when a deadline decides.
const byTimeout = "timeout"

// TimedOut reports whether a deadline decided, and no person: By is "timeout" then.
func (a Approval) TimedOut() bool { return a.By == byTimeout }

// Approval is what a person said. The zero Approval is a no.
type Approval struct {
	Verdict ApprovalVerdict `json:"verdict"`
	// By names the person.
	By string `json:"by,omitempty"`
	// Reason is told to the model when the answer is no.
	Reason string `json:"reason,omitempty"`
	// Arguments, when not empty, approves the call with these arguments in the place
	// of those that it has. The controls judge it again.
	Arguments string `json:"arguments,omitempty"`
	// Questions, when there are any, are the questions of the call with the answers that
	// an approver in between has given to some of them: hooks in the person's place. The
	// answer itself is one to the others.
	Questions Questions `json:"-"`
}

// ApprovalVerdict is a person's answer.
type ApprovalVerdict uint8

// What a person may answer.
const (
	// RejectAndEnd: the call does not run and the run ends as interrupted. Its text is "reject".
	RejectAndEnd ApprovalVerdict = iota
	// RejectAndContinue: the call does not run; the model is told and goes on.
	RejectAndContinue
	// Approve: the call runs.
	Approve
	// Park: the answer comes later. Nothing of the step runs; the run ends as parked,
	// and Agent.Resume goes on with it when there are answers.
	Park
	// NobodyToAsk: there is no person who could answer; the call is denied.
	NobodyToAsk
	// withdrawn: another answer has ended the run.
	withdrawn
)

var verdictTexts = [...]string{"reject", "reject_and_continue", "approve", "park", "nobody_to_ask", "withdrawn"}

// final reports whether a person may say it about a parked call.
func (v ApprovalVerdict) final() bool { return v <= Approve }

func (v ApprovalVerdict) String() string {
	if int(v) < len(verdictTexts) {
		return verdictTexts[v]
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// MarshalText returns the verdict's name.
func (v ApprovalVerdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads "approve", "reject" or "reject_and_continue".
func (v *ApprovalVerdict) UnmarshalText(text []byte) error {
	for i, name := range verdictTexts {
		if name == string(text) && ApprovalVerdict(i).final() {
			*v = ApprovalVerdict(i)
			return nil
		}
	}
	return fmt.Errorf("there is no verdict %q: it is approve, reject or reject_and_continue", text)
}

// ParkApprover answers every question later: the run parks. It is the approver of
// agents whose runs are stored.
var ParkApprover Approver = ApproverFunc(func(context.Context, State, *Prepared) (Approval, error) {
	return Approval{Verdict: Park}, nil
})

// Next is the rest of a chain of processors.
type Next func(ctx context.Context, s State) mo.Result[State]

// Processor is middleware: it wraps a step, or a whole run, and calls next to go
// on. It may change what goes in and what comes out, and may return without
// calling next only with an Err or with a state that is stopped. It must be safe
// for concurrent use.
type Processor interface {
	Process(ctx context.Context, s State, next Next) mo.Result[State]
}

// ProcessorFunc is a Processor from a plain func.
type ProcessorFunc func(ctx context.Context, s State, next Next) mo.Result[State]

// Process calls f.
func (f ProcessorFunc) Process(ctx context.Context, s State, next Next) mo.Result[State] {
	return f(ctx, s, next)
}

// Criterion judges whether a run goes on. It is asked before the first step and
// after each. It must be safe for concurrent use and keep nothing of a run:
// what it needs to know of the run is in the state.
type Criterion interface {
	Evaluate(ctx context.Context, s State) mo.Result[Evaluation]
}

// CriterionFunc is a Criterion from a plain func.
type CriterionFunc func(ctx context.Context, s State) (Evaluation, error)

// Evaluate calls f.
func (f CriterionFunc) Evaluate(ctx context.Context, s State) mo.Result[Evaluation] {
	return mo.TupleToResult(f(ctx, s))
}

// Background is work that an agent started and does not wait for, such as
// detached hooks. Both methods return when the work has ended.
type Background interface {
	// Drain waits until all is done, or until ctx is.
	Drain(ctx context.Context) error
	// Cancel cancels what still runs and waits until it has returned.
	Cancel()
}
