package temporal

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/grapnel-go/grapnel/durable"
)

// Options configures a Scheduler.
type Options struct {
	// Queues returns the needs of the runs in the store: durable.Store.Queues. Required. Next calls it once a second.
	Queues func(context.Context) ([]durable.Needs, error)
	// Namespace is the namespace of the server. Empty means "default".
	Namespace string
	// Prefix begins the names of executions and task queues. Stores that share a namespace need different ones. Empty
	// means "grapnel".
	Prefix string
	// Identity is the name of the process in what Temporal shows. Empty means its process ID and host.
	Identity string
	// TLS, unless nil, encrypts the connection.
	TLS *tls.Config
	// APIKey is sent with each call. It requires TLS.
	APIKey string
	// Workflows makes the scheduler hold offers in workflows even if the server has standalone activities. All
	// schedulers of a store must use the same.
	Workflows bool
}

// Scheduler delivers ready runs through a Temporal server. It implements durable.Scheduler.
type Scheduler struct {
	executions executions
	client     *client
	options    Options
	stop       context.CancelFunc
	group      sync.WaitGroup // polls and returns

	mu      sync.Mutex
	running context.Context //nolint:containedctx // of polls, which calls of Next start; done after Close
	queues  []durable.Needs
	read    time.Time             // when queues was read; zero for unknown
	stale   chan struct{}         // closed when an offer for an unknown queue was made
	waiters []*waiter             // calls of Next, the one that has waited longest first
	polls   map[durable.Key]*poll // the polls that are waiting for the server
	held    []*delivery           // deliveries that no call of Next waits for
}

// Open connects to the Temporal server at an address, such as "localhost:7233". Close ends the connection.
func Open(ctx context.Context, address string, o Options) (*Scheduler, error) {
	o.Namespace, o.Prefix = cmp.Or(o.Namespace, "default"), cmp.Or(o.Prefix, "grapnel")
	if o.Identity == "" {
		host, _ := os.Hostname()
		o.Identity = fmt.Sprintf("%d@%s", os.Getpid(), host)
	}
	switch _, _, err := net.SplitHostPort(address); {
	case err != nil:
		return nil, fmt.Errorf("connecting to Temporal: the address %q is not HOST:PORT", address)
	case o.Queues == nil:
		return nil, errors.New("connecting to Temporal: no queues: set Options.Queues to the method of the store")
	case o.APIKey != "" && o.TLS == nil:
		return nil, errors.New("connecting to Temporal: an API key requires TLS: set Options.TLS")
	}
	c := newClient(address, o)
	has, err := supportsActivities(ctx, c, o.Namespace)
	if err != nil {
		c.closeIdle()
		return nil, fmt.Errorf("connecting to Temporal at %s, namespace %q: %w", address, o.Namespace, err)
	}
	s := &Scheduler{client: c, options: o, polls: map[durable.Key]*poll{}, stale: make(chan struct{})}
	s.executions = &workflows{client: c, namespace: o.Namespace, identity: o.Identity}
	if has && !o.Workflows {
		s.executions = &activities{client: c, namespace: o.Namespace, identity: o.Identity}
	}
	s.running, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	return s, nil
}

// Close ends all polls and closes the connection. Calls of Next return an error. The server delivers again what was not
// acknowledged.
func (s *Scheduler) Close() error {
	s.stop()
	s.mu.Lock()
	for _, w := range s.waiters {
		w.fail(errClosed)
	}
	s.waiters, s.held = nil, nil
	s.mu.Unlock()
	s.group.Wait()
	s.client.closeIdle()
	return nil
}

var errClosed = errors.New("the Temporal scheduler is closed")

// concurrentOffers is how many offers of one call of Offer are made at the same time.
const concurrentOffers = 16

// Offer starts an execution for each offer, unless the run has one for this offer or a newer one. An execution for an
// older offer ends.
func (s *Scheduler) Offer(ctx context.Context, offers ...durable.Offer) error {
	s.refreshUnknown(offers)
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		errs  error
	)
	slots := make(chan struct{}, concurrentOffers)
	for _, o := range offers {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := s.makeOffer(ctx, o); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = cmp.Or(errs, fmt.Errorf("offering run %s: %w", o.Run, err))
			}
		})
	}
	group.Wait()
	return errs
}

// makeOffer starts the execution of an offer, unless the run has one for this offer or a newer one.
func (s *Scheduler) makeOffer(ctx context.Context, o durable.Offer) error {
	st, err := newStart(s.options.Prefix, o)
	if err != nil {
		return err
	}
	err = s.executions.start(ctx, st)
	old, started := errors.AsType[*alreadyStartedError](err)
	if !started || requestSeq(old.request) >= o.Seq {
		if started {
			return nil
		}
		return err
	}
	// Two processes may replace an execution at the same time, so that the older offer replaces the newer. That is
	// harmless: a delivery of either offer leads to the lease of the same run.
	err = s.executions.replace(ctx, st, old)
	if _, started := errors.AsType[*alreadyStartedError](err); started {
		return nil
	}
	return err
}

// refreshUnknown makes waiting calls of Next read the queues if one of the offers is for a queue that they do not know.
func (s *Scheduler) refreshUnknown(offers []durable.Offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[durable.Key]bool{}
	for _, needs := range s.queues {
		known[needs.Key()] = true
	}
	for _, o := range offers {
		if !known[o.Key] {
			s.read = time.Time{}
			close(s.stale)
			s.stale = make(chan struct{})
			return
		}
	}
}

// queuesAge is how old the list of queues may be.
const queuesAge = time.Second

// Next polls the task queues of all runs that the worker can execute, until one delivers a run.
func (s *Scheduler) Next(ctx context.Context, w durable.WorkerInfo) (durable.Delivery, error) {
	waiting := &waiter{result: make(chan result, 1)}
	defer s.leave(waiting)
	refresh := time.NewTicker(queuesAge)
	defer refresh.Stop()
	for ctx.Err() == nil {
		keys, stale, err := s.servedKeys(ctx, w)
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			return nil, err
		}
		if err := s.join(waiting, keys); err != nil {
			return nil, err
		}
		select {
		case r := <-waiting.result:
			if r.err != nil {
				return nil, r.err
			}
			return r.delivery, nil
		case <-refresh.C:
		case <-stale:
		case <-ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// servedKeys returns the keys of the queues that a worker serves, and a channel that is closed when there may be a new one.
func (s *Scheduler) servedKeys(ctx context.Context, w durable.WorkerInfo) (keys map[durable.Key]bool, stale chan struct{}, err error) {
	s.mu.Lock()
	queues, read, stale := s.queues, s.read, s.stale
	s.mu.Unlock()
	if read.IsZero() || time.Since(read) >= queuesAge {
		began := time.Now()
		if queues, err = s.options.Queues(ctx); err != nil {
			return nil, nil, fmt.Errorf("looking for queues: %w", err)
		}
		s.mu.Lock()
		if s.stale == stale { // no offer for an unknown queue was made in the meantime
			s.queues, s.read = queues, began
		}
		s.mu.Unlock()
	}
	keys = map[durable.Key]bool{}
	for _, needs := range queues {
		if w.Serves(needs) {
			keys[needs.Key()] = true
		}
	}
	return keys, stale, nil
}

// delivery is an offer that the server has delivered. It implements durable.Delivery.
type delivery struct {
	scheduler *Scheduler
	key       durable.Key
	id        durable.OfferID
	token     []byte
}

// ID implements durable.Delivery.
func (d *delivery) ID() durable.OfferID { return d.id }

// Lease returns nil: the worker acquires the lease.
func (*delivery) Lease() *durable.Lease { return nil }

// Ack ends the execution of the offer.
func (d *delivery) Ack(ctx context.Context) error {
	return d.wrap("acknowledging", d.scheduler.executions.complete(ctx, d.token))
}

// Return lets the server deliver the offer again after a second.
func (d *delivery) Return(ctx context.Context) error {
	return d.wrap("returning", d.scheduler.executions.delay(ctx, d.token))
}

// wrap describes an error. It returns nil if the server does not know the delivery any more: it was acknowledged or
// returned before, has been delivered to another worker after decideTimeout, or was replaced by a newer offer.
func (d *delivery) wrap(what string, err error) error {
	if err == nil || connect.CodeOf(err) == connect.CodeNotFound {
		return nil
	}
	return fmt.Errorf("%s the delivery of run %s: %w", what, d.id.Run, err)
}
