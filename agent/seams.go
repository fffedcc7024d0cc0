package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samber/mo"
)

// Driver asks a model for its next turn. The model's input is in s.Messages() and s.Request(). Next must not keep the
// state, must return soon after ctx is done, and must be safe for concurrent use.
type Driver interface {
	Next(ctx context.Context, s State) mo.Result[Step]
}

// Streamer is a Driver that can deliver a turn as it arrives. Stream calls emit on its caller's goroutine, in order and
// never after it has returned. It returns the same complete Step as Next.
type Streamer interface {
	Driver
	Stream(ctx context.Context, s State, emit func(Delta)) mo.Result[Step]
}

// DriverFunc adapts a func to the Driver interface.
type DriverFunc func(ctx context.Context, s State) (Step, error)

// Next calls f.
func (f DriverFunc) Next(ctx context.Context, s State) mo.Result[Step] {
	return mo.TupleToResult(f(ctx, s))
}

// A Delta is a piece of a streamed reply.
type Delta struct {
	// Text is new text of the answer.
	Text string
	// Reasoning is new text of the model's thinking.
	Reasoning string
	// Call, with CallIndex, is a piece of a tool call. ID and Name come whole with the first piece, Arguments in
	// pieces.
	Call      ToolCall
	CallIndex int
}

// Executor runs tool calls in two phases: Prepare decides and runs nothing, Execute runs the call. Prepare is called
// once for each call, in call order and before any Execute of the step. Execute is called once for each call that runs,
// and for no other. A denied, mocked or stopped call has its answer, and the agent records that answer without calling
// Execute. An executor that wants to see such calls implements AnswerHandler. Execute may be called for several calls
// at the same time. Both methods must be safe for concurrent use.
//
// A tool's effects carry its name as their source. A tool that sets the framework's metadata fails. So does a tool that
// appends a message in the user or system role. The executor can allow that with a method MayAddMessages(tool string)
// bool: see toolexec.Policy.
//
// A tool's failure is an answer, not an error: an Err from either method ends the run. The call that Prepare receives
// must not be modified. A wrapper returns the Prepared of the executor below it, or a copy. Hooks refuse to run a call
// that they did not judge, or whose tool or arguments changed after they judged it.
type Executor interface {
	Prepare(ctx context.Context, s State, c *ToolCall) mo.Result[*Prepared]
	Execute(ctx context.Context, s State, p *Prepared) mo.Result[*ToolResult]
}

// Disposition is the decision about a call.
type Disposition uint8

// The dispositions.
const (
	// DisposeRun: run the tool.
	DisposeRun Disposition = iota
	// DisposeAnswer: Prepared.Answer is the answer, and the tool does not run.
	DisposeAnswer
	// DisposeAsk: a person must approve the call first.
	DisposeAsk
	// DisposeStop: the run ends, and no call of the step runs.
	DisposeStop
)

// Prepared is a call with the decision about it. It must not be modified after Prepare has returned it.
type Prepared struct {
	// Original is the model's call, and Call is the call to run. They must not be modified, because they may point into
	// the model's message.
	Original *ToolCall
	Call     *ToolCall
	// Disposition is the decision. It determines which of the following fields are used.
	Disposition Disposition
	// Strict reports that the executor has parsed Call's arguments strictly: they are one unambiguous JSON object. If
	// it is false, hooks parse them themselves.
	Strict bool
	// Repeats reports that the tool may run again when a call has begun and has no result. The executor sets it for
	// tools that only read, or that honor the idempotency key. For other tools, a person must approve the repetition.
	Repeats bool
	// Begun reports that the call had begun before the run was parked or cut off, so that
	// its arguments cannot change. The loop sets it.
	Begun bool

	inDoubt bool // the call may have happened: see Checkpoint.InDoubt

	// Answer is the answer for DisposeAnswer: denied, invalid, mocked. With DisposeAsk it can hold a mock, which is the
	// answer once a person has approved the call.
	Answer *ToolResult
	// Invalid is the error in the arguments, or the error that the tool does not exist. It is nil for a valid call.
	Invalid error
	// Stop is the signal for DisposeStop. For a call with an answer, it ends the run after the step.
	Stop *Signal
	// Effects are the changes to the state that are part of the decision.
	Effects Effects
	// Carry passes a value from the executor's Prepare to its Execute.
	Carry any

	judged *judgement    // nil until hooks have judged the call
	extra  *approvalData // nil for most calls, never written
}

// approvalData is what few prepared calls have.
type approvalData struct {
	questions Questions
	approval  *Approval
	effects   Effects    // from the executor's Prepare, part of the result
	input     *callInput // nil until the call has asked for input
	// schema and description are the tool's as the person could see them: see Intervention.
	schema, description string
	granted             string // ID of the call that a person, or a hook in a person's place, has approved
}

var noApprovalData approvalData

// approvalData returns the data, which is never nil.
func (p *Prepared) approvalData() *approvalData {
	if p.extra == nil {
		return &noApprovalData
	}
	return p.extra
}

// changeApprovalData stores a changed copy in p.
func (p *Prepared) changeApprovalData(change func(*approvalData)) {
	rest := *p.approvalData()
	change(&rest)
	p.extra = &rest
}

// Questions returns the questions for DisposeAsk.
func (p *Prepared) Questions() Questions { return p.approvalData().questions }

// SetQuestions sets the questions for DisposeAsk. Call it only while p is being made. If there are none, the loop adds
// an empty question.
func (p *Prepared) SetQuestions(q Questions) {
	p.changeApprovalData(func(rest *approvalData) { rest.questions = q })
}

// Approval returns the person's approval of the call, or nil when none was needed.
func (p *Prepared) Approval() *Approval { return p.approvalData().approval }

// Approver asks a person about the step's calls that need approval. It returns one answer for each pending call, in
// order. The answer applies to every open question about its call. An error ends the run. It must be safe for concurrent
// use.
type Approver interface {
	Approve(ctx context.Context, s State, pending []*Prepared) ([]Approval, error)
}

// ApproverFunc adapts a func to the Approver interface. The func is called once for each call, with a context that ends
// at the deadline for the answer: see Questions.Within.
type ApproverFunc func(ctx context.Context, s State, p *Prepared) (Approval, error)

// Approve calls f for each pending call.
func (f ApproverFunc) Approve(ctx context.Context, s State, pending []*Prepared) ([]Approval, error) {
	out := make([]Approval, len(pending))
	for i, p := range pending {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		a, err := f.askWithin(ctx, s, p)
		if err != nil {
			return nil, err
		}
		out[i] = a
	}
	return out, nil
}

// askWithin calls f with a context that ends when the time for an answer is over.
func (f ApproverFunc) askWithin(ctx context.Context, s State, p *Prepared) (Approval, error) {
	allowed := p.Questions().Within()
	if allowed <= 0 {
		return f(ctx, s, p)
	}
	limited, cancel := context.WithTimeoutCause(ctx, allowed, errNoAnswer)
	defer cancel()
	a, err := f(limited, s, p)
	if ctx.Err() == nil && errors.Is(context.Cause(limited), errNoAnswer) && (err != nil || a.Verdict != Park) { // an answer after the deadline does not count
		return Approval{Verdict: p.Questions().OnTimeout(), Author: AuthorDeadline, By: byTimeout, Reason: errNoAnswer.Error()}, nil
	}
	return a, err
}

var errNoAnswer = errors.New("no answer came in time")

// byTimeout is the By that people read when a passed deadline decided. Programs read Author instead.
const byTimeout = "timeout"

// TimedOut reports whether a passed deadline decided instead of a person.
func (a Approval) TimedOut() bool { return a.Author == AuthorDeadline }

// isAbout reports whether the answer is about the given question on its card.
func (a Approval) isAbout(q Question) bool {
	return len(a.Covers) == 0 && a.Author != AuthorEvent || slices.Contains(a.Covers, q.ID())
}

// Author is the kind of author of an answer. Names never reveal it.
type Author string

// The kinds of authors.
const (
	// AuthorPerson is a person, or a program that answers in a person's name.
	AuthorPerson Author = ""
	// AuthorHook is a hook that answers in a person's place.
	AuthorHook Author = "hook"
	// AuthorDeadline is a passed deadline. Only the framework gives such an answer.
	AuthorDeadline Author = "deadline"
	// AuthorEvent is the event that a QuestionGate waits for. Its answer counts only for gates that Approval.Covers names.
	AuthorEvent Author = "event"
)

// Approval is a person's answer. The zero Approval is a rejection.
type Approval struct {
	Verdict ApprovalVerdict `json:"verdict"`
	// Author is the kind of author.
	Author Author `json:"author,omitempty"`
	// Covers are the IDs of the questions that the answer is about: see Question.ID. If it is empty, the answer is
	// about all open questions on the card that its author may answer.
	Covers []string `json:"covers,omitempty"`
	// By names the person.
	By string `json:"by,omitempty"`
	// Identity is the person's verified name, if any. Question.Approvers and quorums use it. Roles are the person's
	// roles. A program sets both only from verified data, such as a token.
	Identity string   `json:"identity,omitempty"`
	Roles    []string `json:"roles,omitempty"`
	// Reason is shown to the model when the call is rejected.
	Reason string `json:"reason,omitempty"`
	// Arguments, when not empty, replaces the arguments of the approved call. The controls judge the call again.
	Arguments string `json:"arguments,omitempty"`
	// At is when the answer was given. The framework sets it when it is zero. It is not stored with the state.
	At time.Time `json:"-"`
	// Input is the answer to a QuestionInput: a JSON object that fits its schema. It is checked before the answer counts.
	Input string `json:"input,omitempty"`
	// Questions, if any, are the call's questions with answers from hooks that answered some of them for the person.
	// The Approval itself answers the others.
	Questions Questions `json:"-"`
}

// ApprovalVerdict is the verdict of an approver.
type ApprovalVerdict uint8

// The approval verdicts.
const (
	// RejectAndEnd: the call does not run, and the run ends as interrupted. Its text is "reject".
	RejectAndEnd ApprovalVerdict = iota
	// RejectAndContinue: the call does not run, the model gets the reason, and the run continues.
	RejectAndContinue
	// Approve: the call runs.
	Approve
	// Park: the answer comes later. No call of the step runs. The run ends as parked, and Agent.Resume continues it
	// when there are answers.
	Park
	// NobodyToAsk: no person can answer, so the call is denied.
	NobodyToAsk
	// withdrawn: the question was withdrawn because another answer has ended the run.
	withdrawn
)

var verdictTexts = [...]string{"reject", "reject_and_continue", "approve", "park", "nobody_to_ask", "withdrawn"}

// final reports whether a person may give this verdict about a parked call.
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
	return fmt.Errorf("unknown verdict %q: use approve, reject or reject_and_continue", text)
}

// ParkApprover postpones every answer, so that the run parks. It is the approver for agents whose runs are stored.
var ParkApprover Approver = ApproverFunc(func(context.Context, State, *Prepared) (Approval, error) {
	return Approval{Verdict: Park}, nil
})

// Next is the rest of a chain of processors.
type Next func(ctx context.Context, s State) mo.Result[State]

// A Processor is middleware. It wraps a step or a whole run, and calls next to continue. It can change the state that
// it passes to next and the state that it returns. Without calling next, it may only return an Err or a stopped state.
// It must be safe for concurrent use.
type Processor interface {
	Process(ctx context.Context, s State, next Next) mo.Result[State]
}

// ProcessorFunc adapts a func to the Processor interface.
type ProcessorFunc func(ctx context.Context, s State, next Next) mo.Result[State]

// Process calls f.
func (f ProcessorFunc) Process(ctx context.Context, s State, next Next) mo.Result[State] {
	return f(ctx, s, next)
}

// A Criterion decides whether a run continues. It is asked before the first step and after each step. It must be safe
// for concurrent use. It must not store run data, because everything that it needs to know about the run is in the
// state.
type Criterion interface {
	Evaluate(ctx context.Context, s State) mo.Result[Evaluation]
}

// CriterionFunc adapts a func to the Criterion interface.
type CriterionFunc func(ctx context.Context, s State) (Evaluation, error)

// Evaluate calls f.
func (f CriterionFunc) Evaluate(ctx context.Context, s State) mo.Result[Evaluation] {
	return mo.TupleToResult(f(ctx, s))
}

// Background is work that an agent started and does not wait for, such as detached hooks. Both methods return when the
// work has ended.
type Background interface {
	// Drain waits until all work is done, or until ctx is.
	Drain(ctx context.Context) error
	// Cancel cancels the remaining work and waits until it has returned.
	Cancel()
}
