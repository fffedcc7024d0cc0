package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

const stepsOfLife = 10

// BenchmarkLife measures the life of a run: it is submitted and claimed, commits ten steps, and completes. Beside it stands
// bare SQL that writes the same rows to another file in as many transactions, with the same indexes. Both alternate, so that
// the ratio of their speeds holds on a busy machine, too.
func BenchmarkLife(b *testing.B) {
	for name, sync := range syncs {
		b.Run("sync="+name, func(b *testing.B) {
			s := open(b, tempFile(b), sqlite.Options{Sync: sync})
			defer s.Close()
			path := tempFile(b)
			require.NoError(b, open(b, path, sqlite.Options{Sync: sync}).Close())
			db, err := sql.Open("sqlite", path+"?_txlock=immediate&_pragma=foreign_keys(1)&_pragma=secure_delete(1)&_synchronous="+name)
			require.NoError(b, err)
			defer db.Close()
			db.SetMaxOpenConns(1)
			bare := newBareLife(b, db)
			var ofStore, ofBare []time.Duration
			b.ResetTimer()
			for i := range b.N {
				start := time.Now()
				liveOnce(b, s, agent.RunID(fmt.Sprint("r", i)))
				middle := time.Now()
				bare.once(b, int64(i+1))
				ofStore, ofBare = append(ofStore, middle.Sub(start)), append(ofBare, time.Since(middle))
			}
			b.ReportMetric(float64(median(ofStore).Microseconds()), "µs/run")
			b.ReportMetric(float64(median(ofBare).Microseconds()), "µs/bare-run")
			b.ReportMetric(100*float64(median(ofBare))/float64(median(ofStore)), "%-of-bare")
		})
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

var (
	lifeInput = []byte(strings.Repeat("i", 1000))
	lifeKey   = durable.Needs{Kind: durable.KindAgent, Name: "clerk"}.Key()
)

func liveOnce(b *testing.B, s *sqlite.Store, id agent.RunID) {
	b.Helper()
	ctx := b.Context()
	_, err := s.Submit(ctx, durable.Job{ID: id, Name: "clerk", Session: "s", Input: lifeInput})
	if err != nil {
		b.Fatal(err)
	}
	runs, err := s.Claim(ctx, "one", time.Hour, 1, lifeKey)
	if err != nil || len(runs) != 1 {
		b.Fatal(len(runs), err)
	}
	l := runs[0].Lease()
	for step := 1; step <= stepsOfLife; step++ {
		err := s.Commit(ctx, l, durable.Commit{
			Update:  durable.Update{Status: durable.StatusRunning, Steps: step},
			Entries: []durable.Entry{benchEntry(int64(step))},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	err = s.Commit(ctx, l, durable.Commit{
		Update: durable.Update{Status: durable.StatusCompleted, Reason: agent.StopCompleted, Steps: stepsOfLife, Result: lifeInput[:100]},
	})
	if err != nil {
		b.Fatal(err)
	}
}

// bareLife has the statements that the life of a run needs at least, by name.
type bareLife struct {
	db         *sql.DB
	statements map[string]*sql.Stmt
}

func newBareLife(b *testing.B, db *sql.DB) bareLife {
	b.Helper()
	_, err := db.ExecContext(b.Context(), `INSERT INTO queues (id, key, kind, name, demands) VALUES (1, ?, 'agent', 'clerk', '')`, lifeKey[:])
	require.NoError(b, err)
	bare := bareLife{db, map[string]*sql.Stmt{}}
	for name, query := range map[string]string{
		"submit": `INSERT INTO runs (n, id, session, kind, name, parent, root, queue, status, created, updated, ready, offer_seq, owner, epoch)
			VALUES (?1, ?2, 's', 'agent', 'clerk', '', ?2, 1, 'ready', ?3, ?3, ?3, 1, '', 0)`,
		"input": `INSERT INTO payloads (run, input) VALUES (?, ?)`,
		"claim": `UPDATE runs SET status = 'running', owner = 'one', epoch = epoch + 1, attempts = attempts + 1, leased = ?1, updated = ?1,
			expires = ?2, ready = NULL WHERE n = (SELECT n FROM runs INDEXED BY runs_ready WHERE queue = 1 AND status = 'ready'
			ORDER BY priority DESC, ready LIMIT 1) RETURNING n`,
		"entry":  `INSERT INTO entries (run, seq, kind, key, at, data) VALUES (?, ?, 'note', '', ?, ?)`,
		"step":   `UPDATE runs SET entries = entries + 1, steps = ?2, updated = ?3 WHERE n = ?1 AND owner = 'one' AND epoch = 1`,
		"end":    `UPDATE runs SET status = 'completed', reason = 'completed', updated = ?2, owner = '', leased = NULL, expires = NULL WHERE n = ?1`,
		"result": `UPDATE payloads SET result = ?2 WHERE run = ?1`,
	} {
		bare.statements[name], err = db.PrepareContext(b.Context(), query) //nolint:sqlclosecheck // closed with the database
		require.NoError(b, err)
	}
	return bare
}

func (l bareLife) once(b *testing.B, n int64) {
	b.Helper()
	now := time.Now().UnixMicro()
	l.commit(b, func(exec func(name string, args ...any)) {
		exec("submit", n, fmt.Sprint("r", n), now)
		exec("input", n, lifeInput)
	})
	l.commit(b, func(exec func(name string, args ...any)) { exec("claim", now, now+int64(time.Hour)) })
	for step := int64(1); step <= stepsOfLife; step++ {
		l.commit(b, func(exec func(name string, args ...any)) {
			e := benchEntry(step)
			exec("entry", n, step, e.At.UnixMicro(), e.Data)
			exec("step", n, step, now)
		})
	}
	l.commit(b, func(exec func(name string, args ...any)) {
		exec("end", n, now)
		exec("result", n, lifeInput[:100])
	})
}

// commit executes statements in one transaction.
func (l bareLife) commit(b *testing.B, do func(exec func(name string, args ...any))) {
	b.Helper()
	ctx := context.WithoutCancel(b.Context()) // a context that may end costs a goroutine for each statement
	t, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		b.Fatal(err)
	}
	do(func(name string, args ...any) {
		stmt := t.StmtContext(ctx, l.statements[name])
		defer stmt.Close()
		if _, err := stmt.ExecContext(ctx, args...); err != nil {
			b.Fatal(name, err)
		}
	})
	if err := t.Commit(); err != nil {
		b.Fatal(err)
	}
}
