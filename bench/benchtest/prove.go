// Package benchtest holds what every contender must pass before it is measured, and
// the benchmarks that it then runs in: the same in each module that has contenders.
package benchtest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/bench"
)

// Prove runs every proof on every contender.
func Prove(t *testing.T, contenders ...bench.Contender) {
	t.Helper()
	for _, c := range contenders {
		t.Run(c.Name, func(t *testing.T) {
			t.Run("does the same work", func(t *testing.T) { sameWork(t, c) })
			t.Run("refuses invalid jobs", func(t *testing.T) { refuses(t, c) })
			t.Run("runs as many concurrent calls as it declares", func(t *testing.T) { atOnce(t, c) })
			t.Run("is blocked and then returns", func(t *testing.T) { blocked(t, c) })
			t.Run("is measured", func(t *testing.T) { measured(t, c) })
		})
	}
}

func sameWork(t *testing.T, c bench.Contender) {
	t.Helper()
	for name, job := range map[string]bench.Job{
		"an answer at once": {},
		"one step":          {Steps: 1},
		"many steps":        {Steps: 137},
		"hooks":             {Steps: 9, HookPairs: 10},
		"a short history":   {Steps: 3, History: 2},
		"a long history":    {Steps: 20, History: 1000, HookPairs: 1},
		"eight calls":       {Steps: 7, Calls: 8, History: 4, HookPairs: 1},
	} {
		if c.NoHooks != "" {
			job.HookPairs = 0
		}
		t.Run(name, func(t *testing.T) {
			run, err := c.Prepare(job)
			require.NoError(t, err)
			for range 2 { // the second run finds nothing of the first
				outcome, err := run(t.Context())
				require.NoError(t, err)
				assert.Equal(t, job.Proof(), outcome.Proof())
			}
		})
	}
}

func refuses(t *testing.T, c bench.Contender) {
	t.Helper()
	for name, tc := range map[string]struct {
		job  bench.Job
		want string
	}{
		"steps":            {bench.Job{Steps: -1}, "-1 steps"},
		"calls":            {bench.Job{Calls: -1}, "-1 calls in a step"},
		"hook pairs":       {bench.Job{HookPairs: -1}, "-1 hook pairs"},
		"an odd history":   {bench.Job{History: 3}, "a history of 3 messages: must be an even number"},
		"negative history": {bench.Job{History: -2}, "a history of -2 messages"},
	} {
		_, err := c.Prepare(tc.job)
		require.Error(t, err, name)
		assert.ErrorContains(t, err, tc.want)
	}
}

// atOnce lets as many of eight calls wait for each other as the contender claims to run concurrently. More must never
// run at the same time.
func atOnce(t *testing.T, c bench.Contender) {
	t.Helper()
	const calls = 8
	limit := int64(calls)
	if c.AtOnce > 0 {
		limit = int64(c.AtOnce)
	}
	var (
		inside, most atomic.Int64
		all          = make(chan struct{})
		once         sync.Once
		late         atomic.Bool
	)
	run, err := c.Prepare(bench.Job{Steps: 1, Calls: calls, InTool: func() {
		now := inside.Add(1)
		defer inside.Add(-1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() { //nolint:revive // all is in its head
		}
		if now == limit {
			once.Do(func() { close(all) })
		}
		select {
		case <-all:
		case <-time.After(20 * time.Second):
			late.Store(true)
		}
	}})
	require.NoError(t, err)
	_, err = run(t.Context())
	require.NoError(t, err)
	assert.False(t, late.Load(), "a call waited for calls that did not start")
	assert.Equal(t, limit, most.Load(), "calls that ran at the same time")
}

func blocked(t *testing.T, c bench.Contender) {
	t.Helper()
	held, err := bench.Blocked(t.Context(), c, bench.Job{Steps: 1}, 500)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, held.Bytes, 2048.0, "a goroutine needs a stack of at least 2 KiB")
	assert.Greater(t, held.Goroutines, 0.9, "a goroutine waits; a few goroutines of the process may have ended in the meantime")
}

func measured(t *testing.T, c bench.Contender) {
	t.Helper()
	got, err := bench.Measure(t.Context(), c, bench.Job{Steps: 50}, time.Millisecond)
	require.NoError(t, err)
	assert.Positive(t, got.Nanoseconds)
	assert.GreaterOrEqual(t, got.Allocations, 1.0)
	assert.GreaterOrEqual(t, got.Bytes, 16.0)
}
