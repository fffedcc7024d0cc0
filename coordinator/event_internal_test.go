package coordinator

import (
	"context"
	"sync"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/coordinator/wire"
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
	assert.Equal(t, []string{wire.EventHookStart, wire.EventHookComplete}, written)
}

// An event names the run of its hook, also when another process has recorded the result of that run and died.
func TestRunOfARecordedHook(t *testing.T) {
	l := newEventLog(durable.Run{ID: "run_1"}, nil)
	l.noteWaits([]durable.Wait{{ID: "after", Kind: durable.WaitChild, Child: "run_0"}, {ID: "run_2", Subject: "hook key", Kind: durable.WaitChild, Tool: "check", Child: "run_2"}})
	l.Observe(context.Background(), hooks.Event{Kind: hooks.HookStart, Hook: "check", Point: hooks.RunStart})
	l.Observe(context.Background(), hooks.Event{Kind: hooks.HookComplete, Hook: "check", Point: hooks.RunStart})
	assert.NoError(t, l.write(true, func(events []durable.Event) error {
		assert.Contains(t, string(events[1].Data), `"hook_run_id":"run_2"`)
		return nil
	}))
}
