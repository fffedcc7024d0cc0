package store

import (
	"bytes"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// DB keeps the rows of a store. It is safe for concurrent use. Doing says what a call is for, in errors of the database. Errors that
// a function returns of itself are returned unchanged.
type DB interface {
	// Read calls f with the committed rows: each method of Rows sees them at a time of its own. It may call f again.
	Read(ctx context.Context, doing string, f func(Rows) error) error
	// Write calls f in a transaction, which an error undoes. Writes of a transaction are visible to its reads. It may call f again.
	Write(ctx context.Context, doing string, f func(Tx) error) error
	// Step makes a plain Commit in one statement if it fits, and reports whether it did. What it refuses goes through Write.
	Step(ctx context.Context, s Step) (done bool, err error)
	// Renew extends a lease in one statement if it is the newest one, and reports whether it did. What it refuses goes through Write.
	Renew(ctx context.Context, l durable.Lease, ttl time.Duration) (expires time.Time, done bool, err error)
	// Claim leases at most limit ready runs of queues: see Run.Start. Runs with a higher priority come first, then those that have
	// been ready longest, then the oldest. It writes nothing if there is no such run. Also, unless nil, is called in the transaction
	// that has leased runs; several may do so.
	Claim(ctx context.Context, owner string, ttl time.Duration, limit int, keys []durable.Key, also func(Tx, []durable.Run) error) ([]durable.Run, error)
	// Changes returns a channel as durable.Store.Changes describes it. It gets a value after transactions that called Tx.Notify.
	Changes(ctx context.Context) <-chan struct{}
	Close() error
}

// Step is a Commit of entries, events and changes of the summary alone, whose entries follow each other. It fits if the lease is the
// newest one, the run's entries end before the first of the Commit, and Appended is not the run's. A DB may refuse others,
// such as those that change the status.
type Step struct {
	Lease  durable.Lease
	Commit durable.Commit
	// Appended becomes the run's.
	Appended []byte
}

// Usage returns the stored form of the usage that replaces the run's; empty for none.
func (s *Step) Usage() driver.Valuer { return newJSON(&s.Commit.Update.Usage) }

// Run is the row of a run.
type Run struct {
	durable.Run

	// AnyWait is Update.AnyWait of the newest waits.
	AnyWait bool
	// Ended is zero while the run has not ended.
	Ended time.Time
	// Idle is Updated while the run has not ended and has no owner; otherwise zero. A step does not change it.
	Idle time.Time
	// Leased is when the lease was granted or renewed. A DB whose clock cannot be set back need not keep it.
	Leased time.Time
	// Offer counts how often the run has become ready. Offered is zero while this offer is owed; otherwise it is what Tx.PutOffers
	// has set.
	Offer   int64
	Offered time.Time
	// Signals counts the run's signals. Handled is the number of the last one that a Commit has handled.
	Signals, Handled int64
	// Appended is the fingerprint of the last Commit.
	Appended []byte
}

// NewRun is a run to store, with its input and its waits.
type NewRun struct {
	Run

	Input []byte
	Waits []Wait
}

// Payload has the large values of a run. Submitted is its first input.
type Payload struct{ Input, Submitted, Result []byte }

// Signalled is what a process must learn about a run that it holds: see durable.Holder.Signals.
type Signalled struct {
	Run          agent.RunID
	Paused       bool
	CancelReason string
	CancelCause  durable.CancelCause
	// Added is the added context that the run has not handled, in order.
	Added []durable.Signal
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

// Rows reads the rows of a store. What it returns shares no memory with the rows. For an unknown run it returns zero values.
type Rows interface { //nolint:interfacebloat // one method for each question to a database
	// Now returns the time of the database, in microseconds. In a transaction that has locked a run, it is a time since then.
	Now() time.Time
	// Runs returns runs by ID. IDs without a run are left out.
	Runs(ids ...agent.RunID) (map[agent.RunID]Run, error)
	// RunsByKey returns the runs with idempotency keys.
	RunsByKey(keys ...string) (map[string]Run, error)
	// List returns runs as durable.Catalogue.List does. Filters have a Limit, and name each status or kind once.
	List(f durable.Filter) ([]Run, error)
	// Count returns how many runs List would return.
	Count(f durable.Filter) (int, error)
	// RuleCounts returns the sums of the counts since a day, in any order.
	RuleCounts(since int64) ([]durable.RuleCount, error)
	// Due returns at most limit runs for each Cause that applies to them now.
	Due(now time.Time, limit int) (map[Cause][]agent.RunID, error)
	Queues() ([]durable.Needs, error)
	Services(keys ...durable.Key) (map[durable.Key]durable.Service, error)
	// LastPolls returns when workers last polled queues; zero for never. Unknown queues are left out.
	LastPolls(keys ...durable.Key) (map[durable.Key]time.Time, error)
	Owed(retry time.Duration, limit int) ([]durable.Offer, error)
	Payload(id agent.RunID) (Payload, error)
	Entries(id agent.RunID, after int64) ([]durable.Entry, error)
	Events(id agent.RunID, after int64, limit int) ([]durable.Event, error)
	// CountEvents returns the EventCounts events of a run.
	CountEvents(id agent.RunID) ([]durable.Event, error)
	// Signals returns the runs of an owner that are paused, to be cancelled, or have added context to handle.
	Signals(owner string) ([]Signalled, error)
	// Waits returns the waits of a run, in order.
	Waits(id agent.RunID) ([]Wait, error)
	OpenWaits(f durable.WaitFilter) ([]Wait, error)
	// Checks returns at most limit open waits of runs that wait and are not paused: those that the owner checks, then those that it
	// may check, the oldest of each first. A transaction locks them.
	Checks(owner string, kinds []durable.WaitKind, hosts []string, limit int) ([]Wait, error)
	Token(hash [32]byte) (t Token, found bool, err error)
	Audit(f durable.AuditFilter) ([]durable.AuditRecord, error)
	Waivers() ([]durable.Waiver, error)
	// Document returns a version of a document; zero means the last one.
	Document(kind, name string, version int64) (v Version, found bool, err error)
	Documents(kind, after string, limit int) ([]durable.Document, error)
	// DocumentsBefore returns the documents before a name, unless that is empty, the last one first.
	DocumentsBefore(kind, before string, limit int) ([]durable.Document, error)
	Setting(name string) ([]byte, error)
	// Settings returns the values of the settings whose names begin with a prefix.
	Settings(prefix string) ([][]byte, error)
}

// Tx reads rows in a transaction, locks them and writes them. A write gets the old row, so that it need not change all of it.
type Tx interface { //nolint:interfacebloat // one method for each change of a table
	Rows

	// Lock is Runs, and keeps other transactions from changing the runs until this one ends.
	Lock(ids ...agent.RunID) (map[agent.RunID]Run, error)
	// LockFree is Lock, except that it leaves out runs that other transactions have locked.
	LockFree(ids ...agent.RunID) (map[agent.RunID]Run, error)
	// LockWaiters locks the runs with an open wait for a child.
	LockWaiters(child agent.RunID) ([]Run, error)

	// AddRuns stores runs, and their queues. It returns durable.ErrExists if an ID is taken.
	AddRuns(runs ...NewRun) error
	// PutRun stores a run, and its queue if the phase is another.
	PutRun(old, r Run) error
	PutResult(id agent.RunID, result []byte) error
	// PutInput replaces the input of a run. The first one stays as Payload.Submitted.
	PutInput(id agent.RunID, input []byte) error
	AddEntries(id agent.RunID, entries []durable.Entry) error
	AddEvents(id agent.RunID, events []durable.Event) error
	AddSignal(s durable.Signal) error
	// AddRuleCounts adds to the counts of a day. The counts are sorted.
	AddRuleCounts(day int64, counts ...durable.RuleCount) error
	// PutWaits replaces the waits of a run.
	PutWaits(id agent.RunID, old, waits []Wait) error
	// PutChecker stores the claims of waits.
	PutChecker(waits ...Wait) error
	// PutToken stores a token, in place of what it was made for before.
	PutToken(hash [32]byte, t Token) error
	// AddAudit numbers and stores records.
	AddAudit(records ...durable.AuditRecord) error
	PutWaiver(w durable.Waiver) error
	// AddDocument stores the next version of a document that has no newest version, and returns its number. Otherwise it returns zero.
	AddDocument(d durable.Document) (version int64, err error)
	// AddNewDocument stores the first version of a document. It returns durable.ErrExists if there is one of the name.
	AddNewDocument(d durable.Document) error
	DropDocument(kind, name string) error
	// PutOffers records offers, except those that are not the newest of a ready run.
	PutOffers(offers ...durable.OfferID) error
	PutPoll(at time.Time, keys ...durable.Key) error
	// DeleteRun deletes a run with all that belongs to it, and the data of its audit records.
	DeleteRun(id agent.RunID) error
	// Prune deletes at most limit runs that ended before a time, as DeleteRun does, and returns their number.
	Prune(before time.Time, limit int) (int, error)
	// PruneQueues deletes the queues without runs.
	PruneQueues() error
	// PutSetting sets a value; nil removes it.
	PutSetting(name string, value []byte) error
	// Notify announces a change when the transaction ends.
	Notify()
}

// Skew is how far in the future a lease may have been granted: clocks are often corrected by small amounts. A clock that is set
// back by more cannot make a lease eternal.
const Skew = 5 * time.Second

// IsHeld reports whether a process holds the run.
func (r *Run) IsHeld(now time.Time) bool {
	return r.Owner != "" && now.Before(r.Expires) && !r.Leased.After(now.Add(Skew))
}

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
		return r.CancelCause == "" && HasPassed(r.Deadline, now)
	}
	return false
}

// Start leases the run to an owner that executes it. A waiting run stays waiting.
func (r *Run) Start(owner string, ttl time.Duration, now time.Time) {
	if r.Status != durable.StatusWaiting {
		r.Status, r.Ready = durable.StatusRunning, time.Time{}
		r.Attempts++
	}
	r.Owner, r.Leased, r.Expires, r.Updated = owner, now, now.Add(ttl), now
	r.Epoch++
}

// setIdle sets when the run has changed, if no process holds it.
func (r *Run) setIdle() {
	if r.Idle = r.Updated; r.Owner != "" || r.Status.Ended() {
		r.Idle = time.Time{}
	}
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

// cloneWait returns a wait that shares no memory with another.
func cloneWait(w durable.Wait) durable.Wait {
	w.Data = bytes.Clone(w.Data)
	w.Partial = slices.Clone(w.Partial)
	for i := range w.Partial {
		w.Partial[i].Data = bytes.Clone(w.Partial[i].Data)
	}
	w.Answer = cloneAnswer(w.Answer)
	return w
}

// CloneWaits returns waits that share no memory with others.
func CloneWaits(waits []Wait) []Wait {
	waits = slices.Clone(waits)
	for i := range waits {
		waits[i].Wait = cloneWait(waits[i].Wait)
	}
	return waits
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
