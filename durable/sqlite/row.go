package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// The types below store what a pointer points to, and scan into it.

// micros is a time as microseconds since 1970; NULL is the zero time.
type micros struct{ *time.Time }

// Value implements driver.Valuer.
func (m micros) Value() (driver.Value, error) {
	if m.IsZero() {
		return nil, nil
	}
	return m.UnixMicro(), nil
}

// Scan implements sql.Scanner.
func (m micros) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*m.Time = time.Time{}
	case int64:
		*m.Time = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time is stored as %T", v)
	}
	return nil
}

// asked is a time that is never NULL, so that its order is simple.
type asked struct{ micros }

// Value implements driver.Valuer.
func (a asked) Value() (driver.Value, error) { return a.UnixMicro(), nil }

// asJSON is a map, a slice or a pointer as JSON; NULL if it is empty.
type asJSON struct{ to any }

// Value implements driver.Valuer.
func (j asJSON) Value() (driver.Value, error) {
	if v := reflect.ValueOf(j.to).Elem(); v.IsZero() || v.Kind() != reflect.Pointer && v.Len() == 0 {
		return nil, nil
	}
	text, err := json.Marshal(j.to)
	return string(text), err
}

// Scan implements sql.Scanner.
func (j asJSON) Scan(v any) error {
	text, _ := v.(string)
	if text == "" || text == "{}" {
		reflect.ValueOf(j.to).Elem().SetZero()
		return nil
	}
	return json.Unmarshal([]byte(text), j.to)
}

// hash is 32 bytes; NULL if all are zero.
type hash struct{ to *[32]byte }

// Value implements driver.Valuer.
func (h hash) Value() (driver.Value, error) {
	if *h.to == [32]byte{} {
		return nil, nil
	}
	return h.to[:], nil
}

// Scan implements sql.Scanner.
func (h hash) Scan(v any) error {
	data, _ := v.([]byte)
	*h.to = [32]byte{}
	copy(h.to[:], data)
	return nil
}

// key is the key of a queue.
type key struct{ to *durable.Key }

// Scan implements sql.Scanner.
func (k key) Scan(v any) error {
	data, _ := v.([]byte)
	copy(k.to[:], data)
	return nil
}

// listKeys returns keys as a JSON list, in hexadecimal.
func listKeys(keys []durable.Key) string {
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = `"` + hex.EncodeToString(k[:]) + `"`
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// stored are the columns of runs that runFields has.
const stored = `id, session, kind, name, version, parent, root, after, turn, parent_session, calls_back, request_key,
	hook, has_hooks, holds_result, trace, phase, status, reason, blocked, paused, cancel_reason,
	cancel_cause, priority, idempotency_key, submitted_by, steps, attempts, entries, events, signals, handled, created, updated,
	ready, not_before, start_by, deadline,
	any_wait, answer_by, offer_seq, offered, appended, owner, epoch, leased, expires`

// runFields returns the fields of a run in the order of stored.
func runFields(r *store.Run) []any {
	return []any{
		&r.ID, &r.Session, &r.Kind, &r.Name, &r.Version, &r.Parent, &r.Root, &r.After, &r.Traits.Turn,
		&r.Traits.ParentSession, &r.Traits.CallsBack, &r.Traits.RequestKey, &r.Traits.Hook, &r.Traits.HasHooks, &r.Traits.HoldsResult, &r.Traits.Trace,
		&r.Phase, &r.Status, &r.Reason, &r.Blocked, &r.Paused,
		&r.CancelReason, &r.CancelCause, &r.Priority, &r.IdempotencyKey, &r.By, &r.Steps, &r.Attempts, &r.Entries, &r.Events, &r.Signals, &r.Handled,
		micros{&r.Created}, micros{&r.Updated}, micros{&r.Ready}, micros{&r.NotBefore}, micros{&r.StartBy}, micros{&r.Deadline}, &r.AnyWait,
		micros{&r.AnswerBy}, &r.Offer, micros{&r.Offered}, &r.Appended, &r.Owner, &r.Epoch, micros{&r.Leased}, micros{&r.Expires},
	}
}

// runColumns are the columns that scanRun reads. A run with a phase has its own demands, because its queue has others.
const runColumns = stored + `,
	iif(phase = '', (SELECT queues.demands FROM queues WHERE queues.id = runs.queue), runs.demands),
	(SELECT json_group_object(name, value) FROM labels WHERE run = runs.n)`

func scanRun(r *store.Run) []any { return append(runFields(r), asJSON{&r.Demands}, asJSON{&r.Labels}) }

var (
	storedNames = strings.Fields(strings.ReplaceAll(stored, ",", " "))
	insertRun   = `INSERT INTO runs (` + stored + `, queue, demands) VALUES (` + parameterList(len(storedNames)+2) + `) ON CONFLICT (id) DO NOTHING`
)

// parameterList returns parameters for a list of values.
func parameterList(n int) string { return "?" + strings.Repeat(", ?", n-1) }

// changedColumns returns the columns in which a run differs from the old one, and their new values.
func changedColumns(old, r store.Run) (columns []string, values []any, err error) {
	before, after := runFields(&old), runFields(&r)
	for i, name := range storedNames {
		was, err := driver.DefaultParameterConverter.ConvertValue(before[i])
		if err != nil {
			return nil, nil, err
		}
		is, err := driver.DefaultParameterConverter.ConvertValue(after[i])
		if err != nil {
			return nil, nil, err
		}
		if !reflect.DeepEqual(was, is) {
			columns, values = append(columns, name), append(values, is)
		}
	}
	return columns, values, nil
}

// phaseDemands returns the demands that the row of a run stores.
func phaseDemands(r *store.Run) asJSON {
	if r.Phase == "" {
		return asJSON{new(map[string]string)}
	}
	return asJSON{&r.Demands}
}

// waitColumns are the columns of a wait w and its run r.
const waitColumns = `r.id, w.id, w.kind, w.subject, w.tool, w.asked, w.deadline, w.child, w.host, w.token, w.data, w.checker, w.checked_until,
	w.partial, w.answered, w.ends, w.who, w.answer`

// waitRow is a wait with the columns of its deciding answer.
type waitRow struct {
	store.Wait

	answered sql.NullInt64 // its time; NULL if there is none
	decided  durable.Answer
}

func newWaitRow(w store.Wait) *waitRow {
	r := &waitRow{Wait: w}
	if w.Answer != nil {
		r.answered, r.decided = sql.NullInt64{Int64: w.Answer.At.UnixMicro(), Valid: true}, *w.Answer
	}
	return r
}

func waitFields(w *waitRow) []any {
	return []any{
		&w.Run, &w.ID, &w.Kind, &w.Subject, &w.Tool, asked{micros{&w.Asked}}, micros{&w.Deadline}, &w.Child, &w.Host, hash{&w.TokenHash},
		&w.Data, &w.Checker, micros{&w.CheckedUntil}, asJSON{&w.Partial}, &w.answered, &w.decided.Ends, &w.decided.By, &w.decided.Data,
	}
}

// readWaits returns the waits of a query for waitColumns.
func (v *view) readWaits(s selection) ([]store.Wait, error) {
	rows, err := scanAll(v, s, waitFields)
	var all []store.Wait
	for _, r := range rows {
		for i := range r.Partial {
			r.Partial[i].Wait, r.Partial[i].Subject = r.ID, r.Subject
		}
		if r.answered.Valid {
			r.decided.Wait, r.decided.Subject, r.decided.At = r.ID, r.Subject, time.UnixMicro(r.answered.Int64).UTC()
			r.Answer = &r.decided
		}
		all = append(all, r.Wait)
	}
	return all, err
}

func documentFields(d *store.Version) []any {
	return []any{&d.Kind, &d.Name, &d.Version, micros{&d.At}, &d.By, &d.Data, &d.Newest}
}
