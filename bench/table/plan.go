package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/bench"
)

// job is a bench.Job that can be a map's key.
type job struct{ steps, history, pairs int }

var jobs = []job{
	{steps: 10},
	{steps: 100},
	{steps: 1000},
	{steps: 100, pairs: 1},
	{steps: 100, pairs: 10},
	{steps: 100, history: 10},
	{steps: 100, history: 100},
	{steps: 100, history: 1000},
	{steps: 100, history: 10_000},
}

type plan struct {
	contenders []bench.Contender // the first is what the others are compared with
	rounds     int
	atLeast    time.Duration
	blocked    int
}

// measured holds, for every contender, what each round found.
type measured struct {
	names   []string
	rounds  []map[entry]bench.Sample
	blocked map[string]float64 // bytes
}

type entry struct {
	name string
	job  job
}

func (p plan) measure(ctx context.Context, progress io.Writer) (measured, error) {
	if p.rounds < 1 {
		return measured{}, fmt.Errorf("measure: %d rounds: want at least one", p.rounds)
	}
	out := measured{blocked: map[string]float64{}}
	for _, c := range p.contenders {
		out.names = append(out.names, c.Name)
		bytes, err := bench.Blocked(ctx, c, bench.Job{Steps: 100}, p.blocked)
		if err != nil {
			return measured{}, err
		}
		out.blocked[c.Name] = bytes
	}
	for i := range p.rounds {
		_, _ = fmt.Fprintf(progress, "round %d of %d\n", i+1, p.rounds)
		round, err := p.round(ctx)
		if err != nil {
			return measured{}, err
		}
		out.rounds = append(out.rounds, round)
	}
	return out, nil
}

// round measures every contender on every job once, in random order.
func (p plan) round(ctx context.Context) (map[entry]bench.Sample, error) {
	type measurement struct {
		contender bench.Contender
		job       job
	}
	order := make([]measurement, 0, len(p.contenders)*len(jobs))
	for _, c := range p.contenders {
		for _, j := range jobs {
			order = append(order, measurement{c, j})
		}
	}
	rand.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })

	samples := make(map[entry]bench.Sample, len(order))
	for _, m := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sample, err := bench.Measure(ctx, m.contender,
			bench.Job{Steps: m.job.steps, History: m.job.history, HookPairs: m.job.pairs}, p.atLeast)
		if err != nil {
			return nil, err
		}
		samples[entry{m.contender.Name, m.job}] = sample
	}
	return samples, nil
}

// median is over the rounds of what a round says.
func (m measured) median(of func(round map[entry]bench.Sample) float64) float64 {
	values := make([]float64, len(m.rounds))
	for i, r := range m.rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

func (m measured) time(name string, j job) float64 {
	return m.median(func(r map[entry]bench.Sample) float64 { return r[entry{name, j}].Nanoseconds })
}

func (m measured) allocations(name string, j job) float64 {
	return m.median(func(r map[entry]bench.Sample) float64 { return r[entry{name, j}].Allocations })
}

// ratio is the median of the rounds' own ratios.
func (m measured) ratio(above, below entry) float64 {
	return m.median(func(r map[entry]bench.Sample) float64 { return r[above].Nanoseconds / r[below].Nanoseconds })
}
