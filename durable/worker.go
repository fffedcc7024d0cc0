package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// A Runner executes runs of one kind. It must be safe for concurrent use.
type Runner interface {
	// Owner returns the name in leases of the process that executes the runs: see Keeper.Owner.
	Owner() string
	// Has reports whether it can execute runs of the definition with a name.
	Has(name string) bool
	// Execute executes a run whose lease the worker has, until the run ends, waits or is suspended. When ctx
	// is done with the cause agent.ErrSuspended, it stops at once, so that another worker can continue. An
	// error says that the run could not be executed. Afterwards the worker releases the lease if the run
	// still has it; after an error, the run is ready again only after a while.
	Execute(ctx context.Context, r Run) error
	// Suspend makes all calls of Execute return as soon as they can without losing work, such as at the
	// end of a step. It does not wait for them.
	Suspend()
}

// Worker claims ready runs that it can execute, and executes them.
//
//	w, err := durable.NewWorker(store, durable.WorkerOptions{
//		Runners: map[durable.Kind]durable.Runner{durable.KindAgent: durable.AgentRunner(keeper, agents)},
//	})
//	err = w.Run(ctx) // until ctx is done
type Worker struct {
	store   Store
	options WorkerOptions
	owner   string

	mu      sync.Mutex
	active  map[agent.RunID]Activity
	state   WorkerState
	lastErr error
	looked  time.Time          // when the store last answered
	drain   context.CancelFunc // ends claiming; nil while Run does not run
	free    chan struct{}      // receives when a run has ended
	all     sync.WaitGroup
}

// WorkerOptions configures a worker.
type WorkerOptions struct {
	// Runners execute the runs of each kind. Required. All must have the same Owner, which is the name of
	// the worker in leases.
	Runners map[Kind]Runner
	// Labels are the labels of the worker. It executes jobs whose demands it has among them.
	Labels map[string]string
	// Capacity is the maximum number of concurrent runs. Zero means 8.
	Capacity int
	// Scheduler delivers ready runs. Nil means Embedded.
	Scheduler Scheduler
	// Lease is the duration of the leases of claimed runs. Zero means 30 seconds.
	Lease time.Duration
	// Poll is how often the worker reconciles the store and looks for runs when the store reports no
	// change. Zero means one second.
	Poll time.Duration
	// Grace is how long runs may take to suspend when the worker stops; those that take longer are cut
	// off, and can be resumed from their journals. Zero means 10 seconds.
	Grace time.Duration
	// Retain is how long ended runs are stored; older ones are deleted. Zero means for ever.
	Retain time.Duration
	// Observe, unless nil, is called with what the worker does. It must be safe for concurrent use and
	// return soon.
	Observe func(WorkerEvent)
}

// WorkerEvent is something that a worker did: see its kinds.
type WorkerEvent struct {
	Kind WorkerEventKind
	// Run is the run; empty for WorkerFailed and WorkerReconciled.
	Run Run
	// Took is how long the run was executed, for WorkerReleased.
	Took time.Duration
	// Reconciled is what WorkerReconciled has changed.
	Reconciled Reconciled
	// Err is the error of WorkerReleased or WorkerFailed.
	Err error
}

// WorkerEventKind is the kind of a WorkerEvent.
type WorkerEventKind string

// The kinds of events of a worker.
const (
	// WorkerClaimed: the worker begins to execute a run.
	WorkerClaimed WorkerEventKind = "claimed"
	// WorkerReleased: the worker has executed a run. Its Run is as it was stored then.
	WorkerReleased WorkerEventKind = "released"
	// WorkerReconciled: a call of Reconcile has changed runs, such as those with an expired lease.
	WorkerReconciled WorkerEventKind = "reconciled"
	// WorkerFailed: the store or the scheduler failed. The worker tries again.
	WorkerFailed WorkerEventKind = "failed"
)

// Activity is a run that a worker executes.
type Activity struct {
	Run   agent.RunID `json:"run"`
	Kind  Kind        `json:"kind"`
	Name  string      `json:"name"`
	Since time.Time   `json:"since"`
}

// WorkerState is what a worker is doing.
type WorkerState string

// The states of a worker.
const (
	WorkerRunning  WorkerState = "running"
	WorkerDraining WorkerState = "draining"
	WorkerStopped  WorkerState = "stopped"
)

// WorkerHealth describes a worker, for a health check.
type WorkerHealth struct {
	State    WorkerState `json:"state"`
	Owner    string      `json:"owner"`
	Capacity int         `json:"capacity"`
	Active   []Activity  `json:"active"`
	// LastContact is when the store last answered.
	LastContact time.Time `json:"last_contact,omitzero"`
	// Error is the last error of the store or the scheduler; empty once it works again.
	Error string `json:"error,omitempty"`
}

// NewWorker returns a worker on a store.
func NewWorker(store Store, o WorkerOptions) (*Worker, error) {
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
		o.Scheduler = Embedded(store, o.Poll)
	}
	if o.Observe == nil {
		o.Observe = func(WorkerEvent) {}
	}
	return &Worker{
		store: store, options: o, owner: owner, state: WorkerStopped, free: make(chan struct{}, 1),
		active: map[agent.RunID]Activity{},
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
	if !w.isEmbedded() {
		passes.Go(func() { w.offerChanges(claiming) })
	}
	w.claimRuns(claiming, running)
	passes.Wait()

	w.setState(WorkerDraining)
	over := make(chan struct{})
	var suspending sync.WaitGroup
	suspending.Go(func() { w.suspend(ctx, over, cut) })
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

// suspend suspends the active runs when ctx is done, and cuts them off when the grace has passed.
func (w *Worker) suspend(ctx context.Context, over <-chan struct{}, cut context.CancelCauseFunc) {
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
// waits neither for runs of other workers nor for runs that become ready later.
func (w *Worker) ExecuteReady(ctx context.Context) error {
	w.setState(WorkerRunning)
	defer w.setState(WorkerStopped)
	for ctx.Err() == nil {
		w.maintainOnce(ctx)
		queues, err := w.store.Queues(ctx)
		if err != nil {
			return fmt.Errorf("looking for queues: %w", err)
		}
		var keys []Key
		for _, needs := range queues {
			if w.Serves(needs) {
				keys = append(keys, needs.Key())
			}
		}
		runs, err := w.store.Claim(ctx, w.owner, w.options.Lease, w.options.Capacity, keys...)
		if err != nil {
			return fmt.Errorf("claiming runs: %w", err)
		}
		if len(runs) == 0 {
			return nil
		}
		for _, r := range runs {
			w.start(ctx, r)
		}
		w.all.Wait()
	}
	return context.Cause(ctx)
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
		if w.noteContact(err); err != nil {
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
	began := time.Now()
	w.mu.Lock()
	w.active[r.ID] = Activity{Run: r.ID, Kind: r.Kind, Name: r.Name, Since: began}
	w.mu.Unlock()
	w.options.Observe(WorkerEvent{Kind: WorkerClaimed, Run: r})
	w.all.Go(func() {
		err := w.options.Runners[r.Kind].Execute(ctx, r)
		after := context.WithoutCancel(ctx)
		stored, releaseErr := w.release(after, r, err)
		if releaseErr != nil { // the lease expires
			err = errors.Join(err, releaseErr)
		}
		w.mu.Lock()
		delete(w.active, r.ID)
		w.mu.Unlock()
		w.options.Observe(WorkerEvent{Kind: WorkerReleased, Run: stored, Took: time.Since(began), Err: err})
		select {
		case w.free <- struct{}{}:
		default:
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
	if failed != nil {
		delay = retryDelay(r.Attempts)
	}
	if err := w.store.Release(ctx, r.Lease(), delay); err != nil && !errors.Is(err, ErrStale) {
		return stored, fmt.Errorf("releasing run %s: %w", r.ID, err)
	}
	return w.store.Run(ctx, r.ID)
}

// retryDelay returns how long a run waits that could not be executed: 5 seconds, doubled with each attempt, up to 5
// minutes.
func retryDelay(attempts int) time.Duration {
	const first, longest = 5 * time.Second, 5 * time.Minute
	return min(first<<min(max(attempts-1, 0), 10), longest)
}

// maintain reconciles the store regularly until ctx is done.
func (w *Worker) maintain(ctx context.Context) {
	every := time.NewTicker(w.options.Poll)
	defer every.Stop()
	var pruned time.Time
	for ctx.Err() == nil {
		w.maintainOnce(ctx)
		if w.options.Retain > 0 && time.Since(pruned) > time.Minute {
			pruned = time.Now()
			if _, err := w.store.Prune(ctx, pruned.Add(-w.options.Retain)); err != nil && ctx.Err() == nil {
				w.noteContact(fmt.Errorf("deleting old runs: %w", err))
			}
		}
		select {
		case <-every.C:
		case <-ctx.Done():
		}
	}
}

// offerRetry is how long an offer that was made and did not lead to a lease is trusted.
const offerRetry = time.Minute

// maintainOnce reconciles the store, makes the offers that it owes, and records that the worker looks for runs.
func (w *Worker) maintainOnce(ctx context.Context) {
	done, err := w.store.Reconcile(ctx)
	if err == nil && done.Changed() {
		w.options.Observe(WorkerEvent{Kind: WorkerReconciled, Reconciled: done})
	}
	var queues []Needs
	if err == nil {
		queues, err = w.store.Queues(ctx)
	}
	var keys []Key
	for _, needs := range queues {
		if w.Serves(needs) {
			keys = append(keys, needs.Key())
		}
	}
	if err == nil && len(keys) > 0 {
		err = w.store.Polled(ctx, keys...)
	}
	if err == nil && !w.isEmbedded() {
		err = makeOffers(ctx, w.store, w.options.Scheduler)
	}
	if ctx.Err() == nil {
		w.noteContact(err)
	}
}

// offerPause is the longest pause between a change of the store and the offers that it owes. It is random, so that of
// several workers most find that another one has made the offers.
const offerPause = 20 * time.Millisecond

// offerChanges makes the offers that the store owes after each change, until ctx is done. Maintain makes those that fail.
func (w *Worker) offerChanges(ctx context.Context) {
	for range w.store.Changes(ctx) {
		w.pauseFor(ctx, rand.N(offerPause))
		if err := makeOffers(ctx, w.store, w.options.Scheduler); err != nil && ctx.Err() == nil {
			w.noteContact(err)
			w.pauseFor(ctx, w.options.Poll)
		}
	}
}

func (w *Worker) isEmbedded() bool {
	_, own := w.options.Scheduler.(*embedded)
	return own
}

// makeOffers makes the offers that a store owes.
func makeOffers(ctx context.Context, store Store, s Scheduler) error {
	for {
		owed, err := store.Owed(ctx, offerRetry, 100)
		if err != nil || len(owed) == 0 {
			return err
		}
		if err := s.Offer(ctx, owed...); err != nil {
			return err
		}
		ids := make([]OfferID, len(owed))
		for i, o := range owed {
			ids[i] = o.OfferID
		}
		if err := store.Offered(ctx, ids...); err != nil {
			return err
		}
	}
}

// noteContact notes whether the store and the scheduler work.
func (w *Worker) noteContact(err error) {
	w.mu.Lock()
	w.lastErr = err
	if err == nil {
		w.looked = time.Now()
	}
	w.mu.Unlock()
	if err != nil {
		w.options.Observe(WorkerEvent{Kind: WorkerFailed, Err: err})
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
