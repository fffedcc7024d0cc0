package wire

import (
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Role says what a token allows. Each role allows what the ones before it allow, but RunnerRole allows only what runners need.
type Role string

// The roles.
const (
	// Viewer reads blueprints, runs and events.
	Viewer Role = "viewer"
	// Operator submits and stops runs, and answers what they ask.
	Operator Role = "operator"
	// RunnerRole claims runs and reports what became of them.
	RunnerRole Role = "runner"
	// Admin changes blueprints and tokens.
	Admin Role = "admin"
)

// Token is what is stored about a token: not the token itself.
type Token struct {
	// Name says whose it is. It is the name under which changes are recorded.
	Name string `json:"name"`
	Role Role   `json:"role"`
	// Created is when it was made, Expires when it stops being valid; zero for never.
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	// ID identifies the token among others, for RevokeToken: the beginning of its hash.
	ID string `json:"id"`
}

// AuditEntry is a request that changes something, and what people do on the pages below /approvals/. The answers of people are in the
// audit log of the store, too.
type AuditEntry struct {
	// ID orders the entries.
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	// By is the name of the token, TokenID its ID; empty for the token that the service was started with. By is the name of a person who
	// has signed in to a page, and empty for who has only a link.
	By      string `json:"by"`
	TokenID string `json:"token_id,omitempty"`
	// Operation is the ID of the operation in the OpenAPI document, Path the path of the request, and "/approvals/" for pages.
	Operation string `json:"operation"`
	Path      string `json:"path"`
	// Run is the run that the request is about, unless Path has it. Detail is what is changed, such as the name of a blueprint, the
	// signal to the run, or the runner.
	Run    agent.RunID `json:"run_id,omitempty"`
	Detail string      `json:"detail,omitempty"`
	// Status is ok, or the status of the response to a request that was refused or has failed, such as 409. An entry that is stored
	// with a change is always ok.
	Status string `json:"status"`
}

// AuditFilter selects entries of the audit log: the query of GET /audit.
type AuditFilter struct {
	By        string `query:"by" doc:"Only entries of this author."`
	Operation string `query:"operation" doc:"Only entries of this operation, such as stop-run."`
	Run       string `query:"run" doc:"Only entries that name this run."`
	Status    string `query:"status" doc:"Only entries with this status: ok, failed for all others, or a number such as 409."`
	Before    string `query:"before" doc:"Only entries before the one with this ID: next of the page before."`
	After     string `query:"after" doc:"Only entries after the one with this ID, the oldest first: for programs that follow the log."`
	Limit     int    `query:"limit" default:"100" minimum:"1" maximum:"1000"`
}

// AuditList is a page of the audit log, newest first.
type AuditList struct {
	Entries []AuditEntry `json:"entries"`
	// Next, unless empty, is the value of before for the next page. A page may be short, or empty, and still have a next one.
	Next string `json:"next,omitempty"`
}
