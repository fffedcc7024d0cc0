package wire

import (
	"encoding/json"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// ExecutionMode says who is told when a run has ended.
type ExecutionMode string

// The execution modes.
const (
	// AsyncPoll: no session is told. Clients read the run, or its events.
	AsyncPoll ExecutionMode = "async_poll"
	// AsyncCallback: the parent session is resumed with the result.
	AsyncCallback ExecutionMode = "async_callback"
)

// ResumeRequest describes the next run of a session.
type ResumeRequest struct {
	// Prompt is what the agent is told. Required.
	Prompt string `json:"prompt"`
	// IdempotencyKey identifies the request: a second request for the session with the key returns the run of the first.
	IdempotencyKey string `json:"idempotency_key,omitempty" maxLength:"256"`
	// TimeoutSeconds, unless zero, is how long the run may take in all, from when it is submitted.
	TimeoutSeconds int `json:"timeout_seconds,omitempty"`
}

// Callback says how a run has ended, for the session that has started it.
type Callback struct {
	RunID      agent.RunID     `json:"run_id"`
	SessionID  agent.SessionID `json:"session_id"`
	AgentName  string          `json:"agent_name"`
	Status     Status          `json:"status"`
	Blocked    bool            `json:"blocked,omitempty"`
	ResultText *string         `json:"result_text,omitempty"`
	ResultData json.RawMessage `json:"result_data,omitzero"`
	Error      *string         `json:"error,omitempty"`
}

// Session is a session as the API has it: the runs of one conversation.
type Session struct {
	SessionID agent.SessionID `json:"session_id"`
	AgentName string          `json:"agent_name"`
	// ParentSessionID is the session that has started this one.
	ParentSessionID agent.SessionID `json:"parent_session_id,omitempty"`
	// Status is that of the last run.
	Status Status `json:"status"`
	// Runs are the runs, newest first, at most a hundred.
	Runs []Run `json:"runs"`
	// Children are the newest runs that have this session as their parent, at most a hundred.
	Children []Run `json:"children"`
}

// SessionSummary is a session in a list.
type SessionSummary struct {
	SessionID agent.SessionID `json:"session_id"`
	AgentName string          `json:"agent_name"`
	Type      Type            `json:"type"`
	// ParentSessionID is the session that has started this one.
	ParentSessionID agent.SessionID `json:"parent_session_id,omitempty"`
	// Status, UpdatedAt and LastRunID are those of the last run.
	Status    Status      `json:"status"`
	LastRunID agent.RunID `json:"last_run_id"`
	CreatedAt time.Time   `json:"created_at"`
	UpdatedAt time.Time   `json:"updated_at"`
}

// SessionList is a page of sessions, those with the newest runs first.
type SessionList struct {
	Sessions []SessionSummary `json:"sessions"`
	// Next, unless empty, is the value of before for the next page.
	Next string `json:"next,omitempty"`
}

// SessionFilter has the parameters of a list of sessions.
type SessionFilter struct {
	Status        []string  `query:"status" doc:"Only these statuses of the last run." enum:"pending,hooking,running,waiting,completed,failed,stopped"`
	AgentName     string    `query:"agent_name" doc:"Only sessions of this blueprint."`
	ParentSession string    `query:"parent_session_id" doc:"Only sessions that this one has started."`
	Since         time.Time `query:"since" doc:"Only sessions whose last run was submitted at or after this time."`
	Until         time.Time `query:"until" doc:"Only sessions whose last run was submitted before this time."`
	Before        string    `query:"before" doc:"Only sessions after this place in the list: next of the page before."`
	Limit         int       `query:"limit" default:"100" minimum:"1" maximum:"1000"`
}
