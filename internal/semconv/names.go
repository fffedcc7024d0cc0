// Package semconv defines the names of everything that Grapnel records: spans, attributes, metrics and log events.
// docs/observability.md explains them. Their sources are
//
//   - the OpenTelemetry semantic conventions for generative AI, status
//     Development, as of November 2026:
//     https://github.com/open-telemetry/semantic-conventions-genai/tree/main/docs/gen-ai
//     (spans: gen-ai-spans.md and gen-ai-agent-spans.md; metrics, with their units
//     and buckets: gen-ai-metrics.md; trace context in MCP: mcp.md). The last Go
//     package with constants for some of them is go.opentelemetry.io/otel/semconv/v1.41.0;
//   - the general conventions, Stable:
//     https://github.com/open-telemetry/semantic-conventions (error.type, server.*);
//   - Grapnel itself for names that begin with grapnel., because OpenTelemetry has no conventions for hooks.
//
// No other file repeats these names; a test in this package checks that.
package semconv

import "go.opentelemetry.io/otel/attribute"

// Scope is the instrumentation's name: otel.scope.name.
const Scope = "github.com/grapnel-go/grapnel/telemetry"

// Operations: the values of gen_ai.operation.name, and the first word of a span's name.
const (
	OperationInvokeAgent = "invoke_agent"
	OperationChat        = "chat"
	OperationExecuteTool = "execute_tool"
	// OperationHook begins the name of a hook's span. Grapnel defines it; it is not a value of gen_ai.operation.name.
	OperationHook = "hook"
)

// Attributes that the conventions define.
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

// Content attributes that the conventions define. They are recorded only if content was requested.
const (
	KeyInstructions   = attribute.Key("gen_ai.system_instructions")
	KeyInputMessages  = attribute.Key("gen_ai.input.messages")
	KeyOutputMessages = attribute.Key("gen_ai.output.messages")
	KeyToolArguments  = attribute.Key("gen_ai.tool.call.arguments")
	KeyToolResult     = attribute.Key("gen_ai.tool.call.result")
)

// Attributes that Grapnel defines.
const (
	// KeyRunKind is agent or command, for a run that a worker executes, and KeyRunName is the agent's or command's name.
	KeyRunKind = attribute.Key("grapnel.run.kind")
	KeyRunName = attribute.Key("grapnel.run.name")
	// KeyReconcileCause is why a worker changed a run that no process holds: one of the Cause constants.
	KeyReconcileCause = attribute.Key("grapnel.reconcile.cause")
	// KeyRun, KeyParentRun and KeyRootRun are run IDs. KeyDepth is the number of runs above the run.
	KeyRun       = attribute.Key("grapnel.run.id")
	KeyParentRun = attribute.Key("grapnel.run.parent.id")
	KeyRootRun   = attribute.Key("grapnel.run.root.id")
	KeyDepth     = attribute.Key("grapnel.run.depth")
	// KeyStatus, KeyStopReason and KeyStopSource say how and why a run ended, and what ended it.
	KeyStatus     = attribute.Key("grapnel.run.status")
	KeyStopReason = attribute.Key("grapnel.stop.reason")
	KeyStopSource = attribute.Key("grapnel.stop.source")
	// KeySteps is the run's number of steps. KeyStep is the index of a step, from zero.
	KeySteps = attribute.Key("grapnel.run.steps")
	KeyStep  = attribute.Key("grapnel.step.index")
	// KeyCost is the cost in US dollars, if known.
	KeyCost = attribute.Key("grapnel.usage.cost")

	// KeyOutcome is the outcome of a tool call: one of the Outcome constants.
	KeyOutcome = attribute.Key("grapnel.tool.outcome")
	// KeyWinner is the hook or person whose decision about the call was effective.
	KeyWinner = attribute.Key("grapnel.decision.winner")
	// KeyApprovalBy names the people who answered the questions about a call, by verified identity or else by name.
	// KeyApprovalAt is the time of the last answer, and KeyApprovalVerdict the decision.
	KeyApprovalBy      = attribute.Key("grapnel.approval.by")
	KeyApprovalAt      = attribute.Key("grapnel.approval.at")
	KeyApprovalVerdict = attribute.Key("grapnel.approval.verdict")
	// KeyWaitKind is the kind of a wait that people answer: approval, doubt or input.
	KeyWaitKind = attribute.Key("grapnel.wait.kind")
	// KeyReasonCode is the agent.ReasonCode for which a call was not executed or its result is an error.
	KeyReasonCode = attribute.Key("grapnel.decision.reason_code")
	// KeyRewritten reports whether a hook or a person changed the arguments of the call.
	KeyRewritten = attribute.Key("grapnel.tool.rewritten")
	// KeyToolOriginal holds the model's arguments, if they were replaced and content is recorded.
	KeyToolOriginal = attribute.Key("grapnel.tool.call.original_arguments")
	// KeyResultBy is the hook that replaced or withheld the result.
	KeyResultBy = attribute.Key("grapnel.tool.result.replaced_by")
	// KeyAttempts is the number of times the tool was started, and KeyToolSeconds the time that it ran. It excludes
	// the time that a call waits for others in the same step.
	KeyAttempts    = attribute.Key("grapnel.tool.attempts")
	KeyToolSeconds = attribute.Key("grapnel.tool.duration")

	KeyHook     = attribute.Key("grapnel.hook.name")
	KeyPoint    = attribute.Key("grapnel.hook.point")
	KeyHookType = attribute.Key("grapnel.hook.type") // control or observer
	KeyHookMode = attribute.Key("grapnel.hook.mode") // sync, detached or shadow
	// KeyHookOrder is the hook's position at its point, from one.
	KeyHookOrder = attribute.Key("grapnel.hook.order")
	// KeyHookAttempt numbers the attempts to run a hook, from one.
	KeyHookAttempt = attribute.Key("grapnel.hook.attempt")
	// KeyHookOutcome is complete, blocked, failed, timeout or skipped.
	KeyHookOutcome = attribute.Key("grapnel.hook.outcome")
	// KeyDecision is the hook's hooks.Decision.
	KeyDecision = attribute.Key("grapnel.hook.decision")
	// KeyFailMode is the failure policy that was applied to a failed hook: closed, open, abort or retry.
	KeyFailMode = attribute.Key("grapnel.hook.fail_mode")
	// KeyHookReasonCode is the reason for a hook's failure: panic, timeout or error.
	KeyHookReasonCode = attribute.Key("grapnel.hook.reason_code")
	KeyRewroteInput   = attribute.Key("grapnel.hook.rewrote_input")
	KeyRewroteOutput  = attribute.Key("grapnel.hook.rewrote_output")
	// KeyFacts holds the facts on which a decision is based, if content is recorded.
	KeyFacts = attribute.Key("grapnel.hook.facts")
	// KeyPolicy, KeyPolicyVersion, KeyPolicyRule and KeyPolicyHash identify the policy rule to which the hook
	// belongs.
	KeyPolicy        = attribute.Key("grapnel.policy.id")
	KeyPolicyVersion = attribute.Key("grapnel.policy.version")
	KeyPolicyRule    = attribute.Key("grapnel.policy.rule.id")
	KeyPolicyHash    = attribute.Key("grapnel.policy.hash")
	// KeyActionType is the type of that rule's action, and KeyActionTarget the action's target.
	KeyActionType   = attribute.Key("grapnel.action.type")
	KeyActionTarget = attribute.Key("grapnel.action.target")
	// KeyReason is a sentence. It is recorded only if reasons were requested.
	KeyReason = attribute.Key("grapnel.decision.reason")
)

// Outcomes of a tool call: the values of KeyOutcome.
const (
	OutcomeExecuted = "executed"
	OutcomeFailed   = "failed"
	OutcomeDenied   = "denied"
	OutcomeMocked   = "mocked"
	// OutcomeDeferred: the call requires approval, and the run waits for it.
	OutcomeDeferred = "deferred"
	// OutcomeNotExecuted: the run was stopped or cancelled before the call ran. No decision was made about the call.
	OutcomeNotExecuted = "not_executed"
	// OutcomeUnknown: the run was interrupted after the call had begun, so the tool may have run. The call was not
	// repeated.
	OutcomeUnknown = "unknown"
)

// Other is the conventions' value for an error.type that is neither an agent.ErrorKind nor an agent.ReasonCode.
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
	MetricApprovalAge       = "grapnel.approval.age"
	MetricWorkerRunDuration = "grapnel.worker.run.duration"
	MetricWorkerActive      = "grapnel.worker.runs.active"
	MetricWorkerReconciled  = "grapnel.worker.reconciled"
	MetricWorkerErrors      = "grapnel.worker.errors"
	MetricWorkerStalls      = "grapnel.worker.stalls"
	MetricWorkerDoubts      = "grapnel.worker.doubts"
	MetricQueueReady        = "grapnel.queue.ready"
	MetricQueueAge          = "grapnel.queue.age"
	MetricQueueUnserved     = "grapnel.queue.unserved"
)

// Causes for which a worker changes a run that no process holds: the values of KeyReconcileCause.
const (
	CauseLeaseExpired  = "lease_expired"
	CauseAnswerOverdue = "answer_overdue"
	CauseTimeCame      = "time_came"
	CauseTooLate       = "too_late"
)

// The event for a tool that panicked, and its attributes, as in the conventions.
const (
	EventException    = "exception"
	KeyExceptionType  = attribute.Key("exception.type")
	KeyExceptionStack = attribute.Key("exception.stacktrace")
)

// Names of log events. All except the last two report a decision by a hook or a person.
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
