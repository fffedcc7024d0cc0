package postgres_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// BenchmarkRun measures a run from its submission over its claim and ten commits to its end, on a server that waits for the
// disk. Beside it stands bare SQL that writes the same rows of the same tables in as many transactions, each sent in one message.
func BenchmarkRun(b *testing.B) {
	server := parts.NewPostgres(b, "fsync=on", "synchronous_commit=on")
	for _, c := range []struct {
		name string
		run  func(b *testing.B, s *postgres.Store)
	}{{"store", runStored}, {"bare-sql", runBare}} {
		b.Run(c.name, func(b *testing.B) {
			s := openClosed(b, server.Database(b), postgres.Options{})
			c.run(b, s) // prepares the statements
			for b.Loop() {
				c.run(b, s)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
		})
	}
}

const benchCommits = 10

var (
	benchInput  = bytes.Repeat([]byte("i"), 200)
	benchResult = bytes.Repeat([]byte("r"), 200)
)

func runStored(b *testing.B, s *postgres.Store) {
	b.Helper()
	ctx := b.Context()
	_, err := s.Submit(ctx, durable.Job{Name: "a", Session: "s", Input: benchInput})
	require.NoError(b, err)
	runs := claim(b, s, 1)
	require.Len(b, runs, 1)
	l := runs[0].Lease()
	for seq := range int64(benchCommits) {
		u := durable.Update{Status: durable.StatusRunning, Steps: int(seq)}
		require.NoError(b, s.Commit(ctx, l, commit(u, benchEntry(seq+1))))
	}
	u := durable.Update{Status: durable.StatusCompleted, Reason: "completed", Steps: benchCommits, Result: benchResult}
	require.NoError(b, s.Commit(ctx, l, commit(u, benchEntry(benchCommits+1))))
}

func runBare(b *testing.B, s *postgres.Store) {
	b.Helper()
	var num int64
	send := func(statements func(batch *pgx.Batch)) {
		var batch pgx.Batch
		statements(&batch)
		require.NoError(b, s.Pool().SendBatch(b.Context(), &batch).Close())
	}
	insert := func(batch *pgx.Batch, seq int64) {
		e := benchEntry(seq)
		batch.Queue(`INSERT INTO entries (run, seq, kind, key, at, data) VALUES ($1, $2, $3, $4, $5, $6)`, num, e.Seq, string(e.Kind), e.Key, e.At, e.Data)
	}
	job, err := durable.Job{}.Prepare()
	require.NoError(b, err)
	send(func(batch *pgx.Batch) {
		batch.Queue(`INSERT INTO queues (key, kind, name, demands) VALUES ($1, 'agent', 'a', '') ON CONFLICT DO NOTHING`, []byte("bare"))
		batch.Queue(`INSERT INTO runs (id, session, name, parent, root, status, reason, steps, owner, epoch, queue, ready)
			SELECT $1, 's', 'a', '', $1, 'ready', '', 0, '', 0, id, clock_timestamp() FROM queues WHERE key = $2`, string(job.ID), []byte("bare"))
		batch.Queue(`INSERT INTO payloads (run, input) SELECT num, $2 FROM runs WHERE id = $1`, string(job.ID), benchInput)
		batch.Queue(`SELECT pg_notify(current_schema(), '')`)
	})
	send(func(batch *pgx.Batch) {
		batch.Queue(`UPDATE runs SET status = 'running', ready = NULL, owner = 'two', epoch = 1, attempts = 1, expires = clock_timestamp() + interval '1 hour'
			WHERE num = (SELECT num FROM runs WHERE queue = (SELECT id FROM queues WHERE key = $1) AND status = 'ready'
				ORDER BY priority DESC, ready, num LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING num`, []byte("bare")).
			QueryRow(func(row pgx.Row) error { return row.Scan(&num) })
	})
	for seq := range int64(benchCommits) {
		send(func(batch *pgx.Batch) {
			insert(batch, seq+1)
			batch.Queue(`UPDATE runs SET entries = $2, steps = $3, updated = clock_timestamp() WHERE num = $1`, num, seq+1, seq)
		})
	}
	send(func(batch *pgx.Batch) {
		insert(batch, benchCommits+1)
		batch.Queue(`UPDATE payloads SET result = $2 WHERE run = $1`, num, benchResult)
		batch.Queue(`UPDATE runs SET entries = $2, steps = $3, updated = clock_timestamp(), ended = clock_timestamp(), status = 'completed', owner = '',
			expires = NULL WHERE num = $1`, num, benchCommits+1, benchCommits)
	})
}

// BenchmarkIdleWorkers measures the time from the submission of a job until one of 1,000 waiting workers of one process has
// claimed it. All of them look whenever the store reports a change.
func BenchmarkIdleWorkers(b *testing.B) {
	const workers = 1000
	s := openClosed(b, parts.NewPostgres(b, "fsync=on", "synchronous_commit=on").Database(b), postgres.Options{})
	require.NoError(b, s.Release(b.Context(), create(b, s, "first"), 0))
	require.Len(b, claim(b, s, 1), 1)
	ctx, stop := context.WithCancel(b.Context())
	var (
		group   sync.WaitGroup
		claimed = make(chan time.Time, workers)
		looked  = make(chan struct{}, workers)
	)
	for range workers {
		changed := s.Changes(ctx)
		group.Go(func() {
			for range changed {
				if ctx.Err() != nil {
					return
				}
				runs, err := s.Claim(ctx, "two", time.Hour, 1, key())
				if err != nil && ctx.Err() == nil {
					b.Error(err)
				}
				for range runs {
					claimed <- time.Now()
				}
				looked <- struct{}{}
			}
		})
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		_, err := s.Submit(ctx, durable.Job{Name: "a"})
		require.NoError(b, err)
		took = append(took, (<-claimed).Sub(began))
		b.StopTimer()
		for range workers {
			<-looked
		}
		b.StartTimer()
	}
	stop()
	group.Wait()
	require.Empty(b, claimed, "each run is claimed once")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
