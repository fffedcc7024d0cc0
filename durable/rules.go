package durable

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// RuleCount says how often a hook was called in the runs of one name, and what came of it.
type RuleCount struct {
	// Agent is the name of the runs, and Hook the name of the hook. Hook is empty for the sum of the hooks that maxRules has left out.
	Agent, Hook string
	// Asked counts the calls of the hook, also those that it lets pass.
	Asked int64
	// Decisions counts what the hook has decided, and how often people have overridden it.
	Decisions map[Decision]int64
	// Took counts calls by their duration: those up to each of TookBounds, and then the longer ones.
	Took [len(TookBounds) + 1]int64
	// Last is when the hook last decided something, by the clock of the store. A failure is not a decision.
	Last time.Time
}

// TookBounds are the durations up to which RuleCount.Took counts calls together.
var TookBounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 20 * time.Second,
}

// maxRules is the maximum number of hooks that one transaction counts calls for.
const maxRules = 500

// Hits returns how often the hook has decided, without shadow and failures.
func (c RuleCount) Hits() (n int64) {
	for _, d := range []Decision{DecisionBlocked, DecisionDenied, DecisionAsked, DecisionRewritten, DecisionWithheld} {
		n += c.Decisions[d]
	}
	return n
}

// Most returns the duration that a share of the calls did not exceed, rounded up to one of TookBounds. It is zero without calls,
// and below zero for longer than the last bound.
func (c RuleCount) Most(share float64) time.Duration {
	var all, below int64
	for _, n := range c.Took {
		all += n
	}
	if all == 0 {
		return 0
	}
	for i, n := range c.Took[:len(TookBounds)] {
		if below += n; float64(below) >= share*float64(all) {
			return TookBounds[i]
		}
	}
	return -1
}

// Add returns the sum of two counts of the same hook.
func (c RuleCount) Add(other RuleCount) RuleCount {
	c.Asked += other.Asked
	c.Decisions = maps.Clone(c.Decisions)
	if c.Decisions == nil {
		c.Decisions = map[Decision]int64{}
	}
	for d, n := range other.Decisions {
		c.Decisions[d] += n
	}
	for i, n := range other.Took {
		c.Took[i] += n
	}
	if other.Last.After(c.Last) {
		c.Last = other.Last
	}
	return c
}

// RuleCounts collects counts of one transaction, by the names of runs and hooks.
type RuleCounts map[[2]string]RuleCount

// count adds to the count of a hook.
func (all RuleCounts) count(agent, hook string, more RuleCount) {
	key := [2]string{agent, shorten(hook, maxLabel/2)}
	if _, known := all[key]; !known && len(all) >= maxRules {
		key[1] = ""
	}
	sum := all[key].Add(more)
	sum.Agent, sum.Hook = key[0], key[1]
	all[key] = sum
}

// AddEvents adds the calls of hooks that have events in a run with a name. Passes that are only counted follow with AddPasses.
func (all RuleCounts) AddEvents(agent string, events []Event, now time.Time) {
	for _, e := range events {
		if e.Hook != "" {
			more := RuleCount{Asked: 1}
			more.Took[tookPlace(e.Took)] = 1
			if e.Decision != "" {
				more.Decisions = map[Decision]int64{e.Decision: 1}
			}
			more.Last = lastHit(e.Decision, now)
			all.count(agent, e.Hook, more)
		}
		for _, d := range e.Also {
			all.count(agent, d.Hook, RuleCount{Decisions: map[Decision]int64{d.Decision: 1}, Last: lastHit(d.Decision, now)})
		}
	}
}

// lastHit returns a time if a hook has decided then; zero for other decisions.
func lastHit(d Decision, now time.Time) time.Time {
	switch d {
	case "", DecisionFailed, DecisionTimeout, DecisionOverridden:
		return time.Time{}
	}
	return now
}

// AddOverride counts that a person has overridden a hook.
func (all RuleCounts) AddOverride(agent, hook string) {
	all.count(agent, hook, RuleCount{Decisions: map[Decision]int64{DecisionOverridden: 1}})
}

// AddPasses adds the passes that an EventCounts event counts. Data that cannot be read adds nothing.
func (all RuleCounts) AddPasses(agent string, data []byte) {
	var counters map[string]int64
	if json.Unmarshal(data, &counters) != nil {
		return
	}
	for name, n := range counters {
		hook, ok := strings.CutSuffix(name, passes)
		if !ok || n <= 0 {
			continue
		}
		more := RuleCount{Asked: n}
		for i, longer := range TookBounds {
			over := min(max(counters[overCounter(name, longer)], 0), n)
			more.Took[i], n = n-over, over
		}
		more.Took[len(TookBounds)] = n
		all.count(agent, hook, more)
	}
}

// List returns the counts in the order of their names: transactions that add to the same counts do not deadlock.
func (all RuleCounts) List() []RuleCount {
	return slices.SortedFunc(maps.Values(all), func(a, b RuleCount) int {
		return slices.Compare([]string{a.Agent, a.Hook}, []string{b.Agent, b.Hook})
	})
}

// passes ends the names of the counters of passes.
const passes = " pass"

// PassCounter returns the name of the counter for the passes of a hook: see EventForm.Counter.
func PassCounter(hook string) string { return hook + passes }

// overCounter returns the name of the counter for what took longer than a bound.
func overCounter(counter string, bound time.Duration) string {
	return fmt.Sprintf("%s over %d ms", counter, bound.Milliseconds())
}

// tookPlace returns the place of a duration in RuleCount.Took.
func tookPlace(took time.Duration) int {
	i, _ := slices.BinarySearch(TookBounds[:], took)
	return i
}
