package sqlite_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

const countIndexes = "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"

func TestMigrateBothWaysWithData(t *testing.T) {
	path := tempFile(t)
	s := open(t, path, sqlite.Options{})
	q := wait("c")
	q.TokenHash = [32]byte{1}
	require.NoError(t, commit(t.Context(), s, park(t, s, "r", q), durable.Update{}, entry(1), entry(2)))
	require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(answer("c"))))
	require.NoError(t, s.SetDenyTools(t.Context(), durable.Switch{On: true, Reason: "fire"}))
	find := func(s *sqlite.Store) []any {
		run, err := s.Run(t.Context(), "r")
		require.NoError(t, err)
		entries, err := s.Entries(t.Context(), "r", 0)
		require.NoError(t, err)
		found, err := s.WaitByToken(t.Context(), q.TokenHash)
		require.NoError(t, err)
		sw, err := s.DenyTools(t.Context())
		require.NoError(t, err)
		runs, err := s.List(t.Context(), durable.Filter{Status: []durable.Status{durable.StatusWaiting}})
		require.NoError(t, err)
		return []any{run, entries, found, sw, runs}
	}
	before := find(s)
	require.NoError(t, s.Close())
	indexes := raw(t, path, countIndexes)

	for _, want := range []int64{6, 5, 4, 3, 2, 1} {
		version, err := sqlite.Rollback(t.Context(), path)
		require.NoError(t, err)
		assert.Equal(t, want, version)
	}
	assert.Equal(t, "0", raw(t, path, countIndexes))
	assert.Equal(t, "2", raw(t, path, "SELECT count(*) FROM entries"), "no data is lost")
	_, err := sqlite.Rollback(t.Context(), path)
	require.ErrorContains(t, err, "the schema has its first version: there is no earlier one")

	version, err := sqlite.Migrate(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, int64(7), version)
	assert.Equal(t, indexes, raw(t, path, countIndexes))
	_, err = sqlite.Rollback(t.Context(), path)
	require.NoError(t, err)

	s = open(t, path, sqlite.Options{})
	assert.Equal(t, before, find(s), "open brings it up to date by itself")
	require.NoError(t, s.Close())
	assert.Equal(t, indexes, raw(t, path, countIndexes))
	assert.Equal(t, "ok", raw(t, path, "PRAGMA integrity_check"))
	assert.Empty(t, raw(t, path, "PRAGMA foreign_key_check"))
}

// oldFile makes a file of version 2 with runs of every status, and returns its path.
func oldFile(t *testing.T) (path string) {
	t.Helper()
	path = tempFile(t)
	require.NoError(t, open(t, path, sqlite.Options{}).Close())
	rollback(t, path, 2)
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	now := time.Now().UnixMicro()
	for i, r := range oldRuns {
		var leased, expires any
		if r.owner != "" {
			leased, expires = now, now+int64(time.Hour/time.Microsecond)
		}
		_, err := db.ExecContext(t.Context(), `INSERT INTO runs (id, session, agent, parent, root, status, reason, steps, entries, created,
			updated, deadline, cancel_reason, owner, epoch, leased, expires, ready) VALUES (?, 's', ?, '', ?, ?, ?, 2, 1, ?, ?, NULL, ?, ?, 3, ?, ?, ?)`,
			r.id, fmt.Sprint("agent", i%2), r.id, r.status, r.reason, i+1, i+1, r.cancel, r.owner, leased, expires, r.ready)
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), `INSERT INTO entries (run, seq, kind, key, at, data) VALUES (?, 1, 'note', '', 1, x'01')`, i+1)
		require.NoError(t, err)
		if r.answered != nil {
			_, err = db.ExecContext(t.Context(), `INSERT INTO questions (run, place, call, hash, tool, child, token, answered)
				VALUES (?, 0, 'c', 'hash', 'bash', '', ?, ?)`, i+1, []byte(r.id), r.answered)
			require.NoError(t, err)
		}
	}
	return path
}

// oldRuns are runs as version 2 stores them, with what version 3 makes of them.
var oldRuns = []struct {
	id, status, reason, owner, cancel string
	ready, answered                   any // answered is 0 for an open question here
	want                              durable.Status
	blocked                           bool
}{
	{id: "running", status: "running", owner: "one", want: durable.StatusRunning},
	{id: "released", status: "running", ready: 7, want: durable.StatusReady},
	{id: "parked", status: "parked", answered: sql.NullInt64{}, want: durable.StatusWaiting},
	{id: "parked and held", status: "parked", owner: "one", answered: sql.NullInt64{}, want: durable.StatusWaiting},
	{id: "answered", status: "parked", answered: 5, ready: 7, want: durable.StatusReady},
	{id: "to be cancelled", status: "parked", cancel: "enough", ready: 7, answered: sql.NullInt64{}, want: durable.StatusReady},
	{id: "done", status: "done", reason: "completed", want: durable.StatusCompleted},
	{id: "failed", status: "failed", reason: "error", want: durable.StatusFailed},
	{id: "denied", status: "denied", reason: "denied", want: durable.StatusFailed, blocked: true},
	{id: "stopped", status: "stopped", reason: "hook", want: durable.StatusStopped},
	{id: "interrupted", status: "interrupted", reason: "rejected", want: durable.StatusStopped},
	{id: "cancelled", status: "cancelled", reason: "user_requested", want: durable.StatusCancelled},
}

func TestMigrateOldRuns(t *testing.T) {
	path := oldFile(t)
	//nolint:unqueryvet // it compares whole rows in their order
	const all = `SELECT group_concat(id || ' ' || agent || ' ' || status || ' ' || reason || ' ' || steps || ' ' || entries || ' ' || owner
		|| ' ' || epoch || ' ' || cancel_reason || ' ' || ifnull(expires, '') || ' ' || ifnull(ready, '-'), char(10)) FROM (SELECT * FROM runs ORDER BY n)`
	old := raw(t, path, all)

	s := open(t, path, sqlite.Options{})
	for i, old := range oldRuns {
		r, err := s.Run(t.Context(), agent.RunID(old.id))
		require.NoError(t, err)
		assert.Equal(t, old.want, r.Status, old.id)
		assert.Equal(t, old.blocked, r.Blocked, old.id)
		assert.Equal(t, durable.Needs{Kind: durable.KindAgent, Name: fmt.Sprint("agent", i%2)}, r.Needs(), old.id)
		assert.Equal(t, []any{2, 3, int64(1), int64(3), old.owner}, []any{r.Steps, r.Attempts, r.Entries, r.Epoch, r.Owner}, old.id)
		assert.Equal(t, old.want == durable.StatusReady, !r.Ready.IsZero(), old.id)
		if old.want != durable.StatusReady {
			assert.Equal(t, old.status, string(r.AgentStatus()), old.id)
		}
	}
	queues, err := s.Queues(t.Context())
	require.NoError(t, err)
	assert.Len(t, queues, 2)
	owed, err := s.Owed(t.Context(), time.Hour, 10)
	require.NoError(t, err)
	assert.Len(t, owed, 3)
	require.NoError(t, s.Close())

	rollback(t, path, 2)
	assert.Equal(t, old, raw(t, path, all), "the way back leads to the same runs")

	s = open(t, path, sqlite.Options{})
	claimed, err := s.Claim(t.Context(), "two", time.Hour, 10, queues[0].Key(), queues[1].Key())
	require.NoError(t, err)
	assert.Len(t, claimed, 3)
	require.NoError(t, s.Answer(t.Context(), "parked", durable.Answers(answer("c"))))
	require.NoError(t, s.Close())
}

func TestRollbackRefusesWhatTheOlderVersionCannotHold(t *testing.T) {
	path := tempFile(t)
	s := open(t, path, sqlite.Options{})
	_, err := s.Submit(t.Context(), durable.Job{ID: "a", Limits: agent.Limits{Steps: 7}}, durable.Job{ID: "c", Kind: durable.KindCommand})
	require.NoError(t, err)
	for _, says := range []string{
		"version 2 holds runs of agents only, and 1 runs are of another kind (c): delete them first",
		"version 2 holds no runs that have not started, and 1 runs have not (a): cancel or delete them first",
	} {
		require.NoError(t, s.Close())
		rollback(t, path, 3)
		_, err = sqlite.Rollback(t.Context(), path)
		require.ErrorContains(t, err, says)
		s = open(t, path, sqlite.Options{})
		_ = s.Delete(t.Context(), "c")
	}
	start := func(id agent.RunID) durable.Lease {
		l, err := s.Acquire(t.Context(), id, "one", time.Hour, durable.TakeFree)
		require.NoError(t, err)
		return l
	}
	refuses := func(runs string) {
		t.Helper()
		require.NoError(t, s.Close())
		rollback(t, path, 3)
		_, err = sqlite.Rollback(t.Context(), path)
		require.ErrorContains(t, err, "version 2 knows no pauses, limits and deadlines of jobs, and no added context, and "+runs+
			": let them end, cancel or delete them first")
		s = open(t, path, sqlite.Options{})
	}
	a := start("a")
	_, limits, err := durable.InputOf(t.Context(), s, "a")
	require.NoError(t, err)
	assert.Equal(t, 7, limits.Steps)
	refuses("1 runs have them (a)")
	_, limits, err = durable.InputOf(t.Context(), s, "a")
	require.NoError(t, err)
	assert.Equal(t, 7, limits.Steps, "a refused rollback keeps the limits")

	_, err = s.Submit(t.Context(), durable.Job{ID: "late", Deadline: time.Now().Add(time.Hour)}, durable.Job{ID: "paused"}, durable.Job{ID: "told"})
	require.NoError(t, err)
	leases := []durable.Lease{a}
	for _, id := range []agent.RunID{"late", "paused", "told"} {
		leases = append(leases, start(id))
	}
	require.NoError(t, s.Signal(t.Context(), "paused", durable.Signal{Kind: durable.SignalPause}))
	require.NoError(t, s.Signal(t.Context(), "told", durable.Signal{Kind: durable.SignalContext, Text: "by the way"}))
	refuses("4 runs have them (a, late, paused, …)")
	for _, l := range leases {
		require.NoError(t, commit(t.Context(), s, l, durable.Update{Status: durable.StatusCompleted}))
	}
	require.NoError(t, s.Close())
	rollback(t, path, 2)
}

// Version 3 can hold neither runs that wait for one of several things, nor answers that do not decide.
func TestRollbackRefusesToLoseWaitsAndAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		anyWait bool
		partial []durable.Answer
		says    string
	}{
		"any wait": {true, nil, "version 3 knows no runs that wait for one of several things, and 1 runs do (r): let them go on, cancel or delete them first"},
		"partial answers": {
			false, []durable.Answer{{More: true, By: "ann"}},
			"version 3 has no answers that do not decide, and 1 runs have such answers (r): let them go on, cancel or delete them first",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := tempFile(t)
			s := open(t, path, sqlite.Options{})
			l := park(t, s, "r")
			w := wait("c")
			w.Partial = tc.partial
			require.NoError(t, commit(t.Context(), s, l, durable.Update{Status: durable.StatusWaiting, AnyWait: tc.anyWait, Waits: []durable.Wait{w, wait("d")}}))
			before, err := s.Waits(t.Context(), "r")
			require.NoError(t, err)
			require.NoError(t, s.Close())
			rollback(t, path, 4)
			_, err = sqlite.Rollback(t.Context(), path)
			require.ErrorContains(t, err, tc.says)
			s = open(t, path, sqlite.Options{})
			after, err := s.Waits(t.Context(), "r")
			require.NoError(t, err)
			assert.Equal(t, before, after)
			require.NoError(t, commit(t.Context(), s, l, durable.Update{Status: durable.StatusCompleted}))
			require.NoError(t, s.Close())
			rollback(t, path, 3)
		})
	}
}

// rollback downgrades the schema of a file to a version.
func rollback(t *testing.T, path string, to int64) {
	t.Helper()
	for version := int64(-1); version != to; {
		var err error
		version, err = sqlite.Rollback(t.Context(), path)
		require.NoError(t, err)
		require.GreaterOrEqual(t, version, to)
	}
}

// Version 3 has questions; version 4 has waits, of which version 3 can hold those for people and children.
func TestMigrateQuestions(t *testing.T) {
	path := tempFile(t)
	s := open(t, path, sqlite.Options{})
	for _, id := range []agent.RunID{"r", "other"} {
		require.NoError(t, s.Release(t.Context(), park(t, s, id), 0))
	}
	require.NoError(t, s.Close())
	rollback(t, path, 3)
	raw(t, path, `UPDATE runs SET status = 'waiting' RETURNING ''`)
	raw(t, path, `INSERT INTO questions (run, place, call, hash, tool, asked, deadline, child, token, data, answered, ends, answer) VALUES
		(1, 0, 'c', 'hash', 'bash', NULL, NULL, '', x'01', x'02', NULL, 0, NULL),
		(1, 1, 'd', 'hash', 'bash', 5, 6, '', NULL, NULL, 7, 1, x'03'),
		(1, 2, 'k', 'hash', '', 5, NULL, 'kid', NULL, NULL, NULL, 0, NULL) RETURNING ''`)
	const all = `SELECT group_concat(quote(run) || quote(place) || quote(call) || quote(hash) || quote(tool) || quote(asked) || quote(deadline)
		|| quote(child) || quote(token) || quote(data) || quote(answered) || quote(ends) || quote(answer) ORDER BY run, place) FROM questions`
	before := raw(t, path, all)

	s = open(t, path, sqlite.Options{})
	waits, err := s.Waits(t.Context(), "r")
	require.NoError(t, err)
	at := time.UnixMicro(5).UTC()
	token := [32]byte{1}
	assert.Equal(t, []durable.Wait{
		{Run: "r", ID: "c", Kind: durable.WaitApproval, Subject: "hash", Tool: "bash", TokenHash: token, Data: []byte{2}},
		{
			Run: "r", ID: "d", Kind: durable.WaitApproval, Subject: "hash", Tool: "bash", Asked: at, Deadline: time.UnixMicro(6).UTC(),
			Answer: &durable.Answer{Wait: "d", Subject: "hash", Ends: true, At: time.UnixMicro(7).UTC(), Data: []byte{3}},
		},
		{Run: "r", ID: "hash", Kind: durable.WaitChild, Subject: "k", Asked: at, Child: "kid"},
	}, waits)
	require.NoError(t, s.AddWaiver(t.Context(), durable.Waiver{ID: "w"}))
	require.NoError(t, s.Close())
	rollback(t, path, 3)
	assert.Equal(t, before, raw(t, path, all))

	s = open(t, path, sqlite.Options{})
	l, err := s.Acquire(t.Context(), "other", "one", time.Hour, durable.TakeFree)
	require.NoError(t, err)
	file := wait("c")
	file.Kind = durable.WaitFile
	require.NoError(t, commit(t.Context(), s, l, durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{file, wait("d")}}))
	require.NoError(t, s.Close())
	rollback(t, path, 4)
	_, err = sqlite.Rollback(t.Context(), path)
	require.ErrorContains(t, err, "version 3 knows waits for people and for children only, and 1 runs wait for something else (other): "+
		"let them go on, cancel or delete them first")
	s = open(t, path, sqlite.Options{})
	require.NoError(t, commit(t.Context(), s, l, durable.Update{Status: durable.StatusCompleted}))
	require.NoError(t, s.Close())
	rollback(t, path, 3)
	assert.Equal(t, before, raw(t, path, all))
}

// Version 4 knows no phases, no runs that start after others and no documents.
func TestRollbackRefusesPhasesAndDocuments(t *testing.T) {
	path := tempFile(t)
	s := open(t, path, sqlite.Options{})
	refuses := func(says string) {
		t.Helper()
		require.NoError(t, s.Close())
		for _, want := range []int64{6, 5} {
			version, err := sqlite.Rollback(t.Context(), path)
			require.NoError(t, err)
			require.Equal(t, want, version)
		}
		_, err := sqlite.Rollback(t.Context(), path)
		require.ErrorContains(t, err, says)
		s = open(t, path, sqlite.Options{})
	}
	jobs := []durable.Job{{ID: "r", Phase: "hooks", Demands: map[string]string{"zone": "eu"}, Input: []byte("first")}, {ID: "after", After: "r"}}
	_, err := s.Submit(t.Context(), jobs...)
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c", "d"} {
		_, err = s.PutDocument(t.Context(), durable.Document{Kind: "k", Name: name})
		require.NoError(t, err)
	}
	refuses("version 4 knows no phases, and 1 runs have one (r): let them go on, cancel or delete them first")
	l, err := s.Acquire(t.Context(), "r", "one", time.Hour, durable.TakeFree)
	require.NoError(t, err)
	require.NoError(t, commit(t.Context(), s, l, durable.Update{Pass: &durable.Pass{Input: []byte("second")}}))
	refuses("version 4 cannot start a run after another, and 1 runs wait for one (after): let them start, cancel or delete them first")
	require.NoError(t, s.Signal(t.Context(), "r", durable.Signal{Kind: durable.SignalCancel}))
	refuses("version 4 has no documents, and there are 4 (k a, k b, k c, …): delete them first")
	for _, name := range []string{"a", "b", "c", "d"} {
		require.NoError(t, s.DeleteDocument(t.Context(), "k", name))
	}
	before, err := s.Run(t.Context(), "after")
	require.NoError(t, err)
	assert.Equal(t, durable.StatusReady, before.Status)
	require.NoError(t, s.Close())
	rollback(t, path, 4)

	s = open(t, path, sqlite.Options{})
	defer s.Close()
	after, err := s.Run(t.Context(), "after")
	require.NoError(t, err)
	assert.Equal(t, before, after)
	waits, err := s.Waits(t.Context(), "after")
	require.NoError(t, err)
	assert.Empty(t, waits, "version 4 does not know the wait")
	r, err := s.Run(t.Context(), "r")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"zone": "eu"}, r.Demands)
	input, err := s.SubmittedInput(t.Context(), "r")
	require.NoError(t, err)
	assert.Equal(t, "second", string(input), "the first input is lost")
}
