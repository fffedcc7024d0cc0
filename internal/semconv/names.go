// Package semconv has the names of everything that Grapnel records: spans, attributes,
// metrics and log events. docs/observability.md says what each of them means. They come from
//
//   - the OpenTelemetry semantic conventions for generative AI, status
//     Development, as of November 2026:
//     https://github.com/open-telemetry/semantic-conventions-genai/tree/main/docs/gen-ai
//     (spans: gen-ai-spans.md and gen-ai-agent-spans.md; metrics, with their units
//     and buckets: gen-ai-metrics.md; trace context in MCP: mcp.md). The last package
//     of constants for Go that has some of them is go.opentelemetry.io/otel/semconv/v1.41.0;
//   - the general conventions, Stable:
//     https://github.com/open-telemetry/semantic-conventions (error.type, server.*);
//   - and, below grapnel.*, from Grapnel: there are no conventions for hooks.
//
// No other file repeats them; a test of this package sees to it.
package semconv

import "go.opentelemetry.io/otel/attribute"

// Scope is the name of the instrumentation: otel.scope.name.
const Scope = "github.com/grapnel-go/grapnel/telemetry"

// Operations: the values of gen_ai.operation.name, and the first word of a span's
// name.
const (
	OperationInvokeAgent = "invoke_agent"
	OperationChat        = "chat"
	OperationExecuteTool = "execute_tool"
	// OperationHook begins the name of a hook's span. It is ours, and not a value
	// of gen_ai.operation.name.
	OperationHook = "hook"
)

// Attributes of the conventions.
const (
	KeyOperation       = attribute.Key("gen_ai.operation.name")
	KeyProvider        = attribute.Key("gen_ai.provider.name")
	KeyConversation    = attribute.Key("gen_ai.conversation.id")
	KeyAgentName       = attribute.Key("gen_ai.agent.name")
	KeyRequestModel    = attribute.Key("gen_ai.request.model")
	KeyRequestStream   = attribute.Key("gen_ai.request.stream")
	KeyMaxTokens       = attribute.Key("gen_ai.request.max_tokens")
	KeyTemperature     = attribute.Key("gen_ai.request.temperature")
	KeyOutputType      = attribute.Key("gen_ai.output.type")
	KeyResponseID      = attribute.Key("gen_ai.response.id")
	KeyResponseModel   = attribute.Key("gen_ai.response.model")
	KeyFinishReasons   = attribute.Key("gen_ai.response.finish_reasons")
	KeyFirstChunk      = attribute.Key("gen_ai.response.time_to_first_chunk")
	KeyInputTokens     = attribute.Key("gen_ai.usage.input_tokens")
	KeyOutputTokens    = attribute.Key("gen_ai.usage.output_tokens")
	KeyCacheRead       = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	KeyCacheWrite      = attribute.Key("gen_ai.usage.cache_creation.input_tokens")
	KeyReasoningTokens = attribute.Key("gen_ai.usage.reasoning.output_tokens")
	KeyTokenType       = attribute.Key("gen_ai.token.type")
	KeyToolName        = attribute.Key("gen_ai.tool.name")
	KeyToolType        = attribute.Key("gen_ai.tool.type")
	KeyToolCallID      = attribute.Key("gen_ai.tool.call.id")
	KeyErrorType       = attribute.Key("error.type")
	KeyServerAddress   = attribute.Key("server.address")
	KeyServerPort      = attribute.Key("server.port")
)

// Attributes of the conventions that hold content: only where it was asked for.
const (
	KeyInstructions   = attribute.Key("gen_ai.system_instructions")
	KeyInputMessages  = attribute.Key("gen_ai.input.messages")
	KeyOutputMessages = attribute.Key("gen_ai.output.messages")
	KeyToolArguments  = attribute.Key("gen_ai.tool.call.arguments")
	KeyToolResult     = attribute.Key("gen_ai.tool.call.result")
)

// Attributes of Grapnel.
const (
	// KeyRun, KeyParentRun and KeyRootRun are ids of runs; KeyDepth is how many runs
	// stand above this one.
	KeyRun       = attribute.Key("grapnel.run.id")
	KeyParentRun = attribute.Key("grapnel.run.parent.id")
	KeyRootRun   = attribute.Key("grapnel.run.root.id")
	KeyDepth     = attribute.Key("grapnel.run.depth")
	// KeyStatus, KeyStopReason and KeyStopSource say how and why a run ended, and
	// who ended it.
	KeyStatus     = attribute.Key("grapnel.run.status")
	KeyStopReason = attribute.Key("grapnel.stop.reason")
	KeyStopSource = attribute.Key("grapnel.stop.source")
	// KeySteps is the number of steps of a run, KeyStep the index of one, from zero.
	KeySteps = attribute.Key("grapnel.run.steps")
	KeyStep  = attribute.Key("grapnel.step.index")
	// KeyCost is in US dollars, where it is known.
	KeyCost = attribute.Key("grapnel.usage.cost")

	// KeyOutcome is what became of a tool call: one of the Outcome constants.
	KeyOutcome = attribute.Key("grapnel.tool.outcome")
	// KeyWinner is the hook or person whose decision about the call counted.
	KeyWinner = attribute.Key("grapnel.decision.winner")
	// KeyReasonCode is why a call was not executed or its answer is an error: an
	// agent.ReasonCode.
	KeyReasonCode = attribute.Key("grapnel.decision.reason_code")
	// KeyRewritten says that a hook changed the arguments of the call.
	KeyRewritten = attribute.Key("grapnel.tool.rewritten")
	// KeyResultBy is the hook that replaced or withheld the result.
	KeyResultBy = attribute.Key("grapnel.tool.result.replaced_by")
	// KeyAttempts is how often the tool's body was started, and KeyToolSeconds how
	// long that took: a call of several in a step also waits for the others.
	KeyAttempts    = attribute.Key("grapnel.tool.attempts")
	KeyToolSeconds = attribute.Key("grapnel.tool.duration")

	KeyHook     = attribute.Key("grapnel.hook.name")
	KeyPoint    = attribute.Key("grapnel.hook.point")
	KeyHookType = attribute.Key("grapnel.hook.type") // control or observer
	KeyHookMode = attribute.Key("grapnel.hook.mode") // sync, detached or shadow
	// KeyHookOrder is the hook's place at its point, from one.
	KeyHookOrder = attribute.Key("grapnel.hook.order")
	// KeyHookAttempt counts the calls of a hook that is retried, from one.
	KeyHookAttempt = attribute.Key("grapnel.hook.attempt")
	// KeyHookOutcome is complete, blocked, failed, timeout or skipped.
	KeyHookOutcome = attribute.Key("grapnel.hook.outcome")
	// KeyDecision is a hooks.Decision.
	KeyDecision = attribute.Key("grapnel.hook.decision")
	// KeyFailMode is what was done about a hook that failed: closed, open, abort or
	// retry.
	KeyFailMode = attribute.Key("grapnel.hook.fail_mode")
	// KeyHookReasonCode is why a hook failed: panic, timeout or error.
	KeyHookReasonCode = attribute.Key("grapnel.hook.reason_code")
	KeyRewroteInput   = attribute.Key("grapnel.hook.rewrote_input")
	KeyRewroteOutput  = attribute.Key("grapnel.hook.rewrote_output")
	// KeyFacts is what a decision rests on, where contents are recorded.
	KeyFacts = attribute.Key("grapnel.hook.facts")
	// KeyPolicy, KeyPolicyVersion, KeyPolicyRule and KeyPolicyHash say which rule of a
	// file the hook stands for.
	KeyPolicy        = attribute.Key("grapnel.policy.id")
	KeyPolicyVersion = attribute.Key("grapnel.policy.version")
	KeyPolicyRule    = attribute.Key("grapnel.policy.rule.id")
	KeyPolicyHash    = attribute.Key("grapnel.policy.hash")
	// KeyActionType is the type of the action of that rule, KeyActionTarget what it is done with.
	KeyActionType   = attribute.Key("grapnel.action.type")
	KeyActionTarget = attribute.Key("grapnel.action.target")
	// KeyReason is a sentence: only where reasons were asked for.
	KeyReason = attribute.Key("grapnel.decision.reason")
)

// What may become of a tool call: the values of KeyOutcome.
const (
	OutcomeExecuted = "executed"
	OutcomeFailed   = "failed"
	OutcomeDenied   = "denied"
	OutcomeMocked   = "mocked"
	// OutcomeDeferred: a person has to be asked, and the run waits for the answer.
	OutcomeDeferred = "deferred"
	// OutcomeNotExecuted: the call did not run, without a decision about this
	// very call: the run was stopped or cancelled first.
	OutcomeNotExecuted = "not_executed"
	// OutcomeUnknown: the call began before its run was cut off, so that it may have
	// happened, and was not repeated.
	OutcomeUnknown = "unknown"
)

// Other is the conventions' word for whatever has no name of its own: an error.type that is
// no agent.ErrorKind or agent.ReasonCode.
const Other = "_OTHER"

// Metrics.
const (
	MetricOperationDuration = "gen_ai.client.operation.duration"
	MetricTokenUsage        = "gen_ai.client.token.usage" //nolint:gosec // no credential
	MetricFirstChunk        = "gen_ai.client.operation.time_to_first_chunk"
	MetricAgentDuration     = "gen_ai.invoke_agent.duration"
	MetricToolDuration      = "gen_ai.execute_tool.duration"
	MetricHookDuration      = "grapnel.hook.duration"
	MetricHookDecisions     = "grapnel.hook.decisions"
	MetricHookErrors        = "grapnel.hook.errors"
	MetricApprovalWait      = "grapnel.approval.wait"
)

// Log events, by their names. Each but the last two is a decision of a hook, or of a
// person who was asked.
const (
	EventDenied     = "grapnel.denied"
	EventRewritten  = "grapnel.rewritten"
	EventMocked     = "grapnel.mocked"
	EventReplaced   = "grapnel.replaced"
	EventWithheld   = "grapnel.withheld"
	EventAsked      = "grapnel.asked"
	EventStopped    = "grapnel.stopped"
	EventContinued  = "grapnel.continued"
	EventHookFailed = "grapnel.hook.failed"
	EventRunEnded   = "grapnel.run.ended"
	EventRunParked  = "grapnel.run.parked"
)
