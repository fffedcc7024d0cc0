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
	value func(m *moment) any
	// plain reads the value without creating a CEL value; nil if that is not possible.
	plain func(m *moment) scalar
	// fixed is set for values that never change.
	fixed ref.Val
}

var (
	anyMap = cel.MapType(cel.StringType, cel.DynType)
	texts  = cel.ListType(cel.StringType)
)

func textVariable(name string, at where, value func(m *moment) string) variable {
	return variable{
		name: name, kind: cel.StringType, at: at,
		value: func(m *moment) any { return types.String(value(m)) },
		plain: func(m *moment) scalar { return scalar{kind: textKind, text: value(m)} },
	}
}

func countVariable(name string, at where, value func(m *moment) int64) variable {
	return variable{
		name: name, kind: cel.IntType, at: at,
		value: func(m *moment) any { return types.Int(value(m)) },
		plain: func(m *moment) scalar { return scalar{kind: intKind, bits: uint64(value(m))} }, //nolint:gosec // it is made an int64 again
	}
}

// durationVariable returns a variable for the duration that the point reports.
func durationVariable(name string, at where) variable {
	return variable{name: name, kind: cel.DurationType, at: at, value: func(m *moment) any { return types.Duration{Duration: m.source.duration()} }}
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
	v.value = func(m *moment) any { return m.remember(v.name, func() any { return value(m) }) }
	return v
}

// variables holds all names that conditions can use except vars.*. A test keeps the tables in doc.go equal to it.
var variables = slices.Concat([]variable{
	textVariable("point", nil, func(m *moment) string { return string(m.point) }),
	textVariable("agent", nil, func(m *moment) string { return m.run().Agent }),
	textVariable("stage", nil, func(m *moment) string { return m.run().Stage }),
	countVariable("step", nil, func(m *moment) int64 { return int64(m.source.step()) }),
	textVariable("run.id", nil, func(m *moment) string { return string(m.run().ID) }),
	textVariable("run.session", nil, func(m *moment) string { return string(m.run().Session) }),
	textVariable("run.parent", nil, func(m *moment) string { return string(m.run().Parent) }),
	textVariable("run.root", nil, func(m *moment) string { return string(m.run().Root) }),
	countVariable("run.depth", nil, func(m *moment) int64 { return int64(m.run().Depth) }),
	countVariable("run.number", nil, func(m *moment) int64 { return int64(m.run().Number) }),
	{name: "run.elapsed", kind: cel.DurationType, value: func(m *moment) any { return types.Duration{Duration: m.source.elapsedTime()} }},
	countVariable("usage.tokens", nil, func(m *moment) int64 { return m.source.usage().Tokens() }),
	countVariable("usage.input_tokens", nil, func(m *moment) int64 { return m.source.usage().InputTokens }),
	countVariable("usage.output_tokens", nil, func(m *moment) int64 { return m.source.usage().OutputTokens }),
	countVariable("usage.cache_read_tokens", nil, func(m *moment) int64 { return m.source.usage().CacheReadTokens }),
	countVariable("usage.cache_write_tokens", nil, func(m *moment) int64 { return m.source.usage().CacheWriteTokens }),
	countVariable("usage.reasoning_tokens", nil, func(m *moment) int64 { return m.source.usage().ReasoningTokens }),
	{name: "usage.cost", kind: cel.DoubleType, value: costOf},
	textVariable("input", nil, func(m *moment) string { return m.source.input() }),
	{name: "metadata", kind: anyMap, value: func(m *moment) any { return metadataOf{m} }},
	cacheVariable(variable{name: "actions", kind: cel.MapType(cel.StringType, actionKind.typ), value: func(m *moment) any {
		return actionsOf(m.values.Actions)
	}}),
	{name: "now", kind: cel.TimestampType, value: func(m *moment) any { return types.Timestamp{Time: m.now()} }},

	textVariable("tool", ofCalls, func(m *moment) string { return m.toolCall().tool }),
	textVariable("call.id", ofCalls, func(m *moment) string { return m.toolCall().id }),
	countVariable("call.index", ofCalls, func(m *moment) int64 { return int64(m.toolCall().index) }),
	{name: "args", kind: anyMap, at: ofCalls, value: func(m *moment) any { return m.arguments() }},
	{name: "original_args", kind: anyMap, at: ofCalls, value: func(m *moment) any { return m.originalArguments() }},

	textVariable("call.invalid", ofNew, func(m *moment) string { return m.source.invalid() }),
	cacheVariable(variable{name: "approvals", kind: cel.ListType(approvalKind.typ), at: ofApprovals, value: func(m *moment) any {
		return objectList(approvalKind, m.source.approvals())
	}}),
	textVariable("question", ofAsking, func(m *moment) string { return m.source.question() }),

	textVariable("result.text", ofTexts, func(m *moment) string { return m.source.result().text }),
	textVariable("result.status", ofResults, func(m *moment) string { return m.source.result().status }),
	textVariable("result.reason", ofResults, func(m *moment) string { return m.source.result().reason }),
	{name: "result.is_error", kind: cel.BoolType, at: ofResults, value: func(m *moment) any { return types.Bool(m.source.result().isError) }},
	countVariable("result.attempts", ofResults, func(m *moment) int64 { return int64(m.source.result().attempts) }),
	durationVariable("result.duration", ofResults),
	cacheVariable(variable{name: "result.data", kind: cel.DynType, at: where{hooks.RunResult}, value: func(m *moment) any {
		return jsonOr(m.source.result().data, types.NullValue)
	}}),
	textVariable("error", ofErrors, func(m *moment) string { return m.source.failure() }),

	textVariable("reply.text", ofReplies, func(m *moment) string { return m.source.reply().text }),
	{name: "reply.tools", kind: texts, at: ofTurns, value: func(m *moment) any { return stringList(m.source.reply().tools) }},
	textVariable("reply.finish_reason", ofTurns, func(m *moment) string { return m.source.reply().finish }),
	textVariable("reply.model", ofTurns, func(m *moment) string { return m.source.reply().model }),
	durationVariable("step_duration", ofSteps),
	textVariable("step_kind", ofSteps, func(m *moment) string { return m.source.stepKind() }),

	textVariable("subagent.agent", ofSubagents, func(m *moment) string { return m.source.subagent().Agent }),
	textVariable("subagent.instruction", ofSubagents, func(m *moment) string { return m.source.subagent().Instruction }),
	textVariable("subagent.result", ofAnswers, func(m *moment) string { return m.source.subagent().Result }),
	textVariable("subagent.run", ofSubagents, func(m *moment) string { return string(m.source.subagent().Run.ID) }),
	textVariable("subagent.session", ofSubagents, func(m *moment) string { return string(m.source.subagent().Run.Session) }),
	textVariable("subagent.status", ofChildEnds, func(m *moment) string { return string(m.source.subagent().Status) }),
	durationVariable("subagent.duration", ofChildEnds),
	countVariable("compaction.messages", ofCompactions, func(m *moment) int64 { return int64(m.source.compaction().Messages) }),
	countVariable("compaction.tokens", ofCompactions, func(m *moment) int64 { return m.source.compaction().Tokens }),

	countVariable("continuations", ofStops, func(m *moment) int64 { return int64(m.source.continuations()) }),
	textVariable("end.reason", ofEnds, func(m *moment) string { _, s := m.source.end(); return string(s.Reason) }),
	textVariable("end.message", ofEnds, func(m *moment) string { _, s := m.source.end(); return s.Message }),
	textVariable("end.source", ofEnds, func(m *moment) string { _, s := m.source.end(); return s.Source }),
	textVariable("conversation.source", ofConversationStarts, func(m *moment) string { return string(m.source.conversation().Source) }),
	textVariable("conversation.reason", ofConversationEnds, func(m *moment) string { return string(m.source.conversation().Reason) }),
	countVariable("conversation.turns", ofConversations, func(m *moment) int64 { return int64(m.source.conversation().Turns) }),
	textVariable("pipeline.name", ofPipelines, func(m *moment) string { return m.source.pipeline().Name }),
	textVariable("pipeline.reason", ofPipelines, func(m *moment) string { return m.source.pipeline().Reason }),
	cacheVariable(variable{name: "pipeline.changed_files", kind: texts, at: ofPipelines, value: func(m *moment) any {
		return stringList(m.source.pipeline().ChangedFiles)
	}}),
	cacheVariable(variable{name: "pipeline.stage_outputs", kind: texts, at: ofPipelines, value: func(m *moment) any {
		return stringList(m.source.pipeline().StageOutputs)
	}}),
	cacheVariable(variable{name: "parameters", kind: anyMap, at: ofBlueprints, value: func(m *moment) any {
		return argumentsIn(treeOf(m.source.parameters()))
	}}),
	textVariable("end.status", ofDone, func(m *moment) string { s, _ := m.source.end(); return string(s) }),
}, environment)

// environment holds the variables of pipelines. As in a process environment, a value that was not given is empty or 0.
var environment = []variable{
	givenText("SESSION", func(m *moment) string { return string(m.run().Session) }),
	givenText("STAGE", func(m *moment) string { return m.run().Stage }),
	givenText("NEXT_STAGE", func(m *moment) string { return m.source.pipeline().NextStage }),
	givenNumber("ITERATION", func(m *moment) int { return m.run().Iteration }),
	givenNumber("MAX_ITERATIONS", func(m *moment) int { return m.source.pipeline().MaxIterations }),
	givenText("PROGRESS", func(m *moment) string { return m.source.pipeline().Progress }),
	givenText("STATUS", func(m *moment) string { return m.source.pipeline().Status }),
	givenText("CTX", func(m *moment) string { return m.source.pipeline().Context }),
	givenText("LAST_DECISION", func(m *moment) string { return m.source.pipeline().LastDecision }),
	givenText("LAST_HOOK_STATUS", emptyText),
	cacheVariable(givenText("CHANGED_FILES", func(m *moment) string { return strings.Join(m.source.pipeline().ChangedFiles, "\n") })),
	cacheVariable(givenText("STAGE_OUTPUTS", func(m *moment) string { return strings.Join(m.source.pipeline().StageOutputs, "\n") })),
	givenText("ERROR", func(m *moment) string { return m.source.failure() }),
	givenText("TIMESTAMP", func(m *moment) string { return m.now().UTC().Format(time.RFC3339) }),
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

func emptyText(*moment) string { return "" }

// givenText returns a text variable that Values.Names can override.
func givenText(name string, otherwise func(m *moment) string) variable {
	return textVariable(name, nil, func(m *moment) string {
		if v, ok := m.values.Names[name]; ok {
			return v
		}
		return otherwise(m)
	})
}

// givenNumber returns an int variable that Values.Names can override. A text that is not a number is an error when it is
// used.
func givenNumber(name string, otherwise func(m *moment) int) variable {
	return variable{name: name, kind: cel.IntType, value: func(m *moment) any {
		v, ok := m.values.Names[name]
		if !ok || v == "" {
			return types.Int(otherwise(m))
		}
		n, isInt := numberOf(v).(types.Int)
		if !isInt {
			return types.NewErr("%s is %q and not a whole number", name, shortenText(v))
		}
		return n
	}}
}

var errCostUnknown = errors.New("the cost of the run is unknown: its model has no price")

func costOf(m *moment) any {
	usage := m.source.usage()
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
	return &variable{name: name, kind: kind, fixed: v, value: func(*moment) any { return v }}
}
