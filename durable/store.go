package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Store stores runs: a summary of each, its journal, the lease to write to it, the questions that
// wait for a person, and one switch that denies every tool. The data of entries and questions is
// opaque to it.
//
// Every method is atomic: it takes effect completely or not at all. A reported success survives the
// end of the process, and a crash of the machine if the store promises it. A Store must be safe for
// concurrent use, by several processes at once as well. Errors that are not about the request, such
// as a lost database, are returned unchanged: either nothing was done, or the same call may be
// repeated with the same outcome. Every method that takes the id of a run returns ErrNotFound for an
// unknown run.
//
// Package durabletest has the tests that every Store must pass.
type Store interface {
	Leases
	Journal
	Catalogue
	Inquiries
	Switches

	// Close releases the resources of the store.
	Close() error
}

// Leases is the part of a Store that grants the right to write to a run.
type Leases interface {
	// Create adds a run and leases it to owner. It returns ErrExists when the id is taken. The store
	// sets r.Status, r.Created and the fields of the lease.
	Create(ctx context.Context, r Run, owner string, ttl time.Duration) (Lease, error)
	// Claim leases a run that has not ended. It returns a *HeldError for a run that another process
	// holds, unless that lease has expired or take is TakeOver; then the epoch increases by one, and
	// the process that held it before can no longer write. The same applies to an owner that claims a
	// run it already holds. Claim returns ErrEnded when the run has ended.
	Claim(ctx context.Context, id agent.RunID, owner string, ttl time.Duration, take Take) (Lease, error)
	// Renew extends a lease to ttl from now. It returns ErrStale when the lease is not the newest.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release gives a lease up, so that the next Claim need not wait. It returns ErrStale when the
	// lease is not the newest. A lease that was released, by Release or by the end of the run, is
	// stale, too.
	Release(ctx context.Context, l Lease) error
}

// Journal is the part of a Store that keeps what happened in a run.
type Journal interface {
	// Append adds entries to the journal of a leased run and updates its summary, both or neither.
	// The Seqs of the entries must continue those of the journal; otherwise it returns a *SeqError.
	// It returns ErrStale when the lease is not the newest; an expired lease that no other process
	// has taken is still valid.
	Append(ctx context.Context, l Lease, u Update, entries ...Entry) error
	// Entries returns the journal of a run after the entry with the given number, in order; after
	// zero, all of it.
	Entries(ctx context.Context, id agent.RunID, after int64) ([]Entry, error)
}

// Catalogue is the part of a Store that lists and removes runs.
type Catalogue interface {
	// Run returns the summary of a run. It returns ErrNotFound for an unknown id.
	Run(ctx context.Context, id agent.RunID) (Run, error)
	// List returns the runs that a filter lets through, newest first.
	List(ctx context.Context, f Filter) ([]Run, error)
	// Due returns at most limit runs that no process holds and that should run, those that wait
	// longest first: parked runs whose questions are all answered, that an answer ends, that have
	// expired, or whose child has ended; runs to be cancelled; and running ones whose lease has
	// expired or was released.
	Due(ctx context.Context, limit int) ([]Run, error)

	// Cancel requests the cancellation of a run. The process that holds it sees the request in Run,
	// at the latest when it renews its lease. The first reason stays; an empty one is stored as
	// "cancelled". Cancel does nothing and returns no error when the run has ended.
	Cancel(ctx context.Context, id agent.RunID, reason string) error
	// Delete removes a run with all its data. It returns a *HeldError while a process holds the run.
	Delete(ctx context.Context, id agent.RunID) error
	// Prune deletes the runs that ended before a time, and returns their number. It may delete in
	// batches, so that other processes need not wait: then an error may come with a count.
	Prune(ctx context.Context, before time.Time) (int, error)
}

// Inquiries is the part of a Store that keeps the questions of runs.
type Inquiries interface {
	// Questions returns the questions of a run in call order, including answered ones.
	Questions(ctx context.Context, id agent.RunID) ([]Question, error)
	// QuestionByToken finds the question that a token was made for, by the SHA-256 of the token. It
	// returns ErrNotFound when there is none.
	QuestionByToken(ctx context.Context, tokenHash [32]byte) (Question, error)
	// Answer records answers to questions of one parked run, all or none. It returns ErrAnswered when
	// one of them is already answered, and ErrNotFound unless the run is parked and has a question
	// with the call and hash of each answer.
	Answer(ctx context.Context, id agent.RunID, answers ...Answer) error
}

// Switches is the part of a Store with the switch that denies every tool.
type Switches interface {
	// DenyTools returns the switch that denies every tool, of all runs of this store.
	DenyTools(ctx context.Context) (Switch, error)
	// SetDenyTools sets it.
	SetDenyTools(ctx context.Context, s Switch) error
}

// Run is the summary of a run, which a store returns without reading its journal.
type Run struct {
	ID      agent.RunID     `json:"id"`
	Session agent.SessionID `json:"session"`
	// Agent is the name of the agent that runs it.
	Agent string `json:"agent,omitempty"`
	// Parent is the run that started this one, and Root the topmost ancestor.
	Parent agent.RunID `json:"parent,omitempty"`
	Root   agent.RunID `json:"root,omitempty"`
	// Status is running, parked or how the run ended; Reason is why it ended.
	Status agent.Status     `json:"status"`
	Reason agent.StopReason `json:"reason,omitempty"`
	// Steps is how many steps the run has taken.
	Steps int `json:"steps"`
	// Entries is the number of the last entry of the journal.
	Entries int64 `json:"entries"`
	// Created and Updated are by the clock of the store; Updated is when the journal
	// was last written to.
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	// Deadline is when the first open question expires; zero for none.
	Deadline time.Time `json:"deadline,omitzero"`
	// CancelReason is the reason of a requested cancellation; empty when none is requested.
	CancelReason string `json:"cancel_reason,omitempty"`
	// Owner holds the newest lease, Epoch is its number, counted from one, and Expires
	// when it runs out. Owner is empty when it was released.
	Owner   string    `json:"owner,omitempty"`
	Epoch   int64     `json:"epoch"`
	Expires time.Time `json:"expires,omitzero"`
}

// Lease is the right to write to the journal of one run. Of two leases of a run only the one with the
// higher epoch is valid.
type Lease struct {
	Run     agent.RunID
	Owner   string
	Epoch   int64
	Expires time.Time
}

// Take says how Claim treats a run that another process holds.
type Take uint8

// The modes of Claim.
const (
	// TakeFree claims only a run that no process holds.
	TakeFree Take = iota
	// TakeOver claims in any case: the caller knows that the holder has exited.
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

// Update is the change that an Append makes to the summary of a run.
type Update struct {
	// Status, Reason and Steps replace the old ones; an empty Status leaves all three unchanged. A
	// status that ends the run releases the lease, too, and removes the questions.
	Status agent.Status
	Reason agent.StopReason
	Steps  int
	// Questions, unless nil, replaces all questions of the run: an empty list removes them. The
	// answer recorded for the same call and hash is kept; otherwise the answer given here is stored.
	Questions []Question
}

// Question is a call that waits for an answer of a person, or of another run.
type Question struct {
	Run agent.RunID `json:"run"`
	// Call is the id of the call, Hash the hash of what would run: see agent.ToolCall.Hash.
	Call string `json:"call"`
	Hash string `json:"hash"`
	Tool string `json:"tool"`
	// Asked is when the question was asked, Deadline when it expires; zero for never.
	Asked    time.Time `json:"asked"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Child is the run whose end answers the question; empty for one that a person
	// answers.
	Child agent.RunID `json:"child,omitempty"`
	// TokenHash is the SHA-256 of the token that a link carries; all zero for none.
	TokenHash [32]byte `json:"-"`
	// Data is everything that a person sees, opaque to the store.
	Data []byte `json:"data,omitempty"`
	// Answer is the recorded answer; nil until there is one.
	Answer *Answer `json:"answer,omitempty"`
}

// Answer is the answer to the question about a call.
type Answer struct {
	// Call and Hash identify the question.
	Call string `json:"call"`
	Hash string `json:"hash"`
	// Ends is set when the answer ends the run, whatever the other answers are.
	Ends bool `json:"ends,omitempty"`
	// At is the time of the answer; set by the store.
	At time.Time `json:"at"`
	// Data is the rest, opaque to the store.
	Data []byte `json:"data,omitempty"`
}

// Filter selects runs. The zero Filter selects all.
type Filter struct {
	// Status, unless empty, lists the selected statuses.
	Status []agent.Status
	// Agent, Session and Parent, unless empty, must be equal.
	Agent   string
	Session agent.SessionID
	Parent  agent.RunID
	// Before, the last run of the previous page, selects only runs that follow it in the order of
	// List. A deleted run is ErrNotFound.
	Before agent.RunID
	// Limit is the maximum number of runs; zero means 100.
	Limit int
}

// DefaultLimit is the maximum number of runs that List returns for a Filter without a Limit.
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
	// ErrNotFound is returned for an unknown run or question.
	ErrNotFound = errors.New("no such run or question")
	// ErrExists is returned when a run with the same id exists.
	ErrExists = errors.New("a run with this id already exists")
	// ErrEnded is returned when the run has ended.
	ErrEnded = errors.New("the run has ended")
	// ErrStale is returned when another process has claimed the run since.
	ErrStale = errors.New("another process has claimed the run: this process must not write to it")
	// ErrAnswered is returned when another answer came first.
	ErrAnswered = errors.New("the question is already answered")
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
