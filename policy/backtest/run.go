package backtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/policy/recorded"
)

// defaultKeep is the maximum number of bytes of compressed transcripts in a report if Options.Keep is zero.
const defaultKeep = 32 << 20

// Options configure a backtest.
type Options struct {
	// Policies lists the policies to try. Each is tried on every run, independently of the others. At least one is
	// required, and their names must differ.
	Policies []Policy
	// Agent is the agent's name for recordings without one; empty means "backtest".
	Agent string
	// Tools are the schemas for runs that neither contain schemas nor name a schema file. Nil means that the tools in
	// such a run accept any arguments.
	Tools []replay.ToolSchema
	// AtOnce is the number of runs that are replayed concurrently. Zero means one per core.
	AtOnce int
	// Keep is the maximum number of bytes of compressed transcripts in the report, for WriteHTML. Zero means 32 MiB,
	// a negative number no transcripts. Runs beyond the limit are counted and listed without their transcripts.
	Keep int64
	// Progress, unless nil, is called with the backtest's progress, and with each error as soon as it is found. Calls
	// are never concurrent.
	Progress func(Progress)
}

// Progress is the state of a running backtest.
type Progress struct {
	// Runs is the number of runs that were replayed or skipped. Bytes is the number of recording bytes read so far,
	// out of Total; for Recording.Runs, runs count in place of bytes.
	Runs         int
	Bytes, Total int64
	// Stopped is how many calls each policy has denied or asked about so far, in the order of Options.Policies.
	Stopped []int
	// Wrong is the error for a run or file, or nil if the call only reports progress.
	Wrong error
}

// Run replays recordings under policies. When ctx ends, it stops, and the report covers the runs replayed so far and
// says so. Run returns an error only for invalid options. Report.Failed and Report.Problems describe problems with
// recordings.
func Run(ctx context.Context, recordings []Recording, o Options) (*Report, error) {
	names := lo.Map(o.Policies, func(p Policy, _ int) string { return p.Name })
	switch {
	case len(o.Policies) == 0:
		return nil, errors.New("backtest: Options.Policies is empty")
	case len(lo.Uniq(names)) < len(names):
		return nil, fmt.Errorf("backtest: two policies have the same name: %q", names)
	}
	b := &backtest{
		options: o, recordings: recordings,
		casts: &casts{
			policies: o.Policies, agent: lo.CoalesceOrEmpty(o.Agent, "backtest"), tools: o.Tools,
			made: map[string]*cast{}, rules: map[string]map[string]Rule{},
		},
		jobs:    make(chan job),
		results: make(chan result),
	}
	return b.runAll(ctx), nil
}

type backtest struct {
	options    Options
	recordings []Recording
	casts      *casts
	jobs       chan job
	results    chan result
	read       atomic.Int64
}

// job is a run to replay. Its field at holds the index of its file among the recordings, and its index in that file.
type job struct {
	run      *recorded.Run
	from     Recording
	at       [2]int
	verdicts []Verdict
}

// result is the result for a run, or for an unreadable part of a recording.
type result struct {
	job    job
	packed []byte // the compressed transcript
	left   []LeftOut
	wrong  error
}

func (b *backtest) runAll(ctx context.Context) *Report {
	started := time.Now()
	atOnce := b.options.AtOnce
	if atOnce <= 0 {
		atOnce = runtime.GOMAXPROCS(0)
	}
	files := make(chan int)
	var reading, playing sync.WaitGroup
	go func() {
		defer close(files)
		for i := range b.recordings {
			select {
			case files <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	for range atOnce {
		reading.Go(func() {
			for i := range files {
				b.readFile(ctx, i)
			}
		})
		playing.Go(func() {
			for j := range b.jobs {
				if r := b.play(ctx, j); ctx.Err() == nil {
					b.results <- r
				}
			}
		})
	}
	go func() {
		reading.Wait()
		close(b.jobs)
		playing.Wait()
		close(b.results)
	}()
	sum := newSum(b)
	for r := range b.results {
		sum.add(r)
		if b.options.Progress != nil {
			b.options.Progress(Progress{Runs: sum.runs, Bytes: b.read.Load(), Total: sum.size, Stopped: sum.countStopped(), Wrong: r.wrong})
		}
	}
	b.casts.drain(ctx)
	return sum.report(time.Since(started), ctx.Err() != nil)
}

// readFile sends a recording's runs to the workers.
func (b *backtest) readFile(ctx context.Context, file int) {
	from := b.recordings[file]
	if from.Runs != nil {
		n := 0
		for run, err := range from.Runs(ctx) {
			if ctx.Err() != nil || !b.send(ctx, run, err, from, [2]int{file, n}) {
				return
			}
			b.read.Add(1)
			n++
		}
		return
	}
	own := int64(0)
	reader, closer, err := from.openCounted(func(n int64) { own += n; b.read.Add(n) })
	if err != nil {
		b.results <- result{wrong: err}
		return
	}
	defer closer.Close()
	n := 0
	for run, err := range reader.Runs() {
		switch {
		case ctx.Err() != nil:
			return
		case n == 0 && from.found && (errors.Is(err, recorded.ErrUnknown) || errors.Is(err, replay.ErrNotARun)):
			b.read.Add(from.Size - own)
			b.results <- result{left: []LeftOut{{File: from.Name, Why: errors.Unwrap(err).Error()}}}
			return
		case !b.send(ctx, run, err, from, [2]int{file, n}):
			return
		}
		n++
	}
}

// send sends a run to the workers, or the error in its place. It returns false when ctx has ended.
func (b *backtest) send(ctx context.Context, run *recorded.Run, err error, from Recording, at [2]int) bool {
	if err != nil {
		b.results <- result{wrong: err}
		return true
	}
	select {
	case b.jobs <- job{run: run, from: from, at: at}:
		return true
	case <-ctx.Done():
		return false
	}
}

// play replays a run under each policy.
func (b *backtest) play(ctx context.Context, j job) result {
	cast := b.casts.of(j.from, j.run)
	if cast.err != nil {
		return result{wrong: &replay.LineError{Name: j.run.File, Line: j.run.Line, Err: fmt.Errorf("run %q: %w", j.run.ID, cast.err)}}
	}
	r := result{job: j}
	for policy, why := range cast.left {
		r.left = append(r.left, LeftOut{Policy: policy, Suite: j.run.Suite, Runs: 1, Why: why.Error()})
	}
	for _, p := range cast.players {
		verdict, err := playRun(ctx, j.run, p.policy, p.agent)
		if err != nil {
			return result{wrong: &replay.LineError{Name: j.run.File, Line: j.run.Line, Err: err}}
		}
		r.job.verdicts = append(r.job.verdicts, verdict)
	}
	if b.options.Keep >= 0 && isCounted(r.job.verdicts) {
		r.packed = packRun(&j.run.Record)
	}
	return r
}
