package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// Watchers of a run see each of its events once, in order, also those that continue from a number.
func TestWatch(t *testing.T) { //nolint:gocognit // one scenario: a writer, and watchers that come and go
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) durable.Store{
		"SQLite": openStore,
		"PostgreSQL": func(t *testing.T) durable.Store {
			store, err := openAt(t.Context(), parts.Postgres(t))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, store.Close()) })
			return store
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			const commits, each = 40, 25
			lease, err := store.Begin(t.Context(), durable.Job{ID: "run"}, "one", time.Hour)
			require.NoError(t, err)
			var watchers sync.WaitGroup
			for i := range 8 {
				watchers.Go(func() {
					next := int64(i * 100)
					for e, err := range durable.Watch(t.Context(), store, "run", next) {
						if !assert.NoError(t, err) {
							return
						}
						if next++; !assert.Equal(t, next, e.Seq) || !assert.Equal(t, fmt.Sprint(next), string(e.Data)) {
							return
						}
						if next == 500 { // it loses its connection and continues
							break
						}
					}
					for e, err := range durable.Watch(t.Context(), store, "run", next) {
						if !assert.NoError(t, err) {
							return
						}
						next++
						assert.Equal(t, next, e.Seq)
					}
					assert.Equal(t, int64(commits*each), next)
				})
			}
			n := 0
			for i := range commits {
				var c durable.Commit
				for range each {
					n++
					c.Events = append(c.Events, durable.Event{Name: "tick", At: time.Now(), Data: []byte(fmt.Sprint(n))})
				}
				if i == commits-1 {
					c.Update = durable.Update{Status: durable.StatusCompleted}
				}
				require.NoError(t, store.Commit(t.Context(), lease, c))
			}
			watchers.Wait()
		})
	}
}

func TestWatchEnds(t *testing.T) {
	store := openStore(t)
	for _, err := range durable.Watch(t.Context(), store, "unknown", 0) {
		require.ErrorIs(t, err, durable.ErrNotFound)
	}
	_, err := store.Begin(t.Context(), durable.Job{ID: "run"}, "one", time.Hour)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no more interest")
	cancel(why)
	seen := 0
	for _, err := range durable.Watch(ctx, store, "run", 0) {
		seen++
		require.Error(t, err)
	}
	assert.Equal(t, 1, seen)
}

// BenchmarkWatch measures how late watchers see events: a run writes batches of 50 events every 50 ms, so 1,000 a second.
func BenchmarkWatch(b *testing.B) {
	for _, watchers := range []int{10, 100} {
		b.Run(fmt.Sprintf("watchers=%d", watchers), func(b *testing.B) {
			store, err := openAt(b.Context(), b.TempDir()+"/runs.db")
			require.NoError(b, err)
			defer store.Close()
			lease, err := store.Begin(b.Context(), durable.Job{ID: "run"}, "one", time.Hour)
			require.NoError(b, err)
			var mu sync.Mutex
			var lags []time.Duration
			var all sync.WaitGroup
			for range watchers {
				all.Go(func() {
					var own []time.Duration
					for e, err := range durable.Watch(b.Context(), store, "run", 0) {
						if err != nil {
							b.Error(err)
							return
						}
						own = append(own, time.Since(e.At))
					}
					mu.Lock()
					defer mu.Unlock()
					lags = append(lags, own...)
				})
			}
			const batches, size = 60, 50
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for i := range batches {
				<-tick.C
				var c durable.Commit
				for range size {
					c.Events = append(c.Events, durable.Event{Name: "tick", At: time.Now(), Data: make([]byte, 200)})
				}
				if i == batches-1 {
					c.Update = durable.Update{Status: durable.StatusCompleted}
				}
				require.NoError(b, store.Commit(b.Context(), lease, c))
			}
			all.Wait()
			require.Len(b, lags, watchers*batches*size)
			slices.Sort(lags)
			b.ReportMetric(float64(lags[len(lags)/2].Milliseconds()), "p50-ms")
			b.ReportMetric(float64(lags[len(lags)*99/100].Milliseconds()), "p99-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
