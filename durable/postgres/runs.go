package postgres

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// runColumns are the columns that newRunScan reads, of a table or alias named r.
var runColumns = store.Names("r.", columnsOf(&store.Run{})) + `,
	CASE WHEN r.phase = '' THEN (SELECT q.demands FROM queues q WHERE q.id = r.queue) ELSE r.demands END, r.labels`

func columnsOf(r *store.Run) []store.Column { return append(r.JobColumns(), r.StateColumns()...) }

// newRunScan returns a function that reads runs one after the other.
func newRunScan() pgx.RowToFunc[store.Run] {
	r := store.Run{}
	into := runTargets(&r)
	return func(row pgx.CollectableRow) (store.Run, error) {
		r = store.Run{}
		err := row.Scan(into...)
		return r, err
	}
}

func runTargets(r *store.Run, more ...any) []any {
	return append(targets(append(columnsOf(r), store.Column{Value: &r.Demands}, store.Column{Value: &r.Labels})), more...)
}

// pairs reads labels or demands, which are stored as JSON, into To; an empty text is nil.
type pairs struct{ To *map[string]string }

// ScanText sets To.
func (p pairs) ScanText(v pgtype.Text) error {
	*p.To = nil
	if v.String == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(v.String), p.To); err != nil {
		return fmt.Errorf("read labels %q: %w", v.String, err)
	}
	return nil
}

// pairsText returns the stored form of labels or demands. Their names and values are valid texts: see durable.Job.
func pairsText(pairs map[string]string) string {
	if len(pairs) == 0 {
		return ""
	}
	b, err := json.Marshal(pairs)
	if err != nil {
		panic(err) // strings can always be written
	}
	return string(b)
}

func byID(runs []store.Run) map[agent.RunID]store.Run {
	all := map[agent.RunID]store.Run{}
	for _, r := range runs {
		all[r.ID] = r
	}
	return all
}

// Runs implements store.Rows.
func (t *tx) Runs(ids ...agent.RunID) (map[agent.RunID]store.Run, error) {
	runs, err := readAll(t, newRunScan(), `SELECT `+runColumns+` FROM runs r WHERE r.id = ANY ($1)`, texts(ids))
	return byID(runs), err
}

// RunsByKey implements store.Rows.
func (t *tx) RunsByKey(keys ...string) (map[string]store.Run, error) {
	if t.presumes {
		t.presumed = true
		return map[string]store.Run{}, nil
	}
	runs, err := readAll(t, newRunScan(), `SELECT `+runColumns+` FROM runs r WHERE r.idempotency_key = ANY ($1) AND r.idempotency_key <> ''`, texts(keys))
	all := map[string]store.Run{}
	for _, r := range runs {
		all[r.IdempotencyKey] = r
	}
	return all, err
}

// List implements store.Rows.
func (t *tx) List(f durable.Filter) ([]durable.Run, error) {
	var before *int64
	if f.Before != "" {
		num, found, err := readOne(t, pgx.RowTo[int64], `SELECT num FROM runs WHERE id = $1`, text(f.Before))
		if err == nil && !found {
			err = fmt.Errorf("page behind run %s: %w", f.Before, durable.ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
		before = &num
	}
	sql, args := listQuery(f, before)
	runs, err := readAll(t, newRunScan(), sql, args...)
	return column(runs, func(r store.Run) durable.Run { return r.Run }), err
}

// AddRuns implements store.Tx. If an ID is taken, sending the runs fails.
func (t *tx) AddRuns(runs ...store.NewRun) error {
	for _, r := range runs {
		t.addQueue(r.Needs())
	}
	t.added = append(t.added, runs...)
	return t.err
}

// newRunColumns returns the columns of a new run.
func newRunColumns(r store.NewRun) []store.Column {
	key, demands := r.Needs().Key(), phaseDemands(r.Run)
	return append(columnsOf(&r.Run), store.Column{Name: "labels", Value: &r.Labels}, store.Column{Name: "demands", Value: &demands},
		store.Column{Name: "queue", Value: new(key[:])})
}

var insertRunsQuery = func() string {
	columns := newRunColumns(store.NewRun{})
	queue := len(columns) - 1
	return `INSERT INTO runs (` + store.Names("", columns) + `) SELECT ` + store.Names("n.", columns[:queue]) +
		`, (SELECT q.id FROM queues q WHERE q.key = n.queue) FROM ` + unnestOf(columns) + ` ORDER BY n.nth`
}()

func insertRuns(b *pgx.Batch, runs []store.NewRun) {
	b.Queue(insertRunsQuery, arrays(runs, newRunColumns)...)
	var labels []label
	var waits []store.Wait
	inputs := slices.DeleteFunc(slices.Clone(runs), func(r store.NewRun) bool { return len(r.Input) == 0 })
	for _, r := range runs {
		for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
			labels = append(labels, label{r.ID, name, r.Labels[name]})
		}
		waits = append(waits, r.Waits...)
	}
	if len(inputs) > 0 {
		b.Queue(`INSERT INTO payloads (run, input) SELECT r.num, n.input FROM unnest($1::text[], $2::bytea[]) n (id, input) JOIN runs r ON r.id = n.id`,
			textsOf(inputs, func(r store.NewRun) agent.RunID { return r.ID }), column(inputs, func(r store.NewRun) []byte { return r.Input }))
	}
	if len(labels) > 0 {
		b.Queue(`INSERT INTO labels (run, name, value, status) SELECT r.num, n.name, n.value, r.status
			FROM unnest($1::text[], $2::text[], $3::text[]) n (id, name, value) JOIN runs r ON r.id = n.id`,
			textsOf(labels, func(l label) agent.RunID { return l.run }), textsOf(labels, func(l label) string { return l.name }),
			textsOf(labels, func(l label) string { return l.value }))
	}
	if len(waits) > 0 {
		b.Queue(insertWaits, arrays(placeWaits(waits), placedWait.columns)...)
	}
}

type label struct {
	run         agent.RunID
	name, value string
}

// phaseDemands returns the demands that are in the row of the run. While it has no phase, its queue has them.
func phaseDemands(r store.Run) map[string]string {
	if r.Phase == "" {
		return nil
	}
	return r.Demands
}

// PutRun implements store.Tx.
func (t *tx) PutRun(old, r store.Run) error {
	if old.Phase != r.Phase {
		key := r.Needs().Key()
		t.addQueue(r.Needs())
		_ = t.enqueue(`UPDATE runs SET phase = $2, demands = $3, queue = (SELECT id FROM queues WHERE key = $4) WHERE id = $1`,
			text(r.ID), text(r.Phase), pairsText(phaseDemands(r)), key[:])
	}
	i := slices.IndexFunc(t.put, func(other store.Run) bool { return other.ID == r.ID })
	if i < 0 {
		t.put = append(t.put, r)
	} else {
		t.put[i] = r
	}
	return t.err
}

// changedColumns returns the ID and the columns of a run that change.
func changedColumns(r store.Run) []store.Column {
	return append(r.JobColumns()[:1], r.StateColumns()...)
}

// updateRunsQuery stores what can change of runs. Equal values in indexed columns change no index.
var updateRunsQuery = `UPDATE runs r SET ` + assignmentsOf(new(store.Run).StateColumns()) + `,
		ended = CASE WHEN n.status IN ('pending', 'ready', 'running', 'waiting') THEN NULL ELSE n.updated END
	FROM ` + unnestOf(changedColumns(store.Run{})) + ` WHERE r.id = n.id`

// Payload implements store.Rows.
func (t *tx) Payload(id agent.RunID) (store.Payload, error) {
	p, _, err := readOne(t, func(row pgx.CollectableRow) (p store.Payload, err error) {
		return p, row.Scan(&p.Input, &p.Submitted, &p.Result)
	}, `SELECT input, CASE WHEN replaced THEN submitted ELSE input END, result FROM payloads WHERE run = (SELECT num FROM runs WHERE id = $1)`, text(id))
	return p, err
}

// PutResult implements store.Tx.
func (t *tx) PutResult(id agent.RunID, result []byte) error {
	return t.enqueue(`INSERT INTO payloads (run, result) SELECT num, $2::bytea FROM runs WHERE id = $1
		ON CONFLICT (run) DO UPDATE SET result = excluded.result`, text(id), result)
}

// PutInput implements store.Tx.
func (t *tx) PutInput(id agent.RunID, input []byte) error {
	return t.enqueue(`INSERT INTO payloads AS p (run, input, replaced) SELECT num, $2::bytea, true FROM runs WHERE id = $1
		ON CONFLICT (run) DO UPDATE SET submitted = CASE WHEN p.replaced THEN p.submitted ELSE p.input END, input = excluded.input, replaced = true`,
		text(id), input)
}

// entriesQuery reads the journal of one run from a given entry on.
const entriesQuery = `SELECT e.seq, e.kind, e.key, e.at, e.data FROM entries e
	WHERE e.run = (SELECT num FROM runs WHERE id = $1) AND e.seq > $2 ORDER BY e.seq`

// Entries implements store.Rows.
func (t *tx) Entries(id agent.RunID, after int64) ([]durable.Entry, error) {
	return readAll(t, func(row pgx.CollectableRow) (e durable.Entry, err error) {
		return e, row.Scan(&e.Seq, (*text)(&e.Kind), (*text)(&e.Key), when{&e.At}, &e.Data)
	}, entriesQuery, text(id), after)
}

// eventsQuery reads some events of one run.
const eventsQuery = `SELECT e.seq, e.at, e.name, e.data FROM events e
	WHERE e.run = (SELECT num FROM runs WHERE id = $1) AND e.seq > $2 ORDER BY e.seq LIMIT $3`

// Events implements store.Rows.
func (t *tx) Events(id agent.RunID, after int64, limit int) ([]durable.Event, error) {
	return readAll(t, func(row pgx.CollectableRow) (durable.Event, error) {
		e := durable.Event{Run: id}
		err := row.Scan(&e.Seq, when{&e.At}, (*text)(&e.Name), &e.Data)
		return e, err
	}, eventsQuery, text(id), after, limit)
}

// AddEntries implements store.Tx.
func (t *tx) AddEntries(id agent.RunID, entries []durable.Entry) error {
	return t.enqueue(`INSERT INTO entries (run, seq, kind, key, at, data) SELECT r.num, n.*
		FROM runs r, unnest($2::bigint[], $3::text[], $4::text[], $5::timestamptz[], $6::bytea[]) n WHERE r.id = $1`,
		append([]any{text(id)}, entryColumns(entries)...)...)
}

func entryColumns(entries []durable.Entry) []any {
	return []any{
		column(entries, func(e durable.Entry) int64 { return e.Seq }),
		textsOf(entries, func(e durable.Entry) durable.EntryKind { return e.Kind }),
		textsOf(entries, func(e durable.Entry) string { return e.Key }),
		column(entries, func(e durable.Entry) time.Time { return e.At.Truncate(time.Microsecond) }),
		column(entries, func(e durable.Entry) []byte { return e.Data }),
	}
}

// AddEvents implements store.Tx.
func (t *tx) AddEvents(id agent.RunID, events []durable.Event) error {
	return t.enqueue(`INSERT INTO events (run, seq, at, name, data) SELECT r.num, n.*
		FROM runs r, unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::bytea[]) n WHERE r.id = $1`,
		append([]any{text(id)}, eventColumns(events)...)...)
}

func eventColumns(events []durable.Event) []any {
	return []any{
		column(events, func(e durable.Event) int64 { return e.Seq }),
		column(events, func(e durable.Event) time.Time { return e.At.Truncate(time.Microsecond) }),
		textsOf(events, func(e durable.Event) string { return e.Name }),
		column(events, func(e durable.Event) []byte { return e.Data }),
	}
}

// AddSignal implements store.Tx.
func (t *tx) AddSignal(s durable.Signal) error {
	return t.enqueue(`INSERT INTO signals (run, seq, kind, text, by, at) SELECT num, $2, $3, $4, $5, $6 FROM runs WHERE id = $1`,
		text(s.Run), s.Seq, text(s.Kind), text(s.Text), text(s.By), s.At)
}

// signalsQuery reads what an owner must learn about its runs, with one row for each signal.
const signalsQuery = `SELECT r.id, r.paused, r.cancel_reason, r.cancel_cause, coalesce(s.seq, 0), s.kind, s.text, s.by, s.at
	FROM runs r LEFT JOIN signals s ON s.run = r.num AND s.seq > r.handled
	WHERE r.owner = $1 AND r.owner <> '' AND (r.paused OR r.cancel_cause <> '' OR r.signals > r.handled) ORDER BY r.num, s.seq`

// Signals implements store.Rows.
func (t *tx) Signals(owner string) (all []store.Signalled, err error) {
	_, err = readAll(t, func(row pgx.CollectableRow) (struct{}, error) {
		var r store.Signalled
		var s durable.Signal
		err := row.Scan((*text)(&r.Run), &r.Paused, (*text)(&r.CancelReason), (*text)(&r.CancelCause),
			&s.Seq, (*text)(&s.Kind), (*text)(&s.Text), (*text)(&s.By), when{&s.At})
		all = store.AddSignalled(all, r, s)
		return struct{}{}, err
	}, signalsQuery, text(owner))
	return all, err
}

// clearAudit is a part of a statement that deletes runs and returns their IDs as gone: it removes the data of their audit records.
const clearAudit = `cleared AS (UPDATE audit a SET data = NULL FROM gone WHERE a.run = gone.id AND a.run <> '' AND a.data IS NOT NULL)`

// DeleteRun implements store.Tx.
func (t *tx) DeleteRun(id agent.RunID) error {
	return t.enqueue(`WITH gone AS (DELETE FROM runs WHERE id = $1 RETURNING id), `+clearAudit+` SELECT FROM gone`, text(id))
}

// pruneQuery deletes some of the runs that ended before a time, except those that others have locked, and returns their number. Their
// list is materialized: a plan that makes it again for each run would skip some.
const pruneQuery = `WITH old AS MATERIALIZED (
		SELECT num FROM runs WHERE ended < $1 ORDER BY ended, num LIMIT $2 FOR UPDATE SKIP LOCKED
	),
	gone AS (
		DELETE FROM runs r USING old WHERE r.num = old.num RETURNING r.id
	), ` + clearAudit + ` SELECT count(*) FROM gone`

// Prune implements store.Tx.
func (t *tx) Prune(before time.Time, limit int) (n int, err error) {
	var counts []int
	err = t.send(false, query(&counts, pgx.RowTo[int], pruneQuery, before, limit))
	for _, n := range counts {
		return n, err
	}
	return 0, err
}

// dueConditions are the conditions on the run r of each store.Cause, and dueTimes the columns in whose indexes they are.
var (
	dueConditions = [...]string{
		store.Expired:   `r.expires <= now() AND r.expires IS NOT NULL`,
		store.Overdue:   `r.answer_by <= now() AND r.answer_by IS NOT NULL AND r.status = 'waiting' AND r.expires IS NULL AND NOT r.paused`,
		store.Due:       `r.not_before <= now() AND r.status = 'pending'`,
		store.Unstarted: `r.start_by <= now() AND r.start_by IS NOT NULL AND r.ended IS NULL AND r.attempts = 0 AND (r.expires IS NULL OR r.expires <= now())`,
		store.Late:      `r.deadline <= now() AND r.deadline IS NOT NULL AND r.ended IS NULL AND r.cancel_cause = ''`,
	}
	dueTimes = [...]string{store.Expired: "expires", store.Overdue: "answer_by", store.Due: "not_before", store.Unstarted: "start_by", store.Late: "deadline"}
)

// dueQuery reads the first $1 runs of each store.Cause.
var dueQuery = func() string {
	var all []string
	for c, condition := range dueConditions {
		all = append(all, fmt.Sprintf(`(SELECT %d, r.id FROM runs r WHERE %s ORDER BY r.%s LIMIT $1)`, c, condition, dueTimes[c]))
	}
	return strings.Join(all, ` UNION ALL `)
}()

// Due implements store.Rows.
func (t *tx) Due(limit int) (map[store.Cause][]agent.RunID, error) {
	all := map[store.Cause][]agent.RunID{}
	_, err := readAll(t, func(row pgx.CollectableRow) (c store.Cause, err error) {
		var id agent.RunID
		err = row.Scan((*int)(&c), (*text)(&id))
		all[c] = append(all[c], id)
		return c, err
	}, dueQuery, limit)
	return all, err
}
