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

// runColumns are the columns that scanRun reads, of a table or alias named r.
const runColumns = `r.id, r.session, r.kind, r.name, r.version, r.parent, r.root, r.status, r.reason, r.blocked, r.paused, r.cancel_reason, r.cancel_cause,
	CASE WHEN r.phase = '' THEN (SELECT q.demands FROM queues q WHERE q.id = r.queue) ELSE r.demands END, r.labels, r.priority, r.idempotency_key,
	r.steps, r.attempts, r.entries, r.events, r.created, r.updated, r.ready, r.not_before, r.start_by, r.deadline, r.submitted_by, r.answer_by,
	r.owner, r.epoch, r.expires, r.phase, r.any_wait, r.offer_seq, r.offered, r.signals, r.handled, r.appended,
	r.after, r.turn, r.parent_session, r.calls_back, r.request_key, r.hook, r.has_hooks, r.holds_result, r.trace`

func scanRun(row pgx.CollectableRow) (r store.Run, err error) {
	err = row.Scan(runTargets(&r)...)
	return r, err
}

func runTargets(r *store.Run, more ...any) []any {
	return append([]any{
		(*text)(&r.ID), (*text)(&r.Session), (*text)(&r.Kind), (*text)(&r.Name), (*text)(&r.Version), (*text)(&r.Parent), (*text)(&r.Root),
		(*text)(&r.Status), (*text)(&r.Reason), &r.Blocked, &r.Paused, (*text)(&r.CancelReason), (*text)(&r.CancelCause),
		pairs{&r.Demands}, pairs{&r.Labels}, &r.Priority, (*text)(&r.IdempotencyKey),
		&r.Steps, &r.Attempts, &r.Entries, &r.Events, when{&r.Created}, when{&r.Updated}, when{&r.Ready}, when{&r.NotBefore}, when{&r.StartBy},
		when{&r.Deadline}, (*text)(&r.By), when{&r.AnswerBy}, (*text)(&r.Owner), &r.Epoch, when{&r.Expires}, (*text)(&r.Phase),
		&r.AnyWait, &r.Offer, when{&r.Offered}, &r.Signals, &r.Handled, &r.Appended,
		(*text)(&r.After), (*text)(&r.Traits.Turn), (*text)(&r.Traits.ParentSession), &r.Traits.CallsBack, (*text)(&r.Traits.RequestKey),
		(*text)(&r.Traits.Hook), &r.Traits.HasHooks, &r.Traits.HoldsResult, (*text)(&r.Traits.Trace),
	}, more...)
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
	runs, err := readAll(t, scanRun, `SELECT `+runColumns+` FROM runs r WHERE r.id = ANY ($1)`, texts(ids))
	return byID(runs), err
}

// RunsByKey implements store.Rows.
func (t *tx) RunsByKey(keys ...string) (map[string]store.Run, error) {
	if t.presumes {
		t.presumed = true
		return map[string]store.Run{}, nil
	}
	runs, err := readAll(t, scanRun, `SELECT `+runColumns+` FROM runs r WHERE r.idempotency_key = ANY ($1)`, texts(keys))
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
	return readAll(t, func(row pgx.CollectableRow) (durable.Run, error) {
		r, err := scanRun(row)
		return r.Run, err
	}, sql, args...)
}

// AddRuns implements store.Tx. If an ID is taken, sending the runs fails.
func (t *tx) AddRuns(runs ...store.NewRun) error {
	for _, r := range runs {
		t.addQueue(r.Needs())
	}
	t.added = append(t.added, runs...)
	return t.err
}

func insertRuns(b *pgx.Batch, runs []store.NewRun) {
	key := func(r store.NewRun) []byte { k := r.Needs().Key(); return k[:] }
	b.Queue(`INSERT INTO runs (id, session, kind, name, version, parent, root, labels, priority, idempotency_key, submitted_by, not_before, start_by,
			deadline, created, updated, phase, demands, queue, status, reason, steps, ready, offer_seq, owner, epoch, attempts, expires,
			after, turn, parent_session, calls_back, request_key, hook, has_hooks, holds_result, trace)
		SELECT n.id, n.session, n.kind, n.name, n.version, n.parent, n.root, n.labels, n.priority, nullif(n.idempotency_key, ''), n.submitted_by,
			n.not_before, n.start_by, n.deadline, n.created, n.created AS updated, n.phase, n.demands, (SELECT q.id FROM queues q WHERE q.key = n.queue),
			n.status, '', 0, n.ready, n.offer_seq, n.owner, n.epoch, n.attempts, n.expires,
			n.after, n.turn, n.parent_session, n.calls_back, n.request_key, n.hook, n.has_hooks, n.holds_result, n.trace
		FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::smallint[], $10::text[], $11::text[],
			$12::timestamptz[], $13::timestamptz[], $14::timestamptz[], $15::timestamptz[], $16::text[], $17::text[], $18::bytea[], $19::text[],
			$20::timestamptz[], $21::bigint[], $22::text[], $23::bigint[], $24::bigint[], $25::timestamptz[],
			$26::text[], $27::text[], $28::text[], $29::boolean[], $30::text[], $31::text[], $32::boolean[], $33::boolean[], $34::text[]) WITH ORDINALITY
			n (id, session, kind, name, version, parent, root, labels, priority, idempotency_key, submitted_by, not_before, start_by, deadline,
				created, phase, demands, queue, status, ready, offer_seq, owner, epoch, attempts, expires,
				after, turn, parent_session, calls_back, request_key, hook, has_hooks, holds_result, trace, place)
		ORDER BY n.place`,
		textsOf(runs, func(r store.NewRun) agent.RunID { return r.ID }),
		textsOf(runs, func(r store.NewRun) agent.SessionID { return r.Session }),
		textsOf(runs, func(r store.NewRun) durable.Kind { return r.Kind }),
		textsOf(runs, func(r store.NewRun) string { return r.Name }),
		textsOf(runs, func(r store.NewRun) string { return r.Version }),
		textsOf(runs, func(r store.NewRun) agent.RunID { return r.Parent }),
		textsOf(runs, func(r store.NewRun) agent.RunID { return r.Root }),
		column(runs, func(r store.NewRun) string { return pairsText(r.Labels) }),
		column(runs, func(r store.NewRun) int16 { return int16(r.Priority) }),
		textsOf(runs, func(r store.NewRun) string { return r.IdempotencyKey }),
		textsOf(runs, func(r store.NewRun) string { return r.By }),
		timesOf(runs, func(r store.NewRun) time.Time { return r.NotBefore }),
		timesOf(runs, func(r store.NewRun) time.Time { return r.StartBy }),
		timesOf(runs, func(r store.NewRun) time.Time { return r.Deadline }),
		timesOf(runs, func(r store.NewRun) time.Time { return r.Created }),
		textsOf(runs, func(r store.NewRun) durable.Kind { return r.Phase }),
		column(runs, func(r store.NewRun) string { return phaseDemands(r.Run) }),
		column(runs, key),
		textsOf(runs, func(r store.NewRun) durable.Status { return r.Status }),
		timesOf(runs, func(r store.NewRun) time.Time { return r.Ready }),
		column(runs, func(r store.NewRun) int64 { return r.Offer }),
		textsOf(runs, func(r store.NewRun) string { return r.Owner }),
		column(runs, func(r store.NewRun) int64 { return r.Epoch }),
		column(runs, func(r store.NewRun) int64 { return int64(r.Attempts) }),
		timesOf(runs, func(r store.NewRun) time.Time { return r.Expires }),
		textsOf(runs, func(r store.NewRun) agent.RunID { return r.After }),
		textsOf(runs, func(r store.NewRun) durable.Turn { return r.Traits.Turn }),
		textsOf(runs, func(r store.NewRun) agent.SessionID { return r.Traits.ParentSession }),
		column(runs, func(r store.NewRun) bool { return r.Traits.CallsBack }),
		textsOf(runs, func(r store.NewRun) string { return r.Traits.RequestKey }),
		textsOf(runs, func(r store.NewRun) string { return r.Traits.Hook }),
		column(runs, func(r store.NewRun) bool { return r.Traits.HasHooks }),
		column(runs, func(r store.NewRun) bool { return r.Traits.HoldsResult }),
		textsOf(runs, func(r store.NewRun) string { return r.Traits.Trace }))

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
		b.Queue(insertWaits, waitArguments(placeWaits(waits))...)
	}
}

type label struct {
	run         agent.RunID
	name, value string
}

// phaseDemands returns the demands that are in the row of the run. While it has no phase, its queue has them.
func phaseDemands(r store.Run) string {
	if r.Phase == "" {
		return ""
	}
	return pairsText(r.Demands)
}

// PutRun implements store.Tx.
func (t *tx) PutRun(old, r store.Run) error {
	if old.Phase != r.Phase {
		key := r.Needs().Key()
		t.addQueue(r.Needs())
		_ = t.enqueue(`UPDATE runs SET phase = $2, demands = $3, queue = (SELECT id FROM queues WHERE key = $4) WHERE id = $1`,
			text(r.ID), text(r.Phase), phaseDemands(r), key[:])
	}
	i := slices.IndexFunc(t.put, func(other store.Run) bool { return other.ID == r.ID })
	if i < 0 {
		t.put = append(t.put, r)
	} else {
		t.put[i] = r
	}
	return t.err
}

// updateRuns stores what can change of runs. Equal values in indexed columns change no index.
func updateRuns(b *pgx.Batch, runs []store.Run) {
	b.Queue(`UPDATE runs r SET status = n.status, reason = n.reason, blocked = n.blocked, paused = n.paused, cancel_reason = n.cancel_reason,
			cancel_cause = n.cancel_cause,
			steps = n.steps, attempts = n.attempts, entries = n.entries, events = n.events, signals = n.signals, handled = n.handled,
			appended = n.appended, updated = n.updated, ended = n.ended, ready = n.ready, offer_seq = n.offer_seq, offered = n.offered,
			any_wait = n.any_wait, answer_by = n.answer_by, owner = n.owner, epoch = n.epoch, expires = n.expires, not_before = n.not_before
		FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[], $5::boolean[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[],
			$11::bigint[], $12::bigint[], $13::bigint[], $14::bytea[], $15::timestamptz[],
			$16::timestamptz[], $17::timestamptz[], $18::bigint[], $19::timestamptz[],
			$20::boolean[], $21::timestamptz[], $22::text[], $23::bigint[], $24::timestamptz[], $25::timestamptz[])
			n (id, status, reason, blocked, paused, cancel_reason, cancel_cause, steps, attempts, entries, events, signals, handled, appended, updated, ended,
				ready, offer_seq, offered, any_wait, answer_by, owner, epoch, expires, not_before)
		WHERE r.id = n.id`,
		textsOf(runs, func(r store.Run) agent.RunID { return r.ID }),
		textsOf(runs, func(r store.Run) durable.Status { return r.Status }),
		textsOf(runs, func(r store.Run) agent.StopReason { return r.Reason }),
		column(runs, func(r store.Run) bool { return r.Blocked }),
		column(runs, func(r store.Run) bool { return r.Paused }),
		textsOf(runs, func(r store.Run) string { return r.CancelReason }),
		textsOf(runs, func(r store.Run) durable.CancelCause { return r.CancelCause }),
		column(runs, func(r store.Run) int64 { return int64(r.Steps) }),
		column(runs, func(r store.Run) int64 { return int64(r.Attempts) }),
		column(runs, func(r store.Run) int64 { return r.Entries }),
		column(runs, func(r store.Run) int64 { return r.Events }),
		column(runs, func(r store.Run) int64 { return r.Signals }),
		column(runs, func(r store.Run) int64 { return r.Handled }),
		column(runs, func(r store.Run) []byte { return r.Appended }),
		timesOf(runs, func(r store.Run) time.Time { return r.Updated }),
		timesOf(runs, func(r store.Run) time.Time {
			if r.Status.Ended() {
				return r.Updated
			}
			return time.Time{}
		}),
		timesOf(runs, func(r store.Run) time.Time { return r.Ready }),
		column(runs, func(r store.Run) int64 { return r.Offer }),
		timesOf(runs, func(r store.Run) time.Time { return r.Offered }),
		column(runs, func(r store.Run) bool { return r.AnyWait }),
		timesOf(runs, func(r store.Run) time.Time { return r.AnswerBy }),
		textsOf(runs, func(r store.Run) string { return r.Owner }),
		column(runs, func(r store.Run) int64 { return r.Epoch }),
		timesOf(runs, func(r store.Run) time.Time { return r.Expires }),
		timesOf(runs, func(r store.Run) time.Time { return r.NotBefore }))
}

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
const signalsQuery = `SELECT r.id, r.paused, r.cancel_reason, r.cancel_cause, s.seq, s.kind, s.text, s.by, s.at
	FROM runs r LEFT JOIN signals s ON s.run = r.num AND s.seq > r.handled
	WHERE r.owner = $1 AND r.owner <> '' AND (r.paused OR r.cancel_cause <> '' OR r.signals > r.handled) ORDER BY r.num, s.seq`

// Signals implements store.Rows.
func (t *tx) Signals(owner string) (all []store.Signalled, err error) {
	_, err = readAll(t, func(row pgx.CollectableRow) (struct{}, error) {
		var r store.Signalled
		var s durable.Signal
		var seq *int64
		err := row.Scan((*text)(&r.Run), &r.Paused, (*text)(&r.CancelReason), (*text)(&r.CancelCause),
			&seq, (*text)(&s.Kind), (*text)(&s.Text), (*text)(&s.By), when{&s.At})
		if len(all) == 0 || all[len(all)-1].Run != r.Run {
			all = append(all, r)
		}
		if seq != nil {
			s.Run, s.Seq = r.Run, *seq
			last := &all[len(all)-1]
			last.Added = append(last.Added, s)
		}
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
