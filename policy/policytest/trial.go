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
)

// Trial is a policy that is tried out. Make one with Load. It fires one event at a time,
// for all callers.
type Trial struct {
	policy *policy.Policy
	hooks  []hooks.Hook

	turn   sync.Mutex // one at a time
	mu     sync.Mutex // what is seen of it
	now    time.Time
	judged []judged
}

// judged is what the condition of a rule came to, once.
type judged struct {
	hook string
	policy.Judgement
}

// Load loads a policy to be tried out. Of the options, Now and Watch are the trial's own.
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
		return nil, err //nolint:wrapcheck // it names the files
	}
	t.hooks, err = t.policy.Hooks()
	return t, err //nolint:wrapcheck // it names the files
}

// waived is what the names of hooks end in that stand in for rules which are waived.
const waived = ":waived"

// time returns what conditions take for now.
func (t *Trial) time() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now.IsZero() {
		return time.Now()
	}
	return t.now
}

// begin starts the time of what is tried next, of which nothing is seen yet.
func (t *Trial) begin(now Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now, t.judged = time.Time(now), nil
}

// seenConditions returns what conditions came to since then.
func (t *Trial) seenConditions() []judged {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.judged)
}

// Fire asks the rules at the point of an event, with everything around them as in an
// agent: their order, time limits and failure policies, and their actions. The error says
// why the event could not be fired, and never that a rule failed.
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
	with, matched := addWitnesses(at, here, backwardsAt(at))
	if len(with) == 0 { // an event at a point without rules is fired, too: the zero of everything
		with = []hooks.Hook{hooks.ObserveAll(witnessPrefix+"none", func(context.Context, hooks.Context) error { return nil }, at)}
	}
	fired, err := m.Fire(ctx, hooks.NewSet(with...)).Get()
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what was fired
	}
	return t.report(e, fired, matched), nil
}

// NoActions returns an Options.Wrap under which actions are not done: none has an opinion, and
// nothing is run, sent or asked.
func NoActions(_ policy.Rule, _ action.Action) action.Action { return idle{} }
