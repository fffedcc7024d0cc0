package toolexec

import (
	"context"
	"strconv"

	"github.com/grapnel-go/grapnel/agent"
)

// Tool is something that a model may call. Most tools are made with Func, CallFunc or Raw; code whose tools come from
// elsewhere implements Tool. Both methods must be safe for concurrent use.
//
// A tool may have three more methods. Policy() Policy returns how to run it. Err() error returns why it could not be
// made; a Toolbox refuses such a tool with this error. GiveUp(ctx, Call) is called instead of a Body when a call that
// had started a run of its own, which is parked or was cut off (see agent.ParkedError), is answered in another way: it
// ends that run.
type Tool interface {
	// Spec returns the tool's description for the model. It is read once, when the tool is put into a toolbox.
	Spec() agent.ToolSpec
	// Prepare checks the arguments and returns the Body to run with them; it runs nothing itself. The model receives
	// the error and may try again; an *agent.ArgumentsError is best. Prepare may be called any number of times for one
	// call: after a hook changed the arguments, and for a retry. args is one JSON object, strictly parsed.
	Prepare(args string) (Body, error)
}

// Body is a tool with the arguments of one call. Run is called once; a retry prepares a new Body.
//
// An error means that the tool gave no answer: the call has failed. An *agent.ParkedError means that the answer comes
// later: the run parks. A tool that did its work and reports a negative result, such as a search without a hit or a
// program that exited with 1, answers with an Output that has Failed set. An *agent.SignalError ends the run, as
// Output.Stop does. A panic is caught.
//
// Run must return soon after ctx is done; see Policy.Timeout for what happens otherwise.
type Body interface {
	Run(ctx context.Context, c Call) (Output, error)
}

// Call describes the call to the tool that answers it.
type Call struct {
	// ToolCall is the call as it runs, with the changes of hooks. Arguments is never empty.
	agent.ToolCall
	// State is the state that the model saw when it made the call; all calls of a step see the same.
	State agent.State
	// Attempt counts from one.
	Attempt int
}

// IdempotencyKey returns the call's idempotency key, for services that use one to do a thing only once. It is the same
// for each attempt, also after a restart, and unique to the call.
func (c Call) IdempotencyKey() string {
	return string(c.State.Run().ID) + "/" + strconv.Itoa(c.State.RunStepCount()) + "/" + c.ID
}

// Output is a tool's answer. The zero Output is an empty answer.
type Output struct {
	// Content is the answer that the model reads.
	Content agent.Content
	// Failed reports that the tool ran and has a negative result. It is still an answer: it is not retried and does not
	// count as a failure of the run.
	Failed bool
	// Effects are the changes to the state that the tool wants. They are applied after the step. Messages and context
	// have the source "tool:NAME", and do not count as the user's words.
	Effects agent.Effects
	// Stop, when set, ends the run after this step.
	Stop *agent.Signal
}

// TextOutput returns an answer in plain text.
func TextOutput(text string) Output { return Output{Content: agent.TextContent(text)} }
