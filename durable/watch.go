package durable

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// watchInterval is how often Watch looks for new events. Writers never wait for watchers, and do not notify them: in
// PostgreSQL, a notification in each commit would make commits wait for each other.
const watchInterval = 100 * time.Millisecond

// watchPage is the number of events that are read at a time.
const watchPage = 500

// Watch yields the events of a run after the event with the given number, in order, and those that
// follow, until the run has ended. A caller that continues with the number of the last event that it has
// seen loses none and sees none twice. It ends with an error when the events cannot be read, and with
// that of ctx when ctx ends first.
//
// The watchers of a run in one process and of one Store share a reader. A watcher that is slower than
// the run reads the events that it has missed from the store.
func Watch(ctx context.Context, store Lister, id agent.RunID, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		after := after
		f := joinFeed(ctx, store, id)
		defer f.leave()
		for {
			v, err := f.lookOrRead(ctx, after)
			for _, e := range v.events {
				e.Data = bytes.Clone(e.Data) // other watchers have the same
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			if err == nil && len(v.events) == 0 {
				if v.done && v.err == nil {
					return
				}
				err = v.await(ctx)
			}
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(Event{}, fmt.Errorf("watching run %s: %w", id, err))
				return
			}
		}
	}
}

// lookOrRead returns what follows the event with the given number: from the feed, or from the store when the feed has
// dropped it.
func (f *feed) lookOrRead(ctx context.Context, after int64) (v feedView, err error) {
	if v = f.look(after); v.behind {
		v.events, err = f.key.store.Events(ctx, f.key.run, after, watchPage)
	}
	return v, err
}

// await waits until the feed has more, or ctx is done. It returns the error of the feed.
func (v feedView) await(ctx context.Context) error {
	if v.err != nil {
		return v.err
	}
	select {
	case <-v.changed:
	case <-ctx.Done():
	}
	return nil
}
