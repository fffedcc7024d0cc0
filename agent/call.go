package agent

import (
	"cmp"
	"slices"
	"time"
)

// ToolCall is a model's request to run a tool.
type ToolCall struct {
	// ID names the call within its step; every id gets exactly one answer.
	ID string `json:"id"`
	// Name is the tool's name as the model wrote it.
	Name string `json:"name"`
	// Arguments is the text that the model gave as arguments. Normally it is one JSON object, but a model may send any
	// text. Empty means {}.
	Arguments string `json:"arguments"`
	// Index is the call's position in its message, counted from zero. The message sets it.
	Index int `json:"-"`
}

// IsSame reports whether both calls have the same tool and arguments.
func (c ToolCall) IsSame(other ToolCall) bool {
	return c.Name == other.Name && cmp.Or(c.Arguments, "{}") == cmp.Or(other.Arguments, "{}")
}

// digest returns a digest of the call's name and arguments.
func (c ToolCall) digest() string { return digest("call", c.Name, cmp.Or(c.Arguments, "{}")) }

// numberCalls returns a copy of the calls with their positions set.
func numberCalls(calls []ToolCall) []ToolCall {
	if len(calls) == 0 {
		return nil
	}
	out := slices.Clone(calls)
	for i := range out {
		out[i].Index = i
	}
	return out
}

// ToolStatus says how a tool call ended.
type ToolStatus string

// The statuses of a tool call.
const (
	// ToolExecuted: the tool ran and returned a result, which may report an error.
	ToolExecuted ToolStatus = "executed"
	// ToolFailed: the tool ran and returned no result: an error, a panic, a timeout.
	ToolFailed ToolStatus = "failed"
	// ToolNotExecuted: the tool did not run. The ReasonCode says why.
	ToolNotExecuted ToolStatus = "not_executed"
	// ToolMocked: a hook answered instead of the tool.
	ToolMocked ToolStatus = "mocked"
	// ToolUnknown: the call began before its run was cut off, so it may have happened. It was not repeated. The
	// ReasonCode says why.
	ToolUnknown ToolStatus = "unknown"
)

func (s ToolStatus) isDefined() bool {
	switch s {
	case ToolExecuted, ToolFailed, ToolNotExecuted, ToolMocked, ToolUnknown:
		return true
	}
	return false
}

// ReasonCode says in one word why a call was not executed or why its answer is an error. An empty code means that there
// is nothing to explain.
type ReasonCode string

// The reason codes of this module.
const (
	// ReasonDenied: a hook denied the call.
	ReasonDenied ReasonCode = "denied"
	// ReasonHookFailed: a control hook could not decide about the call.
	ReasonHookFailed ReasonCode = "hook_failed"
	// ReasonRejected: a person rejected the call.
	ReasonRejected ReasonCode = "rejected"
	// ReasonNobodyToAsk: the call needs approval and there is no person to ask.
	ReasonNobodyToAsk ReasonCode = "nobody_to_ask"
	// ReasonMalformed: the arguments are not one well-formed JSON object.
	ReasonMalformed ReasonCode = "malformed_arguments"
	// ReasonInvalid: the arguments break the tool's schema.
	ReasonInvalid ReasonCode = "invalid_arguments"
	// ReasonUnknownTool: no tool has that name.
	ReasonUnknownTool ReasonCode = "unknown_tool"
	// ReasonUnfinishedReply: the model service withheld the reply, ended it because of
	// an error, or cut it before the call was complete.
	ReasonUnfinishedReply ReasonCode = "unfinished_reply"
	// ReasonRunStopped: the run was stopped before the call could run, or the tool itself stopped it.
	ReasonRunStopped ReasonCode = "run_stopped"
	// ReasonCancelled: the run was cancelled before the call could run or while its tool ran.
	ReasonCancelled ReasonCode = "cancelled"
	// ReasonError: the tool ran and returned an error, or reported a failure.
	ReasonError ReasonCode = "error"
	// ReasonPanic: the tool panicked.
	ReasonPanic ReasonCode = "panic"
	// ReasonTimeout: the tool did not answer in time.
	ReasonTimeout ReasonCode = "timeout"
	// ReasonWithheld: the tool ran, but its result is not shown, because a control hook could not decide about it.
	ReasonWithheld ReasonCode = "withheld"
)

// ToolResult is the answer to a tool call. Do not modify a result after passing it on: modify a copy.
type ToolResult struct {
	// call and original can point into a message, so they are never written.
	call, original *ToolCall

	// Content is the answer that the model reads.
	Content Content
	// Status says how the call ended. The loop fills in an empty Status: ToolExecuted if the call ran, ToolNotExecuted
	// if it was answered without running.
	Status ToolStatus
	// Reason is empty for a good answer.
	Reason ReasonCode
	// DecidedBy names the hook or person that denied or mocked the call, or replaced or withheld its result. It is
	// empty otherwise.
	DecidedBy string
	// Err is the error of a failed tool, for programs. The model reads Content. Err is not kept in JSON.
	Err error
	// Attempts counts how often the tool's body was started. Zero means that the tool did not run.
	Attempts int
	// Started is when execution began. Duration is how long it took, including retries. Both are zero if the call did
	// not run.
	Started  time.Time
	Duration time.Duration
	// Effects are the changes to the state that the call requests. They are applied once, in call order, after all
	// calls of the step. They are not kept in JSON.
	Effects Effects
	// Stop, when set, ends the run after this step.
	Stop *Signal
	// MaxBytes limits the text of Content. Zero means no limit. CutToLimit cuts longer text after the hooks for results
	// have run. MaxBytes is not kept in JSON.
	MaxBytes int
}

// emptyCall is the call of a result that belongs to no call.
var emptyCall ToolCall

// Call returns the effective call, which is the call that ran or would have run.
func (r *ToolResult) Call() ToolCall { return *cmp.Or(r.call, &emptyCall) }

// Original returns the call as the model made it. It differs from Call when a hook rewrote the arguments.
func (r *ToolResult) Original() ToolCall { return *cmp.Or(r.original, &emptyCall) }

// CallID returns the ID of the call that the result answers.
func (r *ToolResult) CallID() string { return cmp.Or(r.original, &emptyCall).ID }

// Tool returns the name of the tool that was called.
func (r *ToolResult) Tool() string { return cmp.Or(r.call, &emptyCall).Name }

// To returns the result as the answer to a prepared call. It returns a copy, unless r already answers p. The loop calls
// To for every result, so an executor does not have to.
func (r *ToolResult) To(p *Prepared) *ToolResult {
	if r.call == p.Call && r.original == p.Original {
		return r
	}
	out := *r
	out.call, out.original = p.Call, p.Original
	return &out
}

// NewResult returns an empty result for a prepared call. The executor that ran the call fills in Content and the other
// fields. An empty Status is recorded as ToolExecuted. Field p.Answer is different: it answers the call when the tool
// does not run.
func NewResult(p *Prepared) *ToolResult { return &ToolResult{call: p.Call, original: p.Original} }

// Executed reports whether the tool's body ran. It is false for ToolUnknown, where the
// body may have run.
func (r *ToolResult) Executed() bool { return r.Status == ToolExecuted || r.Status == ToolFailed }

// Denied reports whether the call did not run because a hook or a person denied it. It is false for ToolUnknown,
// because the call may have run before its repetition was denied.
func (r *ToolResult) Denied() bool {
	switch r.Reason {
	case ReasonDenied, ReasonHookFailed, ReasonRejected, ReasonNobodyToAsk:
		return r.Status == ToolNotExecuted
	}
	return false
}

// Mocked reports whether a hook answered instead of the tool.
func (r *ToolResult) Mocked() bool { return r.Status == ToolMocked }

// IsError reports whether the result tells the model that the call failed or that its outcome is unknown.
func (r *ToolResult) IsError() bool {
	return r.Reason != "" || r.Status == ToolFailed || r.Status == ToolUnknown
}

// Rewritten reports whether a hook, a person or middleware changed the arguments. The model reads the changed arguments
// at the beginning of the result: see Prepared.NoteRewrite.
func (r *ToolResult) Rewritten() bool {
	return r.call != r.original && r.Call().Arguments != r.Original().Arguments
}

// Text returns the text that the model reads.
func (r *ToolResult) Text() string { return r.Content.Text() }

// NotExecuted returns the answer to call c when it did not run, with a reason code and a sentence that explains it. By
// names the hook or person that decided. It may be empty.
func NotExecuted(c *ToolCall, reason ReasonCode, by, sentence string) *ToolResult {
	return &ToolResult{
		call: c, original: c, Content: TextContent(sentence),
		Status: ToolNotExecuted, Reason: reason, DecidedBy: by,
	}
}
