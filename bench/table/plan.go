// Package table measures contenders on jobs in rounds of random order, and writes the results as tables, a chart, and
// a text that benchstat reads.
//
// Each ratio is computed within a round, from measurements at most minutes apart, and then the median is taken. So
// other load of the machine affects both sides.
package table

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/bench"
	"github.com/grapnel-go/grapnel/bench/worker"
)

// Contender is a contender that can be measured, in this or another process.
type Contender struct {
	worker.About

	// Measure and Blocked are as in package bench.
	Measure func(ctx context.Context, job bench.Job, atLeast time.Duration) (bench.Sample, error)
	Blocked func(ctx context.Context, job bench.Job, runs int) (bench.Held, error)
}

// Plan defines what is measured and how often.
type Plan struct {
	Contenders []Contender // the others are compared with the first
	Rounds     int
	AtLeast    time.Duration // the minimum time of one measurement
	Blocked    int           // the number of concurrent runs when memory is measured
	// Patience is the maximum time of a contender for one job in all rounds together. A slow contender takes part in
	// fewer rounds, but in at least one.
	Patience time.Duration
	Progress io.Writer
}

// job is a bench.Job that can be a map's key.
type job struct{ Steps, History, Pairs, Calls int }

func (j job) bench() bench.Job {
	return bench.Job{Steps: j.Steps, History: j.History, HookPairs: j.Pairs, Calls: j.Calls}
}

var (
	ten      = job{Steps: 10}
	hundred  = job{Steps: 100}
	thousand = job{Steps: 1000}
	onePair  = job{Steps: 100, Pairs: 1}
	tenPairs = job{Steps: 100, Pairs: 10}
	eight    = job{Steps: 100, Calls: 8}
)

// after returns a job with a long history. A few steps are enough, because with so many messages before them all
// steps cost the same.
func after(messages int) job { return job{Steps: 20, History: messages} }

var jobs = []job{
	ten, hundred, thousand, onePair, tenPairs, eight, after(10), after(100), after(1000), after(10_000),
}

// Found holds the results of the rounds of a plan.
type Found struct {
	plan    Plan
	rounds  []map[entry]bench.Sample
	blocked map[string]bench.Held
}

type entry struct {
	name string
	job  job
}

// Measure executes the plan.
func (p Plan) Measure(ctx context.Context) (Found, error) {
	if p.Rounds < 1 || len(p.Contenders) == 0 {
		return Found{}, fmt.Errorf("measure: %d rounds of %d contenders: want at least one of each", p.Rounds, len(p.Contenders))
	}
	out := Found{plan: p, blocked: map[string]bench.Held{}}
	for _, c := range p.Contenders {
		if c.Telemetry != nil {
			continue
		}
		held, err := c.Blocked(ctx, bench.Job{Steps: 1}, p.Blocked)
		if err != nil {
			return Found{}, err
		}
		out.blocked[c.Name] = held
	}
	left := map[entry]time.Duration{}
	for i := range p.Rounds {
		_, _ = fmt.Fprintf(p.Progress, "round %d of %d\n", i+1, p.Rounds)
		round, err := p.round(ctx, left, p.Rounds-i)
		if err != nil {
			return Found{}, err
		}
		out.rounds = append(out.rounds, round)
	}
	return out, nil
}

// round measures every contender on every job once, in random order, except those that have used up the plan's
// Patience.
func (p Plan) round(ctx context.Context, spent map[entry]time.Duration, roundsLeft int) (map[entry]bench.Sample, error) {
	type measurement struct {
		contender Contender
		job       job
	}
	var order []measurement
	for _, c := range p.Contenders {
		for _, j := range jobs {
			took := spent[entry{c.Name, j}]
			done := p.Rounds - roundsLeft
			tired := done > 0 && took+took/time.Duration(done) > p.Patience
			if (j.Pairs > 0 && c.NoHooks != "") || (c.Telemetry != nil && j != hundred) || tired {
				continue
			}
			order = append(order, measurement{c, j})
		}
	}
	rand.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })

	samples := make(map[entry]bench.Sample, len(order))
	for _, m := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		start := time.Now()
		sample, err := m.contender.Measure(ctx, m.job.bench(), p.AtLeast)
		if err != nil {
			return nil, err
		}
		e := entry{m.contender.Name, m.job}
		samples[e] = sample
		spent[e] += time.Since(start)
	}
	return samples, nil
}

// median returns the median over the rounds that have all of the entries.
func (f Found) median(of func(round map[entry]bench.Sample) float64, entries ...entry) float64 {
	var values []float64
	for _, r := range f.rounds {
		if !slices.ContainsFunc(entries, func(e entry) bool { _, ok := r[e]; return !ok }) {
			values = append(values, of(r))
		}
	}
	slices.Sort(values)
	middle := len(values) / 2
	switch {
	case len(values) == 0:
		return 0
	case len(values)%2 == 1:
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

func (f Found) time(name string, j job) float64 {
	e := entry{name, j}
	return f.median(func(r map[entry]bench.Sample) float64 { return r[e].Nanoseconds }, e)
}

func (f Found) allocations(name string, j job) float64 {
	e := entry{name, j}
	return f.median(func(r map[entry]bench.Sample) float64 { return r[e].Allocations }, e)
}

// ratio returns the median of the ratios of the rounds.
func (f Found) ratio(above, below entry) float64 {
	return f.median(func(r map[entry]bench.Sample) float64 { return r[above].Nanoseconds / r[below].Nanoseconds }, above, below)
}

// more returns the median of the time differences of the rounds.
func (f Found) more(above, below entry) float64 {
	return f.median(func(r map[entry]bench.Sample) float64 { return r[above].Nanoseconds - r[below].Nanoseconds }, above, below)
}
