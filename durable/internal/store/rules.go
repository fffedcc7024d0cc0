package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// dayOf returns the day of a time in UTC, since 1970.
func dayOf(at time.Time) int64 { return at.Unix() / (24 * 60 * 60) }

// countPasses counts the passes of hooks in a run that ends. A process without the key of an encrypted store counts none.
func (t tx) countPasses(r Run) error {
	if r.Events == 0 {
		return nil
	}
	events, err := t.CountEvents(r.ID)
	for i := range events {
		data, place := eventOf(r.ID)(&events[i])
		if opened, err := t.keys.open(*data, place); err == nil {
			t.rules.AddPasses(r.Name, opened)
		}
	}
	return err
}

// RuleCounts implements durable.Store.
func (s *Store) RuleCounts(ctx context.Context, since time.Time) ([]durable.RuleCount, error) {
	all, err := readRows(ctx, s, "reading how often hooks were called", func(rows Rows) ([]durable.RuleCount, error) {
		return rows.RuleCounts(dayOf(since))
	})
	slices.SortFunc(all, func(a, b durable.RuleCount) int {
		return slices.Compare([]string{a.Agent, a.Hook}, []string{b.Agent, b.Hook})
	})
	return all, err
}

// ruleRow is the row of a count.
type ruleRow struct {
	durable.RuleCount

	decisions [9]int64 // of durable.Decisions
}

func newRuleRow(c durable.RuleCount) *ruleRow {
	r := &ruleRow{RuleCount: c}
	for i, d := range durable.Decisions {
		r.decisions[i] = c.Decisions[d]
	}
	return r
}

// names returns the columns of the row's key and time.
func (r *ruleRow) names() []Column {
	return []Column{{"agent", &r.Agent}, {"hook", &r.Hook}, {"last", &r.Last}}
}

// sums returns the columns that add up.
func (r *ruleRow) sums() []Column {
	all := []Column{{"asked", &r.Asked}}
	for i, d := range durable.Decisions {
		all = append(all, Column{"d_" + string(d), &r.decisions[i]})
	}
	for i := range r.Took {
		all = append(all, Column{fmt.Sprintf("t_%d", i), &r.Took[i]})
	}
	return all
}

// toCount returns the count after its columns were read.
func (r *ruleRow) toCount() durable.RuleCount {
	r.Decisions = map[durable.Decision]int64{}
	for i, d := range durable.Decisions {
		if n := r.decisions[i]; n > 0 {
			r.Decisions[d] = n
		}
	}
	return r.RuleCount
}

var (
	insertRule = &Insertion{
		Table:   "rule_counts",
		Columns: slices.Concat([]string{"day", "shard"}, names("", new(ruleRow).names()), names("", new(ruleRow).sums())),
		Conflict: ` ON CONFLICT (day, agent, hook, shard) DO UPDATE SET last = CASE WHEN excluded.last IS NULL OR rule_counts.last > excluded.last
			THEN rule_counts.last ELSE excluded.last END, ` + strings.Join(lo.Map(names("", new(ruleRow).sums()), func(c string, _ int) string {
			return c + " = rule_counts." + c + " + excluded." + c
		}), ", "),
	}
	// RulesQuery reads the sums of counts since a day.
	RulesQuery = `SELECT agent, hook, max(last), ` + strings.Join(lo.Map(names("", new(ruleRow).sums()), func(c string, _ int) string {
		return "CAST(sum(" + c + ") AS bigint)"
	}), ", ") + ` FROM rule_counts WHERE day >= $1 GROUP BY agent, hook`
	selectCountEvents = `SELECT ` + nameList("", eventColumns(&durable.Event{})) + ` FROM events WHERE run = ` + numOf + ` AND name = '` +
		durable.EventCounts + `' ORDER BY seq`
)

// AddRuleCounts implements Tx.
func (t Tables) AddRuleCounts(day int64, counts ...durable.RuleCount) error {
	shard := rand.Int64N(t.Queries.Shards)
	for _, c := range counts {
		r := newRuleRow(c)
		if err := t.Insert(insertRule, slices.Concat([]any{day, shard}, Values(r.names()), Values(r.sums()))...); err != nil {
			return err
		}
	}
	return nil
}

// RuleCounts implements Rows.
func (t Tables) RuleCounts(since int64) ([]durable.RuleCount, error) {
	rows, err := SelectAll(t, func(r *ruleRow) []any { return append(Values(r.names()), Values(r.sums())...) }, RulesQuery, since)
	return lo.Map(rows, func(r ruleRow, _ int) durable.RuleCount { return r.toCount() }), err
}

// CountEvents implements Rows.
func (t Tables) CountEvents(id agent.RunID) ([]durable.Event, error) {
	return SelectAll(t, func(e *durable.Event) []any { return Values(eventColumns(e)) }, selectCountEvents, string(id))
}
