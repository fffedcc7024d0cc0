package hookstest

import (
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/fire"
)

// Moment is a point at which hooks are called, with the call, result or text that they
// receive: see fire.Moment for its methods.
type Moment = fire.Moment

// Fired is the result of firing a moment: see fire.Fired.
type Fired = fire.Fired

// Input returns the moment at which a user's text is about to be accepted:
// hooks.InputSubmitted.
func Input(text string) Moment { return fire.Input(text) }

// InputOf works like Input for messages of any kind.
func InputOf(messages ...agent.Message) Moment { return fire.InputOf(messages...) }

// Start returns the moment at which a run with the given input starts: hooks.ExecutionStart.
func Start(text string) Moment { return fire.Start(text) }

// StepStart returns the moment before a step: hooks.StepStart.
func StepStart() Moment { return fire.StepStart() }

// Request returns the moment before a model is called with the given request:
// hooks.PreInference. WithState sets the conversation.
func Request(r agent.Request) Moment { return fire.Request(r) }

// Reply returns the moment after a model has answered with the given text:
// hooks.PostInference.
func Reply(text string) Moment { return fire.Reply(text) }

// ToolCall returns the moment before a tool is called: hooks.PreToolUse. arguments is the model's JSON text. The tool
// answers "ok". There is no schema, so all arguments that can be parsed are valid, unless Invalid or WithExecutor says
// otherwise.
func ToolCall(tool, arguments string) Moment { return fire.ToolCall(tool, arguments) }

// ToolResult returns the moment after a tool has answered with the given text:
// hooks.PostToolUse. For results other than success, see WithResult.
func ToolResult(tool, arguments, text string) Moment { return fire.ToolResult(tool, arguments, text) }

// Intervention returns the moment before a person is asked about a call:
// hooks.InterventionRequested. The person approves.
func Intervention(tool, arguments string) Moment { return fire.Intervention(tool, arguments) }

// InterventionAnswer returns the moment after a person has answered whether a call may run:
// hooks.InterventionResolved.
func InterventionAnswer(tool, arguments string, answer agent.Approval) Moment {
	return fire.InterventionAnswer(tool, arguments, answer)
}

// InterventionStopped returns the moment after a person's rejection has ended the run:
// hooks.InterventionStopped.
func InterventionStopped(tool, arguments, reason string) Moment {
	return fire.InterventionStopped(tool, arguments, reason)
}

// Compact returns the moment before a compaction: hooks.PreCompact.
func Compact(about hooks.Compaction) Moment { return fire.Compact(about) }

// CompactResult returns the moment after a compaction: hooks.PostCompact.
func CompactResult(about hooks.Compaction) Moment { return fire.CompactResult(about) }

// CompactFailure returns the moment after a compaction has failed: hooks.CompactFailed.
func CompactFailure(about hooks.Compaction) Moment { return fire.CompactFailure(about) }

// Subagent returns the moment before a sub-agent runs: hooks.PreSubagent.
func Subagent(name, instruction string) Moment { return fire.Subagent(name, instruction) }

// SubagentResult returns the moment after a sub-agent has answered: hooks.PostSubagent.
func SubagentResult(name, instruction, result string) Moment {
	return fire.SubagentResult(name, instruction, result)
}

// SubagentFailure returns the moment after a sub-agent gave no answer: hooks.SubagentFailed.
func SubagentFailure(name, instruction string, err error) Moment {
	return fire.SubagentFailure(name, instruction, err)
}

// Conversation returns the moment at which a conversation starts or has ended:
// hooks.ConversationStart, hooks.ConversationEnd.
func Conversation(at hooks.PointName, about hooks.Conversation) Moment {
	return fire.Conversation(at, about)
}

// Pipeline returns a pipeline's moment, such as hooks.IterationComplete. The stage and the iteration are in WithRun.
func Pipeline(at hooks.PointName, about hooks.Pipeline) Moment { return fire.Pipeline(at, about) }

// Blueprint returns a moment of a coordinator's run, such as hooks.RunStart.
func Blueprint(at hooks.PointName, about hooks.BlueprintRun) Moment {
	return fire.Blueprint(at, about)
}

// ToolFailure returns the moment after a tool ended in an error: hooks.ToolFailed.
func ToolFailure(tool, arguments string, err error) Moment {
	return fire.ToolFailure(tool, arguments, err)
}

// StepEnd returns the moment after a step in which the model answered with the given text and
// called no tool: hooks.StepEnd. WithReply sets the other parts of the step.
func StepEnd(text string) Moment { return fire.StepEnd(text) }

// Stop returns the moment at which a run would end by itself with the given answer:
// hooks.Stop.
func Stop(answer string) Moment { return fire.Stop(answer) }

// End returns a run's end with the given status: hooks.ExecutionEnd. WithSignal sets its cause, WithReply the model's
// last reply.
func End(status agent.Status) Moment { return fire.End(status) }

// RunFailure returns the moment at which a run has failed because its model call
// ended in an error: hooks.AgentFailed.
func RunFailure(err error) Moment { return fire.RunFailure(err) }
