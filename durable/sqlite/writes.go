package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// tx is a transaction of the writer, as one write sees it.
type tx struct {
	*view

	notifies bool // the commit is a change for Changes
}

// Notify implements store.Tx.
func (t *tx) Notify() { t.notifies = true }

// Lock implements store.Tx: there is one writer.
func (t *tx) Lock(ids ...agent.RunID) (map[agent.RunID]store.Run, error) { return t.Runs(ids...) }

// LockFree implements store.Tx.
func (t *tx) LockFree(ids ...agent.RunID) (map[agent.RunID]store.Run, error) { return t.Runs(ids...) }

var selectWaiters = `SELECT ` + runs.Columns + ` FROM runs r
	WHERE r.num IN (SELECT run FROM waits INDEXED BY waits_by_child WHERE child = ?1 AND child <> '' AND answered IS NULL) ORDER BY r.num`

// LockWaiters implements store.Tx.
func (t *tx) LockWaiters(child agent.RunID) ([]store.Run, error) {
	return store.SelectAll(t, runs.Targets, selectWaiters, string(child))
}

// PutRun implements store.Tx. It sets no column of an index that keeps its value.
func (t *tx) PutRun(old, r store.Run) error {
	if err := t.PutPhase(old, r); err != nil {
		return err
	}
	columns, values, err := changedColumns(old, r)
	if err != nil || len(columns) == 0 {
		return err
	}
	return t.Exec("UPDATE runs SET "+strings.Join(columns, " = ?, ")+" = ? WHERE id = ?", append(values, string(r.ID))...)
}

// entriesAtOnce is the maximum number of entries in one statement: a step with one call adds at most so many in a commit.
const entriesAtOnce = 3

// insertEntries are the statements that add one entry to a run, two, and so on.
var insertEntries = func() (queries [entriesAtOnce]string) {
	query := `INSERT INTO entries (run, seq, kind, key, at, data) VALUES `
	for i := range queries {
		p := 5 * i
		query += fmt.Sprintf(`((SELECT num FROM runs WHERE id = ?1), ?%d, ?%d, ?%d, ?%d, ?%d)`, p+2, p+3, p+4, p+5, p+6)
		queries[i] = query
		query += `, `
	}
	return queries
}()

const (
	// insertEvent stores an event of a step, which has counted its events: ?2 of them follow.
	insertEvent = `INSERT INTO events (run, seq, at, name, data) SELECT num, events - ?2, ?3, ?4, ?5 FROM runs WHERE id = ?1`
	// updateOffered records an offer: the next pause is as long as the run has been ready, and at most an hour.
	updateOffered = `UPDATE runs SET offered = ?3 + min(max(?3 - ready, 0), 3600000000) WHERE id = ?1 AND offer_seq = ?2 AND status = 'ready'`
	updatePolled  = `UPDATE queues SET polled = ?2 WHERE key IN (SELECT unhex(value) FROM json_each(?1))`
	pruneRuns     = `DELETE FROM runs WHERE num IN
		(SELECT num FROM runs INDEXED BY runs_ended WHERE ended IS NOT NULL AND ended < $1 ORDER BY ended LIMIT $2) RETURNING num`
	pruneQueues = `DELETE FROM queues WHERE NOT EXISTS (SELECT 1 FROM runs INDEXED BY runs_by_queue WHERE queue = queues.id)`
)

// AddEntries implements store.Tx.
func (t *tx) AddEntries(id agent.RunID, entries []durable.Entry) error {
	for some := range slices.Chunk(entries, entriesAtOnce) {
		args := make([]any, 1, 1+5*entriesAtOnce)
		args[0] = string(id)
		for i := range some {
			e := &some[i]
			args = append(args, e.Seq, string(e.Kind), e.Key, &e.At, e.Data)
		}
		if err := t.Exec(insertEntries[len(some)-1], args...); err != nil {
			return err
		}
	}
	return nil
}

// PutOffers implements store.Tx.
func (t *tx) PutOffers(offers ...durable.OfferID) error {
	for _, o := range offers {
		if err := t.Exec(updateOffered, string(o.Run), o.Seq, t.micros()); err != nil {
			return err
		}
	}
	return nil
}

// appendStep makes a plain Commit. It sets no column of an index, so that the commit of a step costs little.
const appendStep = `UPDATE runs SET entries = entries + ?5, events = events + ?6, handled = max(handled, ?7), updated = ?8, appended = ?9,
		steps = coalesce(?10, steps), reason = coalesce(?11, reason), usage = coalesce(nullif(?14, ''), usage)
	WHERE id = ?1 AND owner = ?2 AND owner <> '' AND epoch = ?3 AND entries = coalesce(?4, entries) AND appended IS NOT ?9
		AND status = coalesce(?12, status) AND blocked = coalesce(?13, blocked)`

// Step implements store.DB. It refuses a Commit that changes the status.
func (d *db) Step(ctx context.Context, s store.Step) (done bool, err error) {
	l, c, u := s.Lease, s.Commit, s.Commit.Update
	err = d.enqueue(ctx, "writing to a journal", func(t *tx) error {
		args := []any{
			string(l.Run), l.Owner, l.Epoch, nil, len(c.Entries), len(c.Events), c.HandledSignals, t.micros(), s.Appended, nil, nil, nil, nil, s.Usage(),
		}
		if len(c.Entries) > 0 {
			args[3] = c.Entries[0].Seq - 1
		}
		if u.Status != "" {
			args[9], args[10], args[11], args[12] = u.Steps, string(u.Reason), string(u.Status), u.Blocked
		}
		n, err := t.execCount(appendStep, args...)
		if done = n > 0; err != nil || !done {
			return err
		}
		if err := t.AddEntries(l.Run, c.Entries); err != nil {
			return err
		}
		for i, e := range c.Events {
			if err := t.Exec(insertEvent, string(l.Run), len(c.Events)-1-i, &e.At, e.Name, e.Data); err != nil {
				return err
			}
		}
		return nil
	})
	return done && err == nil, err
}

const updateRenewed = `UPDATE runs SET leased = ?4, expires = ?5 WHERE id = ?1 AND owner = ?2 AND owner <> '' AND epoch = ?3`

// Renew implements store.DB.
func (d *db) Renew(ctx context.Context, l durable.Lease, ttl time.Duration) (expires time.Time, done bool, err error) {
	err = d.enqueue(ctx, "renewing a lease", func(t *tx) error {
		expires = t.now.Add(ttl).Truncate(time.Microsecond)
		n, err := t.execCount(updateRenewed, string(l.Run), l.Owner, l.Epoch, t.micros(), expires.UnixMicro())
		done = n > 0
		return err
	})
	return expires, done && err == nil, err
}

var (
	// selectReadyQueues returns the queues with ready runs.
	selectReadyQueues = `SELECT q.id` + ofKeys + `WHERE EXISTS (SELECT 1 FROM runs INDEXED BY runs_ready WHERE queue = q.id AND status = 'ready')`
	selectReady       = `SELECT num, priority, ready FROM runs INDEXED BY runs_ready WHERE queue = ?1 AND status = 'ready'
		ORDER BY priority DESC, ready, num LIMIT ?2`
	updateClaimed = `UPDATE runs SET status = 'running', owner = ?2, epoch = epoch + 1, attempts = attempts + 1, leased = ?3, updated = ?3,
		expires = ?4, ready = NULL, idle = NULL WHERE num = ?1 RETURNING ` + strings.ReplaceAll(runs.Columns, "r.", "runs.")  // it knows no alias
)

// Claim implements store.DB. It writes only when it has seen a ready run, so that idle workers do not keep others from writing.
func (d *db) Claim(
	ctx context.Context, owner string, ttl time.Duration, limit int, keys []durable.Key, also func(store.Tx, []durable.Run) error,
) (claimed []durable.Run, err error) {
	var queues []int64
	err = d.look(ctx, "looking for ready runs", func(v *view) (err error) {
		queues, err = store.SelectAll(v, func(id *int64) []any { return []any{id} }, selectReadyQueues, listKeys(keys))
		return err
	})
	if err != nil || len(queues) == 0 {
		return nil, err
	}
	err = d.enqueue(ctx, "claiming runs", func(t *tx) error {
		claimed = nil
		ready, err := t.ready(queues, limit)
		for _, c := range ready {
			if err != nil {
				return err
			}
			var r store.Run
			r, _, err = store.SelectOne(t, runs.Targets, updateClaimed, c.num, owner, t.micros(), t.now.Add(ttl).UnixMicro())
			claimed = append(claimed, r.Run)
		}
		if err == nil && also != nil && len(claimed) > 0 {
			err = also(t, claimed)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// readyRun is a ready run that may be claimed.
type readyRun struct{ num, priority, since int64 }

// ready returns the best ready runs of queues, in the order in which they are to be claimed.
func (t *tx) ready(queues []int64, limit int) (best []readyRun, err error) {
	for _, queue := range queues {
		some, err := store.SelectAll(t, func(r *readyRun) []any { return []any{&r.num, &r.priority, &r.since} }, selectReady, queue, limit)
		if err != nil {
			return nil, err
		}
		best = append(best, some...)
	}
	if len(queues) > 1 {
		slices.SortFunc(best, func(a, b readyRun) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.since, b.since), cmp.Compare(a.num, b.num))
		})
	}
	return best[:min(limit, len(best))], nil
}
