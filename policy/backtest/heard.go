package backtest

import (
	"context"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// heard is what the hooks did in one run of a recording, as far as it is more than to let things go on.
type heard struct {
	mu     sync.Mutex
	closed bool
	events []hooks.Event
	judged map[string]int // how often each control was asked
}

var _ agent.Observer = (*heard)(nil)

// Observe takes an event in. Detached hooks may tell of themselves when all is over.
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

// close gives what was heard.
func (h *heard) close() []hooks.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return h.events
}
