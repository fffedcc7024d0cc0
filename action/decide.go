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

// answers are the decisions that are possible at a point, each with what makes an outcome of it.
type answers map[hooks.Decision]answer

// answer makes the outcome of one decision with the method that the context of a point has for it.
type answer struct {
	by   func(c hooks.Context, d *Decision, effects []agent.Effect) (hooks.Result, error)
	adds bool // it may add context and metadata
}

// answersOf says which decisions are possible where: a row for each context, with the method for each decision. What adds
// may bring context and metadata, what is only may not. Contexts without a row are those of points that can only be observed.
var answersOf = map[reflect.Type]answers{
	reflect.TypeFor[hooks.InputContext](): {
		hooks.Allow: allows(hooks.InputContext.Allow), hooks.Deny: adds(hooks.InputContext.Deny, reason),
		hooks.Rewrite: adds(hooks.InputContext.RewriteText, input),
	},
	reflect.TypeFor[hooks.ExecutionContext](): {
		hooks.Allow: allows(hooks.ExecutionContext.Allow), hooks.Deny: adds(hooks.ExecutionContext.Deny, reason),
		hooks.StopRun: adds(hooks.ExecutionContext.Stop, reason), hooks.Rewrite: adds(hooks.ExecutionContext.RewriteText, input),
	},
	reflect.TypeFor[hooks.StepContext](): {
		hooks.Allow: allows(hooks.StepContext.Allow), hooks.StopRun: adds(hooks.StepContext.Stop, reason),
	},
	reflect.TypeFor[hooks.InferenceContext](): {
		hooks.Allow: allows(hooks.InferenceContext.Allow), hooks.StopRun: adds(hooks.InferenceContext.Stop, reason),
	},
	reflect.TypeFor[hooks.ReplyContext](): {
		hooks.Allow: allows(hooks.ReplyContext.Allow), hooks.Replace: adds(hooks.ReplyContext.ReplaceText, result),
	},
	reflect.TypeFor[hooks.ToolContext](): {
		hooks.Allow: allows(hooks.ToolContext.Allow), hooks.Deny: adds(hooks.ToolContext.Deny, reason),
		hooks.Ask: adds(hooks.ToolContext.AskAbout, (*Decision).question), hooks.StopRun: adds(hooks.ToolContext.Stop, reason),
		hooks.Rewrite: adds(hooks.ToolContext.Rewrite, object), hooks.Mock: adds(mock, mocked),
	},
	reflect.TypeFor[hooks.ToolFailureContext](): {
		hooks.Allow: allows(hooks.ToolFailureContext.Allow), hooks.StopRun: adds(hooks.ToolFailureContext.Stop, reason),
		hooks.Replace: adds(hooks.ToolFailureContext.Replace, result), hooks.Withhold: adds(hooks.ToolFailureContext.Withhold, reason),
	},
	reflect.TypeFor[hooks.ToolResultContext](): {
		hooks.Allow: allows(hooks.ToolResultContext.Allow), hooks.StopRun: adds(hooks.ToolResultContext.Stop, reason),
		hooks.Replace: adds(hooks.ToolResultContext.Replace, result), hooks.Withhold: adds(hooks.ToolResultContext.Withhold, reason),
	},
	reflect.TypeFor[hooks.InterventionContext](): {
		hooks.Allow: allowsOnly(hooks.InterventionContext.Allow), hooks.Deny: only(hooks.InterventionContext.Deny, reason),
		hooks.Rewrite: only(hooks.InterventionContext.Rewrite, object), hooks.Approve: only(hooks.InterventionContext.Approve, reason),
		hooks.Reject: only(hooks.InterventionContext.Reject, reason),
	},
	reflect.TypeFor[hooks.PreCompactContext](): {
		hooks.Allow: allowsOnly(hooks.PreCompactContext.Allow), hooks.Deny: only(hooks.PreCompactContext.Deny, reason),
	},
	reflect.TypeFor[hooks.PreSubagentContext](): {
		hooks.Allow: allowsOnly(hooks.PreSubagentContext.Allow), hooks.Deny: only(hooks.PreSubagentContext.Deny, reason),
		hooks.Rewrite: only(hooks.PreSubagentContext.Rewrite, input),
	},
	reflect.TypeFor[hooks.PostSubagentContext](): {
		hooks.Allow: allowsOnly(hooks.PostSubagentContext.Allow), hooks.Replace: only(hooks.PostSubagentContext.Replace, result),
		hooks.Withhold: only(hooks.PostSubagentContext.Withhold, reason),
	},
	reflect.TypeFor[hooks.StepEndContext](): {
		hooks.Allow: allows(hooks.StepEndContext.Allow), hooks.StopRun: adds(hooks.StepEndContext.Stop, reason),
	},
	reflect.TypeFor[hooks.StopContext](): {
		hooks.Allow: allowsOnly(hooks.StopContext.Allow), hooks.StopRun: only(hooks.StopContext.Stop, reason),
		hooks.Continue: only(hooks.StopContext.Continue, reason),
	},
	reflect.TypeFor[hooks.FailureContext](): {hooks.Allow: allows(hooks.FailureContext.Allow)},
	reflect.TypeFor[hooks.PipelineContext](): {
		hooks.Allow: allows(hooks.PipelineContext.Allow), hooks.StopRun: adds(hooks.PipelineContext.Stop, reason),
	},
	reflect.TypeFor[hooks.RunStartContext](): {
		hooks.Allow: allowsOnly(hooks.RunStartContext.Allow), hooks.Deny: only(hooks.RunStartContext.Deny, reason),
		hooks.Rewrite: only(hooks.RunStartContext.Rewrite, object),
	},
	reflect.TypeFor[hooks.RunResultContext](): {
		hooks.Allow: allows(hooks.RunResultContext.Allow), hooks.Replace: adds(hooks.RunResultContext.Replace, result),
		hooks.Withhold: only(hooks.RunResultContext.Withhold, reason),
	},
	reflect.TypeFor[hooks.RunFailedContext](): {hooks.Allow: allows(hooks.RunFailedContext.Allow)},
}

// allows, adds and only return the answer that is made with a method, given what value reads from the decision. Those of
// allows and adds may add context and metadata.
func allows[C hooks.Context](method func(c C, effects ...agent.Effect) hooks.Result) answer {
	return adds(func(c C, _ *Decision, effects ...agent.Effect) hooks.Result { return method(c, effects...) }, itself)
}

func allowsOnly[C hooks.Context](method func(c C) hooks.Result) answer {
	return only(func(c C, _ *Decision) hooks.Result { return method(c) }, itself)
}

func adds[C hooks.Context, V any](method func(c C, v V, effects ...agent.Effect) hooks.Result, value func(d *Decision) (V, error)) answer {
	return answer{adds: true, by: func(c hooks.Context, d *Decision, effects []agent.Effect) (hooks.Result, error) {
		v, err := value(d)
		if err != nil {
			return hooks.Result{}, err
		}
		return method(c.(C), v, effects...), nil //nolint:forcetypeassert // the row is that of C
	}}
}

func only[C hooks.Context, V any](method func(c C, v V) hooks.Result, value func(d *Decision) (V, error)) answer {
	made := adds(func(c C, v V, _ ...agent.Effect) hooks.Result { return method(c, v) }, value)
	made.adds = false
	return made
}

// errNotGiven is returned for a decision that lacks what the point puts in place: a rewrite of a call without arguments.
var errNotGiven = errors.New("the decision lacks what it puts in place")

func itself(d *Decision) (*Decision, error) { return d, nil }

func reason(d *Decision) (string, error) { return d.Reason, nil }

func object(d *Decision) (any, error) {
	if d.Arguments == nil {
		return nil, errNotGiven
	}
	return d.Arguments, nil
}

func input(d *Decision) (string, error) { return given(d.Input) }

func result(d *Decision) (string, error) { return given(d.Result) }

func given(text *string) (string, error) {
	if text == nil {
		return "", errNotGiven
	}
	return *text, nil
}

func mocked(d *Decision) (*Decision, error) {
	_, err := given(d.Result)
	return d, err
}

func mock(c hooks.ToolContext, d *Decision, effects ...agent.Effect) hooks.Result {
	if d.IsError {
		return c.MockFailure(*d.Result, effects...)
	}
	return c.Mock(*d.Result, effects...)
}

// Decisions returns what may be decided at the point of c, in the order of the constants of package hooks; nothing where only
// observers are. A zero context of the point will do.
func Decisions(c hooks.Context) []hooks.Decision {
	can := answersOf[reflect.TypeOf(c)]
	return lo.Filter(
		[]hooks.Decision{
			hooks.Allow, hooks.Deny, hooks.Ask, hooks.StopRun, hooks.Rewrite, hooks.Mock, hooks.Replace, hooks.Withhold,
			hooks.Approve, hooks.Reject, hooks.Continue,
		},
		func(d hooks.Decision, _ int) bool { return can[d].by != nil },
	)
}

// guards reports whether something can be kept from happening, or from being seen, at the point of c: where a text that is
// no decision must not pass for none.
func guards(c hooks.Context) bool {
	can := answersOf[reflect.TypeOf(c)]
	return can[hooks.Deny].by != nil || can[hooks.Withhold].by != nil
}

// Decide makes the outcome of a point of a decision. Nil passes. A decision that the point has no power for is a failure
// of the hook, and so are effects where there can be none.
func Decide(c hooks.Context, d *Decision) hooks.Result {
	if d == nil {
		return hooks.Result{}
	}
	can, effects := answersOf[reflect.TypeOf(c)][d.Decision], d.effects()
	switch {
	case can.by == nil:
		return cannot(c, d.Decision)
	case len(effects) > 0 && !can.adds:
		return failed(fmt.Errorf("%s at %s can add neither context nor metadata", d.Decision, c.Point()))
	}
	outcome, err := can.by(c, d, effects)
	switch {
	case errors.Is(err, errNotGiven):
		return cannot(c, d.Decision)
	case err != nil:
		return failed(err)
	}
	return outcome
}

// effects is what the decision adds.
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

// plain is a JSON value as Go has it: numbers are int64 where they are whole, and float64.
func plain(raw json.RawMessage) any {
	var v any
	if err := strictjson.Unmarshal(raw, &v); err != nil {
		return string(raw) // ParseDecision has read it, so it is somebody's own
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

// cannot says what can be decided instead.
func cannot(c hooks.Context, d hooks.Decision) hooks.Result {
	can := lo.Map(Decisions(c), func(d hooks.Decision, _ int) string { return string(d) })
	if len(can) == 0 {
		return failed(fmt.Errorf("%s cannot be decided at %s: nothing can", d, c.Point()))
	}
	return failed(fmt.Errorf("%s, as it was given, cannot be decided at %s: it can be %s", d, c.Point(), strings.Join(can, ", ")))
}

func failed(err error) hooks.Result { return mo.Err[*hooks.Outcome](err) }

// Apply does an action for a hook and makes an outcome of its answer: what a control made of an action is.
func Apply(ctx context.Context, c hooks.Context, a Action, r *Request) hooks.Result {
	answer, err := Keep(ctx, a, r).Do(ctx, r).Get()
	if err != nil {
		return failed(err)
	}
	return Decide(c, answer.Decision)
}
