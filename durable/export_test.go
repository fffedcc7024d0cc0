package durable

import "time"

// SetSettleTime sets how long a keeper keeps an entry that may share the commit of the next one.
func (k *Keeper) SetSettleTime(d time.Duration) { k.settle = d }

// WaitsOf returns what the run of a notice waits for.
func WaitsOf(n Notice) ([]Wait, error) { return n.Waits() }

// SetClock sets the clock of a worker that does not run yet.
func (w *Worker) SetClock(now func() time.Time) { w.clock.now = now }
