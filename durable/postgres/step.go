package postgres

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// Steps of concurrent runs share statements, so that they wait for the disk together: a step that finds fewer than groupsAtOnce
// statements under way is sent at once, and others form groups meanwhile. A step that does not fit changes nothing. When a statement
// fails, each step of the group is sent again alone: it changes nothing twice.

const (
	// groupsAtOnce is the maximum number of statements with steps: some wait for the disk, or for a lock of a run, while others are
	// computed.
	groupsAtOnce = 2
	// maxGroup is the maximum number of steps in a statement.
	maxGroup = 64
)

// queuedStep is a step, and what its statement has done.
type queuedStep struct {
	store.Step

	done, alone bool
}

// Step implements store.DB.
func (d *db) Step(ctx context.Context, s store.Step) (done bool, err error) {
	err = d.call(ctx, "writing to a journal", func(ctx context.Context) error {
		done, err = d.join(ctx, s)
		return err
	})
	return done, err
}

// join makes a step, alone or in a group.
func (d *db) join(ctx context.Context, s store.Step) (done bool, err error) {
	own := &queuedStep{Step: s}
	err = d.steps.Do(ctx, own, func() error {
		d.sendGroup(ctx, own)
		return nil
	})
	if err == nil || own.alone {
		return own.done, err
	}
	places, err := d.makeSteps(ctx, []store.Step{s})
	return len(places) > 0, err
}

// sendGroup makes the steps that wait. Only the step of the caller ends with its context.
func (d *db) sendGroup(ctx context.Context, own *queuedStep) {
	var group []*store.Queued[*queuedStep]
	for w := d.steps.Next(); w != nil; w = d.steps.Next() {
		if group = append(group, w); len(group) == maxGroup {
			break
		}
	}
	if len(group) == 0 { // another caller has them
		return
	}
	own.alone = len(group) == 1 && group[0].Call == own
	if !own.alone {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), d.timeout)
		defer cancel()
	}
	// Statements that lock runs in the same order do not wait for each other in a circle.
	slices.SortStableFunc(group, func(x, y *store.Queued[*queuedStep]) int { return cmp.Compare(x.Call.Lease.Run, y.Call.Lease.Run) })
	done, err := d.makeSteps(ctx, columnOf(group, func(w *store.Queued[*queuedStep]) store.Step { return w.Call.Step }))
	for _, place := range done {
		group[place].Call.done = true
	}
	for _, w := range group {
		w.Finish(err)
	}
}

// renewQuery extends a lease.
const renewQuery = `UPDATE runs SET expires = clock_timestamp() + $4::interval
	WHERE id = $1 AND owner = $2 AND epoch = $3 AND expires IS NOT NULL RETURNING expires`

// Renew implements store.DB.
func (d *db) Renew(ctx context.Context, l durable.Lease, ttl time.Duration) (expires time.Time, done bool, err error) {
	err = d.call(ctx, "renewing a lease", func(ctx context.Context) error {
		rows, err := d.pool.Query(ctx, renewQuery, storedText(l.Run), storedText(l.Owner), l.Epoch, ttl)
		if err == nil {
			err = scan(rows, []any{&expires}, func() { done = true })
		}
		return err
	})
	return expires, done && err == nil, err
}

// The columns of the rows in a statement with steps: of the steps, their entries and their events.
var (
	stepColumns = []string{
		"run", "owner", "epoch", "before", "appended", "entries", "events", "handled", "status", "reason", "blocked", "steps", "usage",
	}
	entryColumns = []string{"place", "seq", "kind", "key", "at", "data"}
	eventColumns = []string{"place", "seq", "at", "name", "data"}
)

// stepQueries has the statements, by how many steps, entries and events they have: none, one, or many.
var stepQueries sync.Map

// stepQuery returns the statement that makes steps, and reads the places of those that fit. Nothing but the ID may find a run: see
// claimQuery. A step changes no indexed column, unless the status is another.
func stepQuery(steps, entries, events [][]any) string {
	query, parameters := `WITH r AS (
		UPDATE runs r SET entries = r.entries + n.entries, events = r.events + n.events, appended = n.appended, handled = greatest(r.handled, n.handled),
			updated = clock_timestamp(), usage = coalesce(nullif(n.usage, ''), r.usage),
			status = CASE WHEN n.status = '' THEN r.status ELSE n.status END, reason = CASE WHEN n.status = '' THEN r.reason ELSE n.reason END,
			blocked = CASE WHEN n.status = '' THEN r.blocked ELSE n.blocked END, steps = CASE WHEN n.status = '' THEN r.steps ELSE n.steps END
		FROM `+rowsIn("n", stepColumns, steps, 1)+` WHERE r.id = n.run AND r.epoch = n.epoch AND (r.owner = n.owner) IS TRUE
			AND (r.expires IS NOT NULL) IS TRUE AND r.entries = coalesce(nullif(n.before, -1), r.entries) AND r.appended IS DISTINCT FROM n.appended
		RETURNING r.num, n.nth, r.events - n.events AS events
	)`, 1+len(stepColumns)
	if len(entries) > 0 {
		query += `, e AS (
		INSERT INTO entries (run, seq, kind, key, at, data) SELECT r.num, e.seq, e.kind, e.key, e.at, e.data
		FROM ` + rowsIn("e", entryColumns, entries, parameters) + ` JOIN r ON r.nth = e.place
	)`
		parameters += len(entryColumns)
	}
	if len(events) > 0 {
		query += `, v AS (
		INSERT INTO events (run, seq, at, name, data) SELECT r.num, r.events + v.seq, v.at, v.name, v.data
		FROM ` + rowsIn("v", eventColumns, events, parameters) + ` JOIN r ON r.nth = v.place
	)`
	}
	return query + ` SELECT r.nth::int - 1 FROM r`
}

// makeSteps makes steps, and returns the places of those that fit.
func (d *db) makeSteps(ctx context.Context, all []store.Step) (done []int, err error) {
	var steps, entries, events [][]any
	for i, s := range all {
		l, c, u, place := s.Lease, s.Commit, s.Commit.Update, int64(i+1)
		before := int64(-1) // any
		if len(c.Entries) > 0 {
			before = c.Entries[0].Seq - 1
		}
		steps = append(steps, arguments([]any{
			string(l.Run), l.Owner, l.Epoch, before, s.Appended, int64(len(c.Entries)), int64(len(c.Events)), c.HandledSignals,
			string(u.Status), string(u.Reason), u.Blocked, int64(u.Steps), s.Usage(),
		}))
		for _, e := range c.Entries {
			entries = append(entries, arguments([]any{place, e.Seq, string(e.Kind), e.Key, &e.At, e.Data}))
		}
		for k, e := range c.Events {
			events = append(events, arguments([]any{place, int64(k + 1), &e.At, e.Name, e.Data}))
		}
	}
	shape := [3]int{min(len(steps), 2), min(len(entries), 2), min(len(events), 2)}
	query, known := stepQueries.Load(shape)
	if !known {
		query, _ = stepQueries.LoadOrStore(shape, stepQuery(steps, entries, events))
	}
	text, _ := query.(string)
	found, err := d.pool.Query(ctx, text, slices.Concat(argumentsOf(steps), argumentsOf(entries), argumentsOf(events))...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowTo[int])
}
