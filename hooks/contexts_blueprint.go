package hooks

import (
	"context"
	"encoding/json"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// BlueprintRun describes a run that a coordinator gives to a runner.
type BlueprintRun struct {
	// Parameters are the run's parameters: a JSON object.
	Parameters json.RawMessage `json:"parameters,omitzero"`
	// ResultText and ResultData are the result, as text or as JSON. They are empty and nil before the run has ended.
	ResultText string          `json:"result_text,omitempty"`
	ResultData json.RawMessage `json:"result_data,omitzero"`
	// Status is the run's final status. It is empty while the run is running.
	Status agent.Status `json:"status,omitempty"`
	// Err is the error of a failed run, otherwise nil.
	Err error `json:"-"`
	// Took is the run's duration, from submission to end. It is zero before the end.
	Took time.Duration `json:"-"`
}

// blueprintView is the common part of the contexts at a coordinated run's points.
type blueprintView struct {
	aroundView
	about BlueprintRun
}

// BlueprintRun returns the run. Its slices must not be modified.
func (c blueprintView) BlueprintRun() BlueprintRun { return c.about }

// RunStartContext is the context of AtRunStart.
type RunStartContext struct{ blueprintView }

// Allow lets the run begin.
func (c RunStartContext) Allow() Result { return c.allowWith(nil) }

// Deny fails the run before a runner gets it.
func (c RunStartContext) Deny(reason string) Result {
	return c.newAnswer(Outcome{decision: Deny, reason: reason}, nil)
}

// Rewrite replaces the parameters. They must marshal to a JSON object.
func (c RunStartContext) Rewrite(parameters any) Result {
	text, err := objectOf(parameters)
	return c.newAnswer(Outcome{decision: Rewrite, arguments: text, invalid: err}, nil)
}

// RunResultContext is the context of AtRunResult.
type RunResultContext struct{ blueprintView }

// Allow leaves the result unchanged, and can add effects.
func (c RunResultContext) Allow(effects ...agent.Effect) Result { return c.allowWith(effects) }

// Replace replaces the result with a text. A JSON result is dropped.
func (c RunResultContext) Replace(text string, effects ...agent.Effect) Result {
	content := agent.TextContent(text)
	return c.newAnswer(Outcome{decision: Replace, content: &content}, effects)
}

// Withhold withholds the result from the caller, who receives the reason instead.
func (c RunResultContext) Withhold(reason string) Result {
	return c.newAnswer(Outcome{decision: Withhold, reason: reason}, nil)
}

// RunFailedContext is the context of AtRunFailed.
type RunFailedContext struct{ blueprintView }

// Err returns the run's error.
func (c RunFailedContext) Err() error { return c.about.Err }

// Duration returns the run's duration, from submission to end.
func (c RunFailedContext) Duration() time.Duration { return c.about.Took }

// Allow can add effects.
func (c RunFailedContext) Allow(effects ...agent.Effect) Result { return c.allowWith(effects) }

// RunEndContext is the context of AtRunFinish and AtRunTimeout.
type RunEndContext struct{ blueprintView }

// Err returns the error of a failed run, otherwise nil.
func (c RunEndContext) Err() error { return c.about.Err }

// Duration returns the run's duration, from submission to end.
func (c RunEndContext) Duration() time.Duration { return c.about.Took }

// fireBlueprint asks the hooks at a coordinated run's point, in turn. Each sees the changes by earlier hooks. denied is
// set at RunStart if the run must not be given to a runner.
func (c *Compiled) fireBlueprint(ctx context.Context, s agent.State, f Firing, about BlueprintRun) (run BlueprintRun, after agent.State, denied, err error) {
	var last *Outcome
	switch f.Point {
	case RunStart:
		last, err = c.foldRunStart(ctx, s, f, &about)
	case RunResult:
		_, err = foldBlueprint(ctx, c, &pointsOf(c).runResult, f, &s, &about, func(v blueprintView) RunResultContext { return RunResultContext{v} })
	case RunFailed:
		_, err = foldBlueprint(ctx, c, &pointsOf(c).runFailed, f, &s, &about, func(v blueprintView) RunFailedContext { return RunFailedContext{v} })
	case RunFinish:
		_, err = foldBlueprint(ctx, c, &pointsOf(c).runFinish, f, &s, &about, func(v blueprintView) RunEndContext { return RunEndContext{v} })
	case RunTimeout:
		_, err = foldBlueprint(ctx, c, &pointsOf(c).runTimeout, f, &s, &about, func(v blueprintView) RunEndContext { return RunEndContext{v} })
	}
	if last != nil && last.decision == Deny {
		denied = &DeniedError{Tool: lo.CoalesceOrEmpty(s.Run().Agent, "the run"), Hook: last.hook, Reason: last.reason, Failed: last.failed}
	}
	return about, s, denied, err
}

// foldRunStart asks the controls at RunStart until all of them have judged the same parameters,
// or one denies.
func (c *Compiled) foldRunStart(ctx context.Context, s agent.State, f Firing, about *BlueprintRun) (*Outcome, error) {
	d := deliberation[judgedParameters]{now: judgedParameters(about.Parameters)}
	view := func(frozen *Outcome) RunStartContext {
		if string(d.now) != string(about.Parameters) {
			about.Parameters = json.RawMessage(d.now)
		}
		return RunStartContext{blueprintView{viewAround(s, f, frozen), *about}}
	}
	err := deliberate(ctx, &d, RunStart, pointsOf(c).runStart.controls, func(int) RunStartContext { return view(nil) })
	if err != nil {
		return d.observedOutcome(), err
	}
	return d.observedOutcome(), pointsOf(c).runStart.announce(ctx, c.pool, view(d.observedOutcome()))
}

// judgedParameters are the run parameters that the controls judge.
type judgedParameters string

func (p judgedParameters) same(other judgedParameters) bool { return p == other }

func (p judgedParameters) applyRewrite(o *Outcome, again bool) (now, judged judgedParameters) {
	if now = judgedParameters(o.arguments); again && sameArguments(string(p), o.arguments) {
		now = p
	}
	return now, now
}

// foldBlueprint asks the controls at a point after the start, in turn. Each sees the changes by earlier controls.
func foldBlueprint[C Context](
	ctx context.Context, c *Compiled, m *pointHooks[C], f Firing, s *agent.State, about *BlueprintRun, view func(blueprintView) C,
) (*Outcome, error) {
	seen := func(frozen *Outcome) C { return view(blueprintView{viewAround(*s, f, frozen), *about}) }
	var last *Outcome
	var effects agent.Effects
	for _, e := range m.controls {
		o, err := e.consult(ctx, seen(nil))
		if err != nil {
			return last, err
		}
		if o == nil {
			continue
		}
		tellConflicts(ctx, *s, f.Point, effects, o.effects)
		effects = effects.Add(o.effects)
		*s = s.Apply(o.effects)
		if last == nil || o.decision != Allow {
			last = o
		}
		switch o.decision {
		case Replace:
			about.ResultText, about.ResultData = o.content.Text(), nil
		case Withhold:
			about.ResultText, about.ResultData = "result withheld by "+o.hook+": "+orNoReason(o.reason), nil
		}
	}
	return last, m.announce(ctx, c.pool, seen(last))
}
