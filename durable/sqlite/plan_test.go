package sqlite

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

func TestStore(t *testing.T) {
	statements := map[string]bool{}
	durabletest.TestStore(t, func(t *testing.T) durable.Store {
		t.Helper()
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), Options{})
		require.NoError(t, err)
		t.Cleanup(func() {
			for query := range s.db.reads.all {
				statements[query] = true
			}
			for query := range s.db.writes.all {
				statements[query] = true
			}
		})
		return s
	})
	t.Run("plans", func(t *testing.T) { testPlans(t, statements) })
}

// testPlans checks that every statement finds what it is about by an index, or a million runs would be read for one.
func testPlans(t *testing.T, statements map[string]bool) {
	t.Helper()
	s := openTest(t, Options{})
	// What may be read without an index: the queues, waivers and settings, which are few, and the short lists that a subquery or a
	// parameter made.
	small := regexp.MustCompile(`^SCAN (queues|waivers|x|k VIRTUAL TABLE.*|json_each VIRTUAL TABLE.*|\(subquery-\d+\)|(\d+ )?CONSTANT ROWS?)$`)
	// Statements that sort no more rows than their limit, than the owner holds, or than there are keys.
	sorts := []string{selectOwed, store.SignalsQuery, selectServed, store.RulesQuery} // and there are few rules
	list := regexp.MustCompile(` AS listed | FROM audit `)                            // see TestPlansOfLists
	for query := range statements {
		if list.MatchString(query) {
			continue
		}
		plan := explainPlan(t, s, query)
		for _, line := range plan {
			if strings.HasPrefix(line, "SCAN") && !small.MatchString(line) {
				assert.Contains(t, line, "USING", "%s\n%s", query, strings.Join(plan, "\n"))
			}
			if strings.Contains(line, "TEMP B-TREE") {
				assert.Contains(t, sorts, query, "%s", strings.Join(plan, "\n"))
			}
			assert.NotContains(t, line, "AUTOMATIC", "%s", query)
		}
	}
	for _, query := range []string{selectOwed, selectDue, selectWaiters, appendStep, updateClaimed, pruneRuns, store.DocumentsQuery} {
		assert.Contains(t, statements, query, "the contract uses it")
	}
}

func TestPlansOfLists(t *testing.T) {
	s := openTest(t, Options{})
	below := store.Position{Num: 1 << 40, Created: time.Now()}
	waiting, ends := []durable.Status{durable.StatusWaiting}, []durable.Status{durable.StatusWaiting, durable.StatusCompleted}
	label := durable.Label{Name: "team", Value: "a"}
	for name, c := range map[string]struct {
		filter durable.Filter
		by     string
		parts  int // how often the index is read
	}{
		"all":               {durable.Filter{}, "INTEGER PRIMARY KEY (rowid<?)", 1},
		"status":            {durable.Filter{Status: waiting}, "runs_by_status (status=? AND rowid<?)", 1},
		"statuses":          {durable.Filter{Status: ends}, "runs_by_status (status=? AND rowid<?)", 2},
		"kind":              {durable.Filter{Kind: "agent"}, "runs_by_kind (kind=? AND status=? AND rowid<?)", 8},
		"kind, status":      {durable.Filter{Kind: "agent", Status: waiting}, "runs_by_kind (kind=? AND status=? AND rowid<?)", 1},
		"name":              {durable.Filter{Name: "a"}, "runs_by_name (name=? AND status=? AND rowid<?)", 8},
		"name, status":      {durable.Filter{Name: "a", Status: waiting}, "runs_by_name (name=? AND status=? AND rowid<?)", 1},
		"name, statuses":    {durable.Filter{Name: "a", Status: ends}, "runs_by_name (name=? AND status=? AND rowid<?)", 2},
		"label":             {durable.Filter{Label: label}, "labels_by_value (name=? AND value=? AND status=? AND run<?)", 8},
		"label, status":     {durable.Filter{Label: label, Status: waiting}, "labels_by_value (name=? AND value=? AND status=? AND run<?)", 1},
		"phase":             {durable.Filter{Phase: "p"}, "runs_by_phase (phase=? AND status=? AND rowid<?)", 8},
		"phase, status":     {durable.Filter{Phase: "p", Name: "a", Status: waiting}, "runs_by_phase (phase=? AND status=? AND rowid<?)", 1},
		"session":           {durable.Filter{Session: "s"}, "runs_by_session (session=? AND rowid<?)", 1},
		"session, statuses": {durable.Filter{Session: "s", Name: "a", Status: ends}, "runs_by_session (session=? AND rowid<?)", 1},
		"parent":            {durable.Filter{Parent: "p"}, "runs_by_parent (parent=? AND rowid<?)", 1},
		"parent session":    {durable.Filter{ParentSession: "s", Turn: "t"}, "runs_by_parent_session (parent_session=? AND rowid<?)", 1},
		"turn":              {durable.Filter{Turn: "t"}, "runs_by_turn (status=? AND rowid<?)", 8},
		"turns, status":     {durable.Filter{HasTurn: true, Status: waiting}, "runs_by_turn (status=? AND rowid<?)", 1},
		"turns, phase":      {durable.Filter{HasTurn: true, Phase: "p", Status: waiting}, "runs_by_phase (phase=? AND status=? AND rowid<?)", 1},
		"hooks":             {durable.Filter{HasHooks: true, Name: "a"}, "runs_by_hooks (has_hooks=? AND status=? AND rowid<?)", 8},
		"blocked":           {durable.Filter{Blocked: true}, "runs_by_block (blocked=? AND rowid<?)", 1},
		"decision":          {durable.Filter{Decision: "denied", Hook: "h", By: "b"}, "runs_by_decision (num<?)", 1},
		"submitter":         {durable.Filter{By: "b"}, "runs_by_submitter (submitted_by=? AND status=? AND rowid<?)", 8},
		"submitter, status": {durable.Filter{By: "b", Status: waiting}, "runs_by_submitter (submitted_by=? AND status=? AND rowid<?)", 1},
		"since":             {durable.Filter{Since: time.Now()}, "runs_by_creation (created>? AND created<?)", 1},
		"until":             {durable.Filter{Until: time.Now()}, "runs_by_creation (created<?)", 1},
		"everything": {durable.Filter{
			Parent: "p", Session: "s", Name: "a", Kind: "agent", Label: label, Blocked: true, Status: ends, Since: time.Now(), Until: time.Now(),
		}, "runs_by_parent (parent=? AND rowid<?)", 1},
	} {
		t.Run("list by "+name, func(t *testing.T) {
			query, _ := selectList(c.filter, below)
			lines := explainPlan(t, s, query)
			plan := strings.Join(lines, "\n")
			assert.Equal(t, c.parts, strings.Count(plan, c.by), "%s", plan)
			for _, index := range regexp.MustCompile(`\b(runs|labels)_by_\w+`).FindAllString(plan, -1) {
				assert.Contains(t, c.by, index, "one index does it all:\n%s", plan)
			}
			assert.NotContains(t, plan, "SCAN runs")
			if page, _, ok := strings.Cut(plan, "SCAN (subquery"); assert.True(t, ok, "%s", plan) && c.parts == 1 {
				assert.NotContains(t, page, "TEMP B-TREE", "only the pages of several statuses are sorted")
			}
		})
	}

	for _, f := range []durable.Filter{{ChangedSince: time.Now()}, {ChangedSince: time.Now(), Status: ends}} {
		changed, _ := selectList(f, below)
		plan := strings.Join(explainPlan(t, s, changed), "\n")
		for _, index := range []string{"runs_ended (ended>?)", "runs_idle (idle>?)", "SCAN runs USING INDEX runs_held", "INTEGER PRIMARY KEY (rowid=?)"} {
			assert.Contains(t, plan, index)
		}
		assert.NotContains(t, plan, "runs_by")
	}
	for _, f := range []durable.Filter{{Status: waiting}, {Label: label, Status: waiting}, {By: "b", Status: waiting}, {Blocked: true}, {Hook: "h"}} {
		f.Since, f.Until = time.Now(), time.Now()
		timed, _ := selectList(f, below)
		plan := strings.Join(explainPlan(t, s, timed), "\n")
		assert.Regexp(t, `(rowid|run|num)>\? AND (rowid|run|num)<\?`, plan, "no run before the time is read")
		assert.Contains(t, plan, "COVERING INDEX runs_by_creation (created>?)")
	}
	newest, _ := selectList(durable.Filter{LastTurn: true, Status: waiting}, below)
	plan := strings.Join(explainPlan(t, s, newest), "\n")
	assert.Contains(t, plan, "runs_by_turn (status=? AND rowid<?)")
	assert.Contains(t, plan, "SEARCH later USING INDEX runs_by_session (session=? AND rowid>?)")
	sessions, _ := selectList(durable.Filter{Sessions: []agent.SessionID{"s", "u"}, Turn: "t"}, below)
	assert.Contains(t, strings.Join(explainPlan(t, s, sessions), "\n"), "runs_by_session (session=? AND rowid<?)")
	count, _ := selectCount(durable.Filter{HasTurn: true, Status: waiting}, below)
	assert.Contains(t, strings.Join(explainPlan(t, s, count), "\n"), "runs_by_turn (status=? AND rowid<?)")

	kinds := []durable.WaitKind{durable.WaitFile, durable.WaitCommand}
	for name, c := range map[string]struct {
		filter durable.WaitFilter
		by     string
		parts  int
	}{
		"all":           {durable.WaitFilter{}, "waits_open (asked>?)", 1},
		"next page":     {durable.WaitFilter{After: &durable.Wait{}}, "waits_open (asked>?)", 1},
		"kinds":         {durable.WaitFilter{Kinds: kinds}, "waits_by_kind (kind=? AND asked>?)", 2},
		"expired":       {durable.WaitFilter{Expired: true}, "waits_by_deadline (deadline>? AND deadline<?)", 1},
		"expired kinds": {durable.WaitFilter{Expired: true, Kinds: kinds}, "waits_by_deadline (deadline>? AND deadline<?)", 1},
		"run":           {durable.WaitFilter{Run: "r", Kinds: kinds, Expired: true}, "waits_by_run (run=?)", 1},
	} {
		t.Run("open waits by "+name, func(t *testing.T) {
			query, _ := selectOpen(c.filter, time.Now())
			plan := strings.Join(explainPlan(t, s, query), "\n")
			assert.Equal(t, c.parts, strings.Count(plan, c.by), "%s", plan)
			assert.NotContains(t, plan, "SCAN r")
			assert.NotContains(t, plan, "SCAN w")
		})
	}
	claim := checks{owner: "o", limit: 1, kinds: kinds, hosts: []string{"", "h"}}
	query, _ := claim.selectOwn()
	assert.Contains(t, strings.Join(explainPlan(t, s, query), "\n"), "waits_watched (checker=?)")
	query, _ = claim.selectFree(time.Now())
	plan = strings.Join(explainPlan(t, s, query), "\n")
	assert.Equal(t, 4, strings.Count(plan, "waits_unwatched (kind=? AND host=?)"), "%s", plan)
	assert.Contains(t, plan, "waits_lapsed (checked_until<?)")
	for index, f := range map[string]durable.AuditFilter{
		"PRIMARY KEY (rowid<?)": {}, "audit_by_kind (kind=? AND rowid<?)": {Kind: durable.AuditAnswer},
		"audit_by_subject (subject=? AND rowid<?)": {Kind: durable.AuditAnswer, Subject: "pay"},
		"audit_by_run (run=? AND rowid<?)":         {Kind: durable.AuditAnswer, Subject: "pay", Run: "r"},
	} {
		query, _ := selectRecords(f)
		plan := strings.Join(explainPlan(t, s, query), "\n")
		assert.Contains(t, plan, index)
		assert.NotContains(t, plan, "TEMP B-TREE")
	}

	for query, index := range map[string]string{
		selectReadyQueues: "runs_ready (queue=?)", selectReady: "runs_ready (queue=?)", selectServed: "runs_ready (queue=?)",
		selectByKey: "runs_by_key", selectWaiters: "waits_by_child", pruneRuns: "runs_ended",
		pruneQueues: "runs_by_queue (queue=?)", store.SignalsQuery: "runs_held (owner=?)", store.DocumentsQuery: "documents_newest (kind=? AND name>?)",
	} {
		assert.Contains(t, strings.Join(explainPlan(t, s, query), "\n"), index, "%s", query)
	}
	for query, indexes := range map[string][]string{
		selectOwed: {"runs_owed (offered=?)", "runs_owed (offered<?)", "runs_owed (offered>?)"},
		selectDue: {
			"INDEX runs_held", "runs_answer_by (answer_by>? AND answer_by<?)", "runs_not_before (not_before<?)",
			"runs_start_by (start_by>? AND start_by<?)", "runs_deadline (deadline>? AND deadline<?)",
		},
	} {
		plan := strings.Join(explainPlan(t, s, query), "\n")
		for _, index := range indexes {
			assert.Contains(t, plan, index, "each cause by its own index")
		}
	}
}

func explainPlan(t *testing.T, s *Store, query string) (plan []string) {
	t.Helper()
	var args []any
	for range countParameters(query) {
		args = append(args, nil)
	}
	rows, err := s.db.readers.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	require.NoError(t, err, "%s", query)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		plan = append(plan, detail)
	}
	require.NoError(t, rows.Err())
	return plan
}

func countParameters(query string) int {
	for n := 99; n > 0; n-- {
		if strings.Contains(query, fmt.Sprint("?", n)) || strings.Contains(query, fmt.Sprint("$", n)) {
			return n
		}
	}
	return strings.Count(query, "?")
}
