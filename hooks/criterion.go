package hooks

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/reserved"
)

// DefaultContinuations is how often Stop hooks can make one run continue if the agent sets
// no other number.
const DefaultContinuations = 8

// continued counts how often Stop hooks made the run continue.
var continued = agent.ReservedKey[int](reserved.InternalToken(), "hooks.continuations", agent.ScopeRun)

// HookContinuationCriterion wraps an agent's other criteria and asks the hooks at Stop when the run would otherwise end
// by itself. The hooks cannot override limits, cancellation and errors. It is safe for concurrent use.
type HookContinuationCriterion struct {
	inner agent.Criterion
	hooks *Compiled
	most  int
}

var _ agent.Criterion = HookContinuationCriterion{}

// WrapCriterion wraps the other criteria, which must include agent.Base, with the hooks. continuations is how often the
// hooks can make one run continue. Zero means DefaultContinuations.
func (c *Compiled) WrapCriterion(inner agent.Criterion, continuations int) agent.Criterion {
	if pointsOf(c).stop.empty() {
		return inner
	}
	return HookContinuationCriterion{inner, c, cmp.Or(continuations, DefaultContinuations)}
}

// String returns the criterion's description in a printed plan.
func (x HookContinuationCriterion) String() string {
	return fmt.Sprintf("HookContinuationCriterion(%v)", x.inner)
}

// Limits returns the other criteria's limits. The hooks are asked only when those criteria let the run end.
func (x HookContinuationCriterion) Limits() agent.Limits { return agent.LimitsOf(x.inner) }

// Evaluate returns the other criteria's evaluation, unless a Stop hook makes the run continue or stops it. If hooks
// make the run continue more often than allowed, the run ends with agent.StopContinuations. Its details are hook,
// continuations and maxContinuations, in addition to the original signal's details.
func (x HookContinuationCriterion) Evaluate(ctx context.Context, s agent.State) mo.Result[agent.Evaluation] {
	result := x.inner.Evaluate(ctx, s)
	verdict, err := result.Get()
	if err != nil || verdict.Verdict != agent.AllowStop || !verdict.Signal.Reason.Soft() {
		return result
	}
	count := continued.Or(s, 0)
	payload := func(frozen *Outcome) StopContext {
		p := &stopPayload{
			base: base{
				state: s, point: Stop, frozen: frozen, step: s.RunStepCount(), kind: agent.StepFinalResponse,
			},
			signal: verdict.Signal, continuations: count, left: max(x.most-count, 0),
		}
		return StopContext{p.common(), p}
	}
	var last *Outcome
	var goOn agent.Effects
	capped := ""
	for _, e := range pointsOf(x.hooks).stop.controls {
		o, err := e.consult(ctx, payload(nil))
		if err != nil {
			return mo.Err[agent.Evaluation](err)
		}
		if o.Decision() == StopRun {
			last, goOn = o, agent.Effects{}
			verdict = agent.Evaluation{Verdict: agent.Forbid, Signal: *signalOf(o)}
			break
		}
		if o.Decision() != Continue {
			continue
		}
		if count >= x.most {
			x.tellCapped(ctx, s, e.name)
			capped = cmp.Or(capped, e.name)
			continue
		}
		last = o
		told := agent.UserText(cmp.Or(o.reason, "You are not done yet: continue."))
		goOn = goOn.Add(agent.EffectsOf(agent.AddMessage(told)).From(o.hook))
	}
	if capped != "" && verdict.Verdict == agent.AllowStop {
		verdict.Signal = x.capSignal(verdict.Signal, capped, count)
	}
	if goOn.Len() > 0 {
		verdict = agent.Evaluation{
			Verdict: agent.RequestContinuation,
			Effects: agent.EffectsOf(continued.Set(count + 1)).Add(goOn),
		}
	}
	if err := pointsOf(x.hooks).stop.announce(ctx, x.hooks.pool, payload(last)); err != nil {
		return mo.Err[agent.Evaluation](err)
	}
	return mo.Ok(verdict)
}

// capSignal returns the signal for a run that ends although a hook answered Continue.
func (x HookContinuationCriterion) capSignal(end agent.Signal, hook string, count int) agent.Signal {
	details := maps.Clone(end.Details)
	if details == nil {
		details = map[string]any{}
	}
	details["hook"], details["continuations"], details["maxContinuations"] = hook, count, x.most
	message := fmt.Sprintf("hook %q asked to continue, but the run has already been continued %d times, the maximum", hook, count)
	if end.Message != "" {
		message = end.Message + "; " + message
	}
	return agent.Signal{Reason: agent.StopContinuations, Message: message, Source: end.Source, Details: details}
}

func (x HookContinuationCriterion) tellCapped(ctx context.Context, s agent.State, hook string) {
	s.Emit(ctx, Event{
		Kind: HookSkipped, Run: s.Run(), Step: s.RunStepCount(), Hook: hook, Point: Stop, Control: true,
		Decision: Continue, Reason: fmt.Sprintf("the run has already been continued %d times, the maximum", x.most),
	})
}
