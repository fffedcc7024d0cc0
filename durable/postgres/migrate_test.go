package postgres_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// TestProcessesThatStartAtOnce has each of them make the schema, and a run.
func TestProcessesThatStartAtOnce(t *testing.T) {
	t.Parallel()
	const address, number = "GRAPNEL_TEST_POSTGRES_URL", "GRAPNEL_TEST_POSTGRES_NUMBER"
	if at := os.Getenv(address); at != "" {
		s := open(t, at, postgres.Options{})
		_, err := s.Begin(t.Context(), durable.Job{ID: agent.RunID(os.Getenv(number))}, "one", time.Hour)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		return
	}
	at := parts.Postgres(t)
	const n = 4
	var all []*exec.Cmd
	for i := range n {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), address+"="+at, fmt.Sprintf("%s=run %d", number, i))
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		all = append(all, cmd)
	}
	for _, cmd := range all {
		assert.NoError(t, cmd.Wait())
	}
	s := openClosed(t, at, postgres.Options{})
	runs, err := s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	assert.Len(t, runs, n)
	assert.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7"}, column(t, s, `SELECT version_id::text FROM migrations ORDER BY id`), "each step was taken once")
}

func TestMigrateBothWaysWithData(t *testing.T) {
	t.Parallel()
	at, o := parts.Postgres(t), postgres.Options{Schema: `it's "ours"`}
	version, err := postgres.Migrate(t.Context(), at, o)
	require.NoError(t, err)
	assert.Equal(t, int64(7), version)
	s := open(t, at, o)
	l := create(t, s, "answered")
	asked := durable.Wait{ID: "c", Kind: durable.WaitApproval, Subject: "h", Tool: "bash", TokenHash: [32]byte{1}, Data: []byte("may I?")}
	waits := durable.Update{Status: durable.StatusWaiting, Steps: 3, Waits: []durable.Wait{asked}}
	require.NoError(t, s.Commit(t.Context(), l, commit(waits, entries(1, 3)...)))
	require.NoError(t, s.Answer(t.Context(), "answered", durable.Answers(durable.Answer{Wait: "c", Data: []byte("yes")})))
	require.NoError(t, s.Release(t.Context(), l, 0))
	l = create(t, s, "waiting")
	require.NoError(t, s.Commit(t.Context(), l, commit(waits)))
	require.NoError(t, s.Release(t.Context(), l, 0))
	create(t, s, "held")
	require.NoError(t, s.Release(t.Context(), create(t, s, "released"), 0))
	for id, u := range map[agent.RunID]durable.Update{
		"completed": {Status: durable.StatusCompleted, Reason: agent.StopCompleted},
		"failed":    {Status: durable.StatusFailed, Reason: agent.StopError},
		"blocked":   {Status: durable.StatusFailed, Blocked: true, Reason: agent.StopDenied},
		"rejected":  {Status: durable.StatusStopped, Reason: agent.StopRejected},
		"stopped":   {Status: durable.StatusStopped, Reason: agent.StopByHook},
		"cancelled": {Status: durable.StatusCancelled, Reason: agent.StopUser},
	} {
		require.NoError(t, s.Commit(t.Context(), create(t, s, id), commit(u, entry(1))))
	}
	before := everything(t, s)
	require.Len(t, before.all, 10)
	require.NoError(t, s.Close())

	for _, want := range []int64{6, 5, 4, 3, 2} {
		version, err = postgres.Rollback(t.Context(), at, o)
		require.NoError(t, err)
		assert.Equal(t, want, version)
	}
	version, err = postgres.Rollback(t.Context(), at, o)
	require.NoError(t, err)
	assert.Equal(t, int64(1), version)
	_, err = postgres.Rollback(t.Context(), at, o)
	require.ErrorContains(t, err, "first version")

	s = openClosed(t, at, o)
	assert.Equal(t, before, everything(t, s), "five steps back and five steps forward")
	_, err = s.Pool().Exec(t.Context(), `INSERT INTO migrations (version_id, is_applied) VALUES (99, true)`)
	require.NoError(t, err)
	_, err = postgres.Open(t.Context(), at, o)
	require.ErrorContains(t, err, "version 99 and this program supports versions up to 7")
	_, err = postgres.Rollback(t.Context(), at, o)
	require.ErrorContains(t, err, "downgrade with the program that created it")
}

// versionTwo are the runs of a store of version 2.
const versionTwo = `
	INSERT INTO runs (id, session, agent, parent, root, status, reason, steps, entries, ended, deadline, cancel_reason, owner, epoch, expires, ready) VALUES
	('running',     's', 'a', '', '', 'running',     '',         1, 2, NULL,  NULL, '', 'one', 1, now() + interval '1 hour', now()),
	('expired',     's', 'a', '', '', 'running',     '',         1, 0, NULL,  NULL, '', 'one', 3, now() - interval '1 hour', now()),
	('released',    's', 'b', '', '', 'running',     '',         1, 0, NULL,  NULL, '', '',    4, NULL, now() - interval '1 day'),
	('parked',      's', 'a', '', '', 'parked',      '',         1, 0, NULL,  NULL, '', '',    1, NULL, NULL),
	('held parked', 's', 'a', '', '', 'parked',      '',         1, 0, NULL,  NULL, '', 'one', 1, now() + interval '1 hour', NULL),
	('deadline',    's', 'a', '', '', 'parked',      '',         1, 0, NULL,  now() + interval '1 hour', '', '', 1, NULL, now() + interval '1 hour'),
	('overdue',     's', 'a', '', '', 'parked',      '',         1, 0, NULL,  now() - interval '1 hour', '', '', 1, NULL, now() - interval '1 hour'),
	('answered',    's', '\x00', '', '', 'parked',  '',         1, 0, NULL,  NULL, '', '',    1, NULL, now() - interval '1 hour'),
	('to cancel',   's', 'a<b', '', '', 'parked',    '',         1, 0, NULL,  NULL, 'why', '', 1, NULL, now() - interval '1 hour'),
	('done',        's', 'a', '', '', 'done',        'completed', 1, 0, now(), NULL, '', '',   1, NULL, NULL),
	('failed',      's', 'a', '', '', 'failed',      'error',    1, 0, now(), NULL, '', '',    1, NULL, NULL),
	('denied',      's', 'a', '', '', 'denied',      'denied',   1, 0, now(), NULL, '', '',    1, NULL, NULL),
	('stopped',     's', 'a', '', '', 'stopped',     'hook',     1, 0, now(), NULL, '', '',    1, NULL, NULL),
	('interrupted', 's', 'a', '', '', 'interrupted', 'rejected', 1, 0, now(), NULL, '', '',    1, NULL, NULL),
	('cancelled',   's', 'a', '', '', 'cancelled',   'user_requested', 1, 0, now(), NULL, 'why', '', 1, NULL, NULL);
	INSERT INTO entries (run, seq, kind, key, at, data) SELECT num, seq, 'reply', '', now(), 'data' FROM runs, generate_series(1, 2) seq WHERE id = 'running';
	INSERT INTO questions (run, place, call, hash, tool, asked, deadline, child, data, answered, ends)
	SELECT num, 1, 'c', 'h', 'bash', now(), deadline, '', 'may I?', CASE WHEN id = 'answered' THEN now() END, false FROM runs WHERE status = 'parked';
`

// TestRunsOfVersionTwo converts a database of version 2, and back.
func TestRunsOfVersionTwo(t *testing.T) {
	t.Parallel()
	at := parts.Postgres(t)
	s := openClosed(t, at, postgres.Options{Conns: 2})
	rollback(t, at, 2)
	_, err := s.Pool().Exec(t.Context(), versionTwo)
	require.NoError(t, err)
	const dump = `SELECT (r.id, r.session, r.agent, r.status, r.reason, r.steps, r.entries, r.ended, r.deadline, r.cancel_reason, r.owner, r.epoch,
		r.expires, r.due <= now())::text FROM runs r WHERE r.id NOT IN ('answered') ORDER BY r.id`
	before := column(t, s, dump)
	_, err = postgres.Migrate(t.Context(), at, postgres.Options{})
	require.NoError(t, err)

	got := map[agent.RunID]durable.Status{}
	for _, r := range everything(t, s).all {
		got[r.ID] = r.Status
		assert.Equal(t, durable.KindAgent, r.Kind, r.ID)
		assert.Equal(t, r.ID == "denied", r.Blocked, r.ID)
		assert.Equal(t, int(r.Epoch), r.Attempts, r.ID)
		assert.Equal(t, r.Status == durable.StatusReady, !r.Ready.IsZero(), r.ID)
	}
	assert.Equal(t, map[agent.RunID]durable.Status{
		"running": "running", "expired": "running", "released": "ready", "parked": "waiting", "held parked": "waiting", "deadline": "waiting",
		"overdue": "ready", "answered": "ready", "to cancel": "ready", "done": "completed", "failed": "failed", "denied": "failed",
		"stopped": "stopped", "interrupted": "stopped", "cancelled": "cancelled",
	}, got)
	assert.Equal(t, agent.StatusInterrupted, run(t, s, "interrupted").AgentStatus())
	assert.Equal(t, agent.StatusDenied, run(t, s, "denied").AgentStatus())
	assert.Len(t, journal(t, s, "running"), 2)
	needs, err := s.Queues(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, []durable.Needs{
		{Kind: "agent", Name: "a"}, {Kind: "agent", Name: "b"}, {Kind: "agent", Name: "\x00"}, {Kind: "agent", Name: "a<b"},
	}, needs)
	owed, err := s.Owed(t.Context(), time.Hour, 10)
	require.NoError(t, err)
	assert.Len(t, owed, 4)
	assert.Equal(t, durable.OfferID{Run: "released", Seq: 1}, owed[0].OfferID)

	rollback(t, at, 2)
	assert.Equal(t, before, column(t, s, dump))
	_, err = postgres.Migrate(t.Context(), at, postgres.Options{})
	require.NoError(t, err)
	for _, needs := range needs {
		runs, err := s.Claim(t.Context(), "two", time.Hour, 10, needs.Key())
		require.NoError(t, err)
		assert.Len(t, runs, 1, needs)
	}
}

// TestRunsThatAnOlderVersionCannotStore keeps the schema.
func TestRunsThatAnOlderVersionCannotStore(t *testing.T) {
	t.Parallel()
	at := parts.Postgres(t)
	s := openClosed(t, at, postgres.Options{Conns: 2})
	for want, job := range map[string]durable.Job{
		"version 2 cannot store runs that are not runs of agents, and there are 1 (r): delete them first": {ID: "r", Kind: durable.KindCommand},
		"version 2 cannot store runs that have not started, and there are 1 (r)":                          {ID: "r"},
	} {
		require.NoError(t, second(s.Submit(t.Context(), job)))
		rollback(t, at, 3)
		_, err := postgres.Rollback(t.Context(), at, postgres.Options{})
		require.ErrorContains(t, err, want)
		_, err = postgres.Migrate(t.Context(), at, postgres.Options{})
		require.NoError(t, err)
		assert.Equal(t, []agent.RunID{"r"}, ready(t, s))
		require.NoError(t, s.Delete(t.Context(), "r"))
	}
	require.NoError(t, second(s.Submit(t.Context(), durable.Job{ID: "limited", Limits: agent.Limits{Steps: 7}},
		durable.Job{ID: "late", Deadline: time.Now().Add(time.Hour)}, durable.Job{ID: "paused"}, durable.Job{ID: "told"})))
	var leases []durable.Lease
	for _, id := range []agent.RunID{"limited", "late", "paused", "told"} {
		l, err := s.Acquire(t.Context(), id, "one", time.Hour, durable.TakeFree)
		require.NoError(t, err)
		leases = append(leases, l)
	}
	require.NoError(t, s.Signal(t.Context(), "paused", durable.Signal{Kind: durable.SignalPause}))
	require.NoError(t, s.Signal(t.Context(), "told", durable.Signal{Kind: durable.SignalContext, Text: "by the way"}))
	rollback(t, at, 3)
	_, err := postgres.Rollback(t.Context(), at, postgres.Options{})
	require.ErrorContains(t, err, "version 2 knows no pauses, limits and deadlines of jobs, and no added context, and 4 runs have them (limited, late, paused, …)")
	_, err = postgres.Migrate(t.Context(), at, postgres.Options{})
	require.NoError(t, err)
	_, limits, err := durable.InputOf(t.Context(), s, "limited")
	require.NoError(t, err)
	assert.Equal(t, 7, limits.Steps, "a refused rollback keeps the limits")
	for _, l := range leases {
		require.NoError(t, s.Commit(t.Context(), l, commit(durable.Update{Status: durable.StatusCompleted})))
	}
	rollback(t, at, 2)
}

// rollback reverts the schema to a version.
func rollback(t *testing.T, at string, version int64) {
	t.Helper()
	for {
		got, err := postgres.Rollback(t.Context(), at, postgres.Options{})
		require.NoError(t, err)
		if got == version {
			return
		}
	}
}

// versionThree are runs and questions of a store of version 3.
const versionThree = `
	INSERT INTO queues (key, kind, name, demands) VALUES ('k', 'agent', 'a', '');
	INSERT INTO runs (id, session, kind, name, parent, root, status, reason, steps, owner, epoch, attempts, queue)
	SELECT r.id, 's', 'agent', 'a', '', '', status, '', 1, '', 1, 1, q.id
	FROM queues q, (VALUES ('asks', 'waiting'), ('answered', 'ready'), ('parent', 'waiting')) r (id, status);
	INSERT INTO questions (run, place, call, hash, tool, asked, child, token, data, answered, ends, answer)
	SELECT num, 1, 'c', 'h', 'bash', now(), CASE id WHEN 'parent' THEN 'asks' ELSE '' END, sha256(id::bytea), 'may I?',
		CASE id WHEN 'answered' THEN now() END, id = 'answered', CASE id WHEN 'answered' THEN 'yes'::bytea END FROM runs;
`

// TestRunsOfVersionThree converts a database of version 3, and back.
func TestRunsOfVersionThree(t *testing.T) {
	t.Parallel()
	at := parts.Postgres(t)
	s := openClosed(t, at, postgres.Options{Conns: 2})
	rollback(t, at, 3)
	_, err := s.Pool().Exec(t.Context(), versionThree)
	require.NoError(t, err)
	const dump = `SELECT q::text FROM questions q ORDER BY id`
	before := column(t, s, dump)
	_, err = postgres.Migrate(t.Context(), at, postgres.Options{})
	require.NoError(t, err)

	all := everything(t, s)
	for id, kind := range map[agent.RunID]durable.WaitKind{
		"asks": durable.WaitApproval, "answered": durable.WaitApproval, "parent": durable.WaitChild,
	} {
		w := all.waits[id][0]
		name, subject := "c", "h"
		if kind == durable.WaitChild {
			name, subject = subject, name
		}
		assert.Equal(t, []any{id, name, kind, subject, "may I?"}, []any{w.Run, w.ID, w.Kind, w.Subject, string(w.Data)})
		found, err := s.WaitByToken(t.Context(), w.TokenHash)
		require.NoError(t, err)
		assert.Equal(t, w, found)
	}
	assert.Equal(t, []any{true, "yes"}, []any{all.waits["answered"][0].Answer.Ends, string(all.waits["answered"][0].Answer.Data)})
	open, err := s.OpenWaits(t.Context(), durable.WaitFilter{})
	require.NoError(t, err)
	assert.Len(t, open, 2)

	// What version 3 does not know is gone afterwards, and nothing else.
	require.NoError(t, s.AddWaiver(t.Context(), durable.Waiver{ID: "w", Expires: time.Now().Add(time.Hour)}))
	rollback(t, at, 3)
	assert.Equal(t, before, column(t, s, dump))
	_, err = postgres.Migrate(t.Context(), at, postgres.Options{})
	require.NoError(t, err)
	records, err := s.AuditRecords(t.Context(), durable.AuditFilter{})
	require.NoError(t, err)
	assert.Empty(t, records)
	require.NoError(t, s.Answer(t.Context(), "asks", durable.Answers(durable.Answer{Wait: "c"})))
	assert.ElementsMatch(t, []agent.RunID{"asks", "answered"}, ready(t, s))
}

// TestWaitsThatVersionThreeCannotStore keeps the schema.
func TestWaitsThatVersionThreeCannotStore(t *testing.T) {
	t.Parallel()
	at := parts.Postgres(t)
	s := openClosed(t, at, postgres.Options{Conns: 2})
	l := create(t, s, "r")
	wait := func(anyWait bool, kinds ...durable.WaitKind) {
		u := durable.Update{Status: durable.StatusWaiting, AnyWait: anyWait}
		for _, kind := range kinds {
			u.Waits = append(u.Waits, durable.Wait{ID: string(kind), Kind: kind})
		}
		require.NoError(t, s.Commit(t.Context(), l, commit(u)))
	}
	// refuses returns the error of the step from version 4 to version 3, and migrates to the newest version.
	refuses := func() error {
		rollback(t, at, 4)
		_, err := postgres.Rollback(t.Context(), at, postgres.Options{})
		_, up := postgres.Migrate(t.Context(), at, postgres.Options{})
		require.NoError(t, up)
		return err
	}
	for _, kind := range []durable.WaitKind{durable.WaitInput, durable.WaitCallback, durable.WaitFile, durable.WaitCommand, durable.WaitTime} {
		wait(false, durable.WaitApproval, kind)
		err := refuses()
		require.ErrorContains(t, err, "version 3 knows only approvals, doubts and children, and 1 runs wait for something else (r)", kind)
	}
	wait(true, durable.WaitApproval, durable.WaitDoubt)
	err := refuses()
	require.ErrorContains(t, err, "version 3 cannot store runs that wait for one of several things, and there are 1 (r)")
	wait(false, durable.WaitApproval)
	require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(durable.Answer{Wait: "approval", More: true, By: "ann"})))
	err = refuses()
	require.ErrorContains(t, err, "version 3 has no answers that do not decide, and 1 runs have such answers (r): let them go on, cancel or delete them first")
	require.NoError(t, s.Commit(t.Context(), l, commit(durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{}})))
	wait(false, durable.WaitApproval, durable.WaitDoubt, durable.WaitChild)
	rollback(t, at, 3)
}

// TestAStepBackUnderAProgram looks at a store whose schema changes below it: what it
// had prepared fits no longer, and that is not for its users to know.
func TestAStepBackUnderAProgram(t *testing.T) {
	at := parts.Postgres(t)
	s := openClosed(t, at, postgres.Options{Conns: 2})
	require.NoError(t, s.Release(t.Context(), create(t, s, "r"), 0))
	list := func() []agent.RunID {
		runs, err := s.List(t.Context(), durable.Filter{Session: "s"})
		require.NoError(t, err)
		return ids(runs)
	}
	assert.Equal(t, []agent.RunID{"r"}, list())
	rollback(t, at, 2)
	_, err := s.Reconcile(t.Context())
	require.ErrorContains(t, err, `reconcile runs: ERROR: column r.start_by does not exist`)
	_, err = postgres.Migrate(t.Context(), at, postgres.Options{})
	require.NoError(t, err)
	_, err = s.Reconcile(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []agent.RunID{"r"}, list())
	assert.Len(t, claim(t, s, 1), 1)
}

// TestARoleThatMayOnlyWriteRows opens a store that another role has made.
func TestARoleThatMayOnlyWriteRows(t *testing.T) {
	at := parts.Postgres(t)
	s := openClosed(t, at, postgres.Options{})
	role := "writer_" + strings.ToLower(schema())
	for _, statement := range []string{
		`CREATE ROLE %s LOGIN PASSWORD 'pa/ss@word'`, `GRANT USAGE ON SCHEMA grapnel TO %s`,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA grapnel TO %s`,
	} {
		_, err := s.Pool().Exec(t.Context(), fmt.Sprintf(statement, role))
		require.NoError(t, err)
	}
	u, err := url.Parse(at)
	require.NoError(t, err)
	u.User = url.UserPassword(role, "pa/ss@word")
	limited := openClosed(t, u.String(), postgres.Options{})
	l := create(t, limited, "r")
	require.NoError(t, limited.Commit(t.Context(), l, commit(durable.Update{Status: durable.StatusCompleted}, entries(1, 2)...)))
	require.NoError(t, limited.Delete(t.Context(), "r"))

	_, err = postgres.Open(t.Context(), u.String(), postgres.Options{Schema: "other"})
	require.ErrorContains(t, err, `migrate schema "other": make the schema: ERROR: permission denied`)
	assert.NotContains(t, err.Error(), "ss@word")
	assert.NotContains(t, err.Error(), "ss%40word")
	t.Cleanup(func() { // a role belongs to the server, not to the database
		_, _ = s.Pool().Exec(t.Context(), `DROP OWNED BY `+role)
	})
}

// whole is what a store says of everything in it.
type whole struct {
	all      []durable.Run
	journals map[agent.RunID][]durable.Entry
	waits    map[agent.RunID][]durable.Wait
	events   map[agent.RunID][]durable.Event
}

func everything(t *testing.T, s durable.Store) whole {
	t.Helper()
	w := whole{journals: map[agent.RunID][]durable.Entry{}, waits: map[agent.RunID][]durable.Wait{}, events: map[agent.RunID][]durable.Event{}}
	var err error
	w.all, err = s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	for _, r := range w.all {
		w.journals[r.ID], err = s.Entries(t.Context(), r.ID, 0)
		require.NoError(t, err)
		w.events[r.ID], err = s.Events(t.Context(), r.ID, 0, 100)
		require.NoError(t, err)
		w.waits[r.ID], err = s.Waits(t.Context(), r.ID)
		require.NoError(t, err)
	}
	return w
}

// TestPhasesAndDocumentsThatVersionFourCannotStore keeps the schema.
func TestPhasesAndDocumentsThatVersionFourCannotStore(t *testing.T) {
	t.Parallel()
	at := parts.Postgres(t)
	s := openClosed(t, at, postgres.Options{Conns: 2})
	refuses := func(says string) {
		t.Helper()
		rollback(t, at, 5)
		_, err := postgres.Rollback(t.Context(), at, postgres.Options{})
		require.ErrorContains(t, err, says)
		_, err = postgres.Migrate(t.Context(), at, postgres.Options{})
		require.NoError(t, err)
	}
	jobs := []durable.Job{{ID: "r", Phase: "hooks", Demands: map[string]string{"zone": "eu"}, Input: []byte("first")}, {ID: "after", After: "r"}}
	require.NoError(t, second(s.Submit(t.Context(), jobs...)))
	for _, name := range []string{"a", "b", "c", "d"} {
		require.NoError(t, second(s.PutDocument(t.Context(), durable.Document{Kind: "k", Name: name})))
	}
	refuses("version 4 knows no phases, and 1 runs have one (r): let them go on, cancel or delete them first")
	l, err := s.Acquire(t.Context(), "r", "one", time.Hour, durable.TakeFree)
	require.NoError(t, err)
	require.NoError(t, s.Commit(t.Context(), l, commit(durable.Update{Pass: &durable.Pass{Input: []byte("second")}})))
	refuses("version 4 cannot start a run after another, and 1 runs wait for one (after): let them start, cancel or delete them first")
	require.NoError(t, s.Signal(t.Context(), "r", durable.Signal{Kind: durable.SignalCancel}))
	refuses("version 4 has no documents, and there are 4 (k a, k b, k c, …): delete them first")
	for _, name := range []string{"a", "b", "c", "d"} {
		require.NoError(t, s.DeleteDocument(t.Context(), "k", name))
	}
	before := run(t, s, "after")
	assert.Equal(t, durable.StatusReady, before.Status)
	rollback(t, at, 4)
	_, err = postgres.Migrate(t.Context(), at, postgres.Options{})
	require.NoError(t, err)
	assert.Equal(t, before, run(t, s, "after"))
	waits, err := s.Waits(t.Context(), "after")
	require.NoError(t, err)
	assert.Empty(t, waits, "version 4 does not know the wait")
	assert.Equal(t, map[string]string{"zone": "eu"}, run(t, s, "r").Demands)
	input, err := s.SubmittedInput(t.Context(), "r")
	require.NoError(t, err)
	assert.Equal(t, "second", string(input), "the first input is lost")
}
