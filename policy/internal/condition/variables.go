package condition

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// variable is a name that conditions can use, with its type and the source of its value.
type variable struct {
	name  string
	kind  *cel.Type
	at    where
	value func(ev *event) any
	// plain reads the value without creating a CEL value; nil if that is not possible.
	plain func(ev *event) scalar
	// fixed is set for values that never change.
	fixed ref.Val
}

var (
	anyMap = cel.MapType(cel.StringType, cel.DynType)
	texts  = cel.ListType(cel.StringType)
)

func textVariable(name string, at where, value func(ev *event) string) variable {
	return variable{
		name: name, kind: cel.StringType, at: at,
		value: func(ev *event) any { return types.String(value(ev)) },
		plain: func(ev *event) scalar { return scalar{kind: textKind, text: value(ev)} },
	}
}

func countVariable(name string, at where, value func(ev *event) int64) variable {
	return variable{
		name: name, kind: cel.IntType, at: at,
		value: func(ev *event) any { return types.Int(value(ev)) },
		plain: func(ev *event) scalar { return scalar{kind: intKind, bits: uint64(value(ev))} }, //nolint:gosec // it is converted back to int64
	}
}

// durationVariable returns a variable for the duration that the point reports.
func durationVariable(name string, at where) variable {
	return variable{name: name, kind: cel.DurationType, at: at, value: func(ev *event) any { return types.Duration{Duration: ev.source.duration()} }}
}

var approvalKind = kindOf("Approval",
	field[*approval]{"call_id", cel.StringType, func(a *approval) ref.Val { return types.String(a.CallID) }},
	field[*approval]{"tool", cel.StringType, func(a *approval) ref.Val { return types.String(a.Tool) }},
	field[*approval]{"question", cel.StringType, func(a *approval) ref.Val { return types.String(a.Question) }},
	field[*approval]{"action", cel.StringType, func(a *approval) ref.Val { return types.String(a.Action) }},
	field[*approval]{"by", cel.StringType, func(a *approval) ref.Val { return types.String(a.By) }},
	field[*approval]{"reason", cel.StringType, func(a *approval) ref.Val { return types.String(a.Reason) }},
)

// cacheVariable returns a variable whose value is built once per event, for values that are parsed or concatenated.
func cacheVariable(v variable) variable {
	value := v.value
	v.value = func(ev *event) any { return ev.remember(v.name, func() any { return value(ev) }) }
	return v
}

// variables holds all names that conditions can use except vars.*. A test compares it with the tables in doc.go.
var variables = slices.Concat([]variable{
	textVariable("point", nil, func(ev *event) string { return string(ev.point) }),
	textVariable("agent", nil, func(ev *event) string { return ev.run().Agent }),
	textVariable("stage", nil, func(ev *event) string { return ev.run().Stage }),
	countVariable("step", nil, func(ev *event) int64 { return int64(ev.source.step()) }),
	textVariable("run.id", nil, func(ev *event) string { return string(ev.run().ID) }),
	textVariable("run.session", nil, func(ev *event) string { return string(ev.run().Session) }),
	textVariable("run.parent", nil, func(ev *event) string { return string(ev.run().Parent) }),
	textVariable("run.root", nil, func(ev *event) string { return string(ev.run().Root) }),
	countVariable("run.depth", nil, func(ev *event) int64 { return int64(ev.run().Depth) }),
	countVariable("run.number", nil, func(ev *event) int64 { return int64(ev.run().Number) }),
	{name: "run.elapsed", kind: cel.DurationType, value: func(ev *event) any { return types.Duration{Duration: ev.source.elapsedTime()} }},
	countVariable("usage.tokens", nil, func(ev *event) int64 { return ev.source.usage().Tokens() }),
	countVariable("usage.input_tokens", nil, func(ev *event) int64 { return ev.source.usage().InputTokens }),
	countVariable("usage.output_tokens", nil, func(ev *event) int64 { return ev.source.usage().OutputTokens }),
	countVariable("usage.cache_read_tokens", nil, func(ev *event) int64 { return ev.source.usage().CacheReadTokens }),
	countVariable("usage.cache_write_tokens", nil, func(ev *event) int64 { return ev.source.usage().CacheWriteTokens }),
	countVariable("usage.reasoning_tokens", nil, func(ev *event) int64 { return ev.source.usage().ReasoningTokens }),
	{name: "usage.cost", kind: cel.DoubleType, value: costOf},
	textVariable("input", nil, func(ev *event) string { return ev.source.input() }),
	{name: "metadata", kind: anyMap, value: func(ev *event) any { return metadataOf{ev} }},
	cacheVariable(variable{name: "actions", kind: cel.MapType(cel.StringType, actionKind.typ), value: func(ev *event) any {
		return actionsOf(ev.values.Actions)
	}}),
	{name: "now", kind: cel.TimestampType, value: func(ev *event) any { return types.Timestamp{Time: ev.now()} }},

	textVariable("tool", ofCalls, func(ev *event) string { return ev.toolCall().tool }),
	textVariable("call.id", ofCalls, func(ev *event) string { return ev.toolCall().id }),
	countVariable("call.index", ofCalls, func(ev *event) int64 { return int64(ev.toolCall().index) }),
	{name: "args", kind: anyMap, at: ofCalls, value: func(ev *event) any { return ev.arguments() }},
	{name: "original_args", kind: anyMap, at: ofCalls, value: func(ev *event) any { return ev.originalArguments() }},

	textVariable("call.invalid", ofNew, func(ev *event) string { return ev.source.invalid() }),
	cacheVariable(variable{name: "approvals", kind: cel.ListType(approvalKind.typ), at: ofApprovals, value: func(ev *event) any {
		return objectList(approvalKind, ev.source.approvals())
	}}),
	textVariable("question", ofAsking, func(ev *event) string { return ev.source.question() }),

	textVariable("result.text", ofTexts, func(ev *event) string { return ev.source.result().text }),
	textVariable("result.status", ofResults, func(ev *event) string { return ev.source.result().status }),
	textVariable("result.reason", ofResults, func(ev *event) string { return ev.source.result().reason }),
	{name: "result.is_error", kind: cel.BoolType, at: ofResults, value: func(ev *event) any { return types.Bool(ev.source.result().isError) }},
	countVariable("result.attempts", ofResults, func(ev *event) int64 { return int64(ev.source.result().attempts) }),
	durationVariable("result.duration", ofResults),
	cacheVariable(variable{name: "result.data", kind: cel.DynType, at: where{hooks.RunResult}, value: func(ev *event) any {
		return jsonOr(ev.source.result().data, types.NullValue)
	}}),
	textVariable("error", ofErrors, func(ev *event) string { return ev.source.failure() }),

	textVariable("reply.text", ofReplies, func(ev *event) string { return ev.source.reply().text }),
	{name: "reply.tools", kind: texts, at: ofTurns, value: func(ev *event) any { return stringList(ev.source.reply().tools) }},
	textVariable("reply.finish_reason", ofTurns, func(ev *event) string { return ev.source.reply().finish }),
	textVariable("reply.model", ofTurns, func(ev *event) string { return ev.source.reply().model }),
	durationVariable("step_duration", ofSteps),
	textVariable("step_kind", ofSteps, func(ev *event) string { return ev.source.stepKind() }),

	textVariable("subagent.agent", ofSubagents, func(ev *event) string { return ev.source.subagent().Agent }),
	textVariable("subagent.instruction", ofSubagents, func(ev *event) string { return ev.source.subagent().Instruction }),
	textVariable("subagent.result", ofAnswers, func(ev *event) string { return ev.source.subagent().Result }),
	textVariable("subagent.run", ofSubagents, func(ev *event) string { return string(ev.source.subagent().Run.ID) }),
	textVariable("subagent.session", ofSubagents, func(ev *event) string { return string(ev.source.subagent().Run.Session) }),
	textVariable("subagent.status", ofChildEnds, func(ev *event) string { return string(ev.source.subagent().Status) }),
	durationVariable("subagent.duration", ofChildEnds),
	countVariable("compaction.messages", ofCompactions, func(ev *event) int64 { return int64(ev.source.compaction().Messages) }),
	countVariable("compaction.tokens", ofCompactions, func(ev *event) int64 { return ev.source.compaction().Tokens }),

	countVariable("continuations", ofStops, func(ev *event) int64 { return int64(ev.source.continuations()) }),
	textVariable("end.reason", ofEnds, func(ev *event) string { _, s := ev.source.end(); return string(s.Reason) }),
	textVariable("end.message", ofEnds, func(ev *event) string { _, s := ev.source.end(); return s.Message }),
	textVariable("end.source", ofEnds, func(ev *event) string { _, s := ev.source.end(); return s.Source }),
	textVariable("conversation.source", ofConversationStarts, func(ev *event) string { return string(ev.source.conversation().Source) }),
	textVariable("conversation.reason", ofConversationEnds, func(ev *event) string { return string(ev.source.conversation().Reason) }),
	countVariable("conversation.turns", ofConversations, func(ev *event) int64 { return int64(ev.source.conversation().Turns) }),
	textVariable("pipeline.name", ofPipelines, func(ev *event) string { return ev.source.pipeline().Name }),
	textVariable("pipeline.reason", ofPipelines, func(ev *event) string { return ev.source.pipeline().Reason }),
	cacheVariable(variable{name: "pipeline.changed_files", kind: texts, at: ofPipelines, value: func(ev *event) any {
		return stringList(ev.source.pipeline().ChangedFiles)
	}}),
	cacheVariable(variable{name: "pipeline.stage_outputs", kind: texts, at: ofPipelines, value: func(ev *event) any {
		return stringList(ev.source.pipeline().StageOutputs)
	}}),
	cacheVariable(variable{name: "parameters", kind: anyMap, at: ofBlueprints, value: func(ev *event) any {
		return argumentsIn(treeOf(ev.source.parameters()))
	}}),
	textVariable("end.status", ofDone, func(ev *event) string { s, _ := ev.source.end(); return string(s) }),
}, environment)

// environment holds the pipeline variables. As in a process environment, a missing value is empty or 0.
var environment = []variable{
	givenText("SESSION", func(ev *event) string { return string(ev.run().Session) }),
	givenText("STAGE", func(ev *event) string { return ev.run().Stage }),
	givenText("NEXT_STAGE", func(ev *event) string { return ev.source.pipeline().NextStage }),
	givenNumber("ITERATION", func(ev *event) int { return ev.run().Iteration }),
	givenNumber("MAX_ITERATIONS", func(ev *event) int { return ev.source.pipeline().MaxIterations }),
	givenText("PROGRESS", func(ev *event) string { return ev.source.pipeline().Progress }),
	givenText("STATUS", func(ev *event) string { return ev.source.pipeline().Status }),
	givenText("CTX", func(ev *event) string { return ev.source.pipeline().Context }),
	givenText("LAST_DECISION", func(ev *event) string { return ev.source.pipeline().LastDecision }),
	givenText("LAST_HOOK_STATUS", emptyText),
	cacheVariable(givenText("CHANGED_FILES", func(ev *event) string { return strings.Join(ev.source.pipeline().ChangedFiles, "\n") })),
	cacheVariable(givenText("STAGE_OUTPUTS", func(ev *event) string { return strings.Join(ev.source.pipeline().StageOutputs, "\n") })),
	givenText("ERROR", func(ev *event) string { return ev.source.failure() }),
	givenText("TIMESTAMP", func(ev *event) string { return ev.now().UTC().Format(time.RFC3339) }),
	givenText("CALLBACK_URL", emptyText),
	givenText("HOOK_RESPONSE", emptyText),
	givenText("SPAWN_OUTPUT", emptyText),
}

func jsonOr(text string, otherwise ref.Val) ref.Val {
	if v, ok := parsed(text); ok {
		return v
	}
	return otherwise
}

func emptyText(*event) string { return "" }

// givenText returns a string variable that Values.Names can override.
func givenText(name string, otherwise func(ev *event) string) variable {
	return textVariable(name, nil, func(ev *event) string {
		if v, ok := ev.values.Names[name]; ok {
			return v
		}
		return otherwise(ev)
	})
}

// givenNumber returns an int variable that Values.Names can override. Text that is not a number is an error when it
// is used.
func givenNumber(name string, otherwise func(ev *event) int) variable {
	return variable{name: name, kind: cel.IntType, value: func(ev *event) any {
		v, ok := ev.values.Names[name]
		if !ok || v == "" {
			return types.Int(otherwise(ev))
		}
		n, isInt := numberOf(v).(types.Int)
		if !isInt {
			return types.NewErr("%s is %q and not a whole number", name, shortenText(v))
		}
		return n
	}}
}

var errCostUnknown = errors.New("the cost of the run is unknown: its model has no price")

func costOf(ev *event) any {
	usage := ev.source.usage()
	if cost, known := usage.Cost.Get(); known {
		return types.Double(cost)
	}
	if usage == (agent.Usage{Cost: usage.Cost}) {
		return types.Double(0) // no model request yet
	}
	return types.WrapErr(errCostUnknown)
}

// constantsOf returns the variables vars.*.
func constantsOf(values map[string]any) (map[string]*variable, []error) {
	out, errs := map[string]*variable{}, []error(nil)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !identifier.MatchString(name) || reserved[name] {
			errs = append(errs, fmt.Errorf("variable %q: invalid name: use letters, digits and _", name))
			continue
		}
		v := valueOf(values[name])
		if types.IsError(v) {
			errs = append(errs, fmt.Errorf("variable %q: %v", name, v))
			continue
		}
		out["vars."+name] = constantVariable("vars."+name, typeOf(v), v)
	}
	return out, errs
}

func constantVariable(name string, kind *cel.Type, v ref.Val) *variable {
	return &variable{name: name, kind: kind, fixed: v, value: func(*event) any { return v }}
}
