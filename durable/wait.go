package durable

import (
	"context"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// WaitLister is the part of an Inbox that shows what runs wait for.
type WaitLister interface {
	Reader

	// OpenWaits returns the waits without a decision that a filter selects, of runs that wait, or that are ready because a
	// deadline has passed. The oldest come first, those of one time in the order of runs and IDs. See Reader.Waits
	// for data without a key.
	OpenWaits(ctx context.Context, f WaitFilter) ([]Wait, error)
}

// Answerer is the part of an Inbox that records answers.
type Answerer interface {
	// Answer records answers to waits of one waiting run, all or none. In its transaction it calls form, perhaps more than
	// once, with the waits as they are stored, which nothing else changes meanwhile, and the time of the store. Form returns the
	// answers, or the error that Answer returns. Answer returns ErrAnswered when one of their waits is already decided, even
	// if the run does not wait any more, and otherwise ErrNotFound unless the run waits and has each of the waits. Each answer
	// becomes an AuditRecord.
	Answer(ctx context.Context, id agent.RunID, form AnswerFunc) error
}

// Inbox is the part of a Store for what runs wait for.
type Inbox interface {
	WaitLister
	Answerer

	// WaitByToken finds the wait that a token was made for, by the SHA-256 of the token, which it returns as TokenHash. It
	// returns ErrTokenSpent, with only the run, ID and subject of the wait, when the run does not have that wait any more, until
	// the run is deleted, and ErrNotFound for an unknown token.
	WaitByToken(ctx context.Context, tokenHash [32]byte) (Wait, error)
	// SetToken sets the hash of the token of an open wait. It returns ErrExists when the wait has a token, and ErrNotFound
	// when the run has no such wait.
	SetToken(ctx context.Context, id agent.RunID, wait string, tokenHash [32]byte) error
	// AddToken gives an open wait another token, by its hash: WaitByToken finds the wait by this token and by all others
	// that the wait has. Wait.TokenHash does not change. Adding a token again does nothing. It returns ErrNotFound when the
	// run has no such open wait.
	AddToken(ctx context.Context, id agent.RunID, wait string, tokenHash [32]byte) error
	// ClaimChecks returns open waits of the kinds that the owner must watch, at most limit, those that have waited
	// longest first. It gives the owner those whose Host is empty or among hosts and that no other owner watches, or
	// whose owner has not renewed its claim within ttl. It renews the claims of the owner, which keeps what it has before it gets
	// more. A wait of a run that is paused or does not wait is not returned.
	ClaimChecks(ctx context.Context, owner string, ttl time.Duration, limit int, kinds []WaitKind, hosts ...string) ([]Wait, error)
}

// WaitKind says what a run waits for.
type WaitKind string

// The kinds of waits.
const (
	// WaitApproval: people decide about a call, or about going on.
	WaitApproval WaitKind = "approval"
	// WaitDoubt: a person decides whether a call that may have happened is repeated.
	WaitDoubt WaitKind = "doubt"
	// WaitInput: a person fills in a form.
	WaitInput WaitKind = "input"
	// WaitCallback: a service sends a decision to a URL with the token of the wait.
	WaitCallback WaitKind = "callback"
	// WaitFile: a file appears or changes.
	WaitFile WaitKind = "file"
	// WaitCommand: a command gives a decision.
	WaitCommand WaitKind = "command"
	// WaitChild: another run ends.
	WaitChild WaitKind = "child"
	// WaitTime: the deadline passes.
	WaitTime WaitKind = "time"
)

// Wait is one of the reasons why a run is waiting. It is a row, not a goroutine: it survives the end of every
// process.
type Wait struct {
	Run agent.RunID `json:"run"`
	// ID identifies what is asked: no other wait of the run ever has it, so that an answer or a token counts for nothing else. For a
	// tool call it is agent.Intervention.ID; for the gate of a call, that ID, "#" and the name of the hook.
	ID   string   `json:"id"`
	Kind WaitKind `json:"kind"`
	// Subject is what the wait is about: the id of the call, or what an engine finds its wait by.
	Subject string `json:"subject,omitempty"`
	// Tool is the tool of the call; empty when it is not about a call.
	Tool string `json:"tool,omitempty"`
	// Asked is when the wait began, Deadline when it expires; zero for never.
	Asked    time.Time `json:"asked"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Child is the run whose end a WaitChild waits for.
	Child agent.RunID `json:"child,omitempty"`
	// Host, unless empty, is the host whose workers watch for a WaitFile or a WaitCommand.
	Host string `json:"host,omitempty"`
	// TokenHash is the SHA-256 of the token that a link carries; all zero for none.
	TokenHash [32]byte `json:"-"`
	// Data is everything that a person sees or a worker needs, opaque to the store.
	Data []byte `json:"data,omitempty"`
	// Partial are the answers that did not decide, in order.
	Partial []Answer `json:"partial,omitempty"`
	// Answer is the answer that decides; nil while the wait is open.
	Answer *Answer `json:"answer,omitempty"`
}

// Answers returns all answers, in order.
func (w Wait) Answers() []Answer {
	if w.Answer == nil {
		return w.Partial
	}
	return append(slices.Clip(w.Partial), *w.Answer)
}

// Answer is an answer to a wait.
type Answer struct {
	// Wait is the ID of the wait, Subject its subject, which the store sets.
	Wait    string `json:"wait"`
	Subject string `json:"subject,omitempty"`
	// More is set when the answer does not decide, because more people must answer.
	More bool `json:"more,omitempty"`
	// Ends is set when the answer ends the waiting of the run, whatever the other answers are.
	Ends bool `json:"ends,omitempty"`
	// By is who answers, as the audit log names them.
	By string `json:"by,omitempty"`
	// At is the time of the answer; set by the store.
	At time.Time `json:"at"`
	// Data is the rest, opaque to the store.
	Data []byte `json:"data,omitempty"`
}

// An AnswerFunc forms answers to waits of a run: see Inbox.Answer. It must not call the store.
type AnswerFunc func(waits []Wait, now time.Time) ([]Answer, error)

// Answers returns an AnswerFunc that gives these answers, whatever the waits are.
func Answers(answers ...Answer) AnswerFunc {
	return func([]Wait, time.Time) ([]Answer, error) { return answers, nil }
}

// WaitFilter selects open waits. The zero WaitFilter selects all.
type WaitFilter struct {
	// Kinds, unless empty, are the selected kinds.
	Kinds []WaitKind
	// Run, unless empty, is the run.
	Run agent.RunID
	// Expired selects only waits whose deadline has passed.
	Expired bool
	// After, the last wait of the previous page, selects only waits that follow it in the order of OpenWaits. A wait that
	// is not open any more is allowed.
	After *Wait
	// Limit is the maximum number of waits; zero means DefaultLimit.
	Limit int
}
