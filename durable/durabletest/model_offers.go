package durabletest

import (
	"context"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

// Owed implements durable.Store.
func (m model) Owed(ctx context.Context, retry time.Duration, limit int) ([]durable.Offer, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	var ready []*modelRun
	for _, r := range m.runs {
		pause := max(retry, min(r.offered.Sub(r.Ready), hour))
		if m.broken == "backoff" {
			pause = retry
		}
		if r.Status == durable.StatusReady && (r.offered.IsZero() || r.offered.Before(m.at.Add(-pause)) && m.broken != "retry" || m.broken == "offered") {
			ready = append(ready, r)
		}
	}
	slices.SortStableFunc(ready, func(a, b *modelRun) int {
		if m.broken == "owed order" {
			return 0
		}
		return a.Ready.Compare(b.Ready)
	})
	var all []durable.Offer
	for _, r := range ready {
		if len(all) < limit || m.broken == "owed limit" {
			all = append(all, durable.Offer{OfferID: durable.OfferID{Run: r.ID, Seq: r.offer}, Key: r.Needs().Key(), Priority: r.Priority})
		}
	}
	return all, nil
}

// RecordOffers implements durable.Store.
func (m model) RecordOffers(ctx context.Context, offers ...durable.OfferID) error {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return err
	}
	for _, o := range offers {
		if r := m.findRun(o.Run); r != nil && r.Status == durable.StatusReady && (r.offer == o.Seq || m.broken == "old offer") {
			r.offered = m.at
		}
	}
	return nil
}

// RecordPoll implements durable.Store.
func (m model) RecordPoll(ctx context.Context, keys ...durable.Key) error {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return err
	}
	for i, q := range m.queues {
		if slices.Contains(keys, q.needs.Key()) && m.broken != "polled" {
			m.queues[i].polled = m.at
		}
	}
	return nil
}

// QueueServices implements durable.Store.
func (m model) QueueServices(ctx context.Context, keys ...durable.Key) (map[durable.Key]durable.Service, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	all := map[durable.Key]durable.Service{}
	for _, q := range m.queues {
		key := q.needs.Key()
		if !slices.Contains(keys, key) && m.broken != "served keys" {
			continue
		}
		s := durable.Service{LastPoll: q.polled}
		for _, r := range m.runs {
			if r.Needs().Key() == key && (r.Status == durable.StatusReady || m.broken == "backlog" && !r.Status.Ended()) {
				s.Backlog++
				if s.Oldest.IsZero() || r.Ready.Before(s.Oldest) || m.broken == "oldest" {
					s.Oldest = r.Ready
				}
			}
		}
		all[key] = s
	}
	return all, nil
}

// Changes implements durable.Store.
func (m model) Changes(ctx context.Context) <-chan struct{} {
	size := 1
	if m.broken == "many values" {
		size = 100
	}
	ch := make(chan struct{}, size)
	m.mu.Lock()
	m.listeners[ch] = struct{}{}
	m.mu.Unlock()
	go func() {
		select {
		case <-ctx.Done():
		case <-m.closed:
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.listeners, ch)
		if m.broken != "never closed" {
			close(ch)
		}
	}()
	return ch
}
