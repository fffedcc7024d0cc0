package policytest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/internal/points"
)

// Trial is a loaded policy that judges fired events. Create one with Load. It fires one event at a time, even for
// concurrent callers.
type Trial struct {
	policy *policy.Policy
	hooks  []hooks.Hook

	turn   sync.Mutex // held while an event is fired
	mu     sync.Mutex // guards the fields below
	now    time.Time
	judged []judged
}

// judged is the result of evaluating a rule's condition once.
type judged struct {
	hook string
	policy.Judgement
}

// Load loads a policy for firing events. The trial replaces the options Now and Watch.
func Load(layers []policy.Layer, o policy.Options) (*Trial, error) {
	t := &Trial{}
	o.Now = t.time
	o.Watch = func(r policy.Rule, j policy.Judgement) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.judged = append(t.judged, judged{hook: strings.TrimSuffix(r.Hook(), waived), Judgement: j})
	}
	var err error
	if t.policy, err = policy.Load(layers, o); err != nil {
		return nil, err
	}
	t.hooks, err = t.policy.Hooks()
	return t, err
}

// waived is the name suffix of hooks that stand for waived rules.
const waived = ":waived"

// time returns the current time for conditions.
func (t *Trial) time() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now.IsZero() {
		return time.Now()
	}
	return t.now
}

// begin sets the next event's time and clears the recorded condition results.
func (t *Trial) begin(now Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now, t.judged = time.Time(now), nil
}

// seenConditions returns the results of the conditions that were evaluated since begin was called.
func (t *Trial) seenConditions() []judged {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.judged)
}

// Fire asks the rules at an event's point as an agent does: with their order, time limits, failure policies and
// actions. It returns an error if the event could not be fired. A failing rule is not an error.
func (t *Trial) Fire(ctx context.Context, e *Event) (*Report, error) {
	t.turn.Lock()
	defer t.turn.Unlock()
	t.begin(e.Now)
	at := hooks.PointName(e.Point)
	m, err := e.moment()
	if err != nil {
		return nil, fmt.Errorf("firing %s: %w", at, err)
	}
	here := lo.Filter(t.hooks, func(h hooks.Hook, _ int) bool { return slices.Contains(h.Points(), at) })
	with, matched := addWitnesses(points.ByName(at), here)
	if len(with) == 0 { // a point without rules is also fired, without hooks
		with = []hooks.Hook{hooks.ObserveAll(witnessPrefix+"none", func(context.Context, hooks.Context) error { return nil }, at)}
	}
	fired, err := m.Fire(ctx, hooks.NewSet(with...)).Get()
	if err != nil {
		return nil, err
	}
	return t.report(e, fired, matched), nil
}

// NoActions replaces an action by one that does nothing and has no opinion. Use it as Options.Wrap.
func NoActions(_ policy.Rule, _ action.Action) action.Action { return idle{} }
