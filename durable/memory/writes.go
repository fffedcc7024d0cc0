package memory

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// Lock implements store.Tx: the database is locked.
func (t *tx) Lock(ids ...agent.RunID) (map[agent.RunID]store.Run, error) { return t.Runs(ids...) }

// LockFree implements store.Tx.
func (t *tx) LockFree(ids ...agent.RunID) (map[agent.RunID]store.Run, error) { return t.Runs(ids...) }

// LockWaiters implements store.Tx.
func (t *tx) LockWaiters(child agent.RunID) (all []store.Run, _ error) {
	for _, r := range t.runs {
		if slices.ContainsFunc(r.waits, func(w store.Wait) bool { return w.Child == child && w.Answer == nil }) {
			all = append(all, cloneRun(r.Run))
		}
	}
	return all, nil
}

// AddRuns implements store.Tx.
func (t *tx) AddRuns(runs ...store.NewRun) error {
	for _, r := range runs {
		if t.byID[r.ID] != nil {
			return fmt.Errorf("run %q: %w", r.ID, durable.ErrExists)
		}
		t.addQueue(r.Needs())
		input := bytes.Clone(r.Input)
		added := &run{Run: cloneRun(r.Run), payload: store.Payload{Input: input, Submitted: input}, waits: store.CloneWaits(r.Waits)}
		set(t, &t.runs, append(t.runs, added))
		setKey(t, t.byID, r.ID, added)
		if r.IdempotencyKey != "" {
			setKey(t, t.byKey, r.IdempotencyKey, added)
		}
	}
	return nil
}

func (t *tx) addQueue(n durable.Needs) {
	key := n.Key()
	if !slices.ContainsFunc(t.queues, func(q *queue) bool { return q.key == key }) {
		n.Demands = maps.Clone(n.Demands)
		set(t, &t.queues, append(slices.Clip(t.queues), &queue{needs: n, key: key}))
	}
}

// PutRun implements store.Tx.
func (t *tx) PutRun(_, r store.Run) error {
	t.addQueue(r.Needs())
	set(t, &t.byID[r.ID].Run, cloneRun(r))
	return nil
}

// PutResult implements store.Tx.
func (t *tx) PutResult(id agent.RunID, result []byte) error {
	set(t, &t.byID[id].payload.Result, bytes.Clone(result))
	return nil
}

// PutInput implements store.Tx.
func (t *tx) PutInput(id agent.RunID, input []byte) error {
	set(t, &t.byID[id].payload.Input, bytes.Clone(input))
	return nil
}

// AddEntries implements store.Tx.
func (t *tx) AddEntries(id agent.RunID, entries []durable.Entry) error {
	r := t.byID[id]
	set(t, &r.entries, append(r.entries, clones(entries, entryData)...))
	return nil
}

// AddEvents implements store.Tx.
func (t *tx) AddEvents(id agent.RunID, events []durable.Event) error {
	r := t.byID[id]
	set(t, &r.events, append(r.events, clones(events, eventData)...))
	return nil
}

// AddSignal implements store.Tx.
func (t *tx) AddSignal(s durable.Signal) error {
	r := t.byID[s.Run]
	set(t, &r.signals, append(r.signals, s))
	return nil
}

// AddRuleCounts implements store.Tx.
func (t *tx) AddRuleCounts(day int64, counts ...durable.RuleCount) error {
	for _, c := range counts {
		key := ruleKey{day, c.Agent, c.Hook}
		setKey(t, t.rules, key, c.Add(t.rules[key]))
	}
	return nil
}

// PutWaits implements store.Tx.
func (t *tx) PutWaits(id agent.RunID, _, waits []store.Wait) error {
	set(t, &t.byID[id].waits, store.CloneWaits(waits))
	return nil
}

// PutChecker implements store.Tx.
func (t *tx) PutChecker(waits ...store.Wait) error {
	for _, w := range waits {
		all := t.byID[w.Run].waits
		stored := &all[slices.IndexFunc(all, func(other store.Wait) bool { return other.ID == w.ID })]
		set(t, &stored.Checker, w.Checker)
		set(t, &stored.CheckedUntil, w.CheckedUntil)
	}
	return nil
}

// PutToken implements store.Tx.
func (t *tx) PutToken(hash [32]byte, k store.Token) error {
	setKey(t, t.tokens, hash, k)
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

// AddNewDocument implements store.Tx.
func (t *tx) AddNewDocument(d durable.Document) error {
	if t.documents[documentID{d.Kind, d.Name}] != nil {
		return durable.ErrExists
	}
	_, err := t.AddDocument(d)
	return err
}

// AddDocument implements store.Tx.
func (t *tx) AddDocument(d durable.Document) (int64, error) {
	id := documentID{d.Kind, d.Name}
	next := &document{}
	if old := t.documents[id]; old != nil {
		if !old.deleted {
			return 0, nil
		}
		next.versions = slices.Clip(old.versions)
	}
	d.Version = int64(len(next.versions)) + 1
	next.versions = append(next.versions, cloneDocument(d))
	setKey(t, t.documents, id, next)
	return d.Version, nil
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
func (t *tx) PutPoll(at time.Time, keys ...durable.Key) error {
	for _, q := range t.queues {
		if slices.Contains(keys, q.key) {
			set(t, &q.polled, at)
		}
	}
	return nil
}

// DeleteRun implements store.Tx.
func (t *tx) DeleteRun(id agent.RunID) error {
	t.delete(func(r *run) bool { return r.ID == id })
	return nil
}

// Prune implements store.Tx.
func (t *tx) Prune(before time.Time, limit int) (n int, _ error) {
	t.delete(func(r *run) bool {
		old := n < limit && r.Status.Ended() && r.Updated.Before(before)
		if old {
			n++
		}
		return old
	})
	return n, nil
}

// delete deletes the runs that f selects, which it calls once for each.
func (t *tx) delete(f func(r *run) bool) {
	gone := map[agent.RunID]bool{}
	for _, r := range t.runs {
		if f(r) {
			gone[r.ID] = true
		}
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
	setKey(t, t.settings, name, bytes.Clone(value))
	return nil
}
