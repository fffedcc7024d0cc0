package agent

import (
	"sync/atomic"
	"time"
)

// clock is the clock of a run: what the system's clock last said. Asking the system what
// time it is takes twice as long as asking it how long ago something was, and a step asks
// several times (BenchmarkReadClock, BenchmarkContender).
type clock struct{ set atomic.Pointer[time.Time] }

// fresh is how long a reading is good for: the system's clock may be set in the meantime,
// or the machine may have slept.
const fresh = time.Second

// begin starts the clock at a reading of the system's clock.
func (c *clock) begin(at time.Time) { c.set.Store(&at) }

// readClock returns the time: a second at most after the last reading, what that said and how long
// ago it is, else another reading.
func (c *clock) readClock() time.Time {
	set := *c.set.Load()
	if ago := time.Since(set); ago <= fresh {
		return set.Add(ago)
	}
	c.begin(time.Now())
	return *c.set.Load()
}

// Now returns the time now, like time.Now. In a run it is read from a clock that is set to the
// system's once a second, which takes less time.
func (s State) Now() time.Time {
	if l := s.read().live; l != nil {
		return l.clock.readClock()
	}
	return time.Now()
}
