package store

import (
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

// Column is a column of a table, with a pointer to its value in a row: a *string, *bool, *int, *int8, *int64, *[]byte, *[32]byte,
// *time.Time, *Moment, *map[string]string or *[]durable.Answer. Values that are empty may be stored as null, except texts, numbers and
// Moments.
type Column struct {
	Name  string
	Value any
}

// Moment is a time that is never null.
type Moment time.Time

// Names returns a list of the names of columns, each after a prefix.
func Names(prefix string, columns []Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = prefix + c.Name
	}
	return strings.Join(names, ", ")
}

// JobColumns returns the columns of a run that stay as its job has them, except that Pass changes the phase.
func (r *Run) JobColumns() []Column {
	t := &r.Traits
	return []Column{
		{"id", (*string)(&r.ID)}, {"session", (*string)(&r.Session)}, {"kind", (*string)(&r.Kind)}, {"name", &r.Name},
		{"version", &r.Version}, {"parent", (*string)(&r.Parent)}, {"root", (*string)(&r.Root)}, {"after", (*string)(&r.After)},
		{"turn", (*string)(&t.Turn)}, {"parent_session", (*string)(&t.ParentSession)}, {"calls_back", &t.CallsBack},
		{"request_key", &t.RequestKey}, {"hook", &t.Hook}, {"has_hooks", &t.HasHooks}, {"holds_result", &t.HoldsResult},
		{"trace", &t.Trace}, {"phase", (*string)(&r.Phase)}, {"priority", &r.Priority}, {"idempotency_key", &r.IdempotencyKey},
		{"submitted_by", &r.By}, {"start_by", &r.StartBy}, {"deadline", &r.Deadline}, {"created", &r.Created},
	}
}

// StateColumns returns the columns of a run that change.
func (r *Run) StateColumns() []Column {
	return []Column{
		{"status", (*string)(&r.Status)}, {"reason", (*string)(&r.Reason)}, {"blocked", &r.Blocked}, {"paused", &r.Paused},
		{"cancel_reason", &r.CancelReason}, {"cancel_cause", (*string)(&r.CancelCause)}, {"steps", &r.Steps}, {"attempts", &r.Attempts},
		{"entries", &r.Entries}, {"events", &r.Events}, {"signals", &r.Signals}, {"handled", &r.Handled}, {"appended", &r.Appended},
		{"updated", &r.Updated}, {"ready", &r.Ready}, {"not_before", &r.NotBefore}, {"any_wait", &r.AnyWait}, {"answer_by", &r.AnswerBy},
		{"offer_seq", &r.Offer}, {"offered", &r.Offered}, {"owner", &r.Owner}, {"epoch", &r.Epoch}, {"expires", &r.Expires},
	}
}

// WaitRow is a wait with the columns of its deciding answer.
type WaitRow struct {
	Wait

	decided durable.Answer
}

// NewWaitRow returns the row of a wait.
func NewWaitRow(w Wait) *WaitRow {
	r := &WaitRow{Wait: w}
	if w.Answer != nil {
		r.decided = *w.Answer
	}
	return r
}

// Columns returns the columns of the wait, without its run and its claim.
func (r *WaitRow) Columns() []Column {
	return []Column{
		{"id", &r.ID}, {"kind", (*string)(&r.Kind)}, {"subject", &r.Subject}, {"tool", &r.Tool}, {"asked", (*Moment)(&r.Asked)},
		{"deadline", &r.Deadline}, {"child", (*string)(&r.Child)}, {"host", &r.Host}, {"token", &r.TokenHash}, {"data", &r.Data},
		{"partial", &r.Partial}, {"answered", &r.decided.At}, {"ends", &r.decided.Ends}, {"who", &r.decided.By},
		{"answer", &r.decided.Data},
	}
}

// ClaimColumns returns the columns of the wait's claim.
func (r *WaitRow) ClaimColumns() []Column {
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

// RecordRow is an audit record with the columns of its answer.
type RecordRow struct {
	durable.AuditRecord

	answer durable.Answer
}

// NewRecordRow returns the row of a record.
func NewRecordRow(a durable.AuditRecord) *RecordRow {
	r := &RecordRow{AuditRecord: a}
	if a.Answer != nil {
		r.answer = *a.Answer
	}
	return r
}

// Columns returns the columns of the record, without its number.
func (r *RecordRow) Columns() []Column {
	return []Column{
		{"at", &r.At}, {"kind", (*string)(&r.Kind)}, {"run", (*string)(&r.Run)}, {"subject", &r.Subject}, {"who", &r.By},
		{"wait", &r.answer.Wait}, {"about", &r.answer.Subject}, {"more", &r.answer.More}, {"ends", &r.answer.Ends},
		{"data", &r.answer.Data},
	}
}

// Read returns the record after its columns were read.
func (r *RecordRow) Read() durable.AuditRecord {
	if r.Kind == durable.AuditAnswer {
		r.answer.At, r.answer.By = r.At, r.By
		r.Answer = &r.answer
	}
	return r.AuditRecord
}
