package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// TestADatabaseThatIsGoneForAWhile makes every call while the server is down.
func TestADatabaseThatIsGoneForAWhile(t *testing.T) {
	t.Parallel()
	server := parts.NewPostgres(t, "fsync=off")
	at := server.Database(t)
	s := openClosed(t, at, postgres.Options{})
	l := create(t, s, "r")
	require.NoError(t, s.Commit(t.Context(), l, commit(durable.Update{}, entries(1, 3)...)))
	before := everything(t, s)

	server.Stop(t)
	for name, call := range every(s, l) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		began := time.Now()
		err := call(ctx)
		cancel()
		require.Error(t, err, name)
		assert.Less(t, time.Since(began), time.Minute, name)
		for _, said := range []error{durable.ErrNotFound, durable.ErrExists, durable.ErrStale, durable.ErrEnded, durable.ErrAnswered} {
			require.NotErrorIs(t, err, said, "%s: that is not about the request", name)
		}
		withoutPassword(t, at, err)
	}
	err := s.Commit(t.Context(), l, commit(durable.Update{}, entry(4)))
	require.ErrorContains(t, err, "writing to a journal: ")
	require.ErrorContains(t, err, "failed to connect")
	_, err = postgres.Open(t.Context(), at, postgres.Options{})
	require.ErrorContains(t, err, "open the postgres store: ")
	withoutPassword(t, at, err)

	server.Start(t)
	assert.Equal(t, before, everything(t, s), "nothing was done")
	require.NoError(t, s.Commit(t.Context(), l, commit(durable.Update{}, entry(4))))
}

// TestTheServerCrashesAgainAndAgain has a writer that repeats what failed, as it is,
// while the server is killed under it.
func TestTheServerCrashesAgainAndAgain(t *testing.T) {
	t.Parallel()
	server := parts.NewPostgres(t, "fsync=off")
	s := openClosed(t, server.Database(t), postgres.Options{})
	l := create(t, s, "r")
	var (
		group  sync.WaitGroup
		wrote  atomic.Int64
		failed int
	)
	ctx, stop := context.WithCancel(t.Context())
	group.Go(func() {
		for seq := int64(1); ctx.Err() == nil; seq++ {
			u := durable.Update{Status: durable.StatusRunning, Steps: int(seq)}
			for err := s.Commit(t.Context(), l, commit(u, entry(seq))); err != nil; err = s.Commit(t.Context(), l, commit(u, entry(seq))) {
				if ours := new(durable.SeqError); errors.As(err, &ours) || errors.Is(err, durable.ErrStale) {
					assert.NoError(t, err, "entry %d belongs to this writer", seq)
					return
				}
				failed++
			}
			wrote.Store(seq)
		}
	})
	for range 2 {
		from := wrote.Load()
		assert.Eventually(t, func() bool { return wrote.Load() >= from+50 }, time.Minute, time.Millisecond)
		server.Stop(t) // while the writer is in the middle of something
		server.Start(t)
	}
	stop()
	group.Wait()
	assert.Positive(t, failed)
	assert.Equal(t, entries(1, wrote.Load()), journal(t, s, "r"), "each entry once, none missing, none half")
	assert.Equal(t, wrote.Load(), int64(run(t, s, "r").Steps))
}

// TestAConnectionThatIsKilled ends the connection of a call that has begun and waits.
func TestAConnectionThatIsKilled(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	l := create(t, s, "r")
	require.NoError(t, s.Commit(t.Context(), l, commit(durable.Update{}, entry(1))))
	before := everything(t, s)
	u := durable.Update{Status: durable.StatusWaiting, Steps: 1, Waits: []durable.Wait{{ID: "c", Subject: "h"}}}

	unlock := lockRun(t, s, "r")
	done := make(chan error)
	go func() { done <- s.Commit(t.Context(), l, commit(u, entry(2))) }()
	kill(t, s)
	err := <-done
	require.ErrorContains(t, err, "writing to a journal: FATAL: terminating connection due to administrator command")
	unlock()
	assert.Equal(t, before, everything(t, s), "nothing was done")

	require.NoError(t, s.Commit(t.Context(), l, commit(u, entry(2))), "the same call again")
	assert.Equal(t, entries(1, 2), journal(t, s, "r"))

	// An Answer asks first and writes then, with its connection in a transaction.
	unlock = lockRun(t, s, "r")
	a := durable.Answer{Wait: "c"}
	go func() { done <- s.Answer(t.Context(), "r", durable.Answers(a)) }()
	kill(t, s)
	require.Error(t, <-done)
	unlock()
	require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(a)))
}

// TestACallThatIsCancelled waits for a lock that another session holds.
func TestACallThatIsCancelled(t *testing.T) {
	at := parts.Postgres(t)
	s := openClosed(t, at, postgres.Options{})
	hasty := openClosed(t, at, postgres.Options{Timeout: 1500 * time.Millisecond})
	l := create(t, s, "r")
	before := everything(t, s)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range every(s, l) {
		require.ErrorIs(t, call(over), context.Canceled, name)
	}

	unlock := lockRun(t, s, "r")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Commit(ctx, l, commit(durable.Update{}, entry(1))) }()
	waiting(t, s)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Eventually(t, func() bool { return len(column(t, s, waitingQuery)) == 0 }, time.Minute, 10*time.Millisecond,
		"the database does not go on with it")

	err := hasty.Commit(t.Context(), l, commit(durable.Update{}, entry(1)))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "writing to a journal: the database did not answer within 1.5s: ")
	_, err = hasty.Run(t.Context(), "r")
	require.NoError(t, err, "readers do not wait")
	unlock()
	assert.Equal(t, before, everything(t, s), "nothing was done")
}

// every returns every call of a store about a run "r".
func every(s durable.Store, l durable.Lease) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"submit": func(ctx context.Context) error { return second(s.Submit(ctx, durable.Job{ID: "x"})) },
		"begin":  func(ctx context.Context) error { return second(s.Begin(ctx, durable.Job{ID: "x"}, "one", time.Hour)) },
		"acquire": func(ctx context.Context) error {
			return second(s.Acquire(ctx, "r", "one", time.Hour, durable.TakeOver))
		},
		"claim":   func(ctx context.Context) error { return second(s.Claim(ctx, "one", time.Hour, 1, key())) },
		"renew":   func(ctx context.Context) error { return second(s.Renew(ctx, l, time.Hour)) },
		"release": func(ctx context.Context) error { return s.Release(ctx, l, 0) },
		"commit": func(ctx context.Context) error {
			return s.Commit(ctx, l, commit(durable.Update{Status: durable.StatusCompleted}, entry(4)))
		},
		"reconcile": func(ctx context.Context) error { return second(s.Reconcile(ctx)) },
		"queues":    func(ctx context.Context) error { return second(s.Queues(ctx)) },
		"polled":    func(ctx context.Context) error { return s.RecordPoll(ctx, key()) },
		"served":    func(ctx context.Context) error { return second(s.QueueServices(ctx, key())) },
		"owed":      func(ctx context.Context) error { return second(s.Owed(ctx, time.Minute, 1)) },
		"offered":   func(ctx context.Context) error { return s.RecordOffers(ctx, durable.OfferID{Run: "r", Seq: 1}) },
		"entries":   func(ctx context.Context) error { return second(s.Entries(ctx, "r", 0)) },
		"events":    func(ctx context.Context) error { return second(s.Events(ctx, "r", 0, 1)) },
		"input":     func(ctx context.Context) error { return second(s.Input(ctx, "r")) },
		"result":    func(ctx context.Context) error { return second(s.Result(ctx, "r")) },
		"run":       func(ctx context.Context) error { return second(s.Run(ctx, "r")) },
		"list":      func(ctx context.Context) error { return second(s.List(ctx, durable.Filter{Before: "r"})) },
		"waits":     func(ctx context.Context) error { return second(s.Waits(ctx, "r")) },
		"open":      func(ctx context.Context) error { return second(s.OpenWaits(ctx, durable.WaitFilter{})) },
		"token":     func(ctx context.Context) error { return second(s.WaitByToken(ctx, [32]byte{1})) },
		"set token": func(ctx context.Context) error { return s.SetToken(ctx, "r", "c", [32]byte{1}) },
		"checks": func(ctx context.Context) error {
			return second(s.ClaimChecks(ctx, "one", time.Hour, 1, []durable.WaitKind{durable.WaitFile}))
		},
		"audit":      func(ctx context.Context) error { return second(s.AuditRecords(ctx, durable.AuditFilter{})) },
		"add waiver": func(ctx context.Context) error { return s.AddWaiver(ctx, durable.Waiver{ID: "w"}) },
		"revoke":     func(ctx context.Context) error { return s.RevokeWaiver(ctx, "w", "ann") },
		"waivers":    func(ctx context.Context) error { return second(s.Waivers(ctx, true)) },
		"answer":     func(ctx context.Context) error { return s.Answer(ctx, "r", durable.Answers(durable.Answer{Wait: "c"})) },
		"cancel":     func(ctx context.Context) error { return s.Signal(ctx, "r", durable.Signal{Kind: durable.SignalCancel}) },
		"context": func(ctx context.Context) error {
			return s.Signal(ctx, "r", durable.Signal{Kind: durable.SignalContext})
		},
		"signals":  func(ctx context.Context) error { return second(s.Signals(ctx, "one")) },
		"delete":   func(ctx context.Context) error { return s.Delete(ctx, "r") },
		"prune":    func(ctx context.Context) error { return second(s.Prune(ctx, time.Now())) },
		"deny":     func(ctx context.Context) error { return second(s.DenyTools(ctx)) },
		"set deny": func(ctx context.Context) error { return s.SetDenyTools(ctx, durable.Switch{On: true}) },
	}
}

func second[T any](_ T, err error) error { return err }

// lockRun locks the row of a run until unlock is called.
func lockRun(t *testing.T, s *postgres.Store, id agent.RunID) (unlock func()) {
	t.Helper()
	tx, err := s.Pool().Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM runs WHERE id = $1 FOR UPDATE`, string(id))
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // or Close would wait for it
	return func() { require.NoError(t, tx.Rollback(t.Context())) }
}

const waitingQuery = `SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

// waiting waits until a connection waits for a lock.
func waiting(t *testing.T, s *postgres.Store) (pid string) {
	t.Helper()
	require.Eventually(t, func() bool {
		all := column(t, s, waitingQuery)
		if len(all) > 0 {
			pid = all[0]
		}
		return len(all) > 0
	}, time.Minute, 5*time.Millisecond)
	return pid
}

// kill ends the connection that waits for a lock.
func kill(t *testing.T, s *postgres.Store) {
	t.Helper()
	assert.Equal(t, []string{"true"}, column(t, s, `SELECT pg_terminate_backend($1::int)::text`, waiting(t, s)))
}

// withoutPassword tells that an error does not show the password of a URL.
func withoutPassword(t *testing.T, at string, err error) {
	t.Helper()
	u, parsing := url.Parse(at)
	require.NoError(t, parsing)
	password, _ := u.User.Password()
	require.NotEmpty(t, password)
	assert.NotContains(t, err.Error(), password)
}

// TestWhatASessionBeginsWith looks at the settings of the connections: those of a
// database or a role, which may be others, do not count.
func TestWhatASessionBeginsWith(t *testing.T) {
	at := parts.Postgres(t)
	s := openClosed(t, at, postgres.Options{Schema: `a "b"`, Timeout: 1500 * time.Millisecond})
	_, err := s.Pool().Exec(t.Context(), `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database());
		EXECUTE format('ALTER DATABASE %I SET statement_timeout = 700', current_database());
	END $$`)
	require.NoError(t, err)
	s = openClosed(t, at, postgres.Options{Schema: `a "b"`, Timeout: 1500 * time.Millisecond})
	for name, want := range map[string]string{
		"search_path": `"a ""b"""`, "transaction_isolation": "read committed", "application_name": "grapnel",
		"statement_timeout": "1500ms", "idle_in_transaction_session_timeout": "1500ms",
	} {
		assert.Equal(t, []string{want}, column(t, s, `SELECT current_setting($1)`, name), name)
	}
	l := create(t, s, "r")
	require.NoError(t, s.Commit(t.Context(), l, commit(durable.Update{}, entry(1))))
}
