package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Store keeps runs of every kind: their jobs, leases, journals, events, signals and waits, an audit log,
// documents, and one switch that denies every tool. The data of jobs, entries, events, signals, waits, waivers
// and documents is opaque to it.
//
// Every method is atomic: it takes effect completely or not at all. A reported success survives the
// end of the process, and a crash of the machine if the store promises it. A Store must be safe for
// concurrent use, by several processes at once as well. Errors that are not about the request, such
// as a lost database, are returned unchanged: either nothing was done, or the same call may be
// repeated with the same outcome. Every method that takes the ID of a run returns ErrNotFound for an
// unknown run.
//
// Package durabletest has the tests that every Store must pass.
type Store interface {
	Holder
	Queue
	Inbox
	Catalogue
	Audits
	Documents

	// Close releases the resources of the store.
	Close() error
}

// Reader is the part of a Store that reads one run.
type Reader interface {
	// Run returns the summary of a run.
	Run(ctx context.Context, id agent.RunID) (Run, error)
	// Input returns the input of the job, as Job.Prepare returned it: see InputOf.
	Input(ctx context.Context, id agent.RunID) ([]byte, error)
	// Entries returns the journal of a run after the entry with the given number, in order; after
	// zero, all of it.
	Entries(ctx context.Context, id agent.RunID, after int64) ([]Entry, error)
	// Waits returns what a run waits for, in order, including what has happened. Without the key of their data, it returns the waits
	// without it and a *DecryptError.
	Waits(ctx context.Context, id agent.RunID) ([]Wait, error)
}

// Holder is the part of a Store that a process uses while it executes runs: it leases them, writes their journals, and learns about
// signals. A process that executes runs of a remote store needs nothing else of it.
type Holder interface {
	Reader

	// Begin stores a job as a running run and leases it to owner at once, whatever its demands and
	// NotBefore are. It returns ErrExists when the ID or the idempotency key is taken. Stores call
	// Job.PrepareToBegin first.
	Begin(ctx context.Context, j Job, owner string, ttl time.Duration) (Lease, error)
	// Acquire leases one run that has not ended; a ready or pending run becomes running. It returns a
	// *HeldError for a run that another process holds, unless that lease has expired or take is TakeOver;
	// then the epoch increases by one, and the process that held it before can no longer write. The same
	// applies to an owner that acquires a run it already holds. A run that has ended is ErrEnded.
	Acquire(ctx context.Context, id agent.RunID, owner string, ttl time.Duration, take Take) (Lease, error)
	// Commit adds to the journal and the events of a leased run, updates its summary, and submits
	// jobs, all or nothing. The entries must continue the journal's Seqs; otherwise it
	// returns a *SeqError. It returns ErrStale when the lease is not the newest; an expired lease is
	// valid until another process takes the run or Reconcile frees it. A Commit that ended the run or passed it
	// on may be repeated, until another Commit changes the run: if all its values are equal, it changes nothing
	// and succeeds. A store whose replies can be lost
	// also takes any other Commit for a repetition of the last one if all its values are equal and
	// it has entries, events, records, a document, or jobs with IDs: see Commit.Fingerprint. Callers that may repeat a Commit give its
	// jobs IDs. Stores call Commit.Check first.
	Commit(ctx context.Context, l Lease, c Commit) error
	// Renew extends a lease to ttl from now. It returns ErrStale when the lease is not the newest.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release gives a lease up, so that the next process need not wait: a running run becomes ready, or
	// pending until delay has passed when delay is above zero. A waiting run whose waits have happened
	// becomes ready, and a paused run waits. It returns ErrStale when the lease is not the newest. A lease
	// that was released, by Release or by the end of the run, is stale, too.
	Release(ctx context.Context, l Lease, delay time.Duration) error
	// Signals returns the signals for the runs that an owner holds and that they have not handled:
	// pause and cancel as long as they apply, context until a Commit handles it. The signals of a run
	// follow each other: added context in the order in which it was sent, then pause, then cancel.
	Signals(ctx context.Context, owner string) ([]Signal, error)
	// DenyTools returns the switch that denies every tool, of all runs of this store.
	DenyTools(ctx context.Context) (Switch, error)
	// Changes returns a channel that receives a value soon after runs may have become ready or a signal
	// was sent, by any process; it holds one value at most. It is closed when ctx is done
	// or the store is closed. Receivers also look by themselves now and then, because a store may miss
	// changes of other processes while its connection is interrupted.
	Changes(ctx context.Context) <-chan struct{}
}

// Queue is the part of a Store that delivers ready runs to workers. Each time a run becomes ready, the store owes it one offer with
// the next number: to a Scheduler that delivers through a system of its own.
type Queue interface {
	// Claim leases at most limit ready runs whose needs have one of the keys, and returns them as
	// running. Runs with a higher priority come first, then those that have been ready longest. Each ready
	// run is claimed by one caller only.
	Claim(ctx context.Context, owner string, ttl time.Duration, limit int, keys ...Key) ([]Run, error)
	// Queues returns the needs of all runs that have not ended, in no particular order. A store may also
	// return needs of runs that have ended.
	Queues(ctx context.Context) ([]Needs, error)
	// QueueServices returns how the queues of the keys are served. It has no entry for a key that no run has had.
	QueueServices(ctx context.Context, keys ...Key) (map[Key]Service, error)
	// RecordPoll records that a worker looks for runs with these keys: see Service.LastPoll. It ignores keys
	// that no run has had.
	RecordPoll(ctx context.Context, keys ...Key) error
	// RecordWorker records that a worker is connected. A record without Kinds says only that it still is, if it was recorded before. The
	// store sets Seen, and need not write a record that is equal to one of the last ten seconds. RecordWorker has no companion.
	RecordWorker(ctx context.Context, w WorkerRecord) error
	// Workers returns the workers that were recorded in the last ten minutes, by their owners.
	Workers(ctx context.Context) ([]WorkerRecord, error)
	// Reconcile makes runs ready whose lease has expired, whose open waits have passed their
	// deadline, or whose NotBefore has come. It cancels runs whose Deadline has passed, as SignalCancel
	// does, and those that did not start by StartBy and that no process holds. It handles at most a few
	// thousand runs; Done is false when there may be more. It may leave runs that another call is changing to the next one.
	Reconcile(ctx context.Context) (Reconciled, error)
	// Owed returns at most limit offers of ready runs, those that are owed longest first: offers that
	// RecordOffers has not recorded, and those that it last recorded long enough ago. That is as long as the
	// run had been ready then, so that the pauses double, but at least retry and otherwise at most an hour.
	Owed(ctx context.Context, retry time.Duration, limit int) ([]Offer, error)
	// RecordOffers records that offers were made. It ignores offers that are not the newest of their run.
	RecordOffers(ctx context.Context, offers ...OfferID) error
	// Prune deletes the runs that ended before a time, and returns their number. It may delete in
	// batches, so that other processes need not wait: then an error may come with a count. It may leave runs that another call is
	// changing to the next one.
	Prune(ctx context.Context, before time.Time) (int, error)
}

// Lister is the part of a Catalogue that shows runs.
type Lister interface {
	Reader

	// List returns the runs that a filter selects, newest first.
	List(ctx context.Context, f Filter) ([]Run, error)
	// Events returns at most limit events of a run after the event with the given number, in order.
	Events(ctx context.Context, id agent.RunID, after int64, limit int) ([]Event, error)
	// SubmittedInput returns the input that the job was submitted with: Reader.Input, unless a Pass has replaced it.
	SubmittedInput(ctx context.Context, id agent.RunID) ([]byte, error)
	// Result returns the data that the run ended with: see Update.Result. It is empty before the end.
	Result(ctx context.Context, id agent.RunID) ([]byte, error)
}

// Catalogue is the part of a Store that accepts jobs, and shows, steers and removes their runs.
type Catalogue interface {
	Lister

	// Submit stores jobs as runs and returns the runs in the same order. Jobs with a NotBefore in the
	// future are pending, those with an After that has not ended wait for it, others are ready. For a job
	// whose idempotency key is known it returns the run of the first job with that key, which may have any
	// status. It returns ErrExists when an ID is taken and ErrNotFound for an unknown After; then it stores
	// none of the jobs.
	Submit(ctx context.Context, jobs ...Job) ([]Run, error)
	// Count returns how many runs List would return. It reads no run.
	Count(ctx context.Context, f Filter) (int, error)
	// RuleCounts returns how often hooks were called since the beginning of a day in UTC, the day of a time, sorted by agent and hook.
	// Decisions count when they are stored, and passes that are only counted, as EventCounts, when their run ends: each once. So does a
	// submitted job with Traits.PastHook, which overrides the hook. Counts stay when runs are deleted.
	RuleCounts(ctx context.Context, since time.Time) ([]RuleCount, error)
	// Signal sends a signal to a run: see SignalKind. It does nothing and returns no error when the run
	// has ended. The store sets the number and the time.
	Signal(ctx context.Context, id agent.RunID, s Signal) error
	// SetDenyTools sets the switch that denies every tool.
	SetDenyTools(ctx context.Context, s Switch) error
	// Delete removes a run with all its data. It returns a *HeldError while a process holds the run.
	Delete(ctx context.Context, id agent.RunID) error
}

// Reconciled counts the runs that a call of Reconcile has changed.
type Reconciled struct {
	// Expired had a lease that was not renewed.
	Expired int
	// Overdue had a question whose deadline has passed.
	Overdue int
	// Due were pending.
	Due int
	// Late have passed Job.StartBy or Job.Deadline.
	Late int
	// Done reports whether nothing was left to do.
	Done bool
}

// Changed reports whether any run was changed.
func (r Reconciled) Changed() bool { return r.Expired+r.Overdue+r.Due+r.Late > 0 }

// Commit is what the holder of a lease writes in one transaction.
type Commit struct {
	// Entries are added to the journal.
	Entries []Entry
	// Events are added to the events of the run, their decisions to Run.Decisions, and the calls of hooks to RuleCounts. The store numbers
	// them.
	Events []Event
	// Update changes the summary of the run.
	Update Update
	// Jobs are submitted: children, and jobs that follow this run. Each must be valid and its ID free,
	// or its idempotency key known; a known key submits nothing. They are submitted after Update: a job whose
	// After is this run need not wait if the Commit ends the run.
	Jobs []Job
	// Records are added to the audit log: answers that people gave while the run executed. Each is of kind AuditAnswer, with an
	// Answer, and about the run of the lease. At is the time of the answer, by the clock of the writer.
	Records []AuditRecord
	// Document, unless nil, is stored as the next version of a document: see Documents.PutDocument, whose ErrConflict is then that
	// of the Commit.
	Document *Document
	// HandledSignals, unless zero, is the number of the last signal with added context that the run has
	// taken into account.
	HandledSignals int64
}

// Run is the summary of a run, which a store returns without reading its journal.
type Run struct {
	ID      agent.RunID     `json:"id"`
	Session agent.SessionID `json:"session"`
	Kind    Kind            `json:"kind"`
	// Name and Version are those of the job.
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	// Phase, unless empty, is the kind of the Runner that has the run now, in place of Kind: see Pass.
	Phase Kind `json:"phase,omitempty"`
	// Parent is the run that started this one, and Root the topmost ancestor.
	Parent agent.RunID `json:"parent,omitempty"`
	Root   agent.RunID `json:"root,omitempty"`
	// After and Traits are the job's.
	After  agent.RunID `json:"after,omitempty"`
	Traits Traits      `json:"traits,omitzero"`
	// Status is what the run is doing or how it ended; Reason is why it ended.
	Status Status           `json:"status"`
	Reason agent.StopReason `json:"reason,omitempty"`
	// Blocked is set when the run failed because a hook did not accept it.
	Blocked bool `json:"blocked,omitempty"`
	// Paused is set while the run is paused: no process executes it until SignalResume.
	Paused bool `json:"paused,omitempty"`
	// CancelReason is the reason of a requested cancellation; empty when none is requested.
	CancelReason string `json:"cancel_reason,omitempty"`
	// CancelCause is why the cancellation was requested; empty when none is requested.
	CancelCause CancelCause `json:"cancel_cause,omitempty"`
	// Demands, Labels, Priority and IdempotencyKey are those of the job.
	Demands        map[string]string `json:"demands,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Priority       int8              `json:"priority,omitempty"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"`
	// Steps is how many steps the run has taken. Attempts is how often a process began to execute the run in its
	// current Phase.
	Steps    int `json:"steps"`
	Attempts int `json:"attempts"`
	// Entries is the number of the last entry of the journal, Events that of the last event.
	Entries int64 `json:"entries"`
	Events  int64 `json:"events"`
	// Summary is the beginning of the first input on one line, and Outcome the beginning of the result or error.
	Summary string `json:"summary,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	// Usage is what the run has used up to its last step.
	Usage Usage `json:"usage,omitzero"`
	// Decisions counts what hooks have decided.
	Decisions []DecisionCount `json:"hook_decisions,omitempty"`
	// Created and Updated are by the clock of the store; Updated is when the run last changed, except by Renew. Ready is
	// since when it has been ready; zero while it is not.
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Ready   time.Time `json:"ready,omitzero"`
	// NotBefore, StartBy and Deadline are those of the job; a Release with a delay sets NotBefore.
	NotBefore time.Time `json:"not_before,omitzero"`
	StartBy   time.Time `json:"start_by,omitzero"`
	Deadline  time.Time `json:"deadline,omitzero"`
	// By is who submitted the job: see Job.By.
	By string `json:"by,omitempty"`
	// AnswerBy is when the first open wait expires; zero for never.
	AnswerBy time.Time `json:"answer_by,omitzero"`
	// Owner holds the newest lease, Epoch is its number, counted from one, and Expires
	// when it runs out. Owner is empty when it was released.
	Owner   string    `json:"owner,omitempty"`
	Epoch   int64     `json:"epoch"`
	Expires time.Time `json:"expires,omitzero"`
}

// Lease returns the newest lease of the run; its Owner is empty when it was released.
func (r Run) Lease() Lease {
	return Lease{Run: r.ID, Owner: r.Owner, Epoch: r.Epoch, Expires: r.Expires}
}

// Needs returns what a worker must offer to run it.
func (r Run) Needs() Needs { return needsOf(r.Phase, r.Kind, r.Name, r.Demands) }

// Lease is the right to write to the journal of one run. Of two leases of a run only the one with the
// higher epoch is valid.
type Lease struct {
	Run     agent.RunID
	Owner   string
	Epoch   int64
	Expires time.Time
}

// Take says how Acquire treats a run that another process holds.
type Take uint8

// The modes of Acquire.
const (
	// TakeFree acquires only a run that no process holds.
	TakeFree Take = iota
	// TakeOver acquires in any case: the caller knows that the holder has exited.
	TakeOver
)

// EntryKind is the kind of a journal entry. The store does not interpret it.
type EntryKind string

// Entry is one entry of a journal.
type Entry struct {
	// Seq counts the entries of a run from one.
	Seq  int64     `json:"seq"`
	Kind EntryKind `json:"kind"`
	// Key identifies the subject among entries of the same kind: a call id, or the name given to
	// Keeper.Once.
	Key string `json:"key,omitempty"`
	// At is when it was written, by the clock of the writer.
	At time.Time `json:"at"`
	// Data is the content of the entry.
	Data []byte `json:"data,omitempty"`
}

// Update is the change that a Commit makes to the summary of a run. Its zero value changes nothing.
type Update struct {
	// Status, Reason, Blocked and Steps replace the old ones; an empty Status leaves all four unchanged.
	// Status is StatusRunning, StatusWaiting or an end. An end releases the lease, too, removes the
	// waits, and makes runs ready that wait for this one. A waiting run keeps its lease until
	// Release.
	Status  Status
	Reason  agent.StopReason
	Blocked bool
	Steps   int
	// Usage, unless zero, replaces Run.Usage.
	Usage Usage
	// Result is what the run ended with. It is stored with an end only; Run.Outcome is then OutcomeOf it.
	Result []byte
	// Waits, unless nil, replaces all waits of the run: an empty list removes them. What was recorded for the same
	// wait and hash is kept: the claim, the answers, and the token unless another is given. Answers given here are stored
	// where none were recorded.
	Waits []Wait
	// AnyWait, with Waits, says that the run is ready when one of them has happened, instead of all.
	AnyWait bool
	// Pass, unless nil, passes the run on to another phase. Status must be empty and Waits nil.
	Pass *Pass
}

// Pass passes a run on to the workers of another phase. It releases the lease and removes the waits of the run; the run becomes
// ready, or waits if it is paused. A run whose cancellation is requested becomes ready even if it is paused, so that the
// next worker ends it. Its Attempts are zero again: Job.StartBy limits the start of the last phase, and a cancellation that is
// requested before the next process begins ends the run at once.
type Pass struct {
	// Phase is the kind of the Runner that has the run next; empty means a Runner of the run's Kind.
	Phase Kind
	// Input, unless nil, replaces the input of the run; SubmittedInput returns the first one. It has the form of Reader.Input:
	// to keep the limits of the job, pass the Input that Job.Prepare returns for a job with these Limits.
	Input []byte
}

// Check returns an error for a Commit that a store must not accept, whatever the run is. Stores call it first.
func (c Commit) Check() error {
	u := c.Update
	switch {
	case u.Pass != nil && u.Status != "":
		return fmt.Errorf("a commit cannot pass a run on and set status %q: leave the status empty", u.Status)
	case u.Pass != nil && u.Waits != nil:
		return errors.New("a commit cannot pass a run on and set its waits: leave the waits nil, Pass removes them")
	case c.Document != nil && c.Document.Check() != nil:
		return c.Document.Check()
	case u.Status == "", u.Status == StatusRunning, u.Status == StatusWaiting, u.Status.Ended():
		return nil
	}
	return fmt.Errorf("a commit cannot set status %q: use %s, %s or an end", u.Status, StatusRunning, StatusWaiting)
}

// ReleasesLease reports whether the Commit releases the lease: it ends the run or passes it on.
func (c Commit) ReleasesLease() bool { return c.Update.Status.Ended() || c.Update.Pass != nil }

// Filter selects runs. The zero Filter selects all.
type Filter struct {
	// Status, unless empty, lists the selected statuses.
	Status []Status
	// Kind, Phase, Name, Session and Parent, unless empty, must be equal.
	Kind    Kind
	Phase   Kind
	Name    string
	Session agent.SessionID
	Parent  agent.RunID
	// Sessions, unless empty, lists the selected sessions.
	Sessions []agent.SessionID
	// After, RetryOf, ParentSession, Turn and RequestKey, unless empty, must be equal.
	After         agent.RunID
	RetryOf       agent.RunID
	ParentSession agent.SessionID
	Turn          Turn
	RequestKey    string
	// HasTurn selects only runs with a Turn, and LastTurn only the newest of these in each session.
	HasTurn, LastTurn bool
	// HasHooks selects only runs around which hooks are called.
	HasHooks bool
	// Label, unless its Name is empty, selects runs with this label.
	Label Label
	// Blocked selects only runs that a hook has blocked.
	Blocked bool
	// Decision and Hook, unless empty, select runs that have counted this decision, or one of this hook.
	Decision Decision
	Hook     string
	// By, unless empty, selects runs that this person or service has submitted.
	By string
	// Top selects only runs without a Parent.
	Top bool
	// ChangedSince, unless zero, selects runs whose Updated is not before it.
	ChangedSince time.Time
	// Since and Until, unless zero, select runs created at or after Since, and before Until.
	Since, Until time.Time
	// Before, the last run of the previous page, selects only runs that follow it in the order of
	// List. A deleted run is ErrNotFound.
	Before agent.RunID
	// Limit is the maximum number of runs; zero means 100.
	Limit int
}

// Label is a label of a run.
type Label struct{ Name, Value string }

// DefaultLimit is the maximum number of items that a list has when its filter has no Limit.
const DefaultLimit = 100

// Switch is the switch that denies every tool.
type Switch struct {
	On     bool      `json:"on"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// The errors of a Store for requests that it rejects.
var (
	// ErrNotFound is returned for an unknown run, wait, waiver or document.
	ErrNotFound = errors.New("no such run, wait, waiver or document")
	// ErrExists is returned when a run has the ID or the idempotency key, a waiver has the ID, or a wait has a token.
	ErrExists = errors.New("this ID, idempotency key or token already exists")
	// ErrEnded is returned when the run has ended.
	ErrEnded = errors.New("the run has ended")
	// ErrStale is returned when another process has claimed the run since.
	ErrStale = errors.New("another process has claimed the run: this process must not write to it")
	// ErrTokenSpent is returned for the token of a wait that its run does not have any more.
	ErrTokenSpent = errors.New("the link was used, or the run has gone on")
	// ErrAnswered is returned when another answer came first, or the same answer before.
	ErrAnswered = errors.New("the question is already answered")
	// ErrChanged is returned for an answer to something that the run does not ask, or does not ask any more.
	ErrChanged = errors.New("the run does not ask that (any more)")
)

// HeldError is returned when another process holds a run.
type HeldError struct {
	Run   agent.RunID
	Owner string
	// Expires is when the lease runs out.
	Expires time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("run %s is held by %s until %s", e.Run, e.Owner, e.Expires.UTC().Format(time.RFC3339))
}

// SeqError is returned for an entry whose number is not the next one.
type SeqError struct {
	Run       agent.RunID
	Got, Want int64
}

func (e *SeqError) Error() string {
	return fmt.Sprintf("run %s: got journal entry %d, expected entry %d", e.Run, e.Got, e.Want)
}
