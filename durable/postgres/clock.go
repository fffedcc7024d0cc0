package postgres

import (
	"sync"
	"time"
)

// clock estimates the time of the database from the last time that it has told, so that a call that locks nothing need not ask. An
// estimate is late by the time that the reply took. Estimates of a process do not go back.
type clock struct {
	mu    sync.Mutex
	told  time.Time // by the database
	heard time.Time // by the clock of the process
	last  time.Time // that now has returned
}

const (
	// maxClockAge is how long estimates follow a reply.
	maxClockAge = 5 * time.Second
	// maxClockStep is how far apart two clocks may be before the later one is not believed: one was set, or the machine was suspended.
	maxClockStep = time.Second
)

// set records a time that the database has told.
func (c *clock) set(told time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told, c.heard = told, time.Now()
	c.advance(told)
}

// estimate returns an estimate of the time, unless the database must be asked.
func (c *clock) estimate() (at time.Time, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	age := now.Sub(c.heard)
	if suspended := now.Round(0).Sub(c.heard.Round(0)) - age; age > maxClockAge || suspended.Abs() > maxClockStep {
		return time.Time{}, false
	}
	return c.advance(c.told.Add(age).Truncate(time.Microsecond)), true
}

// advance returns a time that is not before the last one, unless the clock of the database was set back.
func (c *clock) advance(at time.Time) time.Time {
	if ahead := c.last.Sub(at); ahead <= 0 || ahead > maxClockStep {
		c.last = at
	}
	return c.last
}
