package durable

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// watchInterval is how often Watch looks for new events. Writers never wait for watchers, and do not notify them: in
// PostgreSQL, a notification in each commit would make commits wait for each other.
const watchInterval = 100 * time.Millisecond

// watchPage is the number of events that Watch reads at a time.
const watchPage = 500

// Watch yields the events of a run after the event with the given number, in order, and those that
// follow, until the run has ended. A caller that continues with the number of the last event that it has
// seen loses none and sees none twice. It ends with an error when the events cannot be read, and with
// that of ctx when ctx ends first.
func Watch(ctx context.Context, store Store, id agent.RunID, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		every := time.NewTicker(watchInterval)
		defer every.Stop()
		for {
			run, err := store.Run(ctx, id) // before its events: those of a run that has ended are complete
			if err == nil {
				var goOn bool
				if after, goOn, err = yieldEvents(ctx, store, run, after, yield); !goOn {
					return
				}
			}
			if err == nil && run.Status.Ended() {
				return
			}
			if err == nil {
				select {
				case <-every.C:
				case <-ctx.Done():
				}
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(Event{}, fmt.Errorf("watching run %s: %w", id, err))
				return
			}
		}
	}
}

// yieldEvents yields the events that a run has, and returns the number of the last one. It reports whether the loop wants more.
func yieldEvents(ctx context.Context, store Store, run Run, after int64, yield func(Event, error) bool) (last int64, goOn bool, err error) {
	for run.Events > after {
		page, err := store.Events(ctx, run.ID, after, watchPage)
		if err != nil || len(page) == 0 { // they were deleted
			return after, true, err
		}
		for _, e := range page {
			if !yield(e, nil) {
				return after, false, nil
			}
			after = e.Seq
		}
	}
	return after, true, nil
}
