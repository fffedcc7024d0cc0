package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/drivers/replay"
)

// backtest plays recordings under policies, on all cores.
type backtest struct {
	found    found
	players  *players
	progress *progress
}

func newBacktest(policies []policy, found found, progress *progress) *backtest {
	progress.total = lo.SumBy(found.recordings, func(r recording) int64 { return r.size })
	return &backtest{found: found, players: &players{policies: policies}, progress: progress}
}

// result is what came of one recorded run, or of a piece of a recording that is none.
type result struct {
	suite  string
	scores map[string]score // by policy
	// left says why a run or a file was left out, wrong what went wrong. One of them is set when there are no scores.
	left  *leftOut
	wrong error
}

// job is a run to be played.
type job struct {
	record  *replay.Record
	players []player
}

// run plays everything and adds it up. When ctx ends it stops, and says so in the report.
func (b *backtest) run(ctx context.Context) report {
	started := time.Now()
	waiting, jobs, results := make(chan recording), make(chan job), make(chan result)
	var reading, playing sync.WaitGroup
	go func() {
		defer close(waiting)
		for _, r := range b.found.recordings {
			waiting <- r
		}
	}()
	for range runtime.GOMAXPROCS(0) {
		reading.Go(func() {
			for r := range waiting {
				b.read(ctx, r, jobs, results)
			}
		})
		playing.Go(func() {
			for j := range jobs {
				if r := j.play(ctx); ctx.Err() == nil {
					results <- r
				}
			}
		})
	}
	go func() {
		reading.Wait()
		close(jobs)
		playing.Wait()
		close(results)
	}()

	sum := newSum(b.found)
	for r := range results {
		b.progress.count(sum.add(r))
	}
	b.progress.end()
	return sum.report(b.players.policies, time.Since(started), ctx.Err() != nil)
}

// read gives out the runs of a recording to be played.
func (b *backtest) read(ctx context.Context, from recording, jobs chan<- job, results chan<- result) {
	if ctx.Err() != nil {
		return
	}
	file, err := from.folder.files.Open(from.file)
	if err != nil {
		results <- result{wrong: fmt.Errorf("open recording: %w", err)}
		return
	}
	defer file.Close()
	counting := b.progress.reading(file)
	reader := replay.NewReader(counting)
	reader.Name = from.name
	first := true
	for record, err := range reader.Records() {
		switch {
		case first && from.found && errors.Is(err, replay.ErrNotARun):
			results <- result{left: &leftOut{File: from.name, Why: err.Error()}}
			counting.skip(from.size)
			return
		case err != nil:
			results <- result{wrong: err}
		default:
			cast := b.players.of(from.folder, record)
			if len(cast.players) == 0 {
				results <- cast.result(from, record)
				break
			}
			select {
			case jobs <- job{record, cast.players}:
			case <-ctx.Done():
				return
			}
		}
		first = false
	}
}

// result is that of a run that nobody can play.
func (c cast) result(from recording, record *replay.Record) result {
	if c.err != nil {
		return result{wrong: fmt.Errorf("recording %q: suite %q: %w", from.name, record.Suite, c.err)}
	}
	return result{left: &leftOut{Suite: record.Suite, Runs: 1, Why: c.unknown.Error()}}
}

// play plays a run under each policy.
func (j job) play(ctx context.Context) result {
	session, err := replay.NewSession(j.record)
	if err != nil {
		return result{wrong: err}
	}
	r := result{suite: j.record.Suite, scores: map[string]score{}}
	for _, p := range j.players {
		played, err := session.Play(ctx, p.agent)
		if err != nil {
			return result{wrong: fmt.Errorf("%s: %w", p.policy, err)}
		}
		r.scores[p.policy] = scoreOf(j.record, played)
	}
	return r
}
