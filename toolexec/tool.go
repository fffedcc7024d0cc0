package toolexec

import (
	"context"
	"strconv"

	"github.com/grapnel-go/grapnel/agent"
)

// A Tool is a function that a model can call. Create most tools with Func, CallFunc or Raw. Code that gets its tools
// from another source implements Tool. Both methods must be safe for concurrent use.
//
// A tool can have three more methods. Policy() Policy returns the policy for running it. Err() error returns an error
// if the tool could not be created; a Toolbox refuses such a tool with this error. GiveUp(ctx, Call) ends a child run
// that a call had started and that is parked or was cut off (see agent.ParkedError). It is called instead of a Body
// when the call is answered without running.
type Tool interface {
	// Spec returns the tool's description for the model. The toolbox reads it once, when the tool is added.
	Spec() agent.ToolSpec
	// Prepare checks the arguments and returns the Body to run with them. It runs nothing itself. The model receives
	// the error and can try again. An *agent.ArgumentsError helps it most. Prepare may be called any number of times
	// for one call: after a hook changed the arguments, and for a retry. args is one JSON object, strictly parsed.
	Prepare(args string) (Body, error)
}

// A Body runs a tool with one call's arguments. Run is called once. A retry prepares a new Body.
//
// An error means that the tool gave no answer: the call has failed. An *agent.ParkedError means that the answer comes
// later, so the run parks. An *agent.InputError means that a person must answer first. A tool may do its work and
// report a negative result, such as a search without a hit or a program that exited with 1. It then returns an Output
// with Failed set. An *agent.SignalError ends the run, as Output.Stop does. A panic is recovered.
//
// Run must return soon after ctx is done; see Policy.Timeout for what happens otherwise.
type Body interface {
	Run(ctx context.Context, c Call) (Output, error)
}

// Call describes the call to the tool that answers it.
type Call struct {
	// ToolCall is the call as it runs, with changes by hooks. Arguments is never empty.
	agent.ToolCall
	// State is the state that the model saw when it made the call. All calls of a step see the same state.
	State agent.State
	// Attempt counts from one.
	Attempt int
	// Given holds people's answers to the call's requests for input, in order. InputState is the last request's state:
	// see agent.InputError.
	Given      []agent.GivenInput
	InputState []byte
}

// IdempotencyKey returns the call's idempotency key, for services that use such keys to execute a request only once.
// The key is unique to the call. It is the same for each attempt, also after a restart.
func (c Call) IdempotencyKey() string {
	return string(c.State.Run().ID) + "/" + strconv.Itoa(c.State.RunStepCount()) + "/" + c.ID
}

// Output is a tool's answer. The zero Output is an empty answer.
type Output struct {
	// Content is the answer that the model reads.
	Content agent.Content
	// Failed reports that the tool ran and has a negative result. It is still an answer: it is not retried and does not
	// count as a failed run.
	Failed bool
	// Effects are the state changes that the tool requests. They are applied after the step. Messages and context have
	// the source "tool:NAME", and do not count as the user's words.
	Effects agent.Effects
	// Stop, when set, ends the run after this step.
	Stop *agent.Signal
}

// TextOutput returns an answer in plain text.
func TextOutput(text string) Output { return Output{Content: agent.TextContent(text)} }
