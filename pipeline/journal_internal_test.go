package pipeline

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/firing"
)

// The journal keeps in memory what open firings have recorded, and no older names.
func TestForgettingRecords(t *testing.T) {
	j := firing.NewJournal(nil, "run", 5, []durable.Entry{
		{Seq: 1, Kind: durable.EntryOnce, Key: "old"}, {Seq: 2, Kind: durable.EntryDone, Key: "old"},
		{Seq: 3, Kind: durable.EntryOnce, Key: "open"}, {Seq: 4, Kind: durable.EntryOnce, Key: "new"}, {Seq: 5, Kind: durable.EntryDone, Key: "new"},
	}, nil)
	m := &machine{journal: j}
	m.at.Open = []openFiring{{After: 2}, {After: 4}}
	j.Forget(m.neededFrom(7))
	assert.ElementsMatch(t, []string{"open", "new"}, j.Names())
	m.at.Open = m.at.Open[1:]
	j.Forget(m.neededFrom(8))
	assert.Equal(t, []string{"new"}, j.Names())
	m.at.Open = nil
	j.Forget(m.neededFrom(9))
	assert.Empty(t, j.Names())
}

// The events of a firing that is repeated are dropped, and those of other firings, whose actions still run, are not.
func TestEventsOfARepeatedFiring(t *testing.T) {
	l := &eventLog{form: func(e agent.Event) (durable.EventForm, bool) { return durable.EventForm{Name: e.EventName()}, true }}
	earlier, repeated := &firingMark{}, &firingMark{}
	observe := func(of *firingMark, kind hooks.EventKind) {
		l.Observe(context.WithValue(t.Context(), firingMarkKey{}, of), hooks.Event{Kind: kind})
	}
	l.add(eventWaiting, eventData{})
	observe(earlier, hooks.HookStart)
	observe(repeated, hooks.HookStart)
	observe(earlier, hooks.HookComplete)
	observe(repeated, hooks.HookFailed)
	l.drop(repeated)
	events, taken := l.take()
	var names []string
	for _, e := range events {
		names = append(names, e.Name)
	}
	assert.Equal(t, []string{eventWaiting, "hook.start", "hook.complete"}, names)
	taken()
	assert.Empty(t, l.waiting)
}
