package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Store keeps runs: what is known of each without reading its journal, the journal,
// who may write to it, the questions that wait for a person, and one switch that
// denies every tool. The data of entries and questions is opaque to it.
//
// Every method is atomic: it happens whole or not at all, and what it reported as
// done survives the end of the process, and of the machine where the store says so.
// A Store must be safe for concurrent use, by several processes at once as well.
// Errors that are not about the request, such as a database that is gone, are
// returned as they are: nothing was done then, or the same call may be made again
// with the same outcome. ErrNotFound is what every method that is given the id of one
// run says when there is no such run.
//
// Package durabletest has the tests that every Store must pass.
type Store interface {
	Leases
	Journal
	Catalogue
	Inquiries
	Switches

	// Close gives up what the store holds open.
	Close() error
}

// Leases is the part of a Store that says who may write to a run.
type Leases interface {
	// Create adds a run and leases it to owner. ErrExists when its id is taken.
	// r.Status, r.Created and what the lease says are set by the store.
	Create(ctx context.Context, r Run, owner string, ttl time.Duration) (Lease, error)
	// Claim leases a run that has not ended. One that another process holds is a
	// *HeldError, unless that lease has run out or take says to take it all the same;
	// then the epoch is one higher, and the process that held it before writes no more. So it is
	// for an owner that claims what it holds, too. ErrEnded when the run has ended.
	Claim(ctx context.Context, id agent.RunID, owner string, ttl time.Duration, take Take) (Lease, error)
	// Renew gives a lease another ttl from now. ErrStale when it is not the newest.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release gives a lease up, so that the next Claim need not wait. ErrStale when
	// it is not the newest. A lease that was given up, by Release or by the end of the
	// run, is as stale as an old one.
	Release(ctx context.Context, l Lease) error
}

// Journal is the part of a Store that keeps what happened in a run.
type Journal interface {
	// Append adds entries to the journal of a leased run and changes what is known of
	// the run, both or neither. The first entry's Seq must be the one behind the last
	// that is there, and the others follow it; *SeqError otherwise. ErrStale when the
	// lease is not the newest: a lease that ran out and that no other process took is good
	// still.
	Append(ctx context.Context, l Lease, u Update, entries ...Entry) error
	// Entries returns the journal of a run behind the entry with that number, in order;
	// after zero, all of it.
	Entries(ctx context.Context, id agent.RunID, after int64) ([]Entry, error)
}

// Catalogue is the part of a Store that knows which runs there are.
type Catalogue interface {
	// Run returns what is known of a run. ErrNotFound when there is none of that id.
	Run(ctx context.Context, id agent.RunID) (Run, error)
	// List returns the runs that a filter lets through, newest first.
	List(ctx context.Context, f Filter) ([]Run, error)
	// Due returns the runs that no process holds and that should be taken up, at most limit of
	// them, those that wait longest first: parked ones whose questions are all answered, of which one
	// ended the run, whose time is over, or whose child has ended; ones that are to be
	// cancelled; and running ones whose lease has run out or was given up.
	Due(ctx context.Context, limit int) ([]Run, error)

	// Cancel asks that a run be cancelled. The process that holds it sees it in Run, when it
	// renews its lease at the latest. The first reason stays; an empty one is kept as
	// "cancelled". When the run has ended nothing happens, and that is no error.
	Cancel(ctx context.Context, id agent.RunID, reason string) error
	// Delete removes a run and everything of it. *HeldError while a process holds it.
	Delete(ctx context.Context, id agent.RunID) error
	// Prune deletes the runs that ended before a time, and counts them. They may go a
	// few at a time, so that others need not wait: an error may come with a count then.
	Prune(ctx context.Context, before time.Time) (int, error)
}

// Inquiries is the part of a Store that keeps what runs wait to be told.
type Inquiries interface {
	// Questions returns what a run waits to be told, in call order, answered ones included.
	Questions(ctx context.Context, id agent.RunID) ([]Question, error)
	// QuestionByToken finds the question that a token was made for, by the SHA-256 of
	// the token. ErrNotFound when there is none.
	QuestionByToken(ctx context.Context, tokenHash [32]byte) (Question, error)
	// Answer records answers to questions of one parked run, all or none. ErrAnswered
	// when one of them has its answer already, ErrNotFound when a question is not, or
	// no longer, asked in this form: its call and hash must be those of the answer, and
	// the run must be parked.
	Answer(ctx context.Context, id agent.RunID, answers ...Answer) error
}

// Switches is the part of a Store that has the switch which denies every tool.
type Switches interface {
	// DenyTools returns the switch that denies every tool, of all runs of this store.
	DenyTools(ctx context.Context) (Switch, error)
	// SetDenyTools sets it.
	SetDenyTools(ctx context.Context, s Switch) error
}

// Run is what a store knows of a run without reading its journal.
type Run struct {
	ID      agent.RunID     `json:"id"`
	Session agent.SessionID `json:"session"`
	// Agent is the name of the agent that runs it.
	Agent string `json:"agent,omitempty"`
	// Parent is the run that started this one and Root the first of that line.
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
	// Deadline is when the time of the first open question is over; zero for none.
	Deadline time.Time `json:"deadline,omitzero"`
	// CancelReason is why the run is to be cancelled; empty: it is not.
	CancelReason string `json:"cancel_reason,omitempty"`
	// Owner holds the newest lease, Epoch is its number, counted from one, and Expires
	// when it runs out. Owner is empty when it was released.
	Owner   string    `json:"owner,omitempty"`
	Epoch   int64     `json:"epoch"`
	Expires time.Time `json:"expires,omitzero"`
}

// Lease is the right to write to the journal of one run. Of two leases of a run only
// the one with the higher epoch is good.
type Lease struct {
	Run     agent.RunID
	Owner   string
	Epoch   int64
	Expires time.Time
}

// Take says what Claim does about a run that another process holds.
type Take uint8

// What may be done about it.
const (
	// TakeFree claims only what no process holds.
	TakeFree Take = iota
	// TakeOver claims in any case: the caller knows that who held it is gone.
	TakeOver
)

// EntryKind says what an entry of a journal is about. The store does not look at it.
type EntryKind string

// Entry is one entry of a journal.
type Entry struct {
	// Seq counts the entries of a run from one.
	Seq  int64     `json:"seq"`
	Kind EntryKind `json:"kind"`
	// Key says which of several things of that kind it is about: a call id, the name
	// of something that is done once.
	Key string `json:"key,omitempty"`
	// At is when it was written, by the clock of the writer.
	At time.Time `json:"at"`
	// Data is what the entry says.
	Data []byte `json:"data,omitempty"`
}

// Update is what an Append changes in what is known of a run.
type Update struct {
	// Status, Reason and Steps take the place of the old ones; an empty Status leaves
	// all three as they are. A status that ends the run releases the lease, too, and
	// removes the questions.
	Status agent.Status
	Reason agent.StopReason
	Steps  int
	// Questions takes the place of all questions of the run when it is not nil: an
	// empty list removes them. A question that has an answer keeps it: the one that
	// was recorded for the same call and hash, or else the one that is given here.
	Questions []Question
}

// Question is a call that waits for an answer of a person, or of another run.
type Question struct {
	Run agent.RunID `json:"run"`
	// Call is the id of the call, Hash the hash of what would run: see agent.ToolCall.Hash.
	Call string `json:"call"`
	Hash string `json:"hash"`
	Tool string `json:"tool"`
	// Asked is when the question was asked, Deadline when its time is over; zero for
	// never.
	Asked    time.Time `json:"asked"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Child is the run whose end answers the question; empty for one that a person
	// answers.
	Child agent.RunID `json:"child,omitempty"`
	// TokenHash is the SHA-256 of the token that a link carries; all zero for none.
	TokenHash [32]byte `json:"-"`
	// Data is all that a person is shown, opaque to the store.
	Data []byte `json:"data,omitempty"`
	// Answer is what was said; nil before there is an answer.
	Answer *Answer `json:"answer,omitempty"`
}

// Answer is what was said about a call.
type Answer struct {
	// Call and Hash say which question is answered.
	Call string `json:"call"`
	Hash string `json:"hash"`
	// Ends says that the run is to end by it, whatever is said about the others.
	Ends bool `json:"ends,omitempty"`
	// At is when it was said; set by the store.
	At time.Time `json:"at"`
	// Data is the rest, opaque to the store.
	Data []byte `json:"data,omitempty"`
}

// Filter says which runs are listed. The zero Filter lets all through.
type Filter struct {
	// Status, when not empty, lists the statuses that are let through.
	Status []agent.Status
	// Agent, Session and Parent must be equal where they are not empty.
	Agent   string
	Session agent.SessionID
	Parent  agent.RunID
	// Before lists only runs that stand behind this one in the order of List: the last
	// of the page before. A run that is gone is ErrNotFound.
	Before agent.RunID
	// Limit is how many runs are listed; zero means 100.
	Limit int
}

// DefaultLimit is how many runs List gives where the filter does not say.
const DefaultLimit = 100

// Switch is the switch that denies every tool.
type Switch struct {
	On     bool      `json:"on"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// What a store says of requests that it does not follow.
var (
	// ErrNotFound: there is no such run or question.
	ErrNotFound = errors.New("there is no such run or question")
	// ErrExists: a run of that id is there already.
	ErrExists = errors.New("a run of this id is there already")
	// ErrEnded: the run has ended.
	ErrEnded = errors.New("the run has ended")
	// ErrStale: another process has taken the run since.
	ErrStale = errors.New("another process has taken this run: this one must not write to it any more")
	// ErrAnswered: another answer came first.
	ErrAnswered = errors.New("the question has been answered already")
)

// HeldError says that another process holds a run.
type HeldError struct {
	Run   agent.RunID
	Owner string
	// Expires is when the lease runs out.
	Expires time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("run %s is held by %s until %s", e.Run, e.Owner, e.Expires.UTC().Format(time.RFC3339))
}

// SeqError is an entry with a number that is not the next.
type SeqError struct {
	Run       agent.RunID
	Got, Want int64
}

func (e *SeqError) Error() string {
	return fmt.Sprintf("run %s: journal entry %d was given where entry %d comes next", e.Run, e.Got, e.Want)
}
