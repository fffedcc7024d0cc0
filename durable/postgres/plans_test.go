package postgres_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// fill adds n runs, of which few match a query: nine of ten have ended,
// most others are parked and wait for a person, one in a thousand runs or is due.
func fill(t testing.TB, s *postgres.Store, n int) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO runs (id, session, agent, parent, root, status, reason, steps, entries, created, updated, ended, owner, expires, ready, deadline)
		SELECT 'run ' || i, 'session ' || i / 5, 'agent ' || i % 1000, CASE WHEN i % 20 = 0 THEN 'run ' || i - 1 ELSE '' END, '',
			CASE WHEN i % 1000 = 1 THEN 'running' WHEN i % 10 = 1 THEN 'parked' WHEN i % 50 = 2 THEN 'failed' ELSE 'done' END,
			'', 10, 10, at, at, CASE WHEN i % 10 <> 1 THEN at END, CASE WHEN i % 2000 = 1 THEN 'one' ELSE '' END,
			CASE WHEN i % 2000 = 1 THEN now() + interval '1 day' END,
			CASE WHEN i % 1000 = 1 OR i % 1000 = 11 THEN at WHEN i % 100 = 21 THEN now() + interval '1 day' END,
			CASE WHEN i % 100 = 21 THEN now() + interval '1 day' END
		FROM (SELECT i, now() - interval '1 day' + i * interval '1 millisecond' AS at FROM generate_series(1, $1::int) i) x`,
		`INSERT INTO questions (run, place, call, hash, tool, asked, deadline, child, token, data, ends)
		SELECT num, 1, 'call', 'hash', 'bash', created, deadline, CASE WHEN num % 40 = 1 THEN 'run ' || num + 1 ELSE '' END,
			sha256(id::bytea), 'may I?', false
		FROM runs WHERE status = 'parked' AND $1::int > 0`,
		`INSERT INTO entries (run, seq, kind, key, at, data)
		SELECT num, seq, 'reply', '', created, 'data' FROM runs, generate_series(1, 10) seq WHERE num % 10 = 1 AND $1::int > 0`,
	} {
		_, err := s.Pool().Exec(t.Context(), statement, n)
		require.NoError(t, err)
	}
	_, err := s.Pool().Exec(t.Context(), `VACUUM ANALYZE runs, questions, entries`)
	require.NoError(t, err)
}

// TestEachQueryReadsWhatItGives explains the queries on a table of many runs, planned
// for their arguments and for any.
func TestEachQueryReadsWhatItGives(t *testing.T) {
	t.Parallel()
	s := openClosed(t, parts.Postgres(t), postgres.Options{Conns: 1})
	fill(t, s, 70_000)
	type query struct {
		sql  string
		args []any
		want string // the index
		most int    // rows that it may read
	}
	queries := map[string]query{
		"due":       {postgres.DueQuery, []any{20}, "runs_due", 20},
		"entries":   {postgres.EntriesQuery, []any{"run 50001", int64(5)}, "entries_pkey", 6},
		"questions": {postgres.QuestionsQuery, []any{"run 50011"}, "questions_run", 2},
		"token":     {postgres.TokenQuery, []any{[]byte("no such token")}, "questions_token", 2},
		"prune":     {postgres.PruneQuery, []any{time.Now().Add(-23 * time.Hour), 50}, "runs_ended", 200},
	}
	for name, list := range map[string]struct {
		filter durable.Filter
		index  string
		most   int
	}{
		"all":                {durable.Filter{}, "runs_pkey", 20},
		"one status":         {durable.Filter{Status: []agent.Status{agent.StatusRunning}}, "runs_status", 20},
		"several":            {durable.Filter{Status: []agent.Status{agent.StatusParked, agent.StatusFailed}}, "runs_status", 60},
		"an agent":           {durable.Filter{Agent: "agent 7"}, "runs_agent", 20},
		"a session":          {durable.Filter{Session: "session 7"}, "runs_session", 5},
		"a parent":           {durable.Filter{Parent: "run 19"}, "runs_parent", 1},
		"an agent, a status": {durable.Filter{Agent: "agent 11", Status: []agent.Status{agent.StatusParked}}, "runs_agent", 101},
	} {
		list.filter.Limit = 20
		for behind, before := range map[string]*int64{"": nil, ", a page behind": new(int64(60_000))} {
			sql, args := postgres.Listing(list.filter, before)
			queries["list "+name+behind] = query{sql, args, list.index, list.most}
		}
	}
	for name, q := range queries {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plan, read := explain(t, s, mode, q.sql, q.args)
			assert.NotContains(t, plan, "Seq Scan", "%s, %s", name, mode)
			assert.Contains(t, plan, q.want, "%s, %s", name, mode)
			assert.LessOrEqual(t, read, q.most, "%s, %s reads this many rows:\n%s", name, mode, plan)
		}
	}
}

// explain returns the plan of a query, and how many rows it reads from tables when it runs.
func explain(t *testing.T, s *postgres.Store, mode, query string, args []any) (plan string, read int) {
	t.Helper()
	ctx := t.Context()
	tx, err := s.Pool().Begin(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(ctx)) }() // a DELETE is not for good
	_, err = tx.Exec(ctx, `SET LOCAL plan_cache_mode = `+mode)
	require.NoError(t, err)
	rows, err := tx.Query(ctx, "EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF) "+query, args...)
	require.NoError(t, err)
	for rows.Next() {
		var line string
		require.NoError(t, rows.Scan(&line))
		plan += line + "\n"
		if _, counts, is := strings.Cut(line, "(actual rows="); is && strings.Contains(line, "Scan using") || strings.Contains(line, "Heap Scan") {
			number, loops, _ := strings.Cut(strings.TrimSuffix(counts, ")"), " loops=")
			n, err := strconv.Atoi(number)
			require.NoError(t, err)
			times, err := strconv.Atoi(loops)
			require.NoError(t, err)
			read += n * times
		}
		if _, gone, is := strings.Cut(line, "Rows Removed by Filter: "); is {
			n, err := strconv.Atoi(gone)
			require.NoError(t, err)
			read += n
		}
	}
	require.NoError(t, rows.Err())
	return plan, read
}

// TestNoCallReadsAWholeTable makes every call often enough for its plan to be the one
// for any arguments, and asks the database how many rows it has read for it.
func TestNoCallReadsAWholeTable(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{Conns: 1})
	fill(t, s, 20_000)
	ctx := t.Context()
	const times = 12
	id := func(i int) agent.RunID { return agent.RunID(fmt.Sprint("run ", 10*i+31)) } // parked
	fresh := func(i int) agent.RunID { return agent.RunID(fmt.Sprint("fresh ", i)) }
	leases := map[int]durable.Lease{}
	lease := func(l durable.Lease, err error) func(i int) error {
		return func(i int) error {
			leases[i] = l
			return err
		}
	}
	question := []durable.Question{{Call: "c", Hash: "h", Child: id(900)}, {Call: "d", Hash: "h"}}
	for _, call := range []struct {
		name string
		most int64 // rows that a call may read
		do   func(i int) error
	}{
		{"create", 2, func(i int) error {
			return lease(s.Create(ctx, durable.Run{ID: fresh(i), Agent: "a", Session: "s", Parent: "p"}, "one", time.Hour))(i)
		}},
		{"claim", 4, func(i int) error { return lease(s.Claim(ctx, fresh(i), "two", time.Hour, durable.TakeOver))(i) }},
		{"renew", 10, func(i int) error { return lease(s.Renew(ctx, leases[i], time.Hour))(i) }},
		{"append", 20, func(i int) error {
			return s.Append(ctx, leases[i], durable.Update{Status: agent.StatusRunning}, entries(1, 3)...)
		}},
		{"park", 60, func(i int) error {
			return s.Append(ctx, leases[i], durable.Update{Status: agent.StatusParked, Questions: question}, entries(4, 4)...)
		}},
		{"answer", 40, func(i int) error { return s.Answer(ctx, fresh(i), durable.Answer{Call: "c", Hash: "h"}) }},
		{"run", 4, func(i int) error { return second(s.Run(ctx, fresh(i))) }},
		{"entries", 10, func(i int) error { return second(s.Entries(ctx, fresh(i), 2)) }},
		{"questions", 10, func(i int) error { return second(s.Questions(ctx, fresh(i))) }},
		{"list", 60, func(i int) error {
			return second(s.List(ctx, durable.Filter{Status: []agent.Status{agent.StatusParked}, Limit: 20, Before: id(i)}))
		}},
		{"due", 20, func(i int) error { return second(s.Due(ctx, 10)) }},
		{"cancel", 10, func(i int) error { return s.Cancel(ctx, fresh(i), "why") }},
		{"end", 60, func(i int) error {
			return s.Append(ctx, leases[i], durable.Update{Status: agent.StatusDone}, entries(5, 5)...)
		}},
		{"release", 10, func(i int) error {
			l, err := s.Claim(ctx, id(i), "two", time.Hour, durable.TakeOver)
			return lo.CoalesceOrEmpty(err, s.Release(ctx, l))
		}},
		{"delete", 60, func(i int) error { return s.Delete(ctx, fresh(i)) }},
		{"switch", 4, func(i int) error { return s.SetDenyTools(ctx, durable.Switch{On: i%2 == 0}) }},
	} {
		before := rowsRead(t, s)
		for i := range times {
			require.NoError(t, call.do(i), call.name)
		}
		after := rowsRead(t, s)
		assert.LessOrEqual(t, (after-before)/times, call.most, "rows that one %s reads", call.name)
		t.Logf("%-10s %d rows", call.name, (after-before)/times)
	}
}

// rowsRead returns how many rows, and entries of indexes, the database has read so far.
func rowsRead(t *testing.T, s *postgres.Store) (n int64) {
	t.Helper()
	_, err := s.Pool().Exec(context.WithoutCancel(t.Context()), `SELECT pg_stat_force_next_flush()`)
	require.NoError(t, err)
	err = s.Pool().QueryRow(t.Context(), `SELECT (SELECT sum(seq_tup_read) + sum(coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables)::bigint
		+ (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)::bigint`).Scan(&n)
	require.NoError(t, err)
	return n
}
