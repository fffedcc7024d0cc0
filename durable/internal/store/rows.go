package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// DB keeps the rows of a store. It is safe for concurrent use.
type DB interface {
	// Read calls f with a consistent view of the rows.
	Read(ctx context.Context, f func(Rows) error) error
	// Write calls f in a transaction, which an error undoes. Writes of a transaction are visible to its reads.
	Write(ctx context.Context, f func(Tx) error) error
	// Changes returns a channel as durable.Store.Changes describes it. It gets a value after transactions that called Tx.Notify.
	Changes(ctx context.Context) <-chan struct{}
	Close() error
}

// Run is the row of a run.
type Run struct {
	durable.Run

	// AnyWait is Update.AnyWait of the newest waits.
	AnyWait bool
	// Offer counts how often the run has become ready. Offered is when this offer was last recorded; zero while it is owed.
	Offer   int64
	Offered time.Time
	// Signals counts the run's signals. Handled is the number of the last one that a Commit has handled.
	Signals, Handled int64
	// Appended is the fingerprint of the Commit that ended the run or passed it on; nil if it was not the last Commit.
	Appended []byte
}

// Payload has the large values of a run. Submitted is its first input if Replaced is set.
type Payload struct {
	Input, Submitted, Result []byte
	Replaced                 bool
}

// Wait is the row of a wait, with the claim of the process that checks it.
type Wait struct {
	durable.Wait

	Checker      string
	CheckedUntil time.Time
}

// Token is the wait that a token was made for.
type Token struct {
	Run           agent.RunID
	Wait, Subject string
}

// Version is a version of a document. Newest is the number of the newest version; zero if the document was deleted.
type Version struct {
	durable.Document

	Newest int64
}

// Cause is why time changes a run.
type Cause int

// The causes, in the order in which they count.
const (
	Expired   Cause = iota // a lease has expired
	Overdue                // the deadline of an open wait of a waiting run that no process holds has passed
	Due                    // a pending run's NotBefore has come
	Unstarted              // StartBy has passed, no process holds the run, and its Attempts are zero
	Late                   // Deadline has passed, and no cancellation is requested
)

// Rows reads the rows of a store. What it returns shares no memory with the rows.
type Rows interface { //nolint:interfacebloat // one method for each question to a database
	// Now returns the time of the database, in microseconds.
	Now() time.Time
	// Runs returns runs by ID. IDs without a run are left out.
	Runs(ids ...agent.RunID) (map[agent.RunID]Run, error)
	// RunsByKey returns the runs with idempotency keys.
	RunsByKey(keys ...string) (map[string]Run, error)
	// List returns runs as durable.Catalogue.List does.
	List(f durable.Filter) ([]durable.Run, error)
	Queues() ([]durable.Needs, error)
	Services(keys ...durable.Key) (map[durable.Key]durable.Service, error)
	Owed(retry time.Duration, limit int) ([]durable.Offer, error)
	Payload(id agent.RunID) (Payload, error)
	Entries(id agent.RunID, after int64) ([]durable.Entry, error)
	Events(id agent.RunID, after int64, limit int) ([]durable.Event, error)
	// Signals returns the added context that the runs of an owner have not handled, in order.
	Signals(owner string) ([]Run, map[agent.RunID][]durable.Signal, error)
	// Waits returns the waits of runs, in order.
	Waits(id agent.RunID) ([]Wait, error)
	OpenWaits(f durable.WaitFilter) ([]durable.Wait, error)
	Token(hash [32]byte) (t Token, found bool, err error)
	Audit(f durable.AuditFilter) ([]durable.AuditRecord, error)
	Waivers() ([]durable.Waiver, error)
	// Document returns a version of a document; zero means the last one. It returns durable.ErrNotFound for a document or a version
	// that never existed.
	Document(kind, name string, version int64) (Version, error)
	Documents(kind, after string, limit int) ([]durable.Document, error)
	Setting(name string) ([]byte, error)
}

// Tx reads rows in a transaction, locks them and writes them.
type Tx interface { //nolint:interfacebloat // one method for each change of a table
	Rows

	// Lock is Runs, and keeps other transactions from changing the runs until this one ends.
	Lock(ids ...agent.RunID) (map[agent.RunID]Run, error)
	// Claim leases at most limit ready runs of queues: see Run.Start.
	Claim(owner string, ttl time.Duration, limit int, keys []durable.Key) ([]durable.Run, error)
	// LockDue locks at most limit runs that time changes for a cause.
	LockDue(c Cause, limit int) ([]Run, error)
	// LockWaiters locks the runs with an open wait for a child.
	LockWaiters(child agent.RunID) ([]Run, error)
	// LockChecks locks the waits that the owner checks, and the free ones that it may check.
	LockChecks(owner string, kinds []durable.WaitKind, hosts []string) (own, free []Wait, err error)
	// LockEnded locks at most limit runs that ended before a time.
	LockEnded(before time.Time, limit int) ([]agent.RunID, error)

	AddQueue(n durable.Needs) error
	AddRun(r Run, input []byte) error
	PutRun(r Run) error
	PutPayload(id agent.RunID, p Payload) error
	AddEntries(id agent.RunID, entries []durable.Entry) error
	AddEvents(id agent.RunID, events []durable.Event) error
	AddSignal(s durable.Signal) error
	// PutWaits replaces the waits of a run.
	PutWaits(id agent.RunID, waits []Wait) error
	// PutToken stores a token, in place of what it was made for before.
	PutToken(hash [32]byte, t Token) error
	// AddAudit numbers and stores records.
	AddAudit(records ...durable.AuditRecord) error
	PutWaiver(w durable.Waiver) error
	AddDocument(d durable.Document) error
	DropDocument(kind, name string) error
	// PutOffers records offers, except those that are not the newest of a ready run.
	PutOffers(offers ...durable.OfferID) error
	PutPoll(keys ...durable.Key) error
	// DeleteRuns deletes runs with all that belongs to them, and the data of their audit records.
	DeleteRuns(ids ...agent.RunID) error
	// PruneQueues deletes the queues without runs.
	PruneQueues() error
	PutSetting(name string, value []byte) error
	// Notify announces a change when the transaction ends.
	Notify()
}

// IsHeld reports whether a process holds the run.
func (r *Run) IsHeld(now time.Time) bool { return r.Owner != "" && now.Before(r.Expires) }

// IsOverdue reports whether the deadline of an open wait has passed.
func (r *Run) IsOverdue(now time.Time) bool { return HasPassed(r.AnswerBy, now) }

// HasPassed reports whether a time has come; zero never does.
func HasPassed(t, now time.Time) bool { return !t.IsZero() && !t.After(now) }

// Is reports whether the cause applies to the run.
func (c Cause) Is(r Run, now time.Time) bool {
	if r.Status.Ended() {
		return false
	}
	switch c {
	case Expired:
		return r.Owner != "" && !r.IsHeld(now)
	case Overdue:
		return r.Status == durable.StatusWaiting && !r.IsHeld(now) && !r.Paused && r.IsOverdue(now)
	case Due:
		return r.Status == durable.StatusPending && HasPassed(r.NotBefore, now)
	case Unstarted:
		return r.Attempts == 0 && !r.IsHeld(now) && HasPassed(r.StartBy, now)
	case Late:
		return r.CancelReason == "" && HasPassed(r.Deadline, now)
	}
	return false
}

// Start leases the run to an owner that executes it. A waiting run stays waiting.
func (r *Run) Start(owner string, ttl time.Duration, now time.Time) {
	if r.Status != durable.StatusWaiting {
		r.Status, r.Ready = durable.StatusRunning, time.Time{}
		r.Attempts++
	}
	r.Owner, r.Expires, r.Updated = owner, now.Add(ttl), now
	r.Epoch++
}

// isSatisfied reports whether a waiting run has nothing to wait for. Children are the runs of its open waits.
func (r *Run) isSatisfied(waits []Wait, children map[agent.RunID]Run) bool {
	open := 0
	for _, w := range waits {
		switch {
		case w.Answer != nil:
			if w.Answer.Ends || r.AnyWait {
				return true
			}
		case children[w.Child].Status.Ended():
			return true
		default:
			open++
		}
	}
	return open == 0
}

// setAnswerBy sets the first deadline of the open waits.
func (r *Run) setAnswerBy(waits []Wait) {
	r.AnswerBy = time.Time{}
	for _, w := range waits {
		if w.Answer == nil && !w.Deadline.IsZero() && (r.AnswerBy.IsZero() || w.Deadline.Before(r.AnswerBy)) {
			r.AnswerBy = w.Deadline
		}
	}
}

// CloneWait returns a wait that shares no memory with another.
func CloneWait(w durable.Wait) durable.Wait {
	w.Data = bytes.Clone(w.Data)
	w.Partial = slices.Clone(w.Partial)
	for i := range w.Partial {
		w.Partial[i].Data = bytes.Clone(w.Partial[i].Data)
	}
	w.Answer = cloneAnswer(w.Answer)
	return w
}

func cloneAnswer(a *durable.Answer) *durable.Answer {
	if a == nil {
		return nil
	}
	c := *a
	c.Data = bytes.Clone(c.Data)
	return &c
}

// CloneRecord returns a record that shares no memory with another.
func CloneRecord(r durable.AuditRecord) durable.AuditRecord {
	r.Answer = cloneAnswer(r.Answer)
	return r
}

// findWait returns the place of a wait with an ID; below zero if there is none.
func findWait(waits []Wait, id string) int {
	return slices.IndexFunc(waits, func(w Wait) bool { return w.ID == id })
}
