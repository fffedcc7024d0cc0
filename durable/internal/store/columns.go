package store

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
)

// Column is a column of a table, with a pointer to its value in a row: a *string, *bool, *int, *int8, *int64, *[]byte, *time.Time, or
// one of the types below. The zero time is null.
type Column struct {
	Name  string
	Value any
}

// Moment is a time that is never null. Fixed points to an array of bytes, which is null if all are zero.
type (
	Moment time.Time
	Fixed  []byte
)

// Value implements driver.Valuer.
func (f Fixed) Value() (driver.Value, error) {
	if !slices.ContainsFunc(f, func(b byte) bool { return b != 0 }) {
		return nil, nil
	}
	return []byte(f), nil
}

// Scan implements sql.Scanner.
func (f Fixed) Scan(v any) error {
	data, _ := v.([]byte)
	clear(f)
	copy(f, data)
	return nil
}

// asJSON is a value as JSON text; an empty value is an empty text. Its strings are valid texts: see durable.Job and
// durable.CountDecisions.
type asJSON[T any] struct{ to *T }

func newJSON[T any](to *T) asJSON[T] { return asJSON[T]{to} }

// Value implements driver.Valuer.
func (j asJSON[T]) Value() (driver.Value, error) {
	if v := reflect.ValueOf(j.to).Elem(); v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0 {
		return "", nil
	}
	text, err := json.Marshal(j.to)
	return string(text), err
}

// Scan implements sql.Scanner.
func (j asJSON[T]) Scan(v any) error {
	*j.to = *new(T)
	var text sql.NullString
	if err := text.Scan(v); err != nil || text.String == "" || text.String == "{}" {
		return err
	}
	return json.Unmarshal([]byte(text.String), j.to)
}

// partial are the answers to a wait that did not decide.
type partial []durable.Answer

// partialAnswer is an answer without what its wait has. By may be any bytes.
type partialAnswer struct {
	At   time.Time `json:"at"`
	More bool      `json:"more,omitempty"`
	Ends bool      `json:"ends,omitempty"`
	By   []byte    `json:"by,omitempty"`
	Data []byte    `json:"data,omitempty"`
}

// Value implements driver.Valuer.
func (p *partial) Value() (driver.Value, error) {
	stored := lo.Map(*p, func(a durable.Answer, _ int) partialAnswer {
		return partialAnswer{wholeMicros(a.At), a.More, a.Ends, []byte(a.By), a.Data}
	})
	return newJSON(&stored).Value()
}

// Scan implements sql.Scanner.
func (p *partial) Scan(v any) error {
	var stored []partialAnswer
	err := newJSON(&stored).Scan(v)
	*p = nil
	for _, a := range stored {
		*p = append(*p, durable.Answer{At: a.At, More: a.More, Ends: a.Ends, By: string(a.By), Data: a.Data})
	}
	return err
}

// names returns the names of columns, each after a prefix.
func names(prefix string, columns []Column) []string {
	return lo.Map(columns, func(c Column, _ int) string { return prefix + c.Name })
}

func nameList(prefix string, columns []Column) string {
	return strings.Join(names(prefix, columns), ", ")
}

// jobColumns returns the columns of a run that stay as its job has them, except that Pass changes the phase.
func (r *Run) jobColumns() []Column {
	t := &r.Traits
	return []Column{
		{"id", (*string)(&r.ID)}, {"session", (*string)(&r.Session)}, {"kind", (*string)(&r.Kind)}, {"name", &r.Name},
		{"version", &r.Version}, {"parent", (*string)(&r.Parent)}, {"root", (*string)(&r.Root)}, {"after", (*string)(&r.After)},
		{"turn", (*string)(&t.Turn)}, {"parent_session", (*string)(&t.ParentSession)}, {"calls_back", &t.CallsBack},
		{"request_key", &t.RequestKey}, {"hook", &t.Hook}, {"has_hooks", &t.HasHooks}, {"holds_result", &t.HoldsResult},
		{"retry_of", (*string)(&t.RetryOf)}, {"past_hook", &t.PastHook}, {"because", &t.Because},
		{"trace", &t.Trace}, {"phase", (*string)(&r.Phase)}, {"priority", &r.Priority}, {"idempotency_key", &r.IdempotencyKey},
		{"submitted_by", &r.By}, {"start_by", &r.StartBy}, {"deadline", &r.Deadline}, {"created", &r.Created},
		{"summary", &r.Summary},
	}
}

// mutableColumns returns the columns of a run that change.
func (r *Run) mutableColumns() []Column {
	return []Column{
		{"status", (*string)(&r.Status)}, {"reason", (*string)(&r.Reason)}, {"blocked", &r.Blocked}, {"paused", &r.Paused},
		{"cancel_reason", &r.CancelReason}, {"cancel_cause", (*string)(&r.CancelCause)}, {"steps", &r.Steps}, {"attempts", &r.Attempts},
		{"entries", &r.Entries}, {"events", &r.Events}, {"signals", &r.Signals}, {"handled", &r.Handled}, {"appended", &r.Appended},
		{"updated", &r.Updated}, {"ended", &r.Ended}, {"idle", &r.Idle}, {"ready", &r.Ready},
		{"not_before", &r.NotBefore}, {"any_wait", &r.AnyWait}, {"answer_by", &r.AnswerBy}, {"offer_seq", &r.Offer},
		{"offered", &r.Offered}, {"owner", &r.Owner}, {"epoch", &r.Epoch}, {"expires", &r.Expires},
		{"outcome", &r.Outcome}, {"usage", newJSON(&r.Usage)}, {"decisions", newJSON(&r.Decisions)},
	}
}

// WaitRow is a wait with the columns of its deciding answer.
type WaitRow struct {
	Wait

	decided durable.Answer
}

// newWaitRow returns the row of a wait.
func newWaitRow(w Wait) *WaitRow {
	r := &WaitRow{Wait: w}
	if w.Answer != nil {
		r.decided = *w.Answer
	}
	return r
}

// columns returns the columns of the wait, without its run and its claim.
func (r *WaitRow) columns() []Column {
	return []Column{
		{"id", &r.ID}, {"kind", (*string)(&r.Kind)}, {"subject", &r.Subject}, {"tool", &r.Tool}, {"asked", (*Moment)(&r.Asked)},
		{"deadline", &r.Deadline}, {"child", (*string)(&r.Child)}, {"host", &r.Host}, {"token", Fixed(r.TokenHash[:])}, {"data", &r.Data},
		{"partial", (*partial)(&r.Partial)}, {"answered", &r.decided.At}, {"ends", &r.decided.Ends}, {"who", &r.decided.By},
		{"answer", &r.decided.Data},
	}
}

// claimColumns returns the columns of the wait's claim.
func (r *WaitRow) claimColumns() []Column {
	return []Column{{"checker", &r.Checker}, {"checked_until", &r.CheckedUntil}}
}

// Read returns the wait after its columns were read.
func (r *WaitRow) Read() Wait {
	for i := range r.Partial {
		r.Partial[i].Wait, r.Partial[i].Subject = r.ID, r.Subject
	}
	if !r.decided.At.IsZero() {
		r.decided.Wait, r.decided.Subject = r.ID, r.Subject
		r.Answer = &r.decided
	}
	return r.Wait
}

// recordRow is an audit record with the columns of its answer.
type recordRow struct {
	durable.AuditRecord

	answer durable.Answer
}

// newRecordRow returns the row of a record.
func newRecordRow(a durable.AuditRecord) *recordRow {
	r := &recordRow{AuditRecord: a}
	if a.Answer != nil {
		r.answer = *a.Answer
	}
	return r
}

// columns returns the columns of the record, without its number.
func (r *recordRow) columns() []Column {
	return []Column{
		{"at", &r.At}, {"kind", (*string)(&r.Kind)}, {"run", (*string)(&r.Run)}, {"subject", &r.Subject}, {"who", &r.By},
		{"wait", &r.answer.Wait}, {"about", &r.answer.Subject}, {"more", &r.answer.More}, {"ends", &r.answer.Ends},
		{"data", &r.answer.Data},
	}
}

// toRecord returns the record after its columns were read.
func (r *recordRow) toRecord() durable.AuditRecord {
	if r.Kind == durable.AuditAnswer {
		r.answer.At, r.answer.By = r.At, r.By
		r.Answer = &r.answer
	}
	return r.AuditRecord
}
