package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/version"
)

// ErrUnavailable is returned by methods of a store that a coordinator does not offer.
var ErrUnavailable = errors.New("a coordinator does not offer this: use its API, or its store directly")

// StoreOptions configures a Store. The zero value is the default.
type StoreOptions struct {
	// Lease is how long a run stays with the runner when it stops renewing. Zero means 30 seconds.
	Lease time.Duration
	// Wait is how long a request for work waits at the coordinator. Zero means 25 seconds.
	Wait time.Duration
	// Capacity is how many runs the worker executes at once, for the list of runners. Zero means unknown.
	Capacity int
}

// Store is the part of a coordinator's store that a runner needs, over HTTP: a durable.Holder for a durable.Keeper and a durable.Worker,
// whose runs the scheduler claims. Commits are repeated safely when a response is lost. It is safe for concurrent use.
type Store struct {
	c       *Client
	runner  string
	options StoreOptions

	closed context.Context //nolint:containedctx // it is a signal, not of any call
	close  context.CancelFunc

	draining atomic.Bool

	mu       sync.Mutex
	signals  []durable.Signal
	tag      string
	commits  map[agent.RunID]sentCommit
	watchers map[chan struct{}]bool
	watching sync.WaitGroup
	asking   sync.Once
}

// sentCommit is the last commit of a run that was sent.
type sentCommit struct {
	fingerprint string
	id          string
}

var _ durable.Holder = (*Store)(nil)

// Store returns the store of a runner. The name identifies the runner among those with the same token: it must be the owner of the
// keeper that uses the store (durable.Options.Owner), and no other process may have it.
func (c *Client) Store(runner string, o StoreOptions) *Store {
	if o.Lease <= 0 {
		o.Lease = 30 * time.Second
	}
	if o.Wait <= 0 {
		o.Wait = 25 * time.Second
	}
	s := &Store{c: c, runner: runner, options: o, commits: map[agent.RunID]sentCommit{}, watchers: map[chan struct{}]bool{}}
	s.closed, s.close = context.WithCancel(context.Background())
	return s
}

// HoldsResults says that the coordinator calls on_result hooks.
func (*Store) HoldsResults() {}

// RecordDraining says that the worker claims no more runs, for the list of runners.
func (s *Store) RecordDraining() { s.draining.Store(true) }

// Close ends all waiting calls.
func (s *Store) Close() error {
	s.close()
	s.watching.Wait()
	return nil
}

func (s *Store) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	return s.c.call(ctx, method, "/runner"+path, query, http.Header{"Grapnel-Runner": {s.runner}}, in, out)
}

func runPath(id agent.RunID, rest string) string {
	path := "/runs/" + url.PathEscape(string(id))
	if rest != "" {
		path += "/" + rest
	}
	return path
}

// poll asks the coordinator for signals and runs, and waits for them.
func (s *Store) poll(
	ctx context.Context, labels map[string]string, types []wire.Type, lease time.Duration, limit int,
) ([]wire.ClaimedRun, error) {
	s.mu.Lock()
	tag := s.tag
	s.mu.Unlock()
	query := url.Values{
		"wait_seconds": {seconds(s.options.Wait)}, "lease_seconds": {seconds(lease)}, "limit": {strconv.Itoa(limit)}, "signals_tag": {tag},
		"capacity": {strconv.Itoa(s.options.Capacity)}, "version": {version.Read()}, "draining": {strconv.FormatBool(s.draining.Load())},
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		query.Add("label", name+"="+labels[name])
	}
	for _, t := range types {
		query.Add("type", string(t))
	}
	var claim wire.Claim
	if err := s.call(ctx, http.MethodGet, "/runs", query, nil, &claim); err != nil {
		return nil, err
	}
	if claim.Protocol != wire.RunnerProtocol {
		return nil, fmt.Errorf("the coordinator speaks version %d of the protocol, and this program version %d: use equal releases",
			claim.Protocol, wire.RunnerProtocol)
	}
	s.mu.Lock()
	s.signals, s.tag = claim.Signals, claim.SignalsTag
	for w := range s.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
	s.mu.Unlock()
	return claim.Runs, nil
}

func seconds(d time.Duration) string { return strconv.Itoa(max(int(d/time.Second), 0)) }

// Changes returns a channel that receives a value when signals have come. From the first call on, the store asks the coordinator for
// them until it is closed.
func (s *Store) Changes(ctx context.Context) <-chan struct{} {
	out := make(chan struct{}, 1)
	s.mu.Lock()
	s.watchers[out] = true
	s.mu.Unlock()
	s.asking.Do(func() { s.watching.Go(s.askForSignals) })
	s.watching.Go(func() {
		select {
		case <-ctx.Done():
		case <-s.closed.Done():
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, out)
		close(out)
	})
	return out
}

// askForSignals asks the coordinator for signals until the store is closed.
func (s *Store) askForSignals() {
	for s.closed.Err() == nil {
		if _, err := s.poll(s.closed, nil, nil, s.options.Lease, 0); err != nil {
			waitFor(s.closed, time.Second)
		}
	}
}

// waitFor waits until a time has passed or ctx is done.
func waitFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Signals returns the signals that the last response of the coordinator had.
func (s *Store) Signals(context.Context, string) ([]durable.Signal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.signals), nil
}

// Run returns a run that the runner has.
func (s *Store) Run(ctx context.Context, id agent.RunID) (durable.Run, error) {
	var r wire.ClaimedRun
	err := s.call(ctx, http.MethodGet, runPath(id, ""), nil, nil, &r)
	return s.own(r.Stored), err
}

// own returns a run with the name that the runner has here in the place of its name at the coordinator.
func (s *Store) own(r durable.Run) durable.Run {
	if r.Owner != "" {
		r.Owner = s.runner
	}
	return r
}

func (s *Store) journal(ctx context.Context, id agent.RunID, after int64) (j wire.Journal, err error) {
	query := url.Values{"after": {strconv.FormatInt(after, 10)}}
	err = s.call(ctx, http.MethodGet, runPath(id, "journal"), query, nil, &j)
	return j, err
}

// Input returns the input of a run.
func (s *Store) Input(ctx context.Context, id agent.RunID) ([]byte, error) {
	j, err := s.journal(ctx, id, 1<<62)
	return j.Input, err
}

// Entries returns the journal of a run after an entry.
func (s *Store) Entries(ctx context.Context, id agent.RunID, after int64) ([]durable.Entry, error) {
	j, err := s.journal(ctx, id, after)
	return j.Entries, err
}

// Waits returns what a run waits for.
func (s *Store) Waits(ctx context.Context, id agent.RunID) ([]durable.Wait, error) {
	j, err := s.journal(ctx, id, 1<<62)
	return j.Waits, err
}

// Commit writes to the journal of a run.
func (s *Store) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	if len(c.Jobs) > 0 || len(c.Records) > 0 || c.Update.Pass != nil {
		return fmt.Errorf("writing to run %s: %w", l.Run, ErrUnavailable)
	}
	printed := string(c.Fingerprint(l))
	s.mu.Lock()
	sent, known := s.commits[l.Run]
	if !known || sent.fingerprint != printed {
		sent = sentCommit{printed, rand.Text()}
		s.commits[l.Run] = sent
	}
	s.mu.Unlock()
	err := s.call(ctx, http.MethodPost, runPath(l.Run, "journal"), nil, wire.NewJournalCommit(l.Epoch, sent.id, c), nil)
	if err == nil {
		s.mu.Lock()
		delete(s.commits, l.Run)
		s.mu.Unlock()
	}
	return err
}

// Renew extends a lease.
func (s *Store) Renew(ctx context.Context, l durable.Lease, ttl time.Duration) (durable.Lease, error) {
	var out wire.Renewed
	in := wire.Renewal{Epoch: l.Epoch, LeaseSeconds: max(int(ttl/time.Second), 2)}
	err := s.call(ctx, http.MethodPost, runPath(l.Run, "renew"), nil, in, &out)
	l.Expires = out.Expires
	return l, err
}

// Release gives a run back.
func (s *Store) Release(ctx context.Context, l durable.Lease, delay time.Duration) error {
	in := wire.Release{Epoch: l.Epoch, DelaySeconds: int(delay / time.Second)}
	return s.call(ctx, http.MethodPost, runPath(l.Run, "release"), nil, in, nil)
}

// DenyTools returns the switch that denies every tool.
func (s *Store) DenyTools(ctx context.Context) (sw durable.Switch, err error) {
	err = s.call(ctx, http.MethodGet, "/deny-tools", nil, nil, &sw)
	return sw, err
}

// Waivers returns the waivers in force. Only OperatorStore has the others.
func (s *Store) Waivers(ctx context.Context, _ bool) ([]durable.Waiver, error) {
	var out wire.Waivers
	err := s.call(ctx, http.MethodGet, "/waivers", nil, nil, &out)
	return out.Waivers, err
}

// Begin returns ErrUnavailable.
func (*Store) Begin(context.Context, durable.Job, string, time.Duration) (durable.Lease, error) {
	return durable.Lease{}, ErrUnavailable
}

// Acquire returns ErrUnavailable: see Scheduler.
func (*Store) Acquire(context.Context, agent.RunID, string, time.Duration, durable.Take) (durable.Lease, error) {
	return durable.Lease{}, ErrUnavailable
}

// Document returns a version of a blueprint.
func (s *Store) Document(ctx context.Context, kind, name string, version int64) (durable.Document, error) {
	if kind != wire.KindBlueprint {
		return durable.Document{}, ErrUnavailable
	}
	var b wire.Stored
	query := url.Values{"version": {strconv.FormatInt(version, 10)}}
	if err := s.call(ctx, http.MethodGet, "/blueprints/"+url.PathEscape(name), query, nil, &b); err != nil {
		return durable.Document{}, err
	}
	data, err := json.Marshal(b.Blueprint)
	return durable.Document{Kind: kind, Name: name, Version: b.Version, At: b.Updated, By: b.By, Data: data}, err
}

// Scheduler returns the scheduler of the runner's worker: it asks the coordinator for runs of the types whose demands are among the
// labels. No types means all.
func (s *Store) Scheduler(labels map[string]string, types ...wire.Type) durable.Scheduler {
	return &scheduler{s, labels, types}
}

// scheduler asks the coordinator for runs.
type scheduler struct {
	s      *Store
	labels map[string]string
	types  []wire.Type
}

// Offer returns nil: the coordinator knows which runs are ready.
func (*scheduler) Offer(context.Context, ...durable.Offer) error { return nil }

// Next waits for a run.
func (d *scheduler) Next(ctx context.Context, w durable.WorkerInfo) (durable.Delivery, error) {
	for ctx.Err() == nil {
		// A response that was lost may have had a run: it comes back when its lease expires.
		runs, err := d.s.poll(ctx, d.labels, d.types, w.TTL, 1)
		if err != nil {
			return nil, err
		}
		if len(runs) > 0 {
			return &delivery{d.s, d.s.own(runs[0].Stored)}, nil
		}
	}
	return nil, context.Cause(ctx)
}

// delivery is a run that the runner has.
type delivery struct {
	s   *Store
	run durable.Run
}

// ID identifies the run.
func (d *delivery) ID() durable.OfferID { return durable.OfferID{Run: d.run.ID} }

// Lease returns the lease of the run.
func (d *delivery) Lease() *durable.Lease {
	l := d.run.Lease()
	return &l
}

// Ack returns nil: the runner has the run.
func (*delivery) Ack(context.Context) error { return nil }

// Return gives the run back.
func (d *delivery) Return(ctx context.Context) error { return d.s.Release(ctx, d.run.Lease(), 0) }
