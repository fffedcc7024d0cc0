package hooks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// The bounds of an agent's detached hooks.
const (
	// DetachedAtOnce is how many detached hooks of an agent run at once.
	DetachedAtOnce = 8
	// DetachedWaiting is how many more may wait for their turn; what comes on top is
	// dropped, counted, and told to the observer as hook.skipped.
	DetachedWaiting = 1024
)

// pool runs the detached hooks of one agent. Work that nobody started costs
// nothing: workers exist while there is work.
type pool struct {
	mu      sync.Mutex
	waiting []task
	workers int
	idle    chan struct{} // closed when the last worker ends
	cancels map[int]context.CancelFunc
	next    int
	dropped int64
}

type task struct {
	ctx context.Context
	run func(ctx context.Context)
}

var _ agent.Background = (*pool)(nil)

// start queues work. Its context keeps the values of ctx and outlives it.
func (p *pool) start(ctx context.Context, s agent.State, name string, run func(ctx context.Context)) {
	p.mu.Lock()
	if len(p.waiting) >= DetachedWaiting {
		p.dropped++
		p.mu.Unlock()
		s.Emit(ctx, Event{
			Kind: HookSkipped, Run: s.Run(), Hook: name, Detached: true,
			Reason: fmt.Sprintf("dropped: %d detached hooks wait already", DetachedWaiting),
		})
		return
	}
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, task{context.WithoutCancel(ctx), run})
	if p.workers < DetachedAtOnce {
		if p.workers == 0 {
			p.idle = make(chan struct{})
		}
		p.workers++
		go p.work()
	}
}

func (p *pool) work() {
	p.mu.Lock()
	for len(p.waiting) > 0 {
		t := p.waiting[0]
		p.waiting = p.waiting[1:]
		ctx, cancel := context.WithCancel(t.ctx)
		id := p.next
		p.next++
		if p.cancels == nil {
			p.cancels = map[int]context.CancelFunc{}
		}
		p.cancels[id] = cancel
		p.mu.Unlock()
		t.run(ctx)
		cancel()
		p.mu.Lock()
		delete(p.cancels, id)
	}
	p.waiting = nil
	if p.workers--; p.workers == 0 {
		close(p.idle)
	}
	p.mu.Unlock()
}

// Drain waits until no detached hook waits or runs, or until ctx is done.
func (p *pool) Drain(ctx context.Context) error {
	for {
		p.mu.Lock()
		idle, busy := p.idle, p.workers > 0
		p.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			p.mu.Lock()
			left := len(p.waiting) + len(p.cancels)
			p.mu.Unlock()
			return fmt.Errorf("draining detached hooks: %d left: %w", left, context.Cause(ctx))
		}
	}
}

// Cancel drops what waits, cancels what runs, and returns when that has ended.
func (p *pool) Cancel() {
	p.mu.Lock()
	p.dropped += int64(len(p.waiting))
	p.waiting = nil
	for _, cancel := range p.cancels {
		cancel()
	}
	idle, busy := p.idle, p.workers > 0
	p.mu.Unlock()
	if busy {
		<-idle
	}
}

// detachedTimeout is how long a detached hook may take.
func detachedTimeout(own time.Duration) time.Duration {
	if own > 0 {
		return own
	}
	return DefaultTimeout
}
