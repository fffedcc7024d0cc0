package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Sample is the average cost of one step.
type Sample struct {
	Nanoseconds float64
	Allocations float64
	Bytes       float64 // allocated bytes, whether kept or not
}

// Measure repeats the job, which must have steps, for at least the given time, and returns the cost of a step. One
// run before that warms up; if it takes more than five times the given time, it is the measurement itself. Measure
// returns an error if an outcome does not prove the job's work.
func Measure(ctx context.Context, c Contender, job Job, atLeast time.Duration) (Sample, error) {
	if job.Steps == 0 {
		return Sample{}, fmt.Errorf("measure %s: a job without steps", c.Name)
	}
	var clock Clock
	job.OffClock = clock.Off
	run, err := c.Prepare(job)
	if err != nil {
		return Sample{}, fmt.Errorf("measure %s: %w", c.Name, err)
	}
	clock.Start()
	outcome, err := run(ctx)
	clock.Stop()
	if err != nil {
		return Sample{}, fmt.Errorf("measure %s: %w", c.Name, err)
	}
	warm := clock.Sample(job.Steps)
	long := clock.Elapsed >= 5*atLeast
	if got, want := outcome.Proof(), job.Proof(); got != want {
		return Sample{}, fmt.Errorf("measure %s: it did other work: got %+v, want %+v", c.Name, got, want)
	}
	if long {
		return warm, nil
	}

	runtime.GC()
	runs := 0
	clock.Start()
	for clock.running() < atLeast || runs == 0 {
		if _, err := run(ctx); err != nil {
			return Sample{}, fmt.Errorf("measure %s: %w", c.Name, err)
		}
		runs++
	}
	clock.Stop()
	return clock.Sample(runs * job.Steps), nil
}

// Held is the memory that one run holds while it waits for its model.
type Held struct {
	Bytes      float64 // heap and stack
	Goroutines float64
}

// Blocked returns the memory that one run holds while it waits for its first model call, averaged over the given
// number of concurrent runs.
func Blocked(ctx context.Context, c Contender, job Job, runs int) (Held, error) {
	if runs < 1 {
		return Held{}, fmt.Errorf("measure blocked %s: %d runs: want at least one", c.Name, runs)
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
		return Held{}, fmt.Errorf("measure blocked %s: %w", c.Name, err)
	}
	if _, err := run(ctx); err != nil { // creates everything that is created once
		return Held{}, fmt.Errorf("measure blocked %s: %w", c.Name, err)
	}

	holding.Store(true)
	goroutines, before := runtime.NumGoroutine(), inUse()
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
			return Held{}, fmt.Errorf("measure blocked %s: %w", c.Name, err)
		}
	}
	return Held{
		Bytes:      max(0, inUse()-before) / float64(runs),
		Goroutines: float64(runtime.NumGoroutine()-goroutines) / float64(runs),
	}, nil
}

// inUse returns the memory in use after a garbage collection.
func inUse() float64 {
	runtime.GC()
	runtime.GC() // the first moves what pools hold aside, the second frees it
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) + float64(m.StackInuse)
}
