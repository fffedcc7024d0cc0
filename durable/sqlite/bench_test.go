package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"strings"
	gosync "sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

var syncs = map[string]sqlite.Sync{"full": sqlite.SyncFull, "normal": sqlite.SyncNormal}

func BenchmarkAppend(b *testing.B) {
	for name, sync := range syncs {
		b.Run(name, func(b *testing.B) {
			s := open(b, tempFile(b), sqlite.Options{Sync: sync})
			defer s.Close()
			l, err := s.Begin(b.Context(), durable.Job{ID: "r"}, "one", time.Hour)
			require.NoError(b, err)
			e := entry(0)
			e.Data = []byte(strings.Repeat("x", 500))
			b.ReportAllocs()
			for b.Loop() {
				e.Seq++
				if err := commit(b.Context(), s, l, durable.Update{}, e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkConcurrentAppend measures what one run appends a second, and what 64 runs do at once.
// Beside them stands a loop of bare SQL that writes the same rows, as many in a transaction.
func BenchmarkConcurrentAppend(b *testing.B) {
	for name, sync := range syncs {
		for _, runs := range []int{1, 64} {
			b.Run(fmt.Sprintf("sync=%s/runs=%d", name, runs), func(b *testing.B) {
				s := open(b, tempFile(b), sqlite.Options{Sync: sync})
				defer s.Close()
				leases := createRuns(b, s, runs)
				b.ResetTimer()
				var group gosync.WaitGroup
				for i, l := range leases {
					group.Go(func() {
						for seq := int64(1); seq <= share(b.N, runs, i); seq++ {
							if err := commit(b.Context(), s, l, durable.Update{}, benchEntry(seq)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			})
			b.Run(fmt.Sprintf("sync=%s/bare-sql=%d", name, runs), func(b *testing.B) {
				path := tempFile(b)
				s := open(b, path, sqlite.Options{Sync: sync})
				createRuns(b, s, runs)
				require.NoError(b, s.Close())
				db, err := sql.Open("sqlite", path+"?_txlock=immediate&_pragma=foreign_keys(1)&_pragma=secure_delete(1)&_synchronous="+name)
				require.NoError(b, err)
				defer db.Close()
				b.ResetTimer()
				for seq := int64(1); seq <= share(b.N, runs, 0); seq++ {
					appendBare(b, db, seq, min(runs, b.N-int(seq-1)*runs))
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			})
		}
	}
}

// share returns how many of n appends the run with a number makes.
func share(n, runs, number int) int64 { return int64((n + runs - 1 - number) / runs) }

func createRuns(b *testing.B, s *sqlite.Store, n int) (leases []durable.Lease) {
	b.Helper()
	for i := range n {
		l, err := s.Begin(b.Context(), durable.Job{ID: agent.RunID(fmt.Sprint("r", i))}, "one", time.Hour)
		require.NoError(b, err)
		leases = append(leases, l)
	}
	return leases
}

func benchEntry(seq int64) durable.Entry {
	return durable.Entry{Seq: seq, Kind: "note", At: time.Now(), Data: bytes.Repeat([]byte("x"), 500)}
}

// appendBare writes an entry of each of the first n runs in one transaction.
func appendBare(b *testing.B, db *sql.DB, seq int64, n int) {
	b.Helper()
	ctx := context.WithoutCancel(b.Context()) // a context that may end costs a goroutine for each statement
	t, err := db.BeginTx(ctx, nil)
	require.NoError(b, err)
	insert, err := t.PrepareContext(ctx, `INSERT INTO entries (run, seq, kind, key, at, data) VALUES (?, ?, ?, ?, ?, ?)`)
	require.NoError(b, err)
	defer insert.Close()
	update, err := t.PrepareContext(ctx, `UPDATE runs SET entries = ?2, updated = ?3 WHERE n = ?1`)
	require.NoError(b, err)
	defer update.Close()
	for run := 1; run <= n; run++ {
		e := benchEntry(seq)
		if _, err := insert.ExecContext(ctx, run, e.Seq, string(e.Kind), e.Key, e.At.UnixMicro(), e.Data); err != nil {
			b.Fatal(err)
		}
		if _, err := update.ExecContext(ctx, run, e.Seq, e.At.UnixMicro()); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, t.Commit())
}

func BenchmarkAcquire(b *testing.B) {
	for name, sync := range syncs {
		b.Run(name, func(b *testing.B) {
			s := open(b, tempFile(b), sqlite.Options{Sync: sync})
			defer s.Close()
			park(b, s, "r", wait("c"))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Acquire(b.Context(), "r", "two", time.Hour, durable.TakeOver); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMany measures of a store with 100,000 waiting runs. Their making is measured as
// well: see the time that the test as a whole takes.
func BenchmarkMany(b *testing.B) { //nolint:gocognit // a table of measurements
	const many = 100_000
	path := tempFile(b)
	s := open(b, path, sqlite.Options{Sync: sqlite.SyncNormal})
	defer s.Close()
	fill(b, path, many)
	for i := range 10 {
		require.NoError(b, s.Answer(b.Context(), agent.RunID(fmt.Sprint("run", i*1000+1)), answer("c")))
	}
	b.Run("list a page", func(b *testing.B) {
		for b.Loop() {
			runs, err := s.List(b.Context(), durable.Filter{Status: []durable.Status{durable.StatusWaiting}, Name: "a", Before: "run50000"})
			if err != nil || len(runs) != durable.DefaultLimit {
				b.Fatal(len(runs), err)
			}
		}
	})
	b.Run("list several statuses", func(b *testing.B) {
		for b.Loop() {
			runs, err := s.List(b.Context(), durable.Filter{Status: []durable.Status{durable.StatusWaiting, durable.StatusRunning}})
			if err != nil || len(runs) != durable.DefaultLimit {
				b.Fatal(len(runs), err)
			}
		}
	})
	for name, f := range map[string]durable.Filter{
		"name": {Name: "a"}, "kind": {Kind: durable.KindAgent}, "until": {Until: time.UnixMicro(many / 2)}, "since": {Since: time.UnixMicro(many / 2)},
	} {
		b.Run("list by "+name, func(b *testing.B) {
			for b.Loop() {
				runs, err := s.List(b.Context(), f)
				if err != nil || len(runs) != durable.DefaultLimit {
					b.Fatal(len(runs), err)
				}
			}
		})
	}
	b.Run("claim nothing and reconcile nothing", func(b *testing.B) {
		key := durable.Needs{Kind: durable.KindAgent, Name: "b"}.Key()
		for b.Loop() {
			runs, err := s.Claim(b.Context(), "one", time.Hour, 1, key)
			if err != nil || len(runs) != 0 {
				b.Fatal(len(runs), err)
			}
			if r, err := s.Reconcile(b.Context()); err != nil || r.Changed() {
				b.Fatal(r, err)
			}
		}
	})
	after := &durable.Wait{Run: "run50000", ID: "c", Asked: time.UnixMicro(50_000)}
	for name, f := range map[string]durable.WaitFilter{
		"all": {}, "after half": {After: after}, "kind": {Kinds: []durable.WaitKind{durable.WaitApproval}, After: after}, "run": {Run: "run77777"},
	} {
		b.Run("open waits by "+name, func(b *testing.B) {
			for b.Loop() {
				waits, err := s.OpenWaits(b.Context(), f)
				if err != nil || len(waits) == 0 {
					b.Fatal(len(waits), err)
				}
			}
		})
	}
	b.Run("watch nothing", func(b *testing.B) {
		for b.Loop() {
			waits, err := s.ClaimChecks(b.Context(), "one", time.Hour, 10, []durable.WaitKind{durable.WaitFile, durable.WaitCallback}, "h")
			if err != nil || len(waits) != 0 {
				b.Fatal(len(waits), err)
			}
		}
	})
	b.Run("watch", func(b *testing.B) {
		for b.Loop() {
			waits, err := s.ClaimChecks(b.Context(), "one", time.Hour, 10, []durable.WaitKind{durable.WaitApproval}, "h")
			if err != nil || len(waits) != 10 {
				b.Fatal(len(waits), err)
			}
		}
	})
	b.Run("wait by token", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.WaitByToken(b.Context(), tokenOf(77_777)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("acquire", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Acquire(b.Context(), "run77777", "one", time.Hour, durable.TakeFree); err != nil {
				b.Fatal(err)
			}
		}
	})
}
