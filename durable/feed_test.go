package durable_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// watchedStore is the part of a store that watchers use. It counts calls.
type watchedStore struct {
	durable.Store

	mu           sync.Mutex
	run          durable.Run
	events       []durable.Event
	looks, reads int
	err          error
}

func (s *watchedStore) Run(ctx context.Context, _ agent.RunID) (durable.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return s.run, errors.Join(s.err, ctx.Err())
}

func (s *watchedStore) Events(ctx context.Context, _ agent.RunID, after int64, limit int) ([]durable.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	after = min(after, int64(len(s.events)))
	return s.events[after:min(int(after)+limit, len(s.events))], errors.Join(s.err, ctx.Err())
}

// add adds n events with the current time.
func (s *watchedStore) add(n int, status durable.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.run.Events++
		s.events = append(s.events, durable.Event{Seq: s.run.Events, At: time.Now(), Data: []byte("data")})
	}
	s.run.Status = status
}

func (s *watchedStore) counts() (looks, reads int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks, s.reads
}

// A hundred watchers read the store no more often than one. A slow one delays neither the others nor the writer, and reads
// what it has missed by itself.
func TestWatchersShareAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &watchedStore{run: durable.Run{ID: "run", Status: durable.StatusRunning}}
		s.add(700, durable.StatusRunning)
		const all = 700 + 5000
		var fast, slow sync.WaitGroup
		watch := func(after int64, delay time.Duration) {
			next := after
			for e, err := range durable.Watch(t.Context(), s, "run", after) {
				if next++; !assert.NoError(t, err) || !assert.Equal(t, next, e.Seq) || !assert.Equal(t, "data", string(e.Data)) {
					return
				}
				if e.Data[0] = 'x'; delay == 0 {
					assert.LessOrEqual(t, time.Since(e.At), 100*time.Millisecond, "event %d", e.Seq)
				}
				time.Sleep(delay)
			}
			assert.Equal(t, int64(all), next)
		}
		for i := range int64(100) {
			fast.Go(func() { watch(i*7, 0) })
		}
		slow.Go(func() { watch(0, 20*time.Millisecond) })
		synctest.Wait()
		_, before := s.counts() // each has read what was there before
		for i := range 100 {
			time.Sleep(50 * time.Millisecond)
			if i < 99 {
				s.add(50, durable.StatusRunning)
			} else {
				s.add(50, durable.StatusCompleted)
			}
		}
		fast.Wait()
		looks, reads := s.counts()
		assert.LessOrEqual(t, looks, 52, "ten times a second")
		assert.LessOrEqual(t, reads-before, 60, "ten times a second, and those of the slow one")
		slow.Wait()
	})
}

// The reader ends with its last watcher, and an error ends all watchers. A later watcher has a reader of its own.
func TestWatchersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &watchedStore{run: durable.Run{ID: "run", Status: durable.StatusRunning}}
		s.add(3, durable.StatusRunning)
		for _, err := range durable.Watch(t.Context(), s, "run", 0) {
			require.NoError(t, err)
			break
		}
		before, _ := s.counts()
		time.Sleep(time.Second)
		after, _ := s.counts()
		assert.Equal(t, before, after, "nothing reads the store when there is no watcher")

		var watchers sync.WaitGroup
		ctx, cancel := context.WithCancelCause(t.Context())
		leaves, fails := errors.New("no more interest"), errors.New("no such table")
		for _, w := range []struct {
			ctx  context.Context //nolint:containedctx // of one watcher
			want error
		}{{ctx, leaves}, {t.Context(), fails}, {t.Context(), fails}} {
			watchers.Go(func() {
				var last error
				n := 0
				for _, err := range durable.Watch(w.ctx, s, "run", 1) {
					n, last = n+1, err
				}
				assert.ErrorIs(t, last, w.want)
				assert.Equal(t, 3, n, "two events and the error")
			})
		}
		time.Sleep(time.Second)
		cancel(leaves)
		time.Sleep(time.Second)
		s.mu.Lock()
		s.err = fails
		s.mu.Unlock()
		watchers.Wait()

		s.mu.Lock()
		s.err, s.run.Status = nil, durable.StatusCompleted
		s.mu.Unlock()
		n := 0
		for _, err := range durable.Watch(t.Context(), s, "run", 0) {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, 3, n)
	})
}

// A store that cannot be compared is watched, too.
func TestWatchOfAnIncomparableStore(t *testing.T) {
	inner := &watchedStore{run: durable.Run{ID: "run"}}
	inner.add(2, durable.StatusCompleted)
	n := 0
	for _, err := range durable.Watch(t.Context(), struct {
		durable.Store

		names []string
	}{Store: inner}, "run", 0) {
		require.NoError(t, err)
		n++
	}
	assert.Equal(t, 2, n)
}
