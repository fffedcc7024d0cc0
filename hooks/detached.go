package hooks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// The limits for an agent's detached hooks.
const (
	// detachedAtOnce is how many detached hooks run at the same time, for an agent and its sub-agents together.
	detachedAtOnce = 8
	// detachedWaiting is how many more detached hooks can wait. Further ones are dropped, counted, and reported to the
	// observer as hook.skipped.
	detachedWaiting = 1024
)

// Pool runs the detached hooks of an agent and its sub-agents, in the order they were started. Its goroutines exist
// only while there is work. The zero Pool is ready. It is safe for concurrent use and must not be copied.
type Pool struct {
	mu      sync.Mutex
	waiting []*task
	running map[*task]bool
	idle    chan struct{} // closed when no task waits or runs; nil before the first task
	dropped int64
}

var _ agent.Background = (*Pool)(nil)

// task is one started detached hook.
type task struct {
	hook   string
	at     PointName
	state  agent.State // of the starting run
	firing Firing      // the firing of the scope that started the hook; zero elsewhere
	run    func(ctx context.Context)
	ctx    context.Context //nolint:containedctx // from start to run, across goroutines
	cancel context.CancelFunc
	done   chan struct{}
}

// start queues run and reports whether there was room for it. run's context has the values of ctx and outlives it.
func (p *Pool) start(ctx context.Context, hook string, at PointName, s agent.State, run func(ctx context.Context)) bool {
	t := &task{hook: hook, at: at, state: s, firing: firingOf(ctx), run: run, done: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.mu.Lock()
	full := len(p.waiting) >= detachedWaiting
	switch {
	case full:
		p.dropped++
	case len(p.running) < detachedAtOnce:
		p.begin(t)
	default:
		p.waiting = append(p.waiting, t)
	}
	p.mu.Unlock()
	if full {
		t.drop(fmt.Sprintf("dropped: %d detached hooks are already waiting", detachedWaiting))
	}
	return !full
}

// begin runs t, and then waiting tasks, on a goroutine. The caller holds the pool's lock.
func (p *Pool) begin(t *task) {
	if len(p.running) == 0 {
		p.running, p.idle = map[*task]bool{}, make(chan struct{})
	}
	p.running[t] = true
	go func() {
		for ; t != nil; t = p.nextTask(t) {
			t.run(t.ctx)
			t.cancel()
		}
	}()
}

// nextTask records that t is done and returns the next task to run.
func (p *Pool) nextTask(t *task) *task {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, t)
	close(t.done)
	if len(p.waiting) > 0 {
		t, p.waiting = p.waiting[0], p.waiting[1:]
		p.running[t] = true
		return t
	}
	p.waiting = nil
	if len(p.running) == 0 {
		close(p.idle)
	}
	return nil
}

// Drain waits until no detached hook waits or runs, or until ctx is done.
func (p *Pool) Drain(ctx context.Context) error {
	for {
		p.mu.Lock()
		idle, left := p.idle, len(p.waiting)+len(p.running)
		p.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-idle: // check again: a run may have started more
		case <-ctx.Done():
			return fmt.Errorf("draining detached hooks: %d not done: %w", left, context.Cause(ctx))
		}
	}
}

// holds reports whether a firing's detached hook waits or runs.
func (p *Pool) holds(f Firing) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for t := range p.running {
		if t.firing == f {
			return true
		}
	}
	return slices.ContainsFunc(p.waiting, func(t *task) bool { return t.firing == f })
}

// Cancel drops waiting hooks, cancels running ones, and returns when they have ended. It
// does not affect hooks that are started later.
func (p *Pool) Cancel() {
	p.mu.Lock()
	waiting, running := p.waiting, slices.Collect(maps.Keys(p.running))
	p.waiting = nil
	p.dropped += int64(len(waiting))
	p.mu.Unlock()
	for _, t := range running {
		t.cancel()
	}
	for _, t := range waiting {
		t.drop("dropped: cancelled before it began")
	}
	for _, t := range running {
		<-t.done
	}
}

// drop tells the observer that the hook will not be called.
func (t *task) drop(why string) {
	t.cancel()
	t.state.Emit(t.ctx, Event{
		Kind: HookSkipped, Run: t.state.Run(), Step: t.state.RunStepCount(), Hook: t.hook, Point: t.at,
		Detached: true, Reason: why,
	})
}

// detachedTimeout returns how long a detached hook may take.
func detachedTimeout(own time.Duration) time.Duration {
	if own > 0 {
		return own
	}
	return DefaultTimeout
}

// callDetached calls the hook on a separate goroutine. It waits until the hook has returned, but not longer than the
// hook's time limit. A cancellation does not shorten the wait, because Cancel returns only when the hooks have ended.
func (e *entry[C]) callDetached(ctx context.Context, c C) verdict {
	limited, cancel := context.WithTimeoutCause(ctx, e.timeout, ErrTimeout)
	defer cancel()
	answer := e.onItsOwn(limited, c)
	late := time.NewTimer(e.timeout)
	defer late.Stop()
	select {
	case v := <-answer:
		if context.Cause(limited) != ErrTimeout { //nolint:errorlint // compares the value itself
			return v
		}
	case <-late.C:
	}
	return verdict{err: fmt.Errorf("%w: %s", ErrTimeout, e.timeout)}
}

// Detach starts f as a detached hook with the given name. f runs in the agent's pool of detached hooks. Its context has
// the values of ctx, outlives the run and ends at the limit. A zero limit means DefaultTimeout. The run's observer
// receives f's error. Detach reports whether f will run. If too many hooks already wait, f is dropped, counted and
// reported. If the run has no hooks, f is dropped.
func (c contextView) Detach(ctx context.Context, name string, limit time.Duration, f func(ctx context.Context) error) bool {
	hooks := Of(c.state)
	if hooks == nil || f == nil {
		return false
	}
	h := Observe(Point[contextView]{c.info.name}, name, func(ctx context.Context, _ contextView) error { return f(ctx) }).Detach().WithTimeout(limit)
	e := pointHooksOf(NewSet(h), Point[contextView]{c.info.name}).detached[0]
	e.order = 0
	return hooks.pool.start(ctx, name, c.info.name, c.state, func(ctx context.Context) { _, _ = e.consult(ctx, c) })
}
