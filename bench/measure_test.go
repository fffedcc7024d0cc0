package bench_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/bench"
	"github.com/grapnel-go/grapnel/bench/bare"
)

func TestALongRunIsItsOwnMeasurement(t *testing.T) {
	runs := 0
	slow := bench.Contender{Name: "slow", Prepare: func(job bench.Job) (bench.Run, error) {
		run, err := bare.Contender().Prepare(job)
		return func(ctx context.Context) (bench.Outcome, error) {
			runs++
			return run(ctx)
		}, err
	}}
	_, err := bench.Measure(t.Context(), slow, bench.Job{Steps: 50}, 0)
	require.NoError(t, err)
	assert.Equal(t, 1, runs)
	_, err = bench.Measure(t.Context(), slow, bench.Job{Steps: 1}, time.Millisecond)
	require.NoError(t, err)
	assert.Greater(t, runs, 3)
}

func TestWhatIsOffTheClockCostsNothing(t *testing.T) {
	var kept []byte
	var clock bench.Clock
	clock.Start()
	start := time.Now()
	clock.Off(func() {
		for time.Since(start) < 20*time.Millisecond {
			kept = make([]byte, 1<<20)
		}
	})
	clock.Stop()
	assert.Len(t, kept, 1<<20)
	assert.Less(t, clock.Elapsed, 20*time.Millisecond)
	assert.Less(t, clock.Sample(1).Bytes, float64(1<<20))

	called := false
	new(bench.Clock).Off(func() { called = true })
	assert.True(t, called, "a clock that stands still only calls")
}

func TestMeasureRefusesOtherWork(t *testing.T) {
	lazy := bench.Contender{Name: "lazy", Prepare: func(job bench.Job) (bench.Run, error) {
		job.Steps-- // it skips a step
		return bare.Contender().Prepare(job)
	}}
	_, err := bench.Measure(t.Context(), lazy, bench.Job{Steps: 50}, time.Millisecond)
	assert.ErrorContains(t, err, "measure lazy: it did other work")
}

func TestMeasureNamesWhoFailed(t *testing.T) {
	broken := bench.Contender{Name: "broken", Prepare: func(bench.Job) (bench.Run, error) {
		return func(context.Context) (bench.Outcome, error) { return bench.Outcome{}, errors.New("no") }, nil
	}}
	_, err := bench.Measure(t.Context(), broken, bench.Job{Steps: 1}, time.Millisecond)
	require.ErrorContains(t, err, "measure broken: no")
	_, err = bench.Measure(t.Context(), broken, bench.Job{}, time.Millisecond)
	require.ErrorContains(t, err, "measure broken: a job without steps")
	_, err = bench.Blocked(t.Context(), broken, bench.Job{Steps: 1}, 2)
	require.ErrorContains(t, err, "measure blocked broken: no")
	_, err = bench.Blocked(t.Context(), bare.Contender(), bench.Job{Steps: 1}, 0)
	require.ErrorContains(t, err, "0 runs: want at least one")
}
