package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/runctx"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
	"github.com/grapnel-go/grapnel/policy/internal/points"
)

// boundRule is a rule whose action is bound to a host.
type boundRule struct {
	*rule

	policy *Policy
	do     action.Action // performs the rule's task; nil for a rule with a decision
	tracks bool          // the rule needs the results of earlier actions
}

// newHooks returns the rule as hooks: one, or, while it is waived, one in shadow and one that takes over when the waiver
// ends.
func (u boundRule) newHooks() []hooks.Hook {
	if u.waiver == nil || u.shadow || u.waiver.over() {
		return []hooks.Hook{u.newHook()}
	}
	waived := hooks.When(func(hooks.Context) bool { return !u.waiver.over() })
	inShadow, shadowed := u, *u.rule
	shadowed.suffix, shadowed.shadow = waivedSuffix, true
	inShadow.rule = &shadowed
	return []hooks.Hook{inShadow.newHook().Matching(waived), u.newHook().Matching(hooks.Not(waived))}
}

// waivedSuffix ends the name of a waived rule's hook.
const waivedSuffix = ":waived"

// newHook returns the rule as one hook.
func (u boundRule) newHook() hooks.Hook {
	h := u.point.Control(u.name(), u.answer)
	if u.task != nil && u.task.observe {
		h = u.point.Observe(u.name(), func(ctx context.Context, c hooks.Context) error { return u.answer(ctx, c).Error() })
	}
	h = u.matching(h).WithPriority(u.priority).WithFailure(u.failure.policy)
	if limit := u.timeLimit(); limit > 0 {
		h = h.WithTimeout(limit)
	}
	if u.shadow {
		h = h.InShadow()
	}
	return h
}

// answer returns the rule's answer for an event.
func (u boundRule) answer(ctx context.Context, c hooks.Context) hooks.Result {
	in := condition.Of(c)
	if now := u.policy.options.Now; now != nil {
		in = in.At(now())
	}
	var earlier *actionResults
	if u.tracks {
		earlier = resultsAt(c, u)
		in = in.With(earlier.values(c, u.doc))
	}
	if u.when != nil {
		// The cost limit bounds the evaluation. Checking a context would need a timer for each rule.
		ok, err := u.when.Test(context.Background(), in)
		u.reportJudgement(ctx, in, ok, err)
		switch {
		case err != nil && u.point.Source == points.OfPipelines:
			u.reportSkip(ctx, c, fmt.Sprintf("its condition failed: %v", err), nil)
			return hooks.Result{}
		case err != nil:
			return failRule(c, fmt.Errorf("when: %w", err))
		case !ok:
			return hooks.Result{}
		}
	}
	if u.task != nil {
		return u.perform(ctx, c, in, earlier)
	}
	return u.because(in, u.decide(ctx, c, in))
}

// because adds the reasons to an answer.
func (u boundRule) because(in condition.Input, answer hooks.Result) hooks.Result {
	if u.when == nil {
		return answer
	}
	if o, err := answer.Get(); err != nil || o == nil {
		return answer
	}
	return hooks.Because(answer, u.when.Explain(context.Background(), in)...) // explained by the condition
}

// decide returns the rule's decision for an event.
func (u boundRule) decide(ctx context.Context, c hooks.Context, in condition.Input) hooks.Result {
	said := u.decision
	d := &action.Decision{Reason: said.reason.in(ctx, in), Context: said.context.in(ctx, in)}
	for name, value := range said.metadata {
		raw, err := valueOf(ctx, in, value)
		if err != nil {
			return failRule(c, fmt.Errorf("metadata: %s: %w", name, err))
		}
		if d.Metadata == nil {
			d.Metadata = map[string]json.RawMessage{}
		}
		d.Metadata[name] = raw
	}
	switch said.word {
	case "add_context":
		d.Decision = hooks.Allow
	case "ask":
		d.Decision, d.OnTimeout, d.Within = hooks.Ask, said.question.OnTimeout.String(), said.question.Within.Seconds()
		d.Approvers, d.Quorum = said.question.Approvers, said.question.Quorum
	case "mock", "replace":
		text := said.result.in(ctx, in)
		d.Decision, d.Result, d.IsError = hooks.Decision(said.word), &text, said.isError
	case "redact":
		return said.scrub.at(c, decisionEffects(c, d))
	case "rewrite":
		d.Decision = hooks.Rewrite
		if err := u.rewrite(ctx, c, in, d); err != nil {
			return failRule(c, err)
		}
	default:
		d.Decision = hooks.Decision(said.word)
	}
	return action.Decide(c, d)
}

// decisionEffects returns a decision's effects on the state.
func decisionEffects(c hooks.Context, d *action.Decision) (out []agent.Effect) {
	if d.Context == "" && len(d.Metadata) == 0 {
		return nil
	}
	allowing := *d
	allowing.Decision = hooks.Allow
	if o, err := action.Decide(c, &allowing).Get(); err == nil {
		for _, e := range o.Effects().All() {
			out = append(out, e)
		}
	}
	return out
}

// rewrite sets the decision's replacement values.
func (u boundRule) rewrite(ctx context.Context, c hooks.Context, in condition.Input, d *action.Decision) error {
	values := map[string]json.RawMessage{}
	for path, value := range u.decision.set {
		raw, err := valueOf(ctx, in, value)
		if err != nil {
			return fmt.Errorf("set: %s: %w", path, err)
		}
		values[path] = raw
	}
	if !u.point.EditsObject() {
		var text string
		for path, raw := range values {
			if err := json.Unmarshal(raw, &text); err != nil {
				return fmt.Errorf("set: %s: expected a text, got %s", path, raw)
			}
		}
		d.Input = &text
		return nil
	}
	before := "{}"
	switch c := c.(type) {
	case interface{ Call() hooks.Call }:
		before = cmp.Or(c.Call().Arguments, before)
	case interface{ BlueprintRun() hooks.BlueprintRun }:
		before = cmp.Or(string(c.BlueprintRun().Parameters), before)
	}
	var err error
	d.Arguments, err = editObject(before, values, u.decision.remove)
	return err
}

// valueOf returns an expression's value as JSON.
func valueOf(ctx context.Context, in condition.Input, e *condition.Expression) (json.RawMessage, error) {
	v, err := e.Value(ctx, in)
	if err != nil {
		return nil, err
	}
	plain, err := plainOf(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(plain)
}

// perform performs the rule's action.
func (u boundRule) perform(ctx context.Context, c hooks.Context, in condition.Input, earlier *actionResults) hooks.Result {
	request := action.NewRequest(c, u.name())
	request.Vars, request.Edition, request.OfRun = u.doc.Variables, u.doc.Hash, u.task.ofRun
	request.Decides, request.Observer = request.Decides && u.judges(), u.task.observe
	request.OnTimeout, request.OnFailure = u.verdictsOfGate()
	request.Attempt = earlier.attempt(u.name())
	request.Variables = earlier.variables(request.Variables, c)
	do := action.Keep(ctx, u.do, request)
	if !u.task.await {
		u.detach(ctx, c, do, request)
		return hooks.Result{}
	}
	answer, err := do.Do(ctx, request)
	earlier.record(u.rule, answer, err)
	switch fault, ok := errors.AsType[*action.Error](err); {
	case err == nil:
		if answer == nil || !request.Decides {
			return hooks.Result{}
		}
		return u.because(in, action.Decide(c, answer.Decision))
	case ok && fault.Fault == action.FaultTimeout:
		return u.late(ctx, c, err)
	}
	return failRule(c, err)
}

// verdictsOfGate returns the verdicts when a gate that waits in the store gets no answer in time, and when it fails.
func (u boundRule) verdictsOfGate() (onTimeout, onFailure string) {
	onFailure = agent.RejectAndContinue.String()
	switch policy := u.failure.policy.String(); {
	case strings.Contains(policy, hooks.Open.String()):
		onFailure = agent.Approve.String()
	case strings.Contains(policy, hooks.Abort.String()):
		onFailure = agent.RejectAndEnd.String()
	}
	onTimeout = map[string]string{"continue": agent.Approve.String(), "abort": agent.RejectAndEnd.String()}[u.task.onTimeout]
	return cmp.Or(onTimeout, onFailure), onFailure
}

// late returns the answer when an action took too long.
func (u boundRule) late(ctx context.Context, c hooks.Context, err error) hooks.Result {
	switch u.task.onTimeout {
	case "continue":
		u.reportSkip(ctx, c, fmt.Sprintf("continuing without an answer: %v", err), err)
		return hooks.Result{}
	case "abort":
		for _, word := range []string{"stop", "deny", "withhold"} {
			if slices.Contains(u.point.Can, word) {
				return action.Decide(c, &action.Decision{Decision: hooks.Decision(word), Reason: err.Error()})
			}
		}
	}
	return failRule(c, fmt.Errorf("%w: %w", hooks.ErrTimeout, err))
}

// detach starts the action without waiting for it.
func (u boundRule) detach(ctx context.Context, c hooks.Context, do action.Action, request *action.Request) {
	d, ok := c.(interface {
		Detach(ctx context.Context, name string, limit time.Duration, f func(ctx context.Context) error) bool
	})
	if !ok {
		return
	}
	retries, delay := u.failure.retries, u.failure.delay
	limit := time.Duration(retries+1)*u.task.action.Limit() + time.Duration(retries)*delay
	d.Detach(runctx.WithPlace(ctx, nil), u.name(), limit, func(ctx context.Context) error { // nothing waits for it
		for try := 1; ; try++ {
			_, err := do.Do(ctx, request)
			if err == nil || try > retries {
				return err
			}
			select {
			case <-time.After(delay):
			case <-ctx.Done():
				return err
			}
			next := *request
			next.Attempt = try + 1
			request = &next
		}
	})
}

// reportSkip tells the run's observer that a rule was skipped, and why. Failed is the action's error, if it was called.
func (u boundRule) reportSkip(ctx context.Context, c hooks.Context, why string, failed error) {
	c.Tell(ctx, hooks.Event{
		Kind: hooks.HookSkipped, Run: c.Run(), Step: c.StepIndex(), Hook: u.name(), Point: c.Point(), Control: u.judges(),
		Reason: why, Err: failed, Origin: u.origin(),
	})
}

// failRule returns the answer of a rule that failed to decide.
func failRule(c hooks.Context, err error) hooks.Result {
	return c.(interface{ Fail(err error) hooks.Result }).Fail(err) //nolint:forcetypeassert // every context has it
}
