package benchtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/bench"
)

// Bench runs the contenders on the jobs of the tables, except jobs that take some contenders minutes.
func Bench(b *testing.B, contenders ...bench.Contender) {
	b.Helper()
	for _, job := range []bench.Job{
		{Steps: 10},
		{Steps: 100},
		{Steps: 100, HookPairs: 1},
		{Steps: 100, HookPairs: 10},
		{Steps: 100, Calls: 8},
		{Steps: 10, History: 100},
		{Steps: 10, History: 1000},
	} {
		for _, c := range contenders {
			if job.HookPairs > 0 && c.NoHooks != "" {
				continue
			}
			name := fmt.Sprintf("contender=%s/steps=%d/history=%d/pairs=%d/calls=%d",
				strings.NewReplacer(", ", "-", " ", "-").Replace(c.Name), job.Steps, job.History, job.HookPairs, max(1, job.Calls))
			b.Run(name, func(b *testing.B) { each(b, c, job) })
		}
	}
}

// each reports the cost of a step in addition to that of a run.
func each(b *testing.B, c bench.Contender, job bench.Job) {
	b.Helper()
	var clock bench.Clock
	job.OffClock = clock.Off
	run, err := c.Prepare(job)
	require.NoError(b, err)
	outcome, err := run(b.Context())
	require.NoError(b, err)
	require.Equal(b, job.Proof(), outcome.Proof(), "%s did other work than the job", c.Name)

	clock.Start()
	for b.Loop() {
		if _, err := run(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	clock.Stop()
	sample := clock.Sample(b.N * job.Steps)
	b.ReportMetric(sample.Nanoseconds, "ns/step")
	b.ReportMetric(sample.Allocations, "allocs/step")
	b.ReportMetric(sample.Bytes, "B/step")
}
