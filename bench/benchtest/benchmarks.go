package benchtest

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/bench"
)

// Steps is the plain loop: does a step cost the same late as early?
func Steps(b *testing.B, contenders []bench.Contender, steps ...int) {
	b.Helper()
	for _, n := range steps {
		each(b, contenders, "steps="+strconv.Itoa(n), bench.Job{Steps: n})
	}
}

// Hooks is what a pair of hooks adds to a step.
func Hooks(b *testing.B, contenders []bench.Contender, pairs ...int) {
	b.Helper()
	for _, n := range pairs {
		each(b, contenders, "pairs="+strconv.Itoa(n), bench.Job{Steps: 100, HookPairs: n})
	}
}

// History is steps at the end of a transcript that is already there: does anybody
// look back?
func History(b *testing.B, contenders []bench.Contender, messages ...int) {
	b.Helper()
	for _, n := range messages {
		each(b, contenders, "messages="+strconv.Itoa(n), bench.Job{Steps: 10, History: n})
	}
}

// Calls is a step of so many calls at once.
func Calls(b *testing.B, contenders []bench.Contender, calls ...int) {
	b.Helper()
	for _, n := range calls {
		each(b, contenders, "calls="+strconv.Itoa(n), bench.Job{Steps: 100, Calls: n})
	}
}

func each(b *testing.B, contenders []bench.Contender, name string, job bench.Job) {
	b.Helper()
	for _, c := range contenders {
		if job.HookPairs > 0 && c.NoHooks != "" {
			continue
		}
		b.Run(c.Name+"/"+name, func(b *testing.B) {
			var clock bench.Clock
			job := job
			job.OffClock = clock.Off
			run, err := c.Prepare(job)
			require.NoError(b, err)
			outcome, err := run(b.Context())
			require.NoError(b, err)
			require.Equal(b, job.Proof(), outcome.Proof(), "%s did other work than was asked", c.Name)
			perStep(b, run, &clock, job.Steps)
		})
	}
}

// perStep reports what a step costs beside what a run does.
func perStep(b *testing.B, run bench.Run, clock *bench.Clock, steps int) {
	b.Helper()
	clock.Start()
	for b.Loop() {
		if _, err := run(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	clock.Stop()
	sample := clock.Sample(b.N * steps)
	b.ReportMetric(sample.Nanoseconds, "ns/step")
	b.ReportMetric(sample.Allocations, "allocs/step")
	b.ReportMetric(sample.Bytes, "B/step")
}
