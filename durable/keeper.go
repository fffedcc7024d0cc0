package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/coalesce"
	"github.com/grapnel-go/grapnel/internal/runctx"
)

// Options configures a Keeper. The zero value holds the defaults.
type Options struct {
	// Owner names this process in leases; empty means a name made of host, process id
	// and a random part.
	Owner string
	// Lease is the duration of a lease without renewal; it is renewed after a third of that
	// time. Zero means 30 seconds.
	Lease time.Duration
	// Patience is how long a failing store is retried before the run is given up, to be resumed
	// later. Zero means two minutes, negative means no retries.
	Patience time.Duration
	// Notify lists the notifiers to call for each run that waits for a person, after the wait
	// was stored.
	Notify []Notifier
	// Events, unless nil, returns an event's stored form, or false for an event that is not stored. The keeper must be
	// an observer of the agents: capability.UseDurability makes it one. Events must be safe for concurrent use.
	Events func(e agent.Event) (EventForm, bool)
	// Demands are the demands of the runs that this keeper begins. Only workers with these labels claim such a run when
	// this process has lost it.
	Demands map[string]string
	// By is the verified name of the person or service that starts this keeper's runs: see Job.By.
	By string
	// Again, unless nil, reports whether a resumed run repeats a func of Keeper.Once that has a result. It gets the
	// name given to Keeper.Once: see action.Kept for rule actions. In a sub-agent, its run's ID and a slash precede the
	// name. It must be safe for concurrent use.
	Again func(name string) bool
}

// The defaults of Options.
const (
	defaultLease    = 30 * time.Second
	defaultPatience = 2 * time.Minute
)

// A Keeper records agent runs in a Store so that another process can resume them. It wraps the run, the step, the
// driver and the executor outside the hooks, so it records what the hooks have accepted. capability.UseDurability
// installs the wrappers.
//
// A Keeper serves any number of runs and agents at once.
type Keeper struct {
	store       Holder
	options     Options
	runs        *agent.Scratch[recordedRun]
	signals     signalReceiver
	switches    *coalesce.Group[Switch] // shares readings of the switch that denies every tool
	commitDelay time.Duration           // the constant, except in tests
	suspending  atomic.Bool
}

// Keep returns a keeper that writes to a store.
func Keep(store Holder, o Options) *Keeper {
	if o.Owner == "" {
		o.Owner = newOwner()
	}
	o.Lease = cmp.Or(o.Lease, defaultLease)
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	return &Keeper{
		store: store, options: o, runs: agent.NewScratch[recordedRun](nil), commitDelay: commitDelay, switches: coalesce.NewGroup[Switch](1),
		signals: signalReceiver{store: store, owner: o.Owner, runs: map[agent.RunID]*runSignals{}},
	}
}

// Store returns the store of the keeper.
func (k *Keeper) Store() Holder { return k.store }

// Owner returns the name of this process in leases.
func (k *Keeper) Owner() string { return k.options.Owner }

// Suspend parks the runs of this keeper at the end of their current step, and runs that begin
// later before their first step, because the process is shutting down. Any other process can
// resume them.
func (k *Keeper) Suspend() { k.suspending.Store(true) }

// ObservesEvents reports whether agents must have the keeper as an observer: see Options.Events.
func (k *Keeper) ObservesEvents() bool { return k.options.Events != nil }

// Observe stores an event with the next journal entry of its run, at the latest after a tenth of a second. It makes the keeper an
// agent.Observer.
func (k *Keeper) Observe(ctx context.Context, e agent.Event) {
	r, ok := ctx.Value(recordedRunKey{}).(*recordedRun)
	if !ok || r.keeper != k || k.options.Events == nil {
		return
	}
	if form, ok := k.options.Events(e); ok {
		r.journal.addEvent(ctx, form)
	}
}

// leased is the context key for the lease of a run that is being resumed.
type leased struct{}

// claim is a lease with the run's restored journal.
type claim struct {
	lease       Lease
	entries     int64
	lastWritten time.Time         // when the last entry was written: the run has not been running since
	state       agent.State       // as it was restored
	onceResults map[string][]byte // of funcs of Once, by name
	onceBegun   map[string]bool   // funcs of Once without a result
}

// AroundRun returns the processor around the whole run, outside the hooks: it takes the lease,
// and records how the run ended or what it waits for.
func (k *Keeper) AroundRun() agent.Processor {
	return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		ctx = runctx.WithJournal(ctx, k)
		r := k.runs.Get(s)
		if above, call := k.above(ctx, s); above != nil {
			return r.executeNested(ctx, above, call, s, next)
		}
		if c, ok := ctx.Value(leased{}).(*claim); ok && c.lease.Run == s.Run().ID {
			r.adopt(k, c)
			if c.state.Parked() { // the answers are in the journal from here on, and nothing is asked any more
				u := Update{Status: StatusRunning, Steps: s.RunStepCount(), Waits: []Wait{}}
				if err := r.recordState(ctx, EntryResume, s, u); err != nil {
					return mo.Err[agent.State](fmt.Errorf("keeping run %s: %w", s.Run().ID, err))
				}
			}
		} else if agent.Checkpoint(s).Resumed() {
			return mo.Err[agent.State](fmt.Errorf("run %s is durable: continue it with Keeper.Resume", s.Run().ID))
		} else {
			about := s.Run()
			lease, err := k.store.Begin(ctx, Job{
				ID: about.ID, Session: about.Session, Kind: KindAgent, Name: about.Agent, Parent: about.Parent, Root: about.Root,
				Demands: k.options.Demands, By: k.options.By, Summary: lastMessage(s),
			}, k.options.Owner, k.options.Lease)
			if err != nil {
				return mo.Err[agent.State](fmt.Errorf("keeping run %s: %w", about.ID, err))
			}
			r.adopt(k, &claim{lease: lease})
		}
		return r.executeTop(ctx, s, next)
	})
}

// lastMessage returns the summary of a new run: its last message.
func lastMessage(s agent.State) string {
	if n := s.MessageCount(); n > 0 {
		return summarize(s.Message(n - 1).Text())
	}
	return ""
}

// AroundRunInside returns the processor around the run inside the hooks: it records the input
// that they accepted.
func (k *Keeper) AroundRunInside() agent.Processor {
	return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		r := k.runs.Get(s)
		if r.keeper != nil && !agent.Checkpoint(s).Resumed() {
			if err := r.recordState(ctx, EntryBegin, agent.Checkpoint(s).AcceptInput(), Update{Status: StatusRunning}); err != nil {
				return mo.Err[agent.State](err)
			}
		}
		return next(ctx, s)
	})
}

// AroundStep returns the processor around each step, outside the hooks: it writes the recorded
// step to the journal.
func (k *Keeper) AroundStep() agent.Processor {
	return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		r := k.runs.Get(s)
		if r.keeper == nil {
			return next(ctx, s)
		}
		if k.suspending.Load() || r.signals.isPaused() {
			return mo.Err[agent.State](agent.ErrSuspended)
		}
		s = r.withContext(s)
		result := next(ctx, s)
		taken, err := result.Get()
		if failed, ok := errors.AsType[*agent.StepError](err); ok && failed.State.Run().ID == s.Run().ID {
			taken, err = failed.State, nil
		}
		if err != nil || taken.Parked() || taken.RunStepCount() == s.RunStepCount() {
			return result
		}
		if wasCutOff(ctx) && hasCancelledCall(taken) {
			return mo.Err[agent.State](agent.ErrSuspended)
		}
		made := Update{Status: StatusRunning, Steps: taken.RunStepCount(), Usage: UsageOf(taken.RunUsage())}
		if err := r.recordState(ctx, EntryStep, taken, made); err != nil {
			return mo.Err[agent.State](&agent.RunError{State: taken, Err: err})
		}
		return result
	})
}

// hasCancelledCall reports whether a call of the last step was cancelled.
func hasCancelledCall(s agent.State) bool {
	last := s.LastStep()
	for _, r := range last.Results() {
		if r.Reason == agent.ReasonCancelled {
			return true
		}
	}
	return false
}

// WrapDriver returns a driver that records the model's reply before its calls are decided on.
func (k *Keeper) WrapDriver(inner agent.Driver) agent.Driver { return &keptDriver{inner, k} }

type keptDriver struct {
	agent.Driver

	keeper *Keeper
}

// Features returns the features of the inner driver.
func (d *keptDriver) Features() agent.Features { return agent.FeaturesOf(d.Driver) }

func (d *keptDriver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	started := time.Now()
	return d.recordReply(ctx, s, started, d.Driver.Next(ctx, s))
}

func (d *keptDriver) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	started := time.Now()
	return d.recordReply(ctx, s, started, agent.Stream(ctx, d.Driver, s, emit))
}

func (d *keptDriver) recordReply(ctx context.Context, s agent.State, started time.Time, result mo.Result[agent.Step]) mo.Result[agent.Step] {
	reply, err := result.Get()
	r := d.keeper.runs.Get(s)
	if err != nil || r.keeper == nil || reply.Message.Role() != agent.RoleAssistant {
		return result
	}
	if err := r.recordState(ctx, EntryReply, agent.Checkpoint(s.Apply(reply.Prior)).WithOpenStep(reply, started), Update{}); err != nil {
		return mo.Err[agent.Step](err)
	}
	return result
}
