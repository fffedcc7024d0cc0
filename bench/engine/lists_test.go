package engine_test

import (
	"fmt"
	"maps"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// fillRuns adds runs, of which few match a filter: nine of ten have ended, most others wait, one in a thousand is running,
// ready or of another kind, and none was cancelled. Each of 1,000 definitions has as many runs. Half of the runs have the site 1;
// all of those have ended. More replaces values.
func fillRuns(m *measuring, p benchStore, n int, first durable.Job, more ...map[string]string) {
	m.Helper()
	_, err := p.Begin(m.Context(), first, "one", time.Hour)
	require.NoError(m, err)
	values := map[string]string{
		"session": `'session ' || (x.i / 5)`, "kind": `CASE WHEN x.i % 1000 = 3 THEN 'command' ELSE 'agent' END`, "name": `'agent ' || (x.i % 1000)`,
		"parent": `CASE WHEN x.i % 20 = 0 THEN 'run' || (x.i - 1) ELSE '' END`, "owner": `''`, "leased": `NULL`, "expires": `NULL`,
		"status": `CASE WHEN x.i % 1000 = 1 THEN 'running' WHEN x.i % 1000 = 11 THEN 'ready' WHEN x.i % 100 = 31 THEN 'pending' WHEN x.i % 10 = 1 THEN 'waiting'
			WHEN x.i % 50 = 2 THEN 'failed' WHEN x.i % 500 = 5 THEN 'stopped' ELSE 'completed' END`,
		"blocked": `CASE WHEN x.i % 5000 = 2 THEN {yes} ELSE {no} END`, "created": `{ago}`, "updated": `{ago}`,
		"ready":     `CASE WHEN x.i % 1000 = 11 THEN {ago} END`,
		"offer_seq": `CASE WHEN x.i % 1000 = 11 THEN 1 ELSE 0 END`,
	}
	for _, m := range more {
		maps.Copy(values, m)
	}
	copyRun(m.T, p.bare, "first", n, values)
	for name, value := range map[string]string{"team": `'team ' || (num % 1000)`, "site": `'site ' || (num % 2)`} {
		require.NoError(m, p.bare.transact(m.Context(), statement{query: fillIn(p.bare,
			`INSERT INTO labels (run, name, value, status) SELECT num, '`+name+`', `+value+`, status FROM runs WHERE id <> 'first'`)}))
	}
	p.bare.tidy(m.T)
}

const listGoal = 50 * time.Millisecond

// measureLists measures a page of 100 runs for each filter alone and for a status with each of kind, definition and label: the
// first page, and the one behind the run in the middle.
func measureLists(m *measuring) {
	p := m.backend.open(m.T)
	m.report.note(p.bare.version(m.T))
	began := time.Now()
	fillRuns(m, p, m.listed, durable.Job{ID: "first"})
	m.Logf("filled in %s", time.Since(began).Round(time.Millisecond))
	middle := agent.RunID(fmt.Sprint("run", m.listed/2))
	r, err := p.Run(m.Context(), middle)
	require.NoError(m, err)
	filters := map[string]durable.Filter{
		"none": {}, "common-kind": {Kind: durable.KindAgent}, "rare-kind": {Kind: durable.KindCommand}, "definition": {Name: "agent 7"},
		"session": {Session: agent.SessionID(fmt.Sprint("session ", m.listed/10))}, "parent": {Parent: agent.RunID(fmt.Sprint("run", m.listed/2-1))},
		"common-label": {Label: durable.Label{Name: "site", Value: "site 1"}}, "rare-label": {Label: durable.Label{Name: "team", Value: "team 7"}},
		"blocked": {Blocked: true}, "since": {Since: r.Created}, "until": {Until: r.Created},
	}
	for _, status := range durable.Statuses {
		only := []durable.Status{status}
		filters["status-"+string(status)] = durable.Filter{Status: only}
		filters[string(status)+"-common-kind"] = durable.Filter{Status: only, Kind: durable.KindAgent}
		filters[string(status)+"-rare-kind"] = durable.Filter{Status: only, Kind: durable.KindCommand}
		filters[string(status)+"-definition"] = durable.Filter{Status: only, Name: "agent 11"}
		filters[string(status)+"-common-label"] = durable.Filter{Status: only, Label: durable.Label{Name: "site", Value: "site 1"}}
		filters[string(status)+"-rare-label"] = durable.Filter{Status: only, Label: durable.Label{Name: "team", Value: "team 12"}}
	}
	var (
		all     []time.Duration
		slowest struct {
			name string
			took time.Duration
		}
	)
	for key, f := range filters {
		for page, before := range map[string]agent.RunID{"first": "", "middle": middle} {
			f.Before = before
			var took []time.Duration
			for until := time.Now().Add(2 * time.Second); len(took) < m.looks && (len(took) < 3 || time.Now().Before(until)); {
				took = append(took, timed(func() {
					runs, err := p.List(m.Context(), f)
					require.NoError(m, err)
					require.LessOrEqual(m, len(runs), durable.DefaultLimit)
					if len(f.Status) == 0 && page == "first" {
						require.NotEmpty(m, runs, key)
					}
				}))
			}
			m.report.each(m, "lists/filter="+key+"/page="+page, took)
			all = append(all, took...)
			name := key + ", " + page + " page"
			if took := quantile(took, 50); took > slowest.took {
				slowest.took, slowest.name = took, name
			}
			if took := quantile(took, 50); took >= listGoal {
				m.Logf("missed the goal: %s: %s", name, milliseconds(took))
			}
		}
	}
	m.row(fmt.Sprintf("list over %s runs", thousands(m.listed)), "< 50 ms",
		slowest.took < listGoal, "slowest filter **%s** (%s), all p50 %s, p99 %s",
		milliseconds(slowest.took), slowest.name, milliseconds(quantile(all, 50)), milliseconds(quantile(all, 99)))
}
