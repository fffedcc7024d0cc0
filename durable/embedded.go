package durable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Embedded is an engine that drives runs in this process: submitted jobs, runs whose
// questions were answered, and runs that another process left behind. It is for one
// machine; several processes may share one store.
//
//	k := durable.Keep(store, durable.Options{})
//	e := durable.NewEmbedded(k, durable.EmbeddedOptions{
//		Agent: func(name string) (*agent.Agent, error) { return a, nil }, // the agent with this name
//	})
//	go e.Run(ctx)
//	run, err := e.Submit(ctx, durable.Job{Agent: "clerk", Input: []agent.Message{agent.UserText("go")}})
type Embedded struct {
	*StoreEngine

	keeper  *Keeper
	options EmbeddedOptions
	wake    chan struct{}
}

// EmbeddedOptions configures an embedded engine.
type EmbeddedOptions struct {
	// Agent returns the agent with a name; the agent must use the keeper of the engine. It
	// is called for each run that the engine starts or resumes. Required.
	Agent func(name string) (*agent.Agent, error)
	// Workers is the number of concurrent runs; zero means 8.
	Workers int
	// Poll is the interval at which the engine checks the store for runs of other
	// processes; zero means one second. Jobs submitted to this engine start at once.
	Poll time.Duration
	// Grace is how long runs may take to end their step when the engine stops; those that
	// take longer are cut off, and can be resumed from their journals. Zero means 10 s.
	Grace time.Duration
	// Ended, unless nil, is called for each run that the engine drove, with its result: a
	// state that has ended or waits, or an error.
	Ended func(id agent.RunID, result mo.Result[agent.State])
}

// NewEmbedded returns an engine on the store of a keeper. Run drives it.
func NewEmbedded(k *Keeper, o EmbeddedOptions) *Embedded {
	if o.Workers <= 0 {
		o.Workers = 8
	}
	if o.Grace <= 0 {
		o.Grace = 10 * time.Second
	}
	e := &Embedded{StoreEngine: NewStoreEngine(k.store, o.Poll), keeper: k, options: o, wake: make(chan struct{}, 1)}
	e.woken = func() {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
	return e
}

// Run drives runs until ctx is done. Then it lets active runs finish their step, and
// returns when none is active. Call it once.
func (e *Embedded) Run(ctx context.Context) error {
	running, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	busy := newBusy(e.options.Workers)
	every := time.NewTicker(e.poll)
	defer every.Stop()
	for ctx.Err() == nil {
		if err := e.takeUp(ctx, running, busy); err != nil && ctx.Err() == nil {
			e.finishRun("", mo.Err[agent.State](err)) // the store may come back
		}
		select {
		case <-ctx.Done():
		case <-every.C:
		case <-e.wake:
		case <-busy.free:
		}
	}
	e.keeper.Suspend()
	late := time.AfterFunc(e.options.Grace, func() { cut(agent.ErrSuspended) })
	defer late.Stop()
	busy.all.Wait()
	return nil
}

// Wake makes the engine check the store at once, for a caller that knows of a run to drive.
func (e *Embedded) Wake() { e.woken() }

// busy holds the active runs.
type busy struct {
	mu    sync.Mutex
	runs  map[agent.RunID]bool
	most  int
	all   sync.WaitGroup
	free  chan struct{}
	after map[agent.RunID]time.Time // runs that could not be started, and when to try again
}

func newBusy(most int) *busy {
	return &busy{runs: map[agent.RunID]bool{}, most: most, free: make(chan struct{}, 1), after: map[agent.RunID]time.Time{}}
}

// take reports whether this engine may start a run now, and marks it as active.
func (b *busy) take(id agent.RunID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs[id] || len(b.runs) >= b.most || time.Now().Before(b.after[id]) {
		return false
	}
	b.runs[id] = true
	return true
}

// room returns how many runs may be started, and how many due runs to read to find as many:
// some of them are active or must wait for a retry.
func (b *busy) room() (room, look int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most - len(b.runs), b.most + len(b.after)
}

// leave marks a run as no longer active. A run that could not be started is not retried for
// a while.
func (b *busy) leave(id agent.RunID, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.runs, id)
	delete(b.after, id)
	if failed {
		b.after[id] = time.Now().Add(5 * time.Second)
	}
	select {
	case b.free <- struct{}{}:
	default:
	}
}

// takeUp starts due runs, up to the number of free workers.
func (e *Embedded) takeUp(ctx, running context.Context, b *busy) error {
	room, look := b.room()
	if room <= 0 {
		return nil
	}
	due, err := e.store.Due(ctx, look)
	if err != nil {
		return fmt.Errorf("looking for runs to resume: %w", err)
	}
	for _, about := range due {
		if !b.take(about.ID) {
			continue
		}
		b.all.Go(func() {
			result := e.resumeRun(running, about)
			var ended *agent.RunError
			b.leave(about.ID, result.IsError() && !errors.As(result.Error(), &ended))
			e.finishRun(about.ID, result)
		})
	}
	return nil
}

func (e *Embedded) finishRun(id agent.RunID, result mo.Result[agent.State]) {
	if e.options.Ended != nil {
		e.options.Ended(id, result)
	}
}

func (e *Embedded) resumeRun(ctx context.Context, about Run) mo.Result[agent.State] {
	a, err := e.options.Agent(about.Agent)
	if err != nil {
		return mo.Err[agent.State](fmt.Errorf("resuming run %s: agent %q: %w", about.ID, about.Agent, err))
	}
	return e.keeper.Resume(ctx, a, about.ID, TakeFree)
}
