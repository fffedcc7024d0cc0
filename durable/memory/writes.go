package memory

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// Lock implements store.Tx: the database is locked.
func (t *tx) Lock(ids ...agent.RunID) (map[agent.RunID]store.Run, error) { return t.Runs(ids...) }

// Claim implements store.Tx.
func (t *tx) Claim(owner string, ttl time.Duration, limit int, keys []durable.Key) (all []durable.Run, _ error) {
	ready := t.ready(keys)
	slices.SortStableFunc(ready, func(a, b *run) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Ready.Compare(b.Ready)) })
	for _, r := range ready[:min(limit, len(ready))] {
		started := cloneRun(r.Run)
		started.Start(owner, ttl, t.now)
		set(t, &r.Run, started)
		all = append(all, cloneRun(started).Run)
	}
	return all, nil
}

// LockDue implements store.Tx.
func (t *tx) LockDue(c store.Cause, limit int) (all []store.Run, _ error) {
	for _, r := range t.runs {
		if len(all) < limit && c.Is(r.Run, t.now) {
			all = append(all, cloneRun(r.Run))
		}
	}
	return all, nil
}

// LockWaiters implements store.Tx.
func (t *tx) LockWaiters(child agent.RunID) (all []store.Run, _ error) {
	for _, r := range t.runs {
		if slices.ContainsFunc(r.waits, func(w store.Wait) bool { return w.Child == child && w.Answer == nil }) {
			all = append(all, cloneRun(r.Run))
		}
	}
	return all, nil
}

// LockChecks implements store.Tx.
func (t *tx) LockChecks(owner string, kinds []durable.WaitKind, hosts []string) (own, free []store.Wait, _ error) {
	for _, r := range t.runs {
		if r.Status != durable.StatusWaiting || r.Paused {
			continue
		}
		for _, w := range cloneWaits(r.waits) {
			switch {
			case w.Answer != nil, !slices.Contains(kinds, w.Kind), w.Host != "" && !slices.Contains(hosts, w.Host):
			case w.Checker == owner:
				own = append(own, w)
			case w.Checker == "", !w.CheckedUntil.After(t.now):
				free = append(free, w)
			}
		}
	}
	return own, free, nil
}

// LockEnded implements store.Tx.
func (t *tx) LockEnded(before time.Time, limit int) (all []agent.RunID, _ error) {
	for _, r := range t.runs {
		if len(all) < limit && r.Status.Ended() && r.Updated.Before(before) {
			all = append(all, r.ID)
		}
	}
	return all, nil
}

// AddQueue implements store.Tx.
func (t *tx) AddQueue(n durable.Needs) error {
	key := n.Key()
	if !slices.ContainsFunc(t.queues, func(q *queue) bool { return q.key == key }) {
		n.Demands = maps.Clone(n.Demands)
		set(t, &t.queues, append(slices.Clip(t.queues), &queue{needs: n, key: key}))
	}
	return nil
}

// AddRun implements store.Tx.
func (t *tx) AddRun(r store.Run, input []byte) error {
	added := &run{Run: cloneRun(r), payload: store.Payload{Input: bytes.Clone(input)}}
	set(t, &t.runs, append(t.runs, added))
	put(t, t.byID, r.ID, added)
	if r.IdempotencyKey != "" {
		put(t, t.byKey, r.IdempotencyKey, added)
	}
	return nil
}

// PutRun implements store.Tx.
func (t *tx) PutRun(r store.Run) error {
	set(t, &t.byID[r.ID].Run, cloneRun(r))
	return nil
}

// PutPayload implements store.Tx.
func (t *tx) PutPayload(id agent.RunID, p store.Payload) error {
	set(t, &t.byID[id].payload, clonePayload(p))
	return nil
}

// AddEntries implements store.Tx.
func (t *tx) AddEntries(id agent.RunID, entries []durable.Entry) error {
	r := t.byID[id]
	all := r.entries
	for _, e := range entries {
		e.Data = bytes.Clone(e.Data)
		all = append(all, e)
	}
	set(t, &r.entries, all)
	return nil
}

// AddEvents implements store.Tx.
func (t *tx) AddEvents(id agent.RunID, events []durable.Event) error {
	r := t.byID[id]
	all := r.events
	for _, e := range events {
		e.Data = bytes.Clone(e.Data)
		all = append(all, e)
	}
	set(t, &r.events, all)
	return nil
}

// AddSignal implements store.Tx.
func (t *tx) AddSignal(s durable.Signal) error {
	r := t.byID[s.Run]
	set(t, &r.signals, append(r.signals, s))
	return nil
}

// PutWaits implements store.Tx.
func (t *tx) PutWaits(id agent.RunID, waits []store.Wait) error {
	set(t, &t.byID[id].waits, cloneWaits(waits))
	return nil
}

// PutToken implements store.Tx.
func (t *tx) PutToken(hash [32]byte, k store.Token) error {
	put(t, t.tokens, hash, k)
	return nil
}

// AddAudit implements store.Tx.
func (t *tx) AddAudit(records ...durable.AuditRecord) error {
	all := t.records
	for _, r := range records {
		r = store.CloneRecord(r)
		r.Seq = 1
		if n := len(all); n > 0 {
			r.Seq = all[n-1].Seq + 1
		}
		all = append(all, r)
	}
	set(t, &t.records, all)
	return nil
}

// PutWaiver implements store.Tx.
func (t *tx) PutWaiver(w durable.Waiver) error {
	w.Data = bytes.Clone(w.Data)
	all := slices.Clone(t.waivers)
	if i := slices.IndexFunc(all, func(old durable.Waiver) bool { return old.ID == w.ID }); i >= 0 {
		all[i] = w
	} else {
		all = append(all, w)
	}
	set(t, &t.waivers, all)
	return nil
}

// AddDocument implements store.Tx.
func (t *tx) AddDocument(d durable.Document) error {
	id := documentID{d.Kind, d.Name}
	next := &document{}
	if old := t.documents[id]; old != nil {
		next.versions = slices.Clip(old.versions)
	}
	next.versions = append(next.versions, cloneDocument(d))
	put(t, t.documents, id, next)
	return nil
}

// DropDocument implements store.Tx.
func (t *tx) DropDocument(kind, name string) error {
	set(t, &t.documents[documentID{kind, name}].deleted, true)
	return nil
}

// PutOffers implements store.Tx.
func (t *tx) PutOffers(offers ...durable.OfferID) error {
	for _, o := range offers {
		if r := t.byID[o.Run]; r != nil && r.Status == durable.StatusReady && r.Offer == o.Seq {
			set(t, &r.Offered, t.now)
		}
	}
	return nil
}

// PutPoll implements store.Tx.
func (t *tx) PutPoll(keys ...durable.Key) error {
	for _, q := range t.queues {
		if slices.Contains(keys, q.key) {
			set(t, &q.polled, t.now)
		}
	}
	return nil
}

// DeleteRuns implements store.Tx.
func (t *tx) DeleteRuns(ids ...agent.RunID) error {
	gone := map[agent.RunID]bool{}
	for _, id := range ids {
		gone[id] = true
	}
	if len(gone) == 0 {
		return nil
	}
	set(t, &t.runs, slices.DeleteFunc(slices.Clone(t.runs), func(r *run) bool { return gone[r.ID] }))
	set(t, &t.byID, maps.Clone(t.byID))
	set(t, &t.byKey, maps.Clone(t.byKey))
	set(t, &t.tokens, maps.Clone(t.tokens))
	maps.DeleteFunc(t.byID, func(id agent.RunID, _ *run) bool { return gone[id] })
	maps.DeleteFunc(t.byKey, func(_ string, r *run) bool { return gone[r.ID] })
	maps.DeleteFunc(t.tokens, func(_ [32]byte, k store.Token) bool { return gone[k.Run] })
	records := slices.Clone(t.records)
	for i, r := range records {
		if r.Answer != nil && gone[r.Run] {
			records[i] = store.CloneRecord(r)
			records[i].Answer.Data = nil
		}
	}
	set(t, &t.records, records)
	return nil
}

// PruneQueues implements store.Tx.
func (t *tx) PruneQueues() error {
	used := map[durable.Key]bool{}
	for _, r := range t.runs {
		used[r.Needs().Key()] = true
	}
	set(t, &t.queues, slices.DeleteFunc(slices.Clone(t.queues), func(q *queue) bool { return !used[q.key] }))
	return nil
}

// PutSetting implements store.Tx.
func (t *tx) PutSetting(name string, value []byte) error {
	put(t, t.settings, name, bytes.Clone(value))
	return nil
}
