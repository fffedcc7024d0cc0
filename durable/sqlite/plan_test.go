package sqlite

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Every statement must find what it is about by an index, or a million runs would be
// read for one.
func TestPlans(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()

	// What a table may be read by without an index: the one row of the switch, and the
	// short lists that a subquery made.
	small := regexp.MustCompile(`^SCAN (deny_tools|\(subquery-\d+\)|CONSTANT ROW)$`)
	check := func(t *testing.T, query string, sorts bool) {
		t.Helper()
		plan := explainPlan(t, s, query)
		for _, line := range plan {
			if strings.HasPrefix(line, "SCAN") && !small.MatchString(line) {
				assert.Contains(t, line, "USING", "%s\n%s", query, strings.Join(plan, "\n"))
			}
			if strings.Contains(line, "TEMP B-TREE") {
				assert.True(t, sorts, "%s\n%s", query, strings.Join(plan, "\n"))
			}
			assert.NotContains(t, line, "AUTOMATIC", "%s", query)
		}
	}
	for _, query := range append(reads, writes...) {
		check(t, query, query == selectDue) // which sorts four lists, each as long as the limit
	}

	parked, done := []agent.Status{agent.StatusParked}, []agent.Status{agent.StatusParked, agent.StatusDone}
	for name, c := range map[string]struct {
		filter durable.Filter
		by     string
	}{
		"all":               {durable.Filter{}, "INTEGER PRIMARY KEY"},
		"status":            {durable.Filter{Status: parked}, "runs_by_status (status=? AND rowid<?)"},
		"statuses":          {durable.Filter{Status: done}, "runs_by_status (status=? AND rowid<?)"},
		"agent":             {durable.Filter{Agent: "a"}, "runs_by_agent (agent=? AND rowid<?)"},
		"agent, status":     {durable.Filter{Agent: "a", Status: parked}, "runs_by_agent_status (agent=? AND status=? AND rowid<?)"},
		"agent, statuses":   {durable.Filter{Agent: "a", Status: done}, "runs_by_agent_status (agent=? AND status=? AND rowid<?)"},
		"session":           {durable.Filter{Session: "s"}, "runs_by_session (session=? AND rowid<?)"},
		"session, statuses": {durable.Filter{Session: "s", Agent: "a", Status: done}, "runs_by_session (session=? AND rowid<?)"},
		"parent":            {durable.Filter{Parent: "p"}, "runs_by_parent (parent=? AND rowid<?)"},
		"everything":        {durable.Filter{Parent: "p", Session: "s", Agent: "a", Status: parked}, "runs_by_parent (parent=? AND rowid<?)"},
	} {
		t.Run("list by "+name, func(t *testing.T) {
			query, _ := selectList(c.filter, 1<<40)
			plan := strings.Join(explainPlan(t, s, query), "\n")
			assert.Contains(t, plan, c.by)
			assert.NotContains(t, strings.ReplaceAll(plan, c.by, ""), "runs_by_", "one index does it all")
			assert.NotContains(t, plan, "SCAN runs")
			assert.Equal(t, len(c.filter.Status) > 1, strings.Contains(plan, "TEMP B-TREE"),
				"only the pages of several statuses are sorted:\n%s", plan)
		})
	}
	due := strings.Join(explainPlan(t, s, selectDue), "\n")
	for _, index := range []string{"runs_ready", "runs_by_deadline", "runs_by_expiry", "runs_by_lease"} {
		assert.Contains(t, due, index, "each cause by its own index:\n%s", due)
	}
	assert.Contains(t, strings.Join(explainPlan(t, s, selectByToken), "\n"), "questions_by_token")
	assert.Contains(t, strings.Join(explainPlan(t, s, wakeParents), "\n"), "questions_by_child")
	assert.Contains(t, strings.Join(explainPlan(t, s, pruneRuns), "\n"), "runs_by_end")
}

func explainPlan(t *testing.T, s *Store, query string) (plan []string) {
	t.Helper()
	var args []any
	for range countParameters(query) {
		args = append(args, nil)
	}
	rows, err := s.readers.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
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
	most := strings.Count(query, "?")
	for n := most; n > 0; n-- {
		if strings.Contains(query, fmt.Sprint("?", n)) {
			return n
		}
	}
	return most
}
