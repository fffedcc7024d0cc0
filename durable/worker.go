package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// A Runner executes runs of one kind, or one phase of runs of any kind: see Pass. It must be safe for concurrent use.
type Runner interface {
	// Owner returns the name in leases of the process that executes the runs: see Keeper.Owner.
	Owner() string
	// Has reports whether it can execute runs of the definition with a name. The name is empty for runs whose Phase is the
	// kind of the runner.
	Has(name string) bool
	// Execute executes a run whose lease the worker has, until the run ends, waits or is suspended. When ctx
	// is done with the cause agent.ErrSuspended, it stops at once, so that another worker can continue. An
	// error says that the run could not be executed. Afterwards the worker releases the lease if the run
	// still has it; after an error, the run is ready again only after a while. A run whose error stays the
	// same, such as a missing key, has failed with it: see agent.Retryable. A runner that has a method
	// EndFailed(ctx, Run, error) error ends such runs itself.
	Execute(ctx context.Context, r Run) error
	// Suspend makes all calls of Execute return as soon as they can without losing work, such as at the
	// end of a step. It does not wait for them.
	Suspend()
}

// Worker claims ready runs that it can execute, and executes them.
//
//	w, err := durable.NewWorker(store, durable.WorkerOptions{
//		Runners: map[durable.Kind]durable.Runner{durable.KindAgent: durable.AgentRunner(keeper, durable.AgentMap{"clerk": a})},
//	})
//	err = w.Run(ctx) // until ctx is done
type Worker struct {
	store   Holder
	local   Store // the same store; nil for a remote one, which another process maintains
	options WorkerOptions
	owner   string
	metrics workerMetrics
	// approvals measures what people have not answered.
	approvals *approvalMeter

	mu      sync.Mutex
	active  map[agent.RunID]Activity
	state   WorkerState
	lastErr error
	looked  time.Time          // when the store last answered
	drain   context.CancelFunc // ends claiming; nil while Run does not run
	// measured is when the queues were measured, and queues are those. Only the goroutine that maintains the store uses them.
	measured time.Time
	recorded time.Time // when the worker was recorded: see recordPresence
	queues   map[Key]measuredQueue

	clock clockWatch

	free chan struct{} // receives when a run has ended
	all  sync.WaitGroup

	offering sync.Mutex
	unmade   []Offer // offers that the store has recorded and the scheduler has not accepted
}

// NewWorker returns a worker on a Store, or on a remote store that is only a Holder: then WorkerOptions.Scheduler is required, and
// another process makes offers, reconciles, prunes and measures the store.
func NewWorker(store Holder, o WorkerOptions) (*Worker, error) {
	local, _ := store.(Store)
	if local == nil && o.Scheduler == nil {
		return nil, errors.New("a worker on a remote store needs a scheduler: set WorkerOptions.Scheduler")
	}
	if len(o.Runners) == 0 {
		return nil, errors.New("a worker needs a runner: set WorkerOptions.Runners")
	}
	if err := checkLabels("worker label", o.Labels); err != nil {
		return nil, err
	}
	owner := ""
	for kind, r := range o.Runners {
		if owner == "" {
			owner = r.Owner()
		}
		if r.Owner() != owner {
			return nil, fmt.Errorf("a worker needs one owner: the runner of kind %s has another one: use one keeper for all", kind)
		}
	}
	if o.Capacity <= 0 {
		o.Capacity = 8
	}
	o.Lease = cmp.Or(o.Lease, defaultLease)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	if o.Scheduler == nil {
		o.Scheduler = NewEmbedded(local, o.Poll)
	}
	if o.Observe == nil {
		o.Observe = func(WorkerEvent) {}
	}
	return &Worker{
		store: store, local: local, options: o, owner: owner, metrics: newWorkerMetrics(o.Meters), approvals: newApprovalMeter(local, o.Meters),
		state: WorkerStopped, free: make(chan struct{}, 1),
		active: map[agent.RunID]Activity{}, clock: clockWatch{now: time.Now},
	}, nil
}

// Owner returns the name of the worker in leases.
func (w *Worker) Owner() string { return w.owner }

// Serves reports whether the worker can execute jobs with these needs.
func (w *Worker) Serves(n Needs) bool {
	runner := w.options.Runners[n.Kind]
	if runner == nil || !runner.Has(n.Name) {
		return false
	}
	for name, value := range n.Demands {
		if own, ok := w.options.Labels[name]; !ok || own != value {
			return false
		}
	}
	return true
}

// Health returns what the worker is doing. It is safe for concurrent use.
func (w *Worker) Health() WorkerHealth {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := WorkerHealth{
		State: w.state, Owner: w.owner, Capacity: w.options.Capacity, LastContact: w.looked,
		Active: slices.SortedFunc(maps.Values(w.active), func(a, b Activity) int { return a.Since.Compare(b.Since) }),
	}
	if w.lastErr != nil {
		h.Error = w.lastErr.Error()
	}
	return h
}

// Run claims and executes runs until ctx is done or Drain is called. When ctx is done, it suspends active
// runs; in any case it waits until they have released their leases, and returns nil. Call it once.
func (w *Worker) Run(ctx context.Context) error {
	claiming, drain := context.WithCancel(ctx)
	defer drain()
	w.mu.Lock()
	w.state, w.drain = WorkerRunning, drain
	w.mu.Unlock()
	running, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	var passes sync.WaitGroup
	passes.Go(func() { w.maintain(claiming) })
	if w.options.Watch != nil {
		passes.Go(func() { w.options.Watch(claiming) })
	}
	if w.local != nil && !w.isEmbedded() {
		passes.Go(func() { w.offerChanges(claiming) })
	}
	w.claimRuns(claiming, running)
	passes.Wait()

	w.setState(WorkerDraining)
	over := make(chan struct{})
	var suspending sync.WaitGroup
	suspending.Go(func() { w.suspendRuns(ctx, over, cut) })
	suspending.Go(func() { w.recordDraining(context.WithoutCancel(ctx), over) })
	w.all.Wait()
	close(over)
	suspending.Wait()
	w.setState(WorkerStopped)
	return nil
}

// Drain makes Run claim no more runs, and return when the active ones have ended or wait. It does not
// wait for that.
func (w *Worker) Drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drain != nil {
		w.drain()
	}
}

// suspendRuns suspends the active runs when ctx is done, and cuts them off when the grace has passed.
func (w *Worker) suspendRuns(ctx context.Context, over <-chan struct{}, cut context.CancelCauseFunc) {
	select {
	case <-over:
		return
	case <-ctx.Done():
	}
	for _, r := range w.options.Runners {
		r.Suspend()
	}
	late := time.NewTimer(w.options.Grace)
	defer late.Stop()
	select {
	case <-over:
	case <-late.C:
		cut(agent.ErrSuspended)
	}
}

// ExecuteReady executes the ready runs that the worker can execute until there are none, and returns. It
// waits neither for runs of other workers nor for runs that become ready later. When ctx is done, it
// suspends its runs as Run does, and returns the cause.
func (w *Worker) ExecuteReady(ctx context.Context) error {
	if w.local == nil {
		return errors.New("a worker on a remote store does not know which runs are ready: use Run")
	}
	w.setState(WorkerRunning)
	defer w.setState(WorkerStopped)
	running, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	over := make(chan struct{})
	var suspending sync.WaitGroup
	suspending.Go(func() { w.suspendRuns(ctx, over, cut) })
	defer suspending.Wait()
	defer close(over)
	for ctx.Err() == nil {
		w.maintainOnce(ctx)
		queues, err := w.local.Queues(ctx)
		if err != nil {
			return fmt.Errorf("looking for queues: %w", err)
		}
		runs, err := w.local.Claim(ctx, w.owner, w.options.Lease, w.options.Capacity, w.keysOf(queues)...)
		if err != nil {
			return fmt.Errorf("claiming runs: %w", err)
		}
		if len(runs) == 0 {
			return nil
		}
		for _, r := range runs {
			w.start(running, r)
		}
		w.all.Wait()
	}
	return context.Cause(ctx)
}

// keysOf returns the keys of the queues that the worker serves.
func (w *Worker) keysOf(queues []Needs) (keys []Key) {
	for _, needs := range queues {
		if w.Serves(needs) {
			keys = append(keys, needs.Key())
		}
	}
	return keys
}

// claimRuns claims a run whenever there is capacity, until ctx is done.
func (w *Worker) claimRuns(ctx, running context.Context) {
	info := WorkerInfo{Owner: w.owner, TTL: w.options.Lease, Serves: w.Serves}
	for w.awaitCapacity(ctx) {
		d, err := w.options.Scheduler.Next(ctx, info)
		if err == nil {
			err = w.accept(context.WithoutCancel(ctx), running, d)
		}
		if ctx.Err() != nil {
			return
		}
		if w.noteContact(ctx, err); err != nil {
			w.pauseFor(ctx, w.options.Poll)
		}
	}
}

// awaitCapacity waits until the worker can execute another run. It returns false when ctx is done.
func (w *Worker) awaitCapacity(ctx context.Context) bool {
	for ctx.Err() == nil {
		w.mu.Lock()
		n := len(w.active)
		w.mu.Unlock()
		if n < w.options.Capacity {
			return true
		}
		select {
		case <-w.free:
		case <-ctx.Done():
		}
	}
	return false
}

// accept acquires the lease of a delivered run, and starts to execute the run.
func (w *Worker) accept(ctx, running context.Context, d Delivery) error {
	id := d.ID().Run
	if d.Lease() == nil {
		_, err := w.store.Acquire(ctx, id, w.owner, w.options.Lease, TakeFree)
		if _, other := errors.AsType[*HeldError](err); other || errors.Is(err, ErrEnded) || errors.Is(err, ErrNotFound) {
			return d.Ack(ctx) // it needs no worker
		}
		if err != nil {
			return errors.Join(fmt.Errorf("acquiring run %s: %w", id, err), d.Return(ctx))
		}
	}
	r, err := w.store.Run(ctx, id)
	if err != nil {
		return errors.Join(fmt.Errorf("reading run %s: %w", id, err), d.Return(ctx))
	}
	if d.Lease() == nil && (r.Status != StatusRunning || !w.Serves(r.Needs())) { // it waits again, or was changed
		return errors.Join(w.store.Release(ctx, r.Lease(), 0), d.Ack(ctx))
	}
	w.start(running, r)
	return d.Ack(ctx)
}

// start executes a run in a goroutine.
func (w *Worker) start(ctx context.Context, r Run) {
	began, needs := time.Now(), r.Needs()
	w.mu.Lock()
	w.active[r.ID] = Activity{Run: r.ID, Kind: r.Kind, Name: r.Name, Phase: r.Phase, Since: began}
	w.mu.Unlock()
	w.report(ctx, WorkerEvent{Kind: WorkerClaimed, Run: r})
	w.all.Go(func() {
		err := w.options.Runners[needs.Kind].Execute(ctx, r)
		after := context.WithoutCancel(ctx)
		stored, releaseErr := w.release(after, r, err)
		if releaseErr != nil { // the lease expires
			err = errors.Join(err, releaseErr)
		}
		w.mu.Lock()
		delete(w.active, r.ID)
		w.mu.Unlock()
		w.report(ctx, WorkerEvent{Kind: WorkerReleased, Run: stored, Needs: needs, Took: time.Since(began), Err: err})
		select {
		case w.free <- struct{}{}:
		default:
		}
		if releaseErr == nil && stored.Status == StatusWaiting {
			w.reportDoubt(after, stored)
		}
	})
}

// release releases the lease of a run that was executed, unless that was done, and returns the run as it is stored.
func (w *Worker) release(ctx context.Context, r Run, failed error) (stored Run, err error) {
	stored, err = w.store.Run(ctx, r.ID)
	if errors.Is(err, ErrNotFound) { // it was deleted
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("reading run %s: %w", r.ID, err)
	}
	if stored.Owner != r.Owner || stored.Epoch != r.Epoch {
		return stored, nil
	}
	delay := time.Duration(0)
	var noting error // it does not keep the run from others
	if failed != nil {
		var more bool
		if more, noting = w.noteFailure(ctx, stored, failed); !more {
			return w.endFailed(ctx, r, failed)
		}
		delay = retryDelay(r.Attempts)
	}
	if err := w.store.Release(ctx, r.Lease(), delay); err != nil && !errors.Is(err, ErrStale) {
		return stored, errors.Join(noting, fmt.Errorf("releasing run %s: %w", r.ID, err))
	}
	stored, err = w.store.Run(ctx, r.ID)
	return stored, errors.Join(noting, err)
}

// EventRunnerError is the name of the event that a worker could not execute a run, and why: see RunnerError.
const EventRunnerError = "runner_error"

// RunnerError is the data of an EventRunnerError. The run is tried again, unless the error is permanent. An error that does not say whether
// another attempt may succeed (agent.Retryable) ends the run after ten attempts in the same step.
type RunnerError struct {
	Error string `json:"error"`
	// Step is the number of steps that the run had taken. Unknown is set if the error does not say whether another attempt may succeed.
	Step    int  `json:"step,omitempty"`
	Unknown bool `json:"unknown,omitempty"`
	// Times counts the unknown errors in the step, with this one.
	Times int `json:"times,omitempty"`
}

// maxUnknown is how often a run may fail in one step with errors that do not say whether another attempt may succeed. With the delays
// between them, that takes about twenty minutes.
const maxUnknown = 10

// noteFailure adds an EventRunnerError to the events of a run. It reports whether the run is tried again, which it is after an error here.
func (w *Worker) noteFailure(ctx context.Context, r Run, failed error) (more bool, err error) {
	if !agent.Retryable(failed) {
		return false, nil
	}
	e := RunnerError{Error: failed.Error(), Step: r.Steps, Unknown: isUnknown(failed)}
	if e.Unknown && w.local != nil {
		before, err := w.unknownErrors(ctx, r)
		if err != nil {
			return true, err
		}
		if e.Times = before + 1; e.Times >= maxUnknown {
			return false, nil
		}
	} else if r.Attempts&(r.Attempts-1) != 0 { // of endless attempts, the first, second, fourth, eighth, …
		return true, nil
	}
	data, err := json.Marshal(e)
	if err != nil {
		return true, err
	}
	err = w.store.Commit(ctx, r.Lease(), Commit{Events: []Event{{At: time.Now(), Name: EventRunnerError, Data: data}}})
	if err != nil && !errors.Is(err, ErrStale) {
		return true, fmt.Errorf("noting why run %s was not executed: %w", r.ID, err)
	}
	return true, nil
}

// unknownErrors returns how many unknown errors the run has had in its current step. The newest of their events has the count,
// however many events an attempt writes.
func (w *Worker) unknownErrors(ctx context.Context, r Run) (int, error) {
	const page = 100
	for end := r.Events; end > 0; end -= page {
		start := max(0, end-page)
		events, err := w.local.Events(ctx, r.ID, start, int(end-start))
		if err != nil {
			return 0, fmt.Errorf("reading the events of run %s: %w", r.ID, err)
		}
		for _, event := range slices.Backward(events) {
			var e RunnerError
			if event.Name == EventRunnerError && json.Unmarshal(event.Data, &e) == nil && e.Unknown {
				return lo.Ternary(e.Step == r.Steps, e.Times, 0), nil
			}
		}
	}
	return 0, nil
}

// isUnknown reports whether an error does not say whether another attempt may succeed.
func isUnknown(err error) bool {
	var knows interface{ Retryable() bool }
	return !errors.As(err, &knows) && agent.KindOf(err) == agent.KindUnknown
}

// endFailed ends a run that no further attempt could execute.
func (w *Worker) endFailed(ctx context.Context, r Run, failed error) (stored Run, err error) {
	if own, ok := w.options.Runners[r.Needs().Kind].(interface {
		EndFailed(ctx context.Context, r Run, failed error) error
	}); ok {
		if err := own.EndFailed(ctx, r, failed); err != nil && !errors.Is(err, ErrStale) {
			return r, fmt.Errorf("ending run %s: %w", r.ID, err)
		}
		return w.store.Run(ctx, r.ID)
	}
	result := Result{Error: failed.Error()}
	u := Update{Status: StatusFailed, Reason: agent.StopError, Result: result.encode()}
	if err := w.store.Commit(ctx, r.Lease(), Commit{Update: u}); err != nil && !errors.Is(err, ErrStale) {
		return r, fmt.Errorf("ending run %s: %w", r.ID, err)
	}
	return w.store.Run(ctx, r.ID)
}

// retryDelay returns how long a run waits that could not be executed: 5 seconds, doubled with each attempt, up to 5
// minutes.
func retryDelay(attempts int) time.Duration {
	const first, longest = 5 * time.Second, 5 * time.Minute
	return min(first<<min(max(attempts-1, 0), 10), longest)
}

// report reports what the worker did.
func (w *Worker) report(ctx context.Context, e WorkerEvent) {
	w.metrics.record(ctx, e)
	w.options.Observe(e)
}

// noteContact notes whether the store and the scheduler work.
func (w *Worker) noteContact(ctx context.Context, err error) {
	w.mu.Lock()
	w.lastErr = err
	if err == nil {
		w.looked = time.Now()
	}
	w.mu.Unlock()
	if err != nil {
		w.report(ctx, WorkerEvent{Kind: WorkerFailed, Err: err})
	}
}

func (*Worker) pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (w *Worker) setState(s WorkerState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = s
}
