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
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/condition"
	"github.com/grapnel-go/grapnel/policy/library"
)

// rule is one rule or action of a policy, ready to become a hook. It does not change.
type rule struct {
	doc         *document
	library     string // the library policy that contains it; empty for a user's rule
	owner       *Policy
	id          string
	suffix      string // added to the name of its hook
	description string
	point       *point
	pointKey    string // the point's name in the file
	order       int    // position among the rules at its point, from one
	turn        int    // position in calling order, in which observers come last
	place       yamlfile.Place
	language    *condition.Language

	match match
	when  *condition.Condition

	// kind is the decision, or the type of the action.
	kind     string
	reason   template
	context  template
	metadata map[string]*condition.Expression
	question agent.Question
	set      map[string]*condition.Expression
	remove   []string
	result   template
	isError  bool
	scrub    *scrubber

	act       action.Declared
	await     bool
	observe   bool
	ofRun     bool // the action receives what is about a coordinator's run, and nothing else
	onTimeout string

	timeout    time.Duration
	ownTimeout time.Duration // as the file has it; zero for the default
	failure    hooks.FailurePolicy
	onFailure  string // the word for failure in the file; empty for the default
	tries      int
	delay      time.Duration
	priority   int
	shadow     bool
	waiver     *Waiver

	watch func(r Rule, j Judgement) // nil if there is no watcher
	now   func() time.Time          // nil means the current time
}

// Waiver puts a rule in shadow until a day.
type Waiver struct {
	// Owner is the person responsible for the waiver, and Reason its reason.
	Owner  string `json:"owner"`
	Reason string `json:"reason"`
	// Expires is the time at which the rule is enforced again.
	Expires time.Time `json:"expires"`
}

// name returns the name of the rule's hook.
func (r *rule) name() string { return hookName(r.doc, r.library, r.id) + r.suffix }

// policyName returns the policy in the rule's name: its own, or that of the library.
func (r *rule) policyName() string { return policyName(r.doc, r.library) }

func policyName(d *document, of string) string {
	if of != "" {
		return library.Prefix + of
	}
	return d.name
}

func hookName(d *document, of, id string) string { return policyName(d, of) + "/" + id }

// version returns the version of the policy that policyName names.
func (r *rule) version() string {
	if r.library != "" {
		return r.doc.versions[r.library]
	}
	return r.doc.version
}

// judges reports whether the rule's answer counts.
func (r *rule) judges() bool {
	return r.act == nil && r.kind != "" || r.act != nil && r.await && !r.observe
}

// newHook returns the rule as a hook. The hook calls do to perform the rule's action; do is nil for a rule with a
// decision.
func (r *rule) newHook(do action.Action) hooks.Hook {
	u := &use{rule: r, do: do, tracks: do != nil || r.looksBack() || r.point.source == ofPipelines}
	var h hooks.Hook
	switch {
	case r.observe:
		h = r.point.observe(r.name(), func(ctx context.Context, c hooks.Context) error {
			_, err := u.answer(ctx, c).Get()
			return err
		})
	case r.point.name == hooks.PreToolUse && u.plain():
		h = hooks.On(hooks.AtPreToolUse, r.name(), func(ctx context.Context, c hooks.ToolContext) hooks.Result {
			ok, err := u.when.Test(context.Background(), condition.OfCall(c)) // the cost limit bounds it
			switch {
			case err != nil:
				return failRule(c, fmt.Errorf("when: %w", err))
			case !ok: // the most common case
				return hooks.Result{}
			}
			in := condition.Of(c)
			return u.because(in, u.decide(ctx, c, in))
		})
	default:
		h = r.point.control(r.name(), u.answer)
	}
	h = h.Matching(r.match.matchers...).Implying(r.impliedMatchers()...).WithPriority(r.priority).WithFailure(r.failure).From(r.origin())
	if r.timeout > 0 && r.await {
		h = h.WithTimeout(r.timeout)
	}
	if r.shadow {
		h = h.InShadow()
	}
	return h
}

// origin returns the place of the rule.
func (r *rule) origin() *hooks.Origin {
	o := &hooks.Origin{
		Policy: r.policyName(), Version: r.version(), Hash: r.doc.hash, Rule: r.id, Required: r.doc.required, Layer: r.doc.layer, OnFailure: r.onFailure,
		File: r.place.File(), Line: r.place.Line,
	}
	if r.act != nil {
		o.Action, o.Target = r.kind, action.TargetOf(r.act)
	}
	return o
}

// looksBack reports whether the rule uses the results of earlier actions.
func (r *rule) looksBack() bool {
	back := []string{"actions", "LAST_HOOK_STATUS", "HOOK_RESPONSE", "SPAWN_OUTPUT"}
	uses := func(c interface{ Uses(name string) bool }) bool { return slices.ContainsFunc(back, c.Uses) }
	for _, m := range []map[string]*condition.Expression{r.metadata, r.set} {
		for _, e := range m {
			if uses(e) {
				return true
			}
		}
	}
	return r.when != nil && uses(r.when) || r.reason.uses(back...) || r.context.uses(back...) || r.result.uses(back...)
}

// use is a rule together with the values it needs in one agent.
type use struct {
	*rule

	do     action.Action
	tracks bool
}

// plain reports whether the rule has only a condition and a decision.
func (u *use) plain() bool { return u.when != nil && u.now == nil && u.watch == nil && !u.tracks }

// answer returns the rule's answer for an event.
func (u *use) answer(ctx context.Context, c hooks.Context) hooks.Result {
	in := condition.Of(c)
	if u.now != nil {
		in = in.At(u.now())
	}
	var past *occasion
	if u.tracks {
		past = occasionOf(c, u.rule)
		in = in.With(past.values(c, u.doc))
	}
	if u.when != nil {
		// The cost limit bounds the evaluation. Checking a context would need a timer for each rule.
		ok, err := u.when.Test(context.Background(), in)
		u.reportJudgement(ctx, in, ok, err)
		switch {
		case err != nil && u.point.source == ofPipelines:
			u.reportSkip(ctx, c, fmt.Sprintf("its condition failed: %v", err), nil)
			return hooks.Result{}
		case err != nil:
			return failRule(c, fmt.Errorf("when: %w", err))
		case !ok:
			return hooks.Result{}
		}
	}
	if u.act != nil {
		return u.action(ctx, c, in, past)
	}
	return u.because(in, u.decide(ctx, c, in))
}

// because adds the reasons to an answer.
func (u *use) because(in condition.Input, answer hooks.Result) hooks.Result {
	if u.when == nil {
		return answer
	}
	if o, err := answer.Get(); err != nil || o == nil {
		return answer
	}
	return hooks.Because(answer, u.when.Explain(context.Background(), in)...) // explained by the condition
}

// decide returns the rule's decision for an event.
func (u *use) decide(ctx context.Context, c hooks.Context, in condition.Input) hooks.Result {
	d := &action.Decision{Reason: u.reason.in(ctx, in), Context: u.context.in(ctx, in)}
	for name, value := range u.metadata {
		raw, err := valueOf(ctx, in, value)
		if err != nil {
			return failRule(c, fmt.Errorf("metadata: %s: %w", name, err))
		}
		if d.Metadata == nil {
			d.Metadata = map[string]json.RawMessage{}
		}
		d.Metadata[name] = raw
	}
	switch u.kind {
	case "add_context":
		d.Decision = hooks.Allow
	case "ask":
		d.Decision, d.OnTimeout, d.Within = hooks.Ask, u.question.OnTimeout.String(), u.question.Within.Seconds()
		d.Approvers, d.Quorum = u.question.Approvers, u.question.Quorum
	case "mock", "replace":
		text := u.result.in(ctx, in)
		d.Decision, d.Result, d.IsError = hooks.Decision(u.kind), &text, u.isError
	case "redact":
		return u.scrub.at(c, decisionEffects(c, d))
	case "rewrite":
		d.Decision = hooks.Rewrite
		if err := u.rewrite(ctx, c, in, d); err != nil {
			return failRule(c, err)
		}
	default:
		d.Decision = hooks.Decision(u.kind)
	}
	return action.Decide(c, d)
}

// decisionEffects returns the effects of a decision on the state.
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

// rewrite sets the replacement values of the decision.
func (u *use) rewrite(ctx context.Context, c hooks.Context, in condition.Input, d *action.Decision) error {
	values := map[string]json.RawMessage{}
	for path, value := range u.set {
		raw, err := valueOf(ctx, in, value)
		if err != nil {
			return fmt.Errorf("set: %s: %w", path, err)
		}
		values[path] = raw
	}
	if !u.point.object() {
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
	d.Arguments, err = editObject(before, values, u.remove)
	return err
}

// valueOf returns the value of an expression as JSON.
func valueOf(ctx context.Context, in condition.Input, e *condition.Expression) (json.RawMessage, error) {
	v, err := e.Value(ctx, in)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says of what
	}
	plain, err := plainOf(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(plain) //nolint:wrapcheck // a value that JSON supports
}

// action performs the rule's action.
func (u *use) action(ctx context.Context, c hooks.Context, in condition.Input, past *occasion) hooks.Result {
	request := action.NewRequest(c, u.name())
	request.Vars, request.Edition, request.OfRun = u.doc.variables, u.doc.hash, u.ofRun
	request.Decides, request.Observer = request.Decides && u.judges(), u.observe
	request.OnTimeout, request.OnFailure = u.verdictsOfGate()
	request.Attempt = past.attempt(u.name())
	request.Variables = past.variables(request.Variables, c)
	do := action.Keep(ctx, u.do, request)
	if !u.await {
		u.detach(ctx, c, do, request)
		return hooks.Result{}
	}
	answer, err := do.Do(ctx, request).Get()
	past.record(u.rule, answer, err)
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
func (u *use) verdictsOfGate() (onTimeout, onFailure string) {
	onFailure = agent.RejectAndContinue.String()
	switch policy := u.failure.String(); {
	case strings.Contains(policy, hooks.Open.String()):
		onFailure = agent.Approve.String()
	case strings.Contains(policy, hooks.Abort.String()):
		onFailure = agent.RejectAndEnd.String()
	}
	onTimeout = map[string]string{"continue": agent.Approve.String(), "abort": agent.RejectAndEnd.String()}[u.onTimeout]
	return cmp.Or(onTimeout, onFailure), onFailure
}

// late returns the answer when an action took too long.
func (u *use) late(ctx context.Context, c hooks.Context, err error) hooks.Result {
	switch u.onTimeout {
	case "continue":
		u.reportSkip(ctx, c, fmt.Sprintf("continuing without an answer: %v", err), err)
		return hooks.Result{}
	case "abort":
		for _, word := range []string{"stop", "deny", "withhold"} {
			if slices.Contains(u.point.can, word) {
				return action.Decide(c, &action.Decision{Decision: hooks.Decision(word), Reason: err.Error()})
			}
		}
	}
	return failRule(c, fmt.Errorf("%w: %w", hooks.ErrTimeout, err))
}

// detach starts the action without waiting for it.
func (u *use) detach(ctx context.Context, c hooks.Context, do action.Action, request *action.Request) {
	d, ok := c.(interface {
		Detach(ctx context.Context, name string, limit time.Duration, f func(ctx context.Context) error) bool
	})
	if !ok {
		return
	}
	limit := time.Duration(u.tries+1)*u.timeout + time.Duration(u.tries)*u.delay
	d.Detach(runctx.WithPlace(ctx, nil), u.name(), limit, func(ctx context.Context) error { // nothing waits for it
		for try := 1; ; try++ {
			err := do.Do(ctx, request).Error()
			if err == nil || try > u.tries {
				return err
			}
			select {
			case <-time.After(u.delay):
			case <-ctx.Done():
				return err
			}
			next := *request
			next.Attempt = try + 1
			request = &next
		}
	})
}

// reportSkip tells the observer of the run that a rule was skipped, and why. Failed is the error of its action, if that was called.
func (r *rule) reportSkip(ctx context.Context, c hooks.Context, why string, failed error) {
	c.Tell(ctx, hooks.Event{
		Kind: hooks.HookSkipped, Run: c.Run(), Step: c.StepIndex(), Hook: r.name(), Point: c.Point(), Control: r.judges(),
		Reason: why, Err: failed, Origin: r.origin(),
	})
}

// failRule returns the answer of a rule that failed to decide.
func failRule(c hooks.Context, err error) hooks.Result {
	return c.(interface{ Fail(err error) hooks.Result }).Fail(err) //nolint:forcetypeassert // every context has it
}
