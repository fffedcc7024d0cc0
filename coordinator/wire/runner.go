package wire

import (
	"encoding/json"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// RunnerProtocol is the version of the protocol between runners and the coordinator: docs/runner-protocol.md.
const RunnerProtocol = 1

// ClaimRequest asks for runs: the query of GET /runner/runs.
type ClaimRequest struct {
	Labels       []string `query:"label,explode" doc:"Labels as NAME=VALUE. Procedural blueprints without a command need coordinator.command/BLUEPRINT=yes."`
	Types        []string `query:"type,explode" enum:"autonomous,procedural" doc:"The types of blueprints that the runner executes; absent means all."`
	WaitSeconds  int      `query:"wait_seconds" default:"25" minimum:"0" maximum:"60" doc:"How long to wait for work."`
	LeaseSeconds int      `query:"lease_seconds" default:"30" minimum:"2" maximum:"600" doc:"How long a run stays with the runner unless it renews its lease."`
	SignalsTag   string   `query:"signals_tag" maxLength:"64" doc:"The signals_tag of the last response: then this one comes when the signals differ."`
	Capacity     int      `query:"capacity" minimum:"0" doc:"How many runs the runner executes at once, for the list of runners."`
	Version      string   `query:"version" maxLength:"64" doc:"The version of its program, for the list of runners."`
	Draining     bool     `query:"draining" doc:"The runner claims no more runs, for the list of runners."`
	Limit        int      `query:"limit" default:"1" minimum:"0" maximum:"100" doc:"How many runs to claim at most; zero only receives signals."`
}

// Claim is the response to a runner that asks for work.
type Claim struct {
	Protocol int `json:"protocol"`
	// Runs are the runs that the runner now has.
	Runs []ClaimedRun `json:"runs"`
	// Signals are all that apply to runs that the runner has. SignalsTag is equal for equal signals; empty for none.
	Signals    []durable.Signal `json:"signals"`
	SignalsTag string           `json:"signals_tag,omitempty"`
}

// ClaimedRun is a run that a runner has.
type ClaimedRun struct {
	RunID     agent.RunID     `json:"run_id"`
	SessionID agent.SessionID `json:"session_id"`
	AgentName string          `json:"agent_name"`
	Type      Type            `json:"type"`
	// Attempt counts the leases of the run, from one. Begun says that a runner of an earlier lease has begun to execute it, so that it
	// is unknown what its program has done.
	Attempt int  `json:"attempt"`
	Begun   bool `json:"begun,omitempty"`
	// Epoch is the number of the lease: each write names it. LeaseSeconds is how long the lease lasts unless it is renewed.
	Epoch        int64 `json:"epoch"`
	LeaseSeconds int   `json:"lease_seconds"`
	// Answers are what people have decided about the questions with which a simple runner has given the run back.
	Answers []RunnerAnswer `json:"answers,omitempty"`
	// Parameters are the parameters, as hooks have changed them. Blueprint is the version that the run has.
	Parameters json.RawMessage `json:"parameters"`
	Blueprint  Stored          `json:"blueprint"`
	// Stored is the run as durable workers need it.
	Stored durable.Run `json:"run"`
}

// Journal is what a durable runner reads of its run. Input is what the run begins with.
type Journal struct {
	Input   []byte          `json:"input,omitempty"`
	Entries []durable.Entry `json:"entries"`
	Waits   []durable.Wait  `json:"waits"`
}

// JournalCommit is what a runner writes in one transaction: see durable.Commit.
type JournalCommit struct {
	Epoch int64 `json:"epoch"`
	// ID is random, and the same when the request is repeated because its response was lost.
	ID             string          `json:"commit_id"`
	Entries        []durable.Entry `json:"entries,omitempty"`
	Events         []RunnerEvent   `json:"events,omitempty"`
	Update         *RunUpdate      `json:"update,omitempty"`
	HandledSignals int64           `json:"handled_signals,omitempty"`
}

// RunnerEvent is an event that a runner reports.
type RunnerEvent struct {
	At   time.Time `json:"time"`
	Name string    `json:"event_type"`
	Data []byte    `json:"data,omitempty"`
	// Decision, Hook and Also are durable.Event's, and DurationMS is its Took.
	Decision   durable.Decision       `json:"decision,omitempty"`
	Hook       string                 `json:"hook,omitempty"`
	Also       []durable.HookDecision `json:"also,omitempty"`
	DurationMS int64                  `json:"duration_ms,omitempty"`
}

// RunUpdate changes a run: see durable.Update.
type RunUpdate struct {
	Status  durable.Status   `json:"status,omitempty"`
	Reason  agent.StopReason `json:"reason,omitempty"`
	Blocked bool             `json:"blocked,omitempty"`
	Steps   int              `json:"steps,omitempty"`
	Usage   durable.Usage    `json:"usage,omitzero"`
	Result  []byte           `json:"result,omitempty"`
	// Waits, unless absent, replaces what the run waits for.
	Waits   *[]durable.Wait `json:"waits,omitempty"`
	AnyWait bool            `json:"any_wait,omitempty"`
}

// NewJournalCommit converts a commit for the wire.
func NewJournalCommit(epoch int64, id string, c durable.Commit) JournalCommit {
	out := JournalCommit{Epoch: epoch, ID: id, Entries: c.Entries, HandledSignals: c.HandledSignals}
	for _, e := range c.Events {
		out.Events = append(out.Events, RunnerEvent{e.At, e.Name, e.Data, e.Decision, e.Hook, e.Also, e.Took.Milliseconds()})
	}
	u := c.Update
	out.Update = &RunUpdate{Status: u.Status, Reason: u.Reason, Blocked: u.Blocked, Steps: u.Steps, Usage: u.Usage, Result: u.Result, AnyWait: u.AnyWait}
	if u.Waits != nil {
		out.Update.Waits = &u.Waits
	}
	return out
}

// Commit converts the commit from the wire.
func (j JournalCommit) Commit() durable.Commit {
	c := durable.Commit{Entries: j.Entries, HandledSignals: j.HandledSignals}
	for _, e := range j.Events {
		c.Events = append(c.Events, durable.Event{
			At: e.At, Name: e.Name, Data: e.Data, Decision: e.Decision, Hook: e.Hook, Also: e.Also,
			Took: time.Duration(e.DurationMS) * time.Millisecond,
		})
	}
	if u := j.Update; u != nil {
		c.Update = durable.Update{Status: u.Status, Reason: u.Reason, Blocked: u.Blocked, Steps: u.Steps, Usage: u.Usage, Result: u.Result, AnyWait: u.AnyWait}
		if u.Waits != nil {
			c.Update.Waits = append([]durable.Wait{}, *u.Waits...)
		}
	}
	return c
}

// RunnerQuestion is what a simple runner asks people before its run goes on.
type RunnerQuestion struct {
	// ID identifies the question in its run.
	ID string `json:"id" minLength:"1" maxLength:"200"`
	// Reason is a sentence for the person.
	Reason string `json:"reason" minLength:"1" maxLength:"2000"`
	// Tool and Arguments, unless empty, are what would be done.
	Tool      string          `json:"tool,omitempty" maxLength:"200"`
	Arguments json.RawMessage `json:"arguments,omitzero"`
	// Approvers, unless empty, are the names and roles of those who may answer, Quorum how many must approve.
	Approvers []string `json:"approvers,omitempty" maxItems:"50"`
	Quorum    int      `json:"quorum,omitempty" minimum:"0" maximum:"50"`
	// WithinSeconds is how long the question is open; zero means without end.
	WithinSeconds int `json:"within_seconds,omitempty" minimum:"0" maximum:"31536000"`
}

// RunnerAnswer is the answer to a RunnerQuestion.
type RunnerAnswer struct {
	// ID is that of the question.
	ID string `json:"id"`
	// Approved says what people have decided. It is false when the time was over.
	Approved bool   `json:"approved"`
	Reason   string `json:"reason,omitempty"`
	// By is who has decided; empty when the time was over.
	By string `json:"by,omitempty"`
	// Arguments, if a person has changed them, are in the place of those of the question.
	Arguments json.RawMessage `json:"arguments,omitzero"`
}

// Renewal keeps a run with its runner.
type Renewal struct {
	Epoch        int64 `json:"epoch"`
	LeaseSeconds int   `json:"lease_seconds,omitempty" default:"30" minimum:"2" maximum:"600"`
}

// Renewed is the response to a Renewal.
type Renewed struct {
	Expires time.Time        `json:"expires"`
	Signals []durable.Signal `json:"signals"`
}

// Release gives a run back.
type Release struct {
	Epoch        int64 `json:"epoch"`
	DelaySeconds int   `json:"delay_seconds,omitempty" minimum:"0" maximum:"3600" doc:"How long no runner gets the run."`
}

// Report is how a simple runner ends a run.
type Report struct {
	Epoch int64 `json:"epoch"`
	// ResultText and ResultData are the result of a completed run.
	ResultText string          `json:"result_text,omitempty"`
	ResultData json.RawMessage `json:"result_data,omitempty"`
	// Error is why a run has failed, Reason why it has stopped.
	Error  string `json:"error,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// EventReport has events of a run.
type EventReport struct {
	Epoch  int64 `json:"epoch"`
	Events []struct {
		Type string          `json:"event_type" minLength:"1" maxLength:"100"`
		Time time.Time       `json:"time"`
		Data json.RawMessage `json:"data,omitempty"`
	} `json:"events" maxItems:"1000"`
}

// Parking gives a run back until people have answered.
type Parking struct {
	Epoch     int64            `json:"epoch"`
	Questions []RunnerQuestion `json:"questions" minItems:"1" maxItems:"20" doc:"What people decide before the run goes on."`
}
