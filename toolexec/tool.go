package toolexec

import (
	"context"
	"strconv"

	"github.com/grapnel-go/grapnel/agent"
)

// A Tool is a function that a model can call. Create most tools with Func, CallFunc or Raw; code that gets its tools
// from another source implements Tool. Both methods must be safe for concurrent use.
//
// A tool can have three more methods. Policy() Policy returns the policy for running it. Err() error returns an error
// if the tool could not be created; a Toolbox refuses such a tool with this error. GiveUp(ctx, Call) ends a child run
// that a call had started and that is parked or was cut off (see agent.ParkedError). It is called instead of a Body
// when the call is answered without running.
type Tool interface {
	// Spec returns the tool's description for the model. The toolbox reads it once, when the tool is added.
	Spec() agent.ToolSpec
	// Prepare checks the arguments and returns the Body to run with them; it runs nothing itself. The model receives
	// the error and can try again; an *agent.ArgumentsError helps it most. Prepare may be called any number of times
	// for one call: after a hook changed the arguments, and for a retry. args is one JSON object, strictly parsed.
	Prepare(args string) (Body, error)
}

// A Body runs a tool with the arguments of one call. Run is called once; a retry prepares a new Body.
//
// An error means that the tool gave no answer: the call has failed. An *agent.ParkedError means that the answer comes
// later, so the run parks; an *agent.InputError that a person must answer first. A tool that did its work and reports a
// negative result, such as a search without a hit or a program that exited with 1, answers with an Output that has Failed
// set. An *agent.SignalError ends the run, as
// Output.Stop does. A panic is recovered.
//
// Run must return soon after ctx is done; see Policy.Timeout for what happens otherwise.
type Body interface {
	Run(ctx context.Context, c Call) (Output, error)
}

// Call describes the call to the tool that answers it.
type Call struct {
	// ToolCall is the call as it runs, with the changes of hooks. Arguments is never empty.
	agent.ToolCall
	// State is the state that the model saw when it made the call; all calls of a step see the same state.
	State agent.State
	// Attempt counts from one.
	Attempt int
	// Given are the answers of people to the requests for input that the call has made, in order, and InputState the
	// state of the last request: see agent.InputError.
	Given      []agent.GivenInput
	InputState []byte
}

// IdempotencyKey returns the call's idempotency key, for services that use such keys to execute a request only once.
// The key is the same for each attempt, also after a restart, and unique to the call.
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
	// Effects are the changes to the state that the tool requests. They are applied after the step. Messages and
	// context have the source "tool:NAME", and do not count as the user's words.
	Effects agent.Effects
	// Stop, when set, ends the run after this step.
	Stop *agent.Signal
}

// TextOutput returns an answer in plain text.
func TextOutput(text string) Output { return Output{Content: agent.TextContent(text)} }
