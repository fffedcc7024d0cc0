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
	"github.com/grapnel-go/grapnel/bench/contenders"
)

func TestMeasureCountsAStep(t *testing.T) {
	for _, c := range contenders.All() {
		got, err := bench.Measure(t.Context(), c, bench.Job{Steps: 50}, time.Millisecond)
		require.NoError(t, err)
		assert.Positive(t, got.Nanoseconds, c.Name)
		assert.GreaterOrEqual(t, got.Allocations, 1.0, c.Name)
		assert.GreaterOrEqual(t, got.Bytes, 16.0, c.Name)
	}
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

func TestBlockedRunsAllGoHome(t *testing.T) {
	for _, c := range contenders.All() {
		bytes, err := bench.Blocked(t.Context(), c, bench.Job{Steps: 10}, 50)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, bytes, 2048.0, "%s: a goroutine alone has a stack of 2 KiB", c.Name)
	}
}
