package agent

import (
	"sync/atomic"
	"time"
)

// clock is the clock of a run. Asking the system what time it is takes twice as long as
// asking it how long ago something was: the clock does the one now and then, and the
// other whenever it is read.
type clock struct {
	began time.Time // in this process; never changes
	set   atomic.Pointer[setting]
	ended atomic.Int64 // when the last step did, in nanoseconds since began; 0: nobody knows
}

// setting is what the system's clock said, so long after the clock began.
type setting struct {
	time  time.Time
	after time.Duration
}

// fresh is how long a setting is good for: the system's clock may be set in the meantime,
// or the machine may have slept.
const fresh = time.Second

// begin starts the clock at a reading of the system's clock.
func (c *clock) begin(at time.Time) {
	c.began = at
	c.set.Store(&setting{time: at})
}

// now is how long ago the clock began.
func (c *clock) now() time.Duration {
	after := time.Since(c.began)
	if after-c.set.Load().after > fresh {
		at := time.Now()
		after = at.Sub(c.began)
		c.set.Store(&setting{at, after})
	}
	return after
}

// at is the time so long after the clock began, as far as the system's clock has not been
// set between then and its last setting.
func (c *clock) at(after time.Duration) time.Time {
	set := c.set.Load()
	return set.time.Add(after - set.after)
}

// stepBegins is when the step begins that is asked for: when the one before it ended, in a
// run in which nobody takes their time between two steps, which spares a look at the clock;
// else now.
func (l *live) stepBegins() time.Time {
	if ended := l.clock.ended.Load(); ended != 0 {
		return l.clock.at(time.Duration(ended))
	}
	return l.clock.at(l.clock.now())
}

// stepTook is how long a step took that ends now.
func (l *live) stepTook(started time.Time) time.Duration {
	if l == nil {
		return time.Since(started)
	}
	ended := l.clock.now()
	if !l.paced {
		l.clock.ended.Store(int64(ended))
	}
	return l.clock.at(ended).Sub(started)
}

// Now is the time now, like time.Now. In a run it is read from a clock that is set to the
// system's once a second, which takes less time.
func (s State) Now() time.Time {
	if l := s.read().live; l != nil {
		return l.clock.at(l.clock.now())
	}
	return time.Now()
}
