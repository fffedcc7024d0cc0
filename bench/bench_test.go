package bench_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/bench"
	"github.com/grapnel-go/grapnel/bench/contenders"
)

// BenchmarkSteps is the plain loop: does a step cost the same late as early?
func BenchmarkSteps(b *testing.B) {
	for _, steps := range []int{10, 100, 1000} {
		each(b, "steps="+strconv.Itoa(steps), bench.Job{Steps: steps})
	}
}

// BenchmarkHooks is what a pair of hooks adds to a step.
func BenchmarkHooks(b *testing.B) {
	for _, pairs := range []int{0, 1, 10} {
		each(b, "pairs="+strconv.Itoa(pairs), bench.Job{Steps: 100, HookPairs: pairs})
	}
}

// BenchmarkHistory is a hundred steps at the end of a transcript that is already
// there: does anybody look back?
func BenchmarkHistory(b *testing.B) {
	for _, messages := range []int{10, 100, 1000, 10_000} {
		each(b, "messages="+strconv.Itoa(messages), bench.Job{Steps: 100, History: messages})
	}
}

func each(b *testing.B, name string, job bench.Job) {
	b.Helper()
	for _, c := range contenders.All() {
		b.Run(c.Name+"/"+name, func(b *testing.B) {
			run, err := c.Prepare(job)
			require.NoError(b, err)
			outcome, err := run(b.Context())
			require.NoError(b, err)
			require.Equal(b, job.Proof(), outcome.Proof(), "%s did other work than was asked", c.Name)
			perStep(b, run, job.Steps)
		})
	}
}

// perStep reports nanoseconds and allocations of a step instead of a run.
func perStep(b *testing.B, run bench.Run, steps int) {
	b.Helper()
	ctx := context.Background()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if _, err := run(ctx); err != nil {
			b.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	n := float64(b.N) * float64(steps)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/step")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/step")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/step")
}
