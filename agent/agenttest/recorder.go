package agenttest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// Recorder is an observer that records events. It is safe for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	events []agent.Event
}

var _ agent.Observer = (*Recorder)(nil)

// Record returns a recorder, for use as an agent's observer.
func Record() *Recorder { return &Recorder{} }

// Observe records the event.
func (r *Recorder) Observe(_ context.Context, e agent.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns all events so far, in order.
func (r *Recorder) Events() []agent.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Names returns the names of all events so far, in order.
func (r *Recorder) Names() []string {
	return lo.Map(r.Events(), func(e agent.Event, _ int) string { return e.EventName() })
}

// Of returns all recorded events of type E, in order.
func Of[E agent.Event](r *Recorder) []E {
	return lo.FilterMap(r.Events(), func(e agent.Event, _ int) (E, bool) {
		typed, ok := e.(E)
		return typed, ok
	})
}

// Transcript returns the messages in s, a line for each message and each call, for examples and comparisons.
func Transcript(s agent.State) string { return formatTranscript(s.Messages()) }

func formatTranscript(messages iter.Seq2[int, agent.Message]) string {
	var b strings.Builder
	for _, m := range messages {
		switch {
		case m.Role() == agent.RoleTool:
			fmt.Fprintf(&b, "tool %s (%s): %s\n", m.Tool(), m.Status(), m.Text())
		case m.Text() != "" || m.CallCount() == 0:
			fmt.Fprintf(&b, "%s: %s\n", m.Role(), m.Text())
		}
		for _, c := range m.Calls() {
			fmt.Fprintf(&b, "%s calls %s %s\n", m.Role(), c.Name, c.Arguments)
		}
	}
	return b.String()
}
