package durable

import (
	"context"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// AuditReader is the part of Audits that shows records and waivers.
type AuditReader interface {
	// AuditRecords returns the records that a filter selects, newest first.
	AuditRecords(ctx context.Context, f AuditFilter) ([]AuditRecord, error)
	// Waivers returns the waivers in force, or all of them, oldest first.
	Waivers(ctx context.Context, all bool) ([]Waiver, error)
}

// Audits is the part of a Store that records who decided what. Records are never changed; the data of a record is removed
// with its run.
type Audits interface {
	AuditReader

	// AddWaiver stores a waiver, and records that. It returns ErrExists when the ID is taken.
	AddWaiver(ctx context.Context, w Waiver) error
	// RevokeWaiver revokes a waiver, and records that. It does nothing when the waiver is revoked already, and returns
	// ErrNotFound when there is none.
	RevokeWaiver(ctx context.Context, id, by string) error
}

// AuditKind is the kind of an AuditRecord.
type AuditKind string

// The kinds of audit records.
const (
	AuditAnswer        AuditKind = "answer"
	AuditWaiver        AuditKind = "waiver"
	AuditWaiverRevoked AuditKind = "waiver_revoked"
)

// AuditRecord says who decided what, and when.
type AuditRecord struct {
	// Seq counts the records of a store.
	Seq  int64     `json:"seq"`
	At   time.Time `json:"at"`
	Kind AuditKind `json:"kind"`
	// Run is the run that an answer is about, Subject the tool of its call, or the ID of a waiver. Answers that people gave
	// while the run executed have no Wait in the store: see Commit.Records.
	Run     agent.RunID `json:"run,omitempty"`
	Subject string      `json:"subject,omitempty"`
	By      string      `json:"by,omitempty"`
	// Answer is the answer; nil for records of other kinds. Its Data is empty once the run was deleted.
	Answer *Answer `json:"answer,omitempty"`
}

// AuditFilter selects audit records. The zero AuditFilter selects all.
type AuditFilter struct {
	// Kind, Run and Subject, unless empty, must be equal.
	Kind    AuditKind
	Run     agent.RunID
	Subject string
	// Before, unless zero, is the Seq of the last record of the previous page.
	Before int64
	// Limit is the maximum number of records; zero means DefaultLimit.
	Limit int
}

// Waiver is a standing answer: package waiver says to which questions.
type Waiver struct {
	ID      string    `json:"id"`
	By      string    `json:"by"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	// Revoked is when and RevokedBy by whom it was revoked; zero while it is in force.
	Revoked   time.Time `json:"revoked,omitzero"`
	RevokedBy string    `json:"revoked_by,omitempty"`
	// Data is what it waives, opaque to the store.
	Data []byte `json:"data"`
}
