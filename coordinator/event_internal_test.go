package coordinator

import (
	"context"
	"sync"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// The end of a run and an action of its hook that still runs may write at the same time: each event is written once.
func TestEventsAreWrittenOnce(t *testing.T) {
	l := newEventLog(durable.Run{ID: "run_1"}, nil)
	observe := func(kind hooks.EventKind) {
		l.Observe(context.Background(), hooks.Event{Kind: kind, Hook: "check", Point: hooks.RunStart})
	}
	var written []string
	note := func(events []durable.Event) error {
		written = append(written, lo.Map(events, func(e durable.Event, _ int) string { return e.Name })...)
		return nil
	}
	var other sync.WaitGroup
	observe(hooks.HookStart)
	assert.NoError(t, l.write(true, func(events []durable.Event) error {
		begun := make(chan struct{})
		other.Go(func() {
			close(begun)
			assert.NoError(t, l.write(true, note))
		})
		<-begun
		observe(hooks.HookComplete) // while the first one is written
		return note(events)
	}))
	other.Wait()
	assert.Equal(t, []string{EventHookStart, EventHookComplete}, written)
}
