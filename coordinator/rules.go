package coordinator

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// DefaultDays is how many days a list of rules has.
const DefaultDays = 30

// SinceDays returns the beginning of a number of days in UTC, with today; zero means DefaultDays.
func SinceDays(days int) time.Time {
	return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-cmp.Or(max(days, 0), DefaultDays))
}

// Rules counts what each hook has decided. It includes hooks in the newest blueprints that no run has called.
func (c *Coordinator) Rules(ctx context.Context, f wire.RuleFilter) (wire.RuleList, error) {
	counts, err := c.store.RuleCounts(ctx, SinceDays(f.Days))
	if err != nil {
		return wire.RuleList{}, err
	}
	known, err := c.newestHooks(ctx, f.AgentName)
	if err != nil {
		return wire.RuleList{}, err
	}
	out := wire.RuleList{Rules: []wire.Rule{}}
	for _, n := range counts {
		if f.AgentName != "" && n.Agent != f.AgentName {
			continue
		}
		key := [2]string{n.Agent, n.Hook}
		out.Rules = append(out.Rules, newRule(n, known[key]))
		delete(known, key)
	}
	for key, v := range known {
		out.Rules = append(out.Rules, newRule(durable.RuleCount{Agent: key[0], Hook: key[1]}, v))
	}
	slices.SortFunc(out.Rules, func(a, b wire.Rule) int {
		return cmp.Or(cmp.Compare(b.Hits, a.Hits), cmp.Compare(b.ShadowHits, a.ShadowHits), cmp.Compare(b.Asked, a.Asked),
			cmp.Compare(a.AgentName, b.AgentName), cmp.Compare(a.Hook, b.Hook))
	})
	return out, nil
}

// newRule returns a rule with its counts.
func newRule(n durable.RuleCount, v wire.RuleView) wire.Rule {
	r := wire.Rule{
		Hook: n.Hook, AgentName: n.Agent, Point: v.Point, Type: v.Type, Mode: v.Mode, Path: v.Path, Asked: n.Asked, Hits: n.Hits(),
		Decisions: n.Decisions, ShadowHits: n.Decisions[durable.DecisionShadow], Overridden: n.Decisions[durable.DecisionOverridden],
		Failed: n.Decisions[durable.DecisionFailed], Timeouts: n.Decisions[durable.DecisionTimeout], LastHit: n.Last,
	}
	if r.P95MS = n.Most(0.95).Milliseconds(); n.Most(0.95) < 0 {
		r.P95MS = -1
	}
	switch open := n.Decisions[durable.DecisionAsked] + n.Decisions[durable.DecisionBlocked]; {
	case r.Asked == 0 && r.Overridden == 0:
		r.Notice = wire.RuleUnused
	case r.Hits+r.ShadowHits == 0 && decides(v):
		r.Notice = wire.RuleNever
	case open >= manyHits && r.Overridden*10 >= open*9:
		r.Notice = wire.RuleOverridden
	}
	return r
}

// manyHits is how often a rule must have decided before it can be one that people override nearly always.
const manyHits = 5

// decides reports whether a hook may decide something, as far as it is known.
func decides(v wire.RuleView) bool { return v.Mode != "observe" }

// hooksOf remembers the hooks of the newest versions of blueprints. Its zero value is ready for use.
type hooksOf struct {
	mu  sync.Mutex
	all map[string]versionHooks
}

type versionHooks struct {
	version int64
	hooks   []wire.RuleView
}

// newestHooks returns the hooks in the newest blueprints, by blueprint and hook name. A name limits it to one blueprint. Unreadable hooks
// are left out.
func (c *Coordinator) newestHooks(ctx context.Context, name string) (map[[2]string]wire.RuleView, error) {
	found := map[[2]string]wire.RuleView{}
	newest := map[string]versionHooks{}
	for after := ""; ; {
		page, err := c.ListBlueprints(ctx, after, blueprintsRead)
		if err != nil {
			return nil, err
		}
		for i := range page {
			b := &page[i]
			after = b.Name
			if empty(b.Hooks) || name != "" && b.Name != name {
				continue
			}
			c.hooksOf.mu.Lock()
			v, ok := c.hooksOf.all[b.Name]
			c.hooksOf.mu.Unlock()
			if !ok || v.version != b.Version {
				v.version = b.Version
				if v.hooks, err = c.rulesIn(b); err != nil {
					v.hooks = nil
				}
			}
			newest[b.Name] = v
			for _, h := range v.hooks {
				found[[2]string{b.Name, h.Hook}] = h
			}
		}
		if len(page) < blueprintsRead {
			break
		}
	}
	if name == "" {
		c.hooksOf.mu.Lock()
		c.hooksOf.all = newest
		c.hooksOf.mu.Unlock()
	}
	return found, nil
}

// blueprintsRead is how many blueprints are read from the store at a time.
const blueprintsRead = 500

// HitRuns returns a page of runs in which a hook has decided, newest first.
func (c *Coordinator) HitRuns(ctx context.Context, hook string, f wire.HitFilter) (wire.RunList, error) {
	return c.ListRuns(ctx, wire.RunFilter{
		Hook: hook, AgentName: f.AgentName, Decision: f.Decision, Since: SinceDays(f.Days), Before: f.Before, Limit: cmp.Or(f.Limit, hitRuns), HookRuns: true,
	})
}

// hitRuns is how many runs a page of hits has.
const hitRuns = 20

// HitsIn returns the decisions of a hook in the events of a run, up to a number of them.
func HitsIn(events []wire.EventView, run wire.Run, hook string, most int) (hits []wire.Hit, more bool) {
	for _, e := range events {
		h, ok := HookCallOf(e.Type, e.Time, e.Data)
		if !ok || h.Hook != hook || h.isPass() {
			continue
		}
		if len(hits) == most {
			return hits, true
		}
		decision := h.Words()
		if h.Changed && !h.HasFailed() {
			decision = string(hooks.Rewrite)
		}
		hits = append(hits, wire.Hit{
			Seq: e.Seq, Time: h.At, Point: h.Point, Tool: h.Tool, Call: h.Call, Decision: decision, Outcome: h.Outcome,
			Reason: cmp.Or(h.Reason, h.Error), Shadow: h.Shadow, DurationMS: h.DurationMS, Subagent: lo.Ternary(h.Subagent == run.RunID, "", h.Subagent),
		})
	}
	return hits, false
}

// isPass reports whether the hook has decided nothing.
func (c HookCall) isPass() bool {
	switch {
	case c.Outcome == HookRunning || c.Outcome == "skipped" || c.Outcome == "conflict":
		return true
	case c.Outcome != "complete" || c.Changed:
		return false
	}
	return slices.Contains([]string{"", "pass", "allow", "continue"}, c.Decision)
}
