package wire

import (
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// StoredFilter selects runs of all kinds, also those that hooks, callbacks and pipelines have started: the query of GET /stored-runs.
type StoredFilter struct {
	Status  []string        `query:"status,explode" enum:"pending,ready,running,waiting,completed,failed,stopped,cancelled"`
	Kind    durable.Kind    `query:"kind"`
	Phase   durable.Kind    `query:"phase"`
	Name    string          `query:"name"`
	Session agent.SessionID `query:"session"`
	Parent  agent.RunID     `query:"parent"`
	Label   string          `query:"label" doc:"The name of a label."`
	Value   string          `query:"value" doc:"The value of the label."`
	Blocked bool            `query:"blocked"`

	Decision durable.Decision `query:"decision"`
	Hook     string           `query:"hook"`
	By       string           `query:"by"`
	Top      bool             `query:"top"`

	Since  time.Time   `query:"since"`
	Until  time.Time   `query:"until"`
	Before agent.RunID `query:"before" doc:"The last run of the page before."`
	Limit  int         `query:"limit" default:"100" minimum:"1"`
}

// WaitFilter selects what runs wait for: the query of GET /waits. The members that begin with After are those of the last wait of the page before.
type WaitFilter struct {
	Kinds      []string    `query:"kind,explode"`
	Run        agent.RunID `query:"run"`
	Expired    bool        `query:"expired" doc:"Only those whose deadline has passed."`
	AfterAsked time.Time   `query:"after_asked"`
	AfterRun   agent.RunID `query:"after_run"`
	AfterWait  string      `query:"after_wait"`
	Limit      int         `query:"limit" default:"100" minimum:"1"`
}

// DecisionFilter selects decisions of people, the newest first: the query of GET /decisions.
type DecisionFilter struct {
	Kind    durable.AuditKind `query:"kind" enum:"answer,waiver,waiver_revoked"`
	Run     agent.RunID       `query:"run"`
	Subject string            `query:"subject" doc:"The tool, or the ID of the waiver."`
	Before  int64             `query:"before" minimum:"0" doc:"The seq of the last one of the page before."`
	Limit   int               `query:"limit" default:"100" minimum:"1"`
}

// Queue is a queue of runs with the same needs, and how workers serve it.
type Queue struct {
	durable.Needs

	// LastPoll is when a worker last looked for such runs, Backlog how many are ready, and Oldest since when the first of them is.
	LastPoll time.Time `json:"last_poll,omitzero"`
	Backlog  int       `json:"backlog"`
	Oldest   time.Time `json:"oldest,omitzero"`
	// Served reports whether a worker has looked for such runs in the last 70 seconds.
	Served bool `json:"served"`
}

// Runner is a worker that is connected: of a process on the store, or a runner elsewhere.
type Runner struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	// Kinds are the kinds of runs that it executes, and Capacity is how many at once; zero if unknown.
	Kinds    []durable.Kind `json:"kinds,omitempty"`
	Capacity int            `json:"capacity,omitempty"`
	// Runs are the runs that it has.
	Runs     []RunnerRun `json:"runs"`
	LastSeen time.Time   `json:"last_seen"`
	// Draining says that it claims no more runs.
	Draining bool   `json:"draining,omitempty"`
	Version  string `json:"version,omitempty"`
}

// RunnerRun is a run that a runner has.
type RunnerRun struct {
	RunID     agent.RunID `json:"run_id"`
	AgentName string      `json:"agent_name"`
}

// WaiverRequest describes a waiver: which questions it answers, and until when. Rule and Tool are required.
type WaiverRequest struct {
	// Rule is the name of the hook that asks, Tool a pattern of tools, and Arguments are patterns of arguments by their paths.
	Rule      string            `json:"rule"`
	Tool      string            `json:"tool"`
	Arguments map[string]string `json:"arguments,omitempty"`
	Reason    string            `json:"reason,omitempty" maxLength:"1000"`
	Expires   time.Time         `json:"expires"`
}

// Waivers are standing answers: the response of GET /waivers.
type Waivers struct {
	Waivers []durable.Waiver `json:"waivers"`
}
