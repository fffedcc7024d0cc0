package bench

import (
	"runtime"
	"time"
)

// Clock measures time and memory, except in Off. A zero Clock does not run: Off then only calls f. It is for one run
// at a time.
type Clock struct {
	Elapsed time.Duration

	on                     bool
	started                time.Time
	mallocs, bytes         uint64
	mallocsAtOn, bytesAtOn uint64
}

// Off calls f, whose cost is not counted.
func (c *Clock) Off(f func()) {
	if !c.on {
		f()
		return
	}
	c.Stop()
	f()
	c.resume()
}

// Sample divides the measured cost by the number of steps.
func (c *Clock) Sample(steps int) Sample {
	n := float64(steps)
	return Sample{
		Nanoseconds: float64(c.Elapsed.Nanoseconds()) / n,
		Allocations: float64(c.mallocs) / n,
		Bytes:       float64(c.bytes) / n,
	}
}

// Start resets and starts the clock.
func (c *Clock) Start() {
	*c = Clock{}
	c.resume()
}

func (c *Clock) resume() {
	c.mallocsAtOn, c.bytesAtOn = allocated()
	c.on, c.started = true, time.Now()
}

// Stop stops the clock and keeps its counts for Sample.
func (c *Clock) Stop() {
	c.Elapsed += time.Since(c.started)
	mallocs, bytes := allocated()
	c.mallocs += mallocs - c.mallocsAtOn
	c.bytes += bytes - c.bytesAtOn
	c.on = false
}

// running returns the time that a running clock would show if it were stopped now.
func (c *Clock) running() time.Duration { return c.Elapsed + time.Since(c.started) }

func allocated() (mallocs, bytes uint64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs, m.TotalAlloc
}
