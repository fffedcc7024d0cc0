package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// answers maps a point's possible decisions to functions that build the outcomes.
type answers map[hooks.Decision]answer

// answer builds one decision's outcome with the matching method of the point's context.
type answer struct {
	by   func(c hooks.Context, d *Decision, effects []agent.Effect) (hooks.Result, error)
	adds bool // it may add context and metadata
}

// answersOf lists the possible decisions. Each context has a row, with the method for each decision. Decisions built
// with answerAllow and answerWith may add context and metadata. Points whose context has no row can only be observed.
var answersOf = map[reflect.Type]answers{
	reflect.TypeFor[hooks.ConversationContext](): {hooks.Allow: answerAllow(hooks.ConversationContext.Allow)},
	reflect.TypeFor[hooks.InputContext](): {
		hooks.Allow: answerAllow(hooks.InputContext.Allow), hooks.Deny: answerWith(hooks.InputContext.Deny, readReason),
		hooks.Rewrite: answerWith(hooks.InputContext.RewriteText, readInput),
	},
	reflect.TypeFor[hooks.ExecutionContext](): {
		hooks.Allow: answerAllow(hooks.ExecutionContext.Allow), hooks.Deny: answerWith(hooks.ExecutionContext.Deny, readReason),
		hooks.StopRun: answerWith(hooks.ExecutionContext.Stop, readReason), hooks.Rewrite: answerWith(hooks.ExecutionContext.RewriteText, readInput),
	},
	reflect.TypeFor[hooks.StepContext](): {
		hooks.Allow: answerAllow(hooks.StepContext.Allow), hooks.StopRun: answerWith(hooks.StepContext.Stop, readReason),
	},
	reflect.TypeFor[hooks.InferenceContext](): {
		hooks.Allow: answerAllow(hooks.InferenceContext.Allow), hooks.StopRun: answerWith(hooks.InferenceContext.Stop, readReason),
	},
	reflect.TypeFor[hooks.ReplyContext](): {
		hooks.Allow: answerAllow(hooks.ReplyContext.Allow), hooks.Replace: answerWith(hooks.ReplyContext.ReplaceText, readResult),
	},
	reflect.TypeFor[hooks.ToolContext](): {
		hooks.Allow: answerAllow(hooks.ToolContext.Allow), hooks.Deny: answerWith(hooks.ToolContext.Deny, readReason),
		hooks.Ask: answerWith(hooks.ToolContext.AskAbout, (*Decision).question), hooks.StopRun: answerWith(hooks.ToolContext.Stop, readReason),
		hooks.Rewrite: answerWith(hooks.ToolContext.Rewrite, readObject), hooks.Mock: answerWith(makeMock, readMock),
	},
	reflect.TypeFor[hooks.ToolFailureContext](): {
		hooks.Allow: answerAllow(hooks.ToolFailureContext.Allow), hooks.StopRun: answerWith(hooks.ToolFailureContext.Stop, readReason),
		hooks.Replace: answerWith(hooks.ToolFailureContext.Replace, readResult), hooks.Withhold: answerWith(hooks.ToolFailureContext.Withhold, readReason),
	},
	reflect.TypeFor[hooks.ToolResultContext](): {
		hooks.Allow: answerAllow(hooks.ToolResultContext.Allow), hooks.StopRun: answerWith(hooks.ToolResultContext.Stop, readReason),
		hooks.Replace: answerWith(hooks.ToolResultContext.Replace, readResult), hooks.Withhold: answerWith(hooks.ToolResultContext.Withhold, readReason),
	},
	reflect.TypeFor[hooks.InterventionContext](): {
		hooks.Allow: answerAllowOnly(hooks.InterventionContext.Allow), hooks.Deny: answerOnly(hooks.InterventionContext.Deny, readReason),
		hooks.Rewrite: answerOnly(hooks.InterventionContext.Rewrite, readObject), hooks.Approve: answerOnly(hooks.InterventionContext.Approve, readReason),
		hooks.RejectAndEnd: answerOnly(hooks.InterventionContext.RejectAndEnd, readReason),
	},
	reflect.TypeFor[hooks.PreCompactContext](): {
		hooks.Allow: answerAllowOnly(hooks.PreCompactContext.Allow), hooks.Deny: answerOnly(hooks.PreCompactContext.Deny, readReason),
	},
	reflect.TypeFor[hooks.PreSubagentContext](): {
		hooks.Allow: answerAllowOnly(hooks.PreSubagentContext.Allow), hooks.Deny: answerOnly(hooks.PreSubagentContext.Deny, readReason),
		hooks.Rewrite: answerOnly(hooks.PreSubagentContext.Rewrite, readInput),
	},
	reflect.TypeFor[hooks.PostSubagentContext](): {
		hooks.Allow: answerAllowOnly(hooks.PostSubagentContext.Allow), hooks.Replace: answerOnly(hooks.PostSubagentContext.Replace, readResult),
		hooks.Withhold: answerOnly(hooks.PostSubagentContext.Withhold, readReason),
	},
	reflect.TypeFor[hooks.StepEndContext](): {
		hooks.Allow: answerAllow(hooks.StepEndContext.Allow), hooks.StopRun: answerWith(hooks.StepEndContext.Stop, readReason),
	},
	reflect.TypeFor[hooks.StopContext](): {
		hooks.Allow: answerAllowOnly(hooks.StopContext.Allow), hooks.StopRun: answerOnly(hooks.StopContext.Stop, readReason),
		hooks.Continue: answerOnly(hooks.StopContext.Continue, readReason),
	},
	reflect.TypeFor[hooks.FailureContext](): {hooks.Allow: answerAllow(hooks.FailureContext.Allow)},
	reflect.TypeFor[hooks.PipelineContext](): {
		hooks.Allow: answerAllow(hooks.PipelineContext.Allow), hooks.StopRun: answerWith(hooks.PipelineContext.Stop, readReason),
	},
	reflect.TypeFor[hooks.RunStartContext](): {
		hooks.Allow: answerAllowOnly(hooks.RunStartContext.Allow), hooks.Deny: answerOnly(hooks.RunStartContext.Deny, readReason),
		hooks.Rewrite: answerOnly(hooks.RunStartContext.Rewrite, readObject),
	},
	reflect.TypeFor[hooks.RunResultContext](): {
		hooks.Allow: answerAllow(hooks.RunResultContext.Allow), hooks.Replace: answerWith(hooks.RunResultContext.Replace, readResult),
		hooks.Withhold: answerOnly(hooks.RunResultContext.Withhold, readReason),
	},
	reflect.TypeFor[hooks.RunFailedContext](): {hooks.Allow: answerAllow(hooks.RunFailedContext.Allow)},
}

// answerAllow returns an answer for a method without a value.
func answerAllow[C hooks.Context](method func(c C, effects ...agent.Effect) hooks.Result) answer {
	return answerWith(func(c C, _ *Decision, effects ...agent.Effect) hooks.Result { return method(c, effects...) }, readWhole)
}

// answerAllowOnly works like answerAllow for a method that adds neither context nor metadata.
func answerAllowOnly[C hooks.Context](method func(c C) hooks.Result) answer {
	return answerOnly(func(c C, _ *Decision) hooks.Result { return method(c) }, readWhole)
}

// answerWith returns an answer for a method that takes a value. The function value reads it from the decision.
func answerWith[C hooks.Context, V any](method func(c C, v V, effects ...agent.Effect) hooks.Result, value func(d *Decision) (V, error)) answer {
	return answer{adds: true, by: func(c hooks.Context, d *Decision, effects []agent.Effect) (hooks.Result, error) {
		v, err := value(d)
		if err != nil {
			return hooks.Result{}, err
		}
		return method(c.(C), v, effects...), nil //nolint:forcetypeassert // the row is that of C
	}}
}

// answerOnly works like answerWith for a method that adds neither context nor metadata.
func answerOnly[C hooks.Context, V any](method func(c C, v V) hooks.Result, value func(d *Decision) (V, error)) answer {
	made := answerWith(func(c C, v V, _ ...agent.Effect) hooks.Result { return method(c, v) }, value)
	made.adds = false
	return made
}

// errNotGiven is returned for a decision without its replacement value, such as a rewrite without arguments.
var errNotGiven = errors.New("the decision lacks its replacement")

func readWhole(d *Decision) (*Decision, error) { return d, nil }

func readReason(d *Decision) (string, error) { return d.Reason, nil }

func readObject(d *Decision) (any, error) {
	if d.Arguments == nil {
		return nil, errNotGiven
	}
	return d.Arguments, nil
}

func readInput(d *Decision) (string, error) { return givenText(d.Input) }

func readResult(d *Decision) (string, error) { return givenText(d.Result) }

func givenText(text *string) (string, error) {
	if text == nil {
		return "", errNotGiven
	}
	return *text, nil
}

func readMock(d *Decision) (*Decision, error) {
	_, err := givenText(d.Result)
	return d, err
}

func makeMock(c hooks.ToolContext, d *Decision, effects ...agent.Effect) hooks.Result {
	if d.IsError {
		return c.MockFailure(*d.Result, effects...)
	}
	return c.Mock(*d.Result, effects...)
}

// Decisions returns the possible decisions at the point of c, in the order of package hooks' constants. At points for
// observers only it returns none. A zero context of the point is sufficient.
func Decisions(c hooks.Context) []hooks.Decision {
	can := answersOf[reflect.TypeOf(c)]
	return lo.Filter(
		[]hooks.Decision{
			hooks.Allow, hooks.Deny, hooks.Ask, hooks.StopRun, hooks.Rewrite, hooks.Mock, hooks.Replace, hooks.Withhold,
			hooks.Approve, hooks.RejectAndEnd, hooks.Continue,
		},
		func(d hooks.Decision, _ int) bool { return can[d].by != nil },
	)
}

// guards reports whether a decision at the point of c can prevent or hide something. At such a point, text that is not
// a decision must not count as no opinion.
func guards(c hooks.Context) bool {
	can := answersOf[reflect.TypeOf(c)]
	return can[hooks.Deny].by != nil || can[hooks.Withhold].by != nil
}

// Decide converts a decision to an outcome for the point of c. Nil passes. An impossible decision is a hook failure. So
// is a decision with effects at a point that does not support them.
func Decide(c hooks.Context, d *Decision) hooks.Result {
	if d == nil {
		return hooks.Result{}
	}
	can, effects := answersOf[reflect.TypeOf(c)][d.Decision], d.effects()
	switch {
	case can.by == nil:
		return cannot(c, d.Decision)
	case len(effects) > 0 && !can.adds:
		return failDecision(fmt.Errorf("decision %s at %s cannot add context or metadata", d.Decision, c.Point()))
	}
	outcome, err := can.by(c, d, effects)
	switch {
	case errors.Is(err, errNotGiven):
		return cannot(c, d.Decision)
	case err != nil:
		return failDecision(err)
	}
	return hooks.WithReason(outcome, d.Reason)
}

// effects returns the effects that the decision adds.
func (d *Decision) effects() []agent.Effect {
	var effects []agent.Effect
	if d.Context != "" {
		effects = append(effects, agent.AddContext(d.Context))
	}
	if len(d.Metadata) == 0 {
		return effects
	}
	for _, name := range slices.Sorted(maps.Keys(d.Metadata)) {
		effects = append(effects, agent.SessionKey[any](name).Set(plain(d.Metadata[name])))
	}
	return effects
}

// plain converts a JSON value to a Go value. Whole numbers become int64, others float64.
func plain(raw json.RawMessage) any {
	var v any
	if err := strictjson.Unmarshal(raw, &v); err != nil {
		return string(raw) // ParseDecision has validated it
	}
	n, ok := v.(json.Number)
	if !ok {
		return v
	}
	if whole, err := n.Int64(); err == nil {
		return whole
	}
	f, _ := n.Float64()
	return f
}

// cannot returns a failure that lists the possible decisions.
func cannot(c hooks.Context, d hooks.Decision) hooks.Result {
	can := lo.Map(Decisions(c), func(d hooks.Decision, _ int) string { return string(d) })
	if len(can) == 0 {
		return failDecision(fmt.Errorf("decision %s is not allowed at %s, which allows no decisions", d, c.Point()))
	}
	return failDecision(fmt.Errorf("decision %s, as given, is not allowed at %s: expected one of %s", d, c.Point(), strings.Join(can, ", ")))
}

func failDecision(err error) hooks.Result { return mo.Err[*hooks.Outcome](err) }

// Apply performs a hook's action and converts its answer to an outcome. Controls with actions use it.
func Apply(ctx context.Context, c hooks.Context, a Action, r *Request) hooks.Result {
	answer, err := Keep(ctx, a, r).Do(ctx, r)
	if err != nil {
		return failDecision(err)
	}
	return Decide(c, answer.Decision)
}
