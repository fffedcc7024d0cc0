package backtest

import (
	"context"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// heard records the hook decisions in one run, except decisions that let the run continue unchanged.
type heard struct {
	mu     sync.Mutex
	closed bool
	events []hooks.Event
	judged map[string]int // how often each hook that may decide was asked
}

var _ agent.Observer = (*heard)(nil)

// Observe records an event. It ignores events of detached hooks that arrive after close.
func (h *heard) Observe(_ context.Context, e agent.Event) {
	event, ok := e.(hooks.Event)
	if !ok || event.Kind == hooks.HookStart || !event.Control {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	if event.Kind != hooks.HookSkipped && event.Kind != hooks.HookConflict {
		h.judged[event.Hook]++
	}
	switch {
	case event.Kind == hooks.HookFailed, event.Kind == hooks.HookTimeout:
		if event.Policy == "retry" {
			return
		}
	case event.Kind == hooks.HookSkipped, event.Kind == hooks.HookConflict:
		return
	case event.Decision == hooks.Pass, event.Decision == hooks.Allow, event.Decision == "":
		return
	}
	h.events = append(h.events, event)
}

// close stops the recording and returns the recorded events.
func (h *heard) close() []hooks.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return h.events
}
