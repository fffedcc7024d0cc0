package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// spare is how long a poll and what it delivers wait for the next call of Next. A worker with free capacity calls Next
// again soon, so that what arrives in between need not be returned, which would cost a second.
const spare = 250 * time.Millisecond

// waiter is a call of Next.
type waiter struct {
	keys   map[durable.Key]bool
	result chan result // holds at most one result; then the waiter is no longer in Scheduler.waiters
}

type result struct {
	delivery *delivery
	err      error
}

func (w *waiter) fail(err error) { w.result <- result{err: err} }

// poll is a running poll of a task queue.
type poll struct {
	cancel   context.CancelFunc
	expiring bool // expire was scheduled
}

// join makes a waiter wait for deliveries with the keys, unless it has its result already.
func (s *Scheduler) join(w *waiter, keys map[durable.Key]bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running.Err() != nil {
		return errClosed
	}
	if len(w.result) > 0 {
		return nil
	}
	w.keys = keys
	if i := slices.IndexFunc(s.held, func(d *delivery) bool { return keys[d.key] }); i >= 0 {
		w.result <- result{delivery: s.held[i]}
		s.held = slices.Delete(s.held, i, i+1)
		s.remove(w)
		return nil
	}
	if !slices.Contains(s.waiters, w) {
		s.waiters = append(s.waiters, w)
	}
	for key := range keys {
		if s.polls[key] == nil {
			ctx, cancel := context.WithCancel(s.running)
			s.polls[key] = &poll{cancel: cancel}
			s.group.Go(func() {
				defer cancel()
				s.poll(ctx, key)
			})
		}
	}
	return nil
}

// leave removes a waiter whose call of Next returns. A delivery that it has not received goes to another waiter. Polls that
// no waiter needs end after a moment.
func (s *Scheduler) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(w)
	select {
	case r := <-w.result:
		if r.err == nil {
			s.deliver(r.delivery)
		}
	default:
	}
	for key := range w.keys {
		if p := s.polls[key]; p != nil && !p.expiring && !s.isWanted(key) {
			p.expiring = true
			time.AfterFunc(spare, func() { s.expire(key, p) })
		}
	}
}

// expire ends a poll that no waiter needs.
func (s *Scheduler) expire(key durable.Key, p *poll) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.expiring = false
	if s.polls[key] == p && !s.isWanted(key) {
		delete(s.polls, key)
		p.cancel()
	}
}

func (s *Scheduler) remove(w *waiter) {
	s.waiters = slices.DeleteFunc(s.waiters, func(other *waiter) bool { return other == w })
}

func (s *Scheduler) isWanted(key durable.Key) bool {
	return slices.ContainsFunc(s.waiters, func(w *waiter) bool { return w.keys[key] })
}

// poll polls the task queue of a key while a waiter needs it.
func (s *Scheduler) poll(ctx context.Context, key durable.Key) {
	for {
		d, err := s.receive(ctx, key)
		s.mu.Lock()
		if ctx.Err() != nil { // the poll was cancelled, and is not in s.polls unless the scheduler is closed
			if d != nil {
				s.deliver(d)
			}
			s.mu.Unlock()
			return
		}
		switch {
		case err != nil:
			s.fail(key, err)
		case d != nil:
			s.deliver(d)
		}
		if !s.isWanted(key) { // Next polls again
			delete(s.polls, key)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
}

// receive polls a task queue once. It returns nil when there is nothing to deliver.
func (s *Scheduler) receive(ctx context.Context, key durable.Key) (*delivery, error) {
	t, err := s.executions.poll(ctx, taskQueue(s.options.Prefix, key), s.options.Identity)
	if err != nil || t == nil {
		return nil, err
	}
	d := &delivery{scheduler: s, key: key, token: t.token}
	o, err := readOffer(t.input)
	if err != nil { // another program has started it
		return nil, errors.Join(fmt.Errorf("task queue %s: the input is not an offer: %w", taskQueue(s.options.Prefix, key), err), d.Ack(ctx))
	}
	d.id = durable.OfferID{Run: agent.RunID(o.Run), Seq: o.Seq}
	return d, nil
}

// fail reports an error of a poll to all waiters that need it.
func (s *Scheduler) fail(key durable.Key, err error) {
	s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool {
		if w.keys[key] {
			w.fail(err)
		}
		return w.keys[key]
	})
}

// deliver passes a delivery to the first waiter that needs it. Without one it waits for a moment, and is then returned to the
// server.
func (s *Scheduler) deliver(d *delivery) {
	i := slices.IndexFunc(s.waiters, func(w *waiter) bool { return w.keys[d.key] })
	if i >= 0 {
		s.waiters[i].result <- result{delivery: d}
		s.waiters = slices.Delete(s.waiters, i, i+1)
		return
	}
	if s.running.Err() != nil {
		return // the server delivers it again
	}
	s.held = append(s.held, d)
	s.group.Go(func() {
		select {
		case <-time.After(spare):
		case <-s.running.Done():
			return
		}
		s.mu.Lock()
		i := slices.Index(s.held, d)
		if i >= 0 {
			s.held = slices.Delete(s.held, i, i+1)
		}
		s.mu.Unlock()
		if i >= 0 {
			_ = d.Return(s.running) // if it fails, the server delivers again after decideTimeout
		}
	})
}
