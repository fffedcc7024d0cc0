package durabletest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// newCall returns an event about the call of a hook.
func newCall(hook string, d durable.Decision, took time.Duration) durable.Event {
	e := newEvent("hook.complete")
	e.Hook, e.Decision, e.Took = hook, d, took
	return e
}

// newPasses returns an event that counts passes.
func newPasses(data string) durable.Event {
	e := newEvent(durable.EventCounts)
	e.Data = []byte(data)
	return e
}

// readRules returns the counts of today, without times and agents.
func readRules(t *testing.T, s durable.Store) map[string]durable.RuleCount {
	t.Helper()
	all := map[string]durable.RuleCount{}
	for _, c := range must(s.RuleCounts(t.Context(), time.Now()))(t) {
		name := c.Agent + " " + c.Hook
		require.NotContains(t, all, name)
		c.Agent, c.Hook, c.Last = "", "", time.Time{}
		all[name] = c
	}
	return all
}

// newCount returns a count with durations at places in RuleCount.Took.
func newCount(asked int64, decisions map[durable.Decision]int64, took ...int) durable.RuleCount {
	c := durable.RuleCount{Asked: asked, Decisions: decisions}
	for _, place := range took {
		c.Took[place]++
	}
	if c.Decisions == nil {
		c.Decisions = map[durable.Decision]int64{}
	}
	return c
}

var counted = map[string]part{
	"decisions count at once, and once": func(t *testing.T, s durable.Store) {
		l := beginAs(t, s, durable.Job{ID: "r", Name: "payer"}, "one", hour)
		approved := newEvent("approval.completed")
		approved.Also = []durable.HookDecision{{Decision: durable.DecisionOverridden, Hook: "payee"}, {Decision: durable.DecisionOverridden, Hook: "limit"}}
		c := durable.Commit{
			Entries: newEntries(1, 1), Update: durable.Update{Status: durable.StatusRunning, Steps: 1},
			Events: []durable.Event{
				newCall("payee", durable.DecisionAsked, 3*time.Millisecond), newCall("payee\x00", durable.DecisionDenied, time.Minute), approved,
				newCall("slow", "", 70*time.Millisecond), newCall("limit", durable.DecisionTimeout, time.Second), newEvent("none"),
			},
		}
		before := time.Now()
		writeCommit(t, s, l, c)
		writeCommit(t, s, l, c)
		want := map[string]durable.RuleCount{
			"payer payee": newCount(2, map[durable.Decision]int64{durable.DecisionAsked: 1, durable.DecisionDenied: 1, durable.DecisionOverridden: 1}, 1, 11),
			"payer slow":  newCount(1, nil, 4),
			"payer limit": newCount(1, map[durable.Decision]int64{durable.DecisionTimeout: 1, durable.DecisionOverridden: 1}, 7),
		}
		assert.Equal(t, want, readRules(t, s))
		all := must(s.RuleCounts(t.Context(), longAgo()))(t)
		require.Len(t, all, 3)
		assert.Equal(t, []string{"limit", "payee", "slow"}, []string{all[0].Hook, all[1].Hook, all[2].Hook})
		assert.WithinDuration(t, before, all[1].Last, hour)
		assert.Zero(t, all[0].Last, "a timeout decides nothing")
		assert.Empty(t, must(s.RuleCounts(t.Context(), later()))(t))
		refusesCommit(t, s, durable.ErrStale, durable.Lease{Run: "r", Owner: "other", Epoch: 1}, c)
		assert.Equal(t, want, readRules(t, s), "a commit that was refused")
		endRun(t, s, l)
		require.NoError(t, s.Delete(t.Context(), "r"))
		assert.Equal(t, want, readRules(t, s), "counts outlive their run")
	},
	"passes count when their run ends": func(t *testing.T, s durable.Store) {
		l := beginAs(t, s, durable.Job{ID: "r", Name: "payer"}, "one", hour)
		step := func(seq int64, passes string) durable.Commit {
			return durable.Commit{
				Entries: newEntries(seq, seq), Update: durable.Update{Status: durable.StatusRunning, Steps: int(seq)},
				Events: []durable.Event{newPasses(passes)},
			}
		}
		writeCommit(t, s, l, step(1, `{"payee pass":3,"payee pass over 1 ms":2,"payee pass over 5 ms":1,"steps":9}`))
		writeCommit(t, s, l, step(2, `{"limit pass":1}`))
		assert.Empty(t, readRules(t, s))
		writeUpdate(t, s, l, durable.Update{Status: durable.StatusWaiting, Steps: 2, Waits: []durable.Wait{newWait("c")}})
		releaseRun(t, s, l)
		answerAll(t, s, "r", newEnding("c"))
		l = acquireRun(t, s, "r", "two", durable.TakeFree)
		end := durable.Commit{Update: endUpdate(), Events: []durable.Event{newPasses(`{"payee pass":1}`), newCall("payee", durable.DecisionDenied, 0)}}
		writeCommit(t, s, l, end)
		writeCommit(t, s, l, end)
		assert.Equal(t, map[string]durable.RuleCount{
			"payer payee": newCount(5, map[durable.Decision]int64{durable.DecisionDenied: 1}, 0, 0, 0, 1, 2), "payer limit": newCount(1, nil, 0),
		}, readRules(t, s))
	},
	"a cancelled run's passes": func(t *testing.T, s durable.Store) {
		l := beginAs(t, s, durable.Job{ID: "r", Name: "payer"}, "one", hour)
		passOn := durable.Update{Pass: &durable.Pass{Phase: phaseKind}}
		writeCommit(t, s, l, durable.Commit{Events: []durable.Event{newPasses(`{"payee pass":2}`)}, Update: passOn})
		require.NoError(t, s.Signal(t.Context(), "r", cancelSignal("no"))) // which ends it at once
		requireStatus(t, s, durable.StatusCancelled, "r")
		assert.Equal(t, map[string]durable.RuleCount{"payer payee": newCount(2, nil, 0, 0)}, readRules(t, s))
	},
	"a run that is retried past a hook": func(t *testing.T, s durable.Store) {
		j := durable.Job{ID: "r", Name: "payer", IdempotencyKey: "once", Traits: durable.Traits{PastHook: "payee"}}
		submitJobs(t, s, j)
		submitJobs(t, s, j)
		assert.Equal(t, map[string]durable.RuleCount{
			"payer payee": newCount(0, map[durable.Decision]int64{durable.DecisionOverridden: 1}),
		}, readRules(t, s))
	},
	"many hooks": func(t *testing.T, s durable.Store) {
		l := beginAs(t, s, durable.Job{ID: "r", Name: "payer"}, "one", hour)
		var c durable.Commit
		for i := range 700 {
			c.Events = append(c.Events, newCall(fmt.Sprint("hook ", i), durable.DecisionDenied, 0))
		}
		writeCommit(t, s, l, c)
		all := must(s.RuleCounts(t.Context(), longAgo()))(t)
		assert.Len(t, all, 501)
		assert.Equal(t, int64(200), all[0].Asked, "the others have one count")
	},
	"at once": func(t *testing.T, s durable.Store) {
		const workers, steps = 8, 10
		var all sync.WaitGroup
		for w := range workers {
			l := beginAs(t, s, durable.Job{ID: agent.RunID(fmt.Sprint("r", w)), Name: "payer"}, "one", hour)
			all.Go(func() {
				for i := range int64(steps) {
					hooks := []string{"a", "b", "c"}
					events := []durable.Event{newPasses(`{"b pass":1}`)}
					for k := range hooks { // each in an order of its own
						events = append(events, newCall(hooks[(k+w)%len(hooks)], durable.DecisionDenied, 0))
					}
					assert.NoError(t, s.Commit(t.Context(), l, durable.Commit{Entries: newEntries(i+1, i+1), Events: events}))
				}
				assert.NoError(t, s.Commit(t.Context(), l, durable.Commit{Update: endUpdate()}))
			})
		}
		all.Wait()
		rules := readRules(t, s)
		for hook, asked := range map[string]int64{"a": workers * steps, "b": 2 * workers * steps, "c": workers * steps} {
			assert.Equal(t, asked, rules["payer "+hook].Asked, hook)
			assert.Equal(t, int64(workers*steps), rules["payer "+hook].Decisions[durable.DecisionDenied], hook)
		}
	},
}
