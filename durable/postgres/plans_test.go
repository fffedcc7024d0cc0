package postgres_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// patient lets the statements of fill take as long as they take.
var patient = postgres.Options{Conns: 1, Timeout: 10 * time.Minute}

// fill adds n runs, of which few match a query: nine of ten have ended, most others wait for a person, one in a thousand runs or
// is ready. They are in 1,000 queues. Each time for which Reconcile looks has come for one in 10,000.
func fill(t testing.TB, s *postgres.Store, n int) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO queues (key, kind, name, demands) SELECT sha256(i::text::bytea), 'agent', 'agent ' || i, ''
		FROM generate_series(0, 999) i WHERE $1::int > 0`,
		`INSERT INTO runs (id, session, kind, name, parent, root, status, reason, steps, entries, created, updated, ended, idle, owner, expires, ready, answer_by,
			queue, labels, blocked, epoch, attempts, offer_seq, offered, not_before, deadline, start_by, cancel_cause, handled, signals, turn, parent_session, has_hooks,
			submitted_by, decisions)
		SELECT 'run ' || i, 'session ' || i / 5, CASE WHEN i % 5000 = 3 THEN 'command' ELSE 'agent' END, 'agent ' || i % 1000,
			CASE WHEN i % 20 = 0 THEN 'run ' || i - 1 ELSE '' END, '', status, '', 10, 10, at, at,
			CASE WHEN status IN ('completed', 'failed') THEN at END, CASE WHEN status IN ('ready', 'pending', 'waiting') THEN at END, CASE status WHEN 'running' THEN 'owner ' || i % 7 ELSE '' END,
			CASE status WHEN 'running' THEN now() + CASE WHEN i % 10000 = 1 THEN -1 ELSE 1 END * interval '1 day' END,
			CASE status WHEN 'ready' THEN at END,
			CASE WHEN status = 'waiting' AND i % 100 = 21 THEN now() + CASE WHEN i % 10000 = 21 THEN -1 ELSE 1 END * interval '1 day' END,
			q.id, '{}', i % 500 = 2, 1, CASE status WHEN 'pending' THEN 0 ELSE 1 END, CASE status WHEN 'ready' THEN 1 ELSE 0 END,
			CASE WHEN i % 2000 = 11 THEN at END, CASE status WHEN 'pending' THEN now() + CASE WHEN i % 10000 = 31 THEN -1 ELSE 1 END * interval '1 day' END,
			CASE WHEN i % 10 = 1 THEN now() + CASE WHEN i % 10000 = 41 THEN -1 ELSE 1 END * interval '1 day' END,
			CASE status WHEN 'pending' THEN now() + CASE WHEN i % 10000 = 131 THEN -1 ELSE 1 END * interval '1 day' END,
			'', i % 2, i % 2, CASE WHEN i % 5 = 0 THEN 'first' ELSE '' END, CASE WHEN i % 20 = 0 THEN 'session ' || i / 5 ELSE '' END, i % 500 = 2,
			CASE WHEN i % 100 = 2 THEN 'ann' ELSE 'bob' END, CASE WHEN i % 500 = 2 THEN '[{"decision":"denied","hook":"payee","count":1}]'
				WHEN i % 50 = 3 THEN '[{"decision":"asked","hook":"limit","count":2}]' ELSE '' END
		FROM (SELECT i, now() - interval '1 day' + i * interval '1 millisecond' AS at, CASE
			WHEN i % 1000 = 1 THEN 'running' WHEN i % 1000 = 11 THEN 'ready' WHEN i % 100 = 31 THEN 'pending' WHEN i % 10 = 1 THEN 'waiting'
			WHEN i % 50 = 2 THEN 'failed' ELSE 'completed' END AS status
			FROM generate_series(1, $1::int) i) x JOIN queues q ON q.name = 'agent ' || i % 1000 ORDER BY i`,
		`INSERT INTO labels (run, name, value, status)
		SELECT num, 'team', 'team ' || num % 10, status FROM runs WHERE $1::int > 0 UNION ALL SELECT num, 'site', 'site ' || num % 2, status FROM runs`,
		`INSERT INTO waits (run, run_id, place, id, kind, subject, tool, asked, deadline, child, host, checker, checked_until, token, data, ends)
		SELECT num, id, 1, 'wait', kind, 'hash', 'bash', created, answer_by, CASE WHEN kind = 'child' THEN 'run ' || num + 1 ELSE '' END,
			CASE kind WHEN 'file' THEN 'host ' || num / 100 % 3 ELSE '' END,
			CASE WHEN kind <> 'file' OR num % 400 = 261 THEN '' ELSE 'checker ' || num / 100 % 5 END,
			CASE WHEN kind = 'file' AND num % 400 <> 261 THEN now() + CASE WHEN num % 1600 = 61 THEN -1 ELSE 1 END * interval '1 day' END,
			sha256(id::bytea), 'may I?', false
		FROM (SELECT num, id, created, answer_by,
			CASE WHEN num % 40 = 1 THEN 'child' WHEN num % 100 = 61 THEN 'file' WHEN num % 1000 = 71 THEN 'input' ELSE 'approval' END AS kind
			FROM runs WHERE status = 'waiting' AND $1::int > 0) r`,
		`INSERT INTO audit (at, kind, run, subject, who, wait, about, more, ends, data)
		SELECT created, CASE WHEN num % 5000 = 1 THEN 'waiver' ELSE 'answer' END, CASE WHEN num % 5000 = 1 THEN '' ELSE id END,
			CASE WHEN num % 5000 = 1 THEN 'waiver ' || num WHEN num % 1000 = 2 THEN 'rare' ELSE 'bash' END, 'ann', 'wait', 'hash', false, false, 'yes'
		FROM runs WHERE $1::int > 0 ORDER BY num`,
		`INSERT INTO entries (run, seq, kind, key, at, data)
		SELECT num, seq, 'reply', '', created, 'data' FROM runs, generate_series(1, 10) seq WHERE num % 10 = 1 AND $1::int > 0`,
		`INSERT INTO events (run, seq, at, name, data)
		SELECT num, seq, created, 'event', 'data' FROM runs, generate_series(1, 10) seq WHERE num % 10 = 1 AND $1::int > 0`,
		`INSERT INTO signals (run, seq, kind, text, who, at)
		SELECT num, 1, 'context', 'text', '', created FROM runs WHERE num % 10 = 1 AND $1::int > 0`,
	} {
		_, err := s.Pool().Exec(t.Context(), statement, n)
		require.NoError(t, err)
	}
	_, err := s.Pool().Exec(t.Context(), `VACUUM ANALYZE`)
	require.NoError(t, err)
}

// TestEachQueryReadsWhatItGives explains the queries on a table of many runs, planned
// for their arguments and for any.
func TestEachQueryReadsWhatItGives(t *testing.T) {
	t.Parallel()
	s := openClosed(t, parts.Postgres(t), patient)
	fill(t, s, 70_000)
	type query struct {
		sql  string
		args []any
		want string // the index
		most int    // rows that it may read
	}
	var keys [][]byte
	for _, name := range []string{"agent 11", "agent 1", "agent 500"} {
		rows, err := s.Pool().Query(t.Context(), `SELECT key FROM queues WHERE name = $1`, name)
		require.NoError(t, err)
		some, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		require.NoError(t, err)
		keys = append(keys, some...)
	}
	queries := map[string]query{
		"claim":        {postgres.ClaimByQueue(8), []any{keys, "one", time.Hour, 3}, "runs_queue", 60},
		"claim first":  {postgres.ClaimFirst, []any{keys, "one", time.Hour, 3}, "runs_ready", 300},
		"served":       {postgres.ServedQuery, []any{keys}, "runs_queue", 80},
		"polled":       {postgres.PutPoll, []any{keys, time.Now()}, "queues_key_key", 10},
		"owed":         {postgres.OwedQuery, []any{time.Minute, 10}, "runs_owed", 60},
		"owed again":   {postgres.OwedQuery, []any{time.Minute, 10}, "runs_offered", 60},
		"signals":      {postgres.SignalsQuery, []any{"owner 3"}, "runs_owner", 50},
		"entries":      {postgres.EntriesQuery, []any{"run 50001", int64(5)}, "entries_pkey", 6},
		"events":       {postgres.EventsQuery, []any{"run 50001", int64(5), 3}, "events_pkey", 6},
		"waits":        {postgres.WaitsQuery, []any{"run 50011"}, "waits_run", 2},
		"prune":        {postgres.PruneQuery, []any{time.Now().Add(-23 * time.Hour), 50}, "runs_ended", 200},
		"prune queues": {postgres.PruneQueuesQuery, nil, "runs_queue", 4000},
	}
	for _, column := range []string{"expires", "answer_by", "not_before", "start_by", "deadline"} {
		queries["due "+column] = query{postgres.DueQuery, []any{time.Now(), 1000}, "runs_" + column, 100}
	}
	for name, checks := range map[string]struct {
		owner string
		kinds []string
		hosts []string
		most  int
	}{
		"own":       {"checker 1", []string{"file", "command"}, []string{"", "host 1"}, 300},
		"new":       {"checker 9", []string{"file", "command", "callback"}, []string{"", "host 0", "host 1", "host 2"}, 300},
		"of people": {"checker 1", []string{"approval"}, []string{""}, 300},
		"none":      {"checker 1", []string{"file"}, []string{"", "host 7"}, 3},
	} {
		queries["checks "+name] = query{postgres.ChecksQuery, []any{checks.owner, 20, checks.kinds, checks.hosts}, "waits_checker", checks.most}
	}
	after := &durable.Wait{Run: "run 50001", ID: "wait", Asked: time.Now().Add(-24*time.Hour + 50*time.Second)}
	for name, list := range map[string]struct {
		filter durable.WaitFilter
		index  string
		most   int
	}{
		"all":             {durable.WaitFilter{}, "waits_open", 100},
		"a kind":          {durable.WaitFilter{Kinds: []durable.WaitKind{durable.WaitInput}}, "waits_kind", 100},
		"kinds":           {durable.WaitFilter{Kinds: []durable.WaitKind{durable.WaitInput, durable.WaitApproval, "none"}}, "waits_kind", 150},
		"expired":         {durable.WaitFilter{Expired: true}, "waits_deadline", 50},
		"expired, a kind": {durable.WaitFilter{Expired: true, Kinds: []durable.WaitKind{durable.WaitInput}}, "waits_deadline", 50},
		"of a run":        {durable.WaitFilter{Run: "run 50011"}, "waits_run", 5},
		"a kind of a run": {durable.WaitFilter{Run: "run 50011", Kinds: []durable.WaitKind{durable.WaitChild}}, "waits_run", 5},
	} {
		list.filter.Limit = 20
		for behind, after := range map[string]*durable.Wait{"": nil, ", a page behind": after} {
			list.filter.After = after
			sql, args := postgres.OpenQuery(list.filter)
			queries["open "+name+behind] = query{sql, args, list.index, list.most}
		}
	}
	for name, list := range map[string]struct {
		filter durable.AuditFilter
		index  string
		most   int
	}{
		"all":            {durable.AuditFilter{}, "audit_pkey", 20},
		"answers":        {durable.AuditFilter{Kind: durable.AuditAnswer}, "audit_pkey", 25},
		"waivers":        {durable.AuditFilter{Kind: durable.AuditWaiver}, "audit_kind", 20},
		"a run":          {durable.AuditFilter{Run: "run 50011"}, "audit_run", 1},
		"a run, a kind":  {durable.AuditFilter{Run: "run 50011", Kind: durable.AuditAnswer}, "audit_run", 1},
		"a tool":         {durable.AuditFilter{Subject: "rare"}, "audit_subject", 20},
		"a tool, a kind": {durable.AuditFilter{Subject: "rare", Kind: durable.AuditAnswer}, "audit_subject", 20},
		"a waiver":       {durable.AuditFilter{Subject: "waiver 50001", Kind: durable.AuditWaiver}, "audit_subject", 1},
	} {
		list.filter.Limit = 20
		for behind, before := range map[string]int64{"": 0, ", a page behind": 60_000} {
			list.filter.Before = before
			sql, args := postgres.AuditQuery(list.filter)
			queries["audit "+name+behind] = query{sql, args, list.index, list.most}
		}
	}
	one := func(status durable.Status) []durable.Status { return []durable.Status{status} }
	for name, list := range map[string]struct {
		filter durable.Filter
		index  string
		most   int
	}{
		"all":                {durable.Filter{}, "runs_pkey", 20},
		"one status":         {durable.Filter{Status: one(durable.StatusRunning)}, "runs_status", 60},
		"several":            {durable.Filter{Status: []durable.Status{durable.StatusWaiting, durable.StatusFailed}}, "runs_status", 100},
		"a kind":             {durable.Filter{Kind: durable.KindCommand}, "runs_kind", 100},
		"a kind, a status":   {durable.Filter{Kind: durable.KindAgent, Status: one(durable.StatusReady)}, "runs_kind", 60},
		"a name":             {durable.Filter{Name: "agent 7"}, "runs_name", 100},
		"a name, a status":   {durable.Filter{Name: "agent 11", Status: one(durable.StatusWaiting)}, "runs_name", 60},
		"a session":          {durable.Filter{Session: "session 7"}, "runs_session", 5},
		"sessions":           {durable.Filter{Sessions: []agent.SessionID{"session 7", "session 9"}}, "runs_session", 20}, // with their queues
		"a parent":           {durable.Filter{Parent: "run 19"}, "runs_parent", 1},
		"a phase":            {durable.Filter{Phase: "hooks"}, "runs_phase", 100},
		"a phase, a status":  {durable.Filter{Phase: "hooks", Name: "agent 7", Status: one(durable.StatusReady)}, "runs_phase", 60},
		"a parent session":   {durable.Filter{ParentSession: "session 8", Turn: durable.TurnFirst}, "runs_parent_session", 5},
		"a turn":             {durable.Filter{Turn: durable.TurnFirst}, "runs_turn", 100},
		"hooks":              {durable.Filter{HasHooks: true}, "runs_hooks", 100},
		"hooks, a status":    {durable.Filter{HasHooks: true, Status: one(durable.StatusFailed)}, "runs_hooks", 60},
		"blocked":            {durable.Filter{Blocked: true}, "runs_blocked", 60},
		"a decision":         {durable.Filter{Decision: durable.DecisionDenied}, "runs_decided", 300},
		"a hook":             {durable.Filter{Hook: "limit"}, "runs_decided", 60},
		"a hook, top":        {durable.Filter{Hook: "limit", Decision: durable.DecisionAsked, Top: true}, "runs_decided", 60},
		"a submitter":        {durable.Filter{By: "ann"}, "runs_submitted_by", 100},
		"a submitter, ready": {durable.Filter{By: "bob", Status: one(durable.StatusReady)}, "runs_submitted_by", 60},
		"ended since":        {durable.Filter{ChangedSince: time.Now(), Status: one(durable.StatusFailed)}, "runs_ended", 100},
		"changed since":      {durable.Filter{ChangedSince: time.Now()}, "runs_idle", 100},
		"changed since, two": {durable.Filter{ChangedSince: time.Now(), Status: one(durable.StatusRunning)}, "runs_owner", 100},
		"turns, a status":    {durable.Filter{HasTurn: true, Status: one(durable.StatusReady)}, "runs_turn", 60},
		"last turns":         {durable.Filter{LastTurn: true, Status: one(durable.StatusReady)}, "runs_session", 200},
		"last turns of all":  {durable.Filter{LastTurn: true}, "runs_turn", 600},
		"a label":            {durable.Filter{Label: durable.Label{Name: "site", Value: "site 1"}}, "labels_value", 400},
		"a label, no run":    {durable.Filter{Label: durable.Label{Name: "site", Value: "site 2"}}, "labels_value", 5},
		"a label, a status":  {durable.Filter{Label: durable.Label{Name: "team", Value: "team 1"}, Status: one(durable.StatusReady)}, "labels_value", 100},
		"a label, status no": {durable.Filter{Label: durable.Label{Name: "team", Value: "team 2"}, Status: one(durable.StatusReady)}, "labels_value", 5},
		"since":              {durable.Filter{Since: time.Now().Add(-24*time.Hour + 50*time.Second)}, "runs_created", 1050},
		"since lately":       {durable.Filter{Since: time.Now()}, "runs_created", 5},
		"until":              {durable.Filter{Until: time.Now().Add(-24*time.Hour + 20*time.Second)}, "runs_created", 1050},
		"until long ago":     {durable.Filter{Until: time.Now().Add(-25 * time.Hour)}, "runs_created", 5},
	} {
		list.filter.Limit = 20
		for behind, before := range map[string]int64{"": math.MaxInt64, ", a page behind": 60_000} {
			sql, args := postgres.ListQuery(list.filter, store.Position{Num: before})
			queries["list "+name+behind] = query{sql, args, list.index, list.most}
			sql, args = postgres.CountQuery(list.filter, store.Position{Num: before})
			queries["count "+name+behind] = query{sql, args, list.index, list.most}
		}
	}
	for name, q := range queries {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plan, read := explain(t, s, mode, q.sql, q.args)
			if name == "prune queues" {
				plan = strings.ReplaceAll(plan, "Seq Scan on queues", "") // all of them, once
			}
			assert.NotContains(t, plan, "Seq Scan", "%s, %s", name, mode)
			assert.Contains(t, plan, q.want, "%s, %s", name, mode)
			assert.LessOrEqual(t, read, q.most, "%s, %s reads this many rows:\n%s", name, mode, plan)
		}
	}
}

// A list of a status that no run with a label, kind or name has reads nothing of the other statuses. Rows that a scan of an
// index skips are in no count of rows, so this counts the pages that the query reads.
func TestAListReadsNoOtherStatus(t *testing.T) {
	t.Parallel()
	s := openClosed(t, parts.Postgres(t), patient)
	fill(t, s, 70_000)
	pages := func(f durable.Filter) (n int) {
		f.Limit = durable.DefaultLimit
		sql, args := postgres.ListQuery(f, store.Position{Num: math.MaxInt64})
		var plan []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			} `json:"Plan"`
		}
		require.NoError(t, s.Pool().QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, args...).Scan(&plan))
		require.Len(t, plan, 1)
		return plan[0].Plan.Hit + plan[0].Plan.Read
	}
	stopped := []durable.Status{durable.StatusStopped} // a status after most others in the indexes
	for name, f := range map[string]durable.Filter{
		"a label": {Label: durable.Label{Name: "site", Value: "site 1"}}, "a kind": {Kind: durable.KindAgent}, "a name": {Name: "agent 2"},
	} {
		f.Status = stopped
		assert.LessOrEqual(t, pages(f), 8, name)
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
	s := openClosed(t, parts.Postgres(t), patient)
	fill(t, s, 20_000)
	ctx := t.Context()
	const times = 12
	id := func(i int) agent.RunID { return agent.RunID(fmt.Sprint("run ", 100*i+61)) } // waiting
	fresh := func(i int) agent.RunID { return agent.RunID(fmt.Sprint("fresh ", i)) }
	leases := map[int]durable.Lease{}
	lease := func(l durable.Lease, err error) func(i int) error {
		return func(i int) error {
			leases[i] = l
			return err
		}
	}
	label := map[string]string{"team": "new"}
	waits := []durable.Wait{{ID: "c", Subject: "h", Child: id(90)}, {ID: "d", Subject: "h", Kind: durable.WaitCommand}}
	checks := []durable.WaitKind{durable.WaitCommand, durable.WaitCallback}
	needs := durable.Needs{Kind: durable.KindAgent, Name: "a"}
	for _, call := range []struct {
		name string
		most int64 // rows that a call may read
		do   func(i int) error
	}{
		{"begin", 20, func(i int) error {
			return lease(s.Begin(ctx, durable.Job{ID: fresh(i), Name: "a", Session: "s", Parent: "p", Labels: label}, "one", time.Hour))(i)
		}},
		{"submit", 30, func(i int) error {
			return second(s.Submit(ctx, durable.Job{Name: "a", IdempotencyKey: fmt.Sprint(i), Labels: label}))
		}},
		{"submit again", 30, func(i int) error { return second(s.Submit(ctx, durable.Job{Name: "a", IdempotencyKey: fmt.Sprint(i)})) }},
		{"claim", 120, func(int) error { return second(s.Claim(ctx, "three", time.Hour, 1, needs.Key())) }},
		{"claim none", 5, func(int) error { return second(s.Claim(ctx, "three", time.Hour, 1, needs.Key())) }},
		{"queues", 1100, func(int) error { return second(s.Queues(ctx)) }},
		{"polled", 20, func(int) error { return s.RecordPoll(ctx, needs.Key()) }},
		{"served", 20, func(int) error { return second(s.QueueServices(ctx, needs.Key())) }},
		{"acquire", 40, func(i int) error { return lease(s.Acquire(ctx, fresh(i), "two", time.Hour, durable.TakeOver))(i) }},
		{"renew", 10, func(i int) error { return lease(s.Renew(ctx, leases[i], time.Hour))(i) }},
		{"commit", 30, func(i int) error {
			c := commit(durable.Update{Status: durable.StatusRunning}, entries(1, 3)...)
			c.Events = []durable.Event{{Name: "e"}}
			return s.Commit(ctx, leases[i], c)
		}},
		{"wait", 60, func(i int) error {
			return s.Commit(ctx, leases[i], commit(durable.Update{Status: durable.StatusWaiting, Waits: waits}, entries(4, 4)...))
		}},
		{"token", 60, func(i int) error { return s.SetToken(ctx, fresh(i), "d", [32]byte{byte(i), 1}) }},
		{"claim checks", 80, func(i int) error { return second(s.ClaimChecks(ctx, fmt.Sprint("checker ", i), time.Hour, 1, checks)) }},
		{"claim no checks", 30, func(int) error { return second(s.ClaimChecks(ctx, "idle", time.Hour, 10, checks, "host")) }},
		{"open waits", 60, func(int) error { return second(s.OpenWaits(ctx, durable.WaitFilter{Kinds: checks, Limit: 10})) }},
		{"oldest approval", 12, func(int) error {
			return second(s.OpenWaits(ctx, durable.WaitFilter{Kinds: []durable.WaitKind{durable.WaitApproval}, Limit: 1}))
		}},
		{"answer", 70, func(i int) error {
			return s.Answer(ctx, fresh(i), durable.Answers(durable.Answer{Wait: "c"}))
		}},
		{"audit", 10, func(i int) error { return second(s.AuditRecords(ctx, durable.AuditFilter{Run: fresh(i)})) }},
		{"run", 8, func(i int) error { return second(s.Run(ctx, fresh(i))) }},
		{"entries", 10, func(i int) error { return second(s.Entries(ctx, fresh(i), 2)) }},
		{"events", 10, func(i int) error { return second(s.Events(ctx, fresh(i), 0, 10)) }},
		{"input", 10, func(i int) error { return second(s.Input(ctx, fresh(i))) }},
		{"waits", 10, func(i int) error { return second(s.Waits(ctx, fresh(i))) }},
		{"list", 100, func(i int) error {
			return second(s.List(ctx, durable.Filter{Status: []durable.Status{durable.StatusWaiting}, Limit: 20, Before: id(i)}))
		}},
		{"reconcile", 60, func(int) error { return second(s.Reconcile(ctx)) }},
		{"owed", 100, func(int) error { return second(s.Owed(ctx, time.Minute, 10)) }},
		{"context", 20, func(i int) error {
			return s.Signal(ctx, fresh(i), durable.Signal{Kind: durable.SignalContext, Text: "t"})
		}},
		{"pause", 20, func(i int) error { return s.Signal(ctx, fresh(i), durable.Signal{Kind: durable.SignalPause}) }},
		{"signals", 200, func(int) error { return second(s.Signals(ctx, "two")) }},
		{"resume", 40, func(i int) error { return s.Signal(ctx, fresh(i), durable.Signal{Kind: durable.SignalResume}) }},
		{"cancel", 20, func(i int) error { return s.Signal(ctx, fresh(i), durable.Signal{Kind: durable.SignalCancel}) }},
		{"end", 80, func(i int) error {
			u := durable.Update{Status: durable.StatusCompleted, Result: []byte("r")}
			return s.Commit(ctx, leases[i], commit(u, entries(5, 5)...))
		}},
		{"release", 60, func(i int) error {
			l, err := s.Acquire(ctx, id(i), "two", time.Hour, durable.TakeOver)
			return lo.CoalesceOrEmpty(err, s.Release(ctx, l, 0))
		}},
		{"delete", 80, func(i int) error { return s.Delete(ctx, fresh(i)) }},
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

// TestClaimsUnderABacklog claims single runs while many others are ready, in one queue and in many. The session plans its
// statements once: for an empty table that was never analyzed, for one that was analyzed when it was small, or for the full one.
func TestClaimsUnderABacklog(t *testing.T) {
	t.Parallel()
	const runs, times = 20_000, 20
	for _, queues := range []int{1, 1000} {
		for _, statistics := range []string{"absent", "stale", "fresh"} {
			t.Run(fmt.Sprintf("%d queues, %s statistics", queues, statistics), func(t *testing.T) {
				t.Parallel()
				s := openClosed(t, parts.Postgres(t), postgres.Options{Conns: 1})
				keys := make([]durable.Key, queues)
				for i := range keys {
					n := durable.Needs{Kind: durable.KindAgent, Name: fmt.Sprint("agent ", i)}
					keys[i] = n.Key()
					_, err := s.Pool().Exec(t.Context(), `INSERT INTO queues (key, kind, name, demands) VALUES ($1, $2, $3, '')`, keys[i][:], string(n.Kind), n.Name)
					require.NoError(t, err)
				}
				claimTimes := func(want int) {
					for range times {
						claimed, err := s.Claim(t.Context(), "one", time.Hour, 1, keys...)
						require.NoError(t, err)
						require.Len(t, claimed, want)
					}
				}
				analyze := func() {
					_, err := s.Pool().Exec(t.Context(), `VACUUM ANALYZE`)
					require.NoError(t, err)
				}
				claimTimes(0)
				if statistics == "stale" {
					analyze()
					claimTimes(0)
				}
				_, err := s.Pool().Exec(t.Context(), `INSERT INTO runs (id, session, kind, name, parent, root, status, reason, steps, owner, epoch, queue,
						created, updated, ready, offer_seq)
					SELECT 'run ' || i, '', 'agent', '', '', '', 'ready', '', 0, '', 0, q.id, now(), now(), now() + i * interval '1 microsecond', 1
					FROM generate_series(1, $1::int) i JOIN queues q ON q.name = 'agent ' || i % $2::int`, runs, queues)
				require.NoError(t, err)
				if statistics == "fresh" {
					analyze()
				}
				before := rowsRead(t, s)
				claimTimes(1)
				assert.LessOrEqual(t, (rowsRead(t, s)-before)/times, int64(100), "rows that one claim reads")
			})
		}
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
