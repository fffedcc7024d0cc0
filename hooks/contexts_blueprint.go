package hooks

import (
	"context"
	"encoding/json"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// BlueprintRun is what a coordinator knows of a run that it gives to a runner.
type BlueprintRun struct {
	// Parameters are what the run was asked for with: a JSON object.
	Parameters json.RawMessage `json:"parameters"`
	// ResultText and ResultData are what came of it, in words or as JSON; empty and nil
	// before.
	ResultText string          `json:"result_text,omitempty"`
	ResultData json.RawMessage `json:"result_data,omitempty"`
	// Status is how it ended; empty before.
	Status agent.Status `json:"status,omitempty"`
	// Err is why it failed; nil unless it did.
	Err error `json:"-"`
}

// blueprintView is what the points of a coordinator's run have in common.
type blueprintView struct {
	contextView
	about BlueprintRun
}

// BlueprintRun returns what is known of the run. Its slices must not be written.
func (c blueprintView) BlueprintRun() BlueprintRun { return c.about }

// RunStartContext is the context of AtRunStart.
type RunStartContext struct{ blueprintView }

// Allow lets the run begin.
func (c RunStartContext) Allow() Result { return c.allowWith(nil) }

// Deny fails the run before a runner gets it.
func (c RunStartContext) Deny(reason string) Result {
	return c.newAnswer(Outcome{decision: Deny, reason: reason}, nil)
}

// Rewrite puts other parameters in place: what encodes to a JSON object.
func (c RunStartContext) Rewrite(parameters any) Result {
	text, err := objectOf(parameters)
	return c.newAnswer(Outcome{decision: Rewrite, arguments: text, invalid: err}, nil)
}

// RunResultContext is the context of AtRunResult.
type RunResultContext struct{ blueprintView }

// Allow lets the result pass, and may add to the state.
func (c RunResultContext) Allow(effects ...agent.Effect) Result { return c.allowWith(effects) }

// Replace puts another result in words in place; the one as JSON is gone.
func (c RunResultContext) Replace(text string, effects ...agent.Effect) Result {
	content := agent.TextContent(text)
	return c.newAnswer(Outcome{decision: Replace, content: &content}, effects)
}

// Withhold keeps the result from the caller, who is told why.
func (c RunResultContext) Withhold(reason string) Result {
	return c.newAnswer(Outcome{decision: Withhold, reason: reason}, nil)
}

// RunFailedContext is the context of AtRunFailed.
type RunFailedContext struct{ blueprintView }

// Err returns why it failed.
func (c RunFailedContext) Err() error { return c.about.Err }

// Allow adds to the state.
func (c RunFailedContext) Allow(effects ...agent.Effect) Result { return c.allowWith(effects) }

// RunEndContext is the context of AtRunFinish and AtRunTimeout.
type RunEndContext struct{ blueprintView }

// Err returns why it failed; nil unless it did.
func (c RunEndContext) Err() error { return c.about.Err }

// Blueprint asks the hooks at a point of a coordinator's run, in turn, each on what the
// ones before made of it. The run comes back as they left it, the state with what they
// added. Denied is set when, at RunStart, the run is not to be given out. The error is of
// a hook whose failure aborts, or of ctx. At other points, and on nil, it does nothing.
func (c *Compiled) Blueprint(ctx context.Context, s agent.State, at PointName, about BlueprintRun) (run BlueprintRun, after agent.State, denied, err error) {
	if c == nil {
		return about, s, nil, nil
	}
	var last *Outcome
	switch at {
	case RunStart:
		last, err = c.foldRunStart(ctx, s, &about)
	case RunResult:
		_, err = foldBlueprint(ctx, c, &c.runResult, at, &s, &about, func(v blueprintView) RunResultContext { return RunResultContext{v} })
	case RunFailed:
		_, err = foldBlueprint(ctx, c, &c.runFailed, at, &s, &about, func(v blueprintView) RunFailedContext { return RunFailedContext{v} })
	case RunFinish:
		_, err = foldBlueprint(ctx, c, &c.runFinish, at, &s, &about, func(v blueprintView) RunEndContext { return RunEndContext{v} })
	case RunTimeout:
		_, err = foldBlueprint(ctx, c, &c.runTimeout, at, &s, &about, func(v blueprintView) RunEndContext { return RunEndContext{v} })
	}
	if last != nil && last.decision == Deny {
		denied = &DeniedError{Tool: lo.CoalesceOrEmpty(s.Run().Agent, "the run"), Hook: last.hook, Reason: last.reason, Failed: last.failed}
	}
	return about, s, denied, err
}

// foldRunStart asks the controls at RunStart until all of them have judged the same
// parameters. The first Deny ends the asking.
func (c *Compiled) foldRunStart(ctx context.Context, s agent.State, about *BlueprintRun) (*Outcome, error) {
	if c.runStart.empty() {
		return nil, nil
	}
	info, _ := infoOf(RunStart)
	d := deliberation[judgedParameters]{now: judgedParameters(about.Parameters)}
	view := func(frozen *Outcome) RunStartContext {
		if string(d.now) != string(about.Parameters) {
			about.Parameters = json.RawMessage(d.now)
		}
		return RunStartContext{blueprintView{contextView{state: s, info: info, frozen: frozen}, *about}}
	}
	err := deliberate(ctx, &d, RunStart, c.runStart.controls, func(int) RunStartContext { return view(nil) })
	if err != nil {
		return d.observedOutcome(), err
	}
	return d.observedOutcome(), c.runStart.announce(ctx, c.pool, view(d.observedOutcome()))
}

// judgedParameters are the parameters of a run as the controls judge them.
type judgedParameters string

func (p judgedParameters) same(other judgedParameters) bool { return p == other }

func (p judgedParameters) applyRewrite(o *Outcome, again bool) (now, judged judgedParameters) {
	if now = judgedParameters(o.arguments); again && sameArguments(string(p), o.arguments) {
		now = p
	}
	return now, now
}

// foldBlueprint asks the controls of a point after the start in turn, each on what the ones
// before made of the run.
func foldBlueprint[C Context](
	ctx context.Context, c *Compiled, m *moment[C], at PointName, s *agent.State, about *BlueprintRun, view func(blueprintView) C,
) (*Outcome, error) {
	info, _ := infoOf(at)
	if m.empty() {
		return nil, nil
	}
	seen := func(frozen *Outcome) C {
		return view(blueprintView{contextView{state: *s, info: info, frozen: frozen}, *about})
	}
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
		tellConflicts(ctx, *s, at, effects, o.effects)
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
