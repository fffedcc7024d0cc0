package pipeline

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// The entries since an open firing are needed. Without one, the entries since the last position are needed.
func TestNeededEntries(t *testing.T) {
	m := &machine{}
	m.at.Open = []openFiring{{After: 2}, {After: 4}}
	assert.EqualValues(t, 2, m.replayAfterCommit(7))
	m.at.Open = m.at.Open[1:]
	assert.EqualValues(t, 4, m.replayAfterCommit(8))
	m.at.Open = nil
	assert.EqualValues(t, 8, m.replayAfterCommit(9))
}

// A repeated firing's events are dropped. Events from other firings, whose actions still run, are not.
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
	events, taken := l.pending()
	var names []string
	for _, e := range events {
		names = append(names, e.Name)
	}
	assert.Equal(t, []string{eventWaiting, "hook.start", "hook.complete"}, names)
	taken()
	assert.Empty(t, l.waiting)
}
