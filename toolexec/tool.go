package toolexec

import (
	"context"
	"strconv"

	"github.com/grapnel-go/grapnel/agent"
)

// Tool is something that a model may call. Most are made with Func, CallFunc or Raw; what gets its tools from
// elsewhere implements it. Both methods must be safe for concurrent use.
//
// A tool may have three more methods. Policy() Policy says how it wants to be run. Err() error says why it could not be
// made; a Toolbox refuses such a tool and passes the reason on. GiveUp(ctx, Call) is called in the place of a Body when a
// call that had started a run of its own, which is parked or was cut off (see agent.ParkedError), is answered in another
// way: it ends that run.
type Tool interface {
	// Spec returns what the model is told. It is read once, when the tool is put into a toolbox.
	Spec() agent.ToolSpec
	// Prepare checks the arguments and returns what runs with them; it runs nothing itself. An error is told to the
	// model, which may try again: an *agent.ArgumentsError says it best. Prepare may be called any number of times for
	// one call: again for what a hook made of the arguments, again for a retry. args is one JSON object, strictly read.
	Prepare(args string) (Body, error)
}

// Body is a tool with the arguments of one call. Run is called once; a retry prepares a new Body.
//
// An error means that the tool gave no answer: the call has failed. An *agent.ParkedError means that the answer comes
// later: the run parks. A tool that did its work and has bad news, such
// as a search without a hit or a program that exited with 1, answers with an Output that says Failed. An
// *agent.SignalError ends the run, as Output.Stop does. A panic is caught.
//
// Run must return soon after ctx is done; see Policy.Timeout for what becomes of one that does not.
type Body interface {
	Run(ctx context.Context, c Call) (Output, error)
}

// Call is what a tool may know of the call that it answers.
type Call struct {
	// ToolCall is the call as it runs: what hooks made of the model's wish. Arguments is never empty.
	agent.ToolCall
	// State is what the model saw when it made the call; all calls of a step see the same.
	State agent.State
	// Attempt counts from one.
	Attempt int
}

// IdempotencyKey names the call in the way that services want it that promise to do a thing only once: it is the same
// for each attempt, also after a restart, and no other call has it.
func (c Call) IdempotencyKey() string {
	return string(c.State.Run().ID) + "/" + strconv.Itoa(c.State.RunStepCount()) + "/" + c.ID
}

// Output is what a tool answers. The zero Output is an empty answer.
type Output struct {
	// Content is what the model is told.
	Content agent.Content
	// Failed says that the tool ran and what it has to tell is bad news. It is an answer all the same: it is not
	// retried and does not count as a failure of the run.
	Failed bool
	// Effects is what the tool wants changed in the state. They are applied after the step. Messages and context have the
	// source "tool:NAME", and do not count as the user's words.
	Effects agent.Effects
	// Stop, when set, ends the run after this step.
	Stop *agent.Signal
}

// TextOutput returns an answer in plain text.
func TextOutput(text string) Output { return Output{Content: agent.TextContent(text)} }
