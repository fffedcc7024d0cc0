package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Sample is what one step cost, averaged over many.
type Sample struct {
	Nanoseconds float64
	Allocations float64
	Bytes       float64 // allocated, not kept
}

// Measure repeats the job, which must have steps, until at least the given time
// has passed, and returns what a step cost. A run whose outcome does not prove
// the job's work is an error.
func Measure(ctx context.Context, c Contender, job Job, atLeast time.Duration) (Sample, error) {
	if job.Steps == 0 {
		return Sample{}, fmt.Errorf("measure %s: a job without steps", c.Name)
	}
	run, err := c.Prepare(job)
	if err != nil {
		return Sample{}, fmt.Errorf("measure %s: %w", c.Name, err)
	}
	outcome, err := run(ctx) // warms up, too
	if err != nil {
		return Sample{}, fmt.Errorf("measure %s: %w", c.Name, err)
	}
	if got, want := outcome.Proof(), job.Proof(); got != want {
		return Sample{}, fmt.Errorf("measure %s: it did other work: got %+v, want %+v", c.Name, got, want)
	}

	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, runs := time.Now(), 0
	for time.Since(start) < atLeast || runs == 0 {
		if _, err := run(ctx); err != nil {
			return Sample{}, fmt.Errorf("measure %s: %w", c.Name, err)
		}
		runs++
	}
	elapsed := time.Since(start)
	runtime.ReadMemStats(&after)

	steps := float64(runs) * float64(job.Steps)
	return Sample{
		Nanoseconds: float64(elapsed.Nanoseconds()) / steps,
		Allocations: float64(after.Mallocs-before.Mallocs) / steps,
		Bytes:       float64(after.TotalAlloc-before.TotalAlloc) / steps,
	}, nil
}

// Blocked returns the bytes of heap and stack that one run holds while it waits
// for its first model call, averaged over that many runs at once.
func Blocked(ctx context.Context, c Contender, job Job, runs int) (float64, error) {
	if runs < 1 {
		return 0, fmt.Errorf("measure blocked %s: %d runs: want at least one", c.Name, runs)
	}
	var (
		holding  atomic.Bool
		arrived  = make(chan struct{}, runs)
		released = make(chan struct{})
		done     sync.WaitGroup
		failed   = make(chan error, runs)
	)
	job.Hold = func() {
		if holding.Load() {
			arrived <- struct{}{}
			<-released
		}
	}
	run, err := c.Prepare(job)
	if err != nil {
		return 0, fmt.Errorf("measure blocked %s: %w", c.Name, err)
	}
	if _, err := run(ctx); err != nil { // makes what is made once
		return 0, fmt.Errorf("measure blocked %s: %w", c.Name, err)
	}

	holding.Store(true)
	before := inUse()
	for range runs {
		done.Go(func() {
			if _, err := run(ctx); err != nil {
				failed <- err
			}
		})
	}
	defer done.Wait()
	defer close(released)
	for range runs {
		select {
		case <-arrived:
		case err := <-failed:
			return 0, fmt.Errorf("measure blocked %s: %w", c.Name, err)
		}
	}
	return max(0, inUse()-before) / float64(runs), nil
}

// inUse is the memory that is left after collecting what nobody holds.
func inUse() float64 {
	runtime.GC()
	runtime.GC() // the first moves what pools hold aside, the second frees it
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) + float64(m.StackInuse)
}
