package postgres_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// BenchmarkStore measures calls on a store of 100,000 runs, on a server that waits for
// the disk before it says that something is written.
func BenchmarkStore(b *testing.B) {
	s := openClosed(b, parts.NewPostgres(b, "fsync=on", "synchronous_commit=on").Database(b), postgres.Options{Conns: 16})
	fill(b, s, 100_000)
	ctx := b.Context()

	b.Run("append", func(b *testing.B) {
		l := fresh(b, s)
		e := durable.Entry{Kind: "reply", Key: "call", At: time.Now(), Data: bytes.Repeat([]byte("x"), 1000)}
		for b.Loop() {
			e.Seq++
			require.NoError(b, s.Commit(ctx, l, commit(durable.Update{Status: durable.StatusRunning, Steps: int(e.Seq)}, e)))
		}
	})
	b.Run("append, 16 runs at once", func(b *testing.B) {
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			l := fresh(b, s)
			e := durable.Entry{Kind: "reply", Key: "call", At: time.Now(), Data: bytes.Repeat([]byte("x"), 1000)}
			for pb.Next() {
				e.Seq++
				if err := s.Commit(ctx, l, commit(durable.Update{Status: durable.StatusRunning, Steps: int(e.Seq)}, e)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
	b.Run("acquire", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			_, err := s.Acquire(ctx, agent.RunID(fmt.Sprint("run ", 100*(i%900)+61)), "two", time.Hour, durable.TakeOver)
			require.NoError(b, err)
		}
	})
	b.Run("renew", func(b *testing.B) {
		l := fresh(b, s)
		for b.Loop() {
			_, err := s.Renew(ctx, l, time.Hour)
			require.NoError(b, err)
		}
	})
	b.Run("park and answer", func(b *testing.B) {
		l := fresh(b, s)
		u := durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{{ID: "c", Data: bytes.Repeat([]byte("x"), 1000)}}}
		for seq := int64(1); b.Loop(); seq++ {
			u.Waits[0].ID = fmt.Sprint(seq)
			require.NoError(b, s.Commit(ctx, l, commit(u, entry(seq))))
			require.NoError(b, s.Answer(ctx, l.Run, durable.Answers(durable.Answer{Wait: u.Waits[0].ID})))
		}
	})
	b.Run("run", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			require.NoError(b, second(s.Run(ctx, agent.RunID(fmt.Sprint("run ", i%100_000+1)))))
		}
	})
	for name, f := range map[string]durable.Filter{
		"list page, all":               {Limit: 50},
		"list page, parked":            {Limit: 50, Status: []durable.Status{durable.StatusWaiting}},
		"list page, parked, in middle": {Limit: 50, Status: []durable.Status{durable.StatusWaiting}, Before: "run 50000"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				runs, err := s.List(ctx, f)
				require.NoError(b, err)
				require.Len(b, runs, 50)
			}
		})
	}
	b.Run("claim none of 10 queues", func(b *testing.B) {
		keys := lo.Times(10, func(i int) durable.Key { return durable.Needs{Name: fmt.Sprint(i)}.Key() })
		for b.Loop() {
			runs, err := s.Claim(ctx, "two", time.Hour, 10, keys...)
			require.NoError(b, err)
			require.Empty(b, runs)
		}
	})
	b.Run("reconcile", func(b *testing.B) {
		require.NoError(b, second(s.Reconcile(ctx)))
		for b.Loop() {
			done, err := s.Reconcile(ctx)
			require.NoError(b, err)
			require.False(b, done.Changed())
		}
	})
	b.Run("entries, 50", func(b *testing.B) {
		l := fresh(b, s)
		require.NoError(b, s.Commit(ctx, l, commit(durable.Update{}, entries(1, 50)...)))
		for b.Loop() {
			all, err := s.Entries(ctx, l.Run, 0)
			require.NoError(b, err)
			require.Len(b, all, 50)
		}
	})
}

// fresh returns the lease of a new run.
func fresh(b *testing.B, s durable.Store) durable.Lease {
	b.Helper()
	return create(b, s, agent.NewRunID())
}
