package wire

import (
	"encoding/json"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

// KindBlueprint is the kind of the documents with blueprints.
const KindBlueprint = "blueprint"

// RunRequest describes a run to submit.
type RunRequest struct {
	// AgentName is the name of the blueprint. Required.
	AgentName string `json:"agent_name"`
	// Parameters are the parameters: a JSON object that the schema of the blueprint accepts. Absent means an empty one.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// IdempotencyKey identifies the request: a second request with the key returns the run of the first.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// Demands are labels that the runner must have, besides those of the blueprint.
	Demands map[string]string `json:"demands,omitempty"`
	// Labels are names and values by which runs are listed.
	Labels map[string]string `json:"labels,omitempty"`
	// Priority orders runs that wait for a runner: those with a higher one come first.
	Priority int8 `json:"priority,omitempty"`
	// StartWithinSeconds, unless zero, is how long the run may wait for a runner before it is cancelled.
	StartWithinSeconds int `json:"start_within_seconds,omitempty"`
	// TimeoutSeconds, unless zero, is how long the run may take in all.
	TimeoutSeconds int `json:"timeout_seconds,omitempty"`
	// ParentSessionID, unless empty, is the session that starts the run. Its agent is told how the run has ended if ExecutionMode is
	// AsyncCallback. Empty means AsyncPoll.
	ParentSessionID agent.SessionID `json:"parent_session_id,omitempty"`
	ExecutionMode   ExecutionMode   `json:"execution_mode,omitempty" enum:"async_poll,async_callback"`
}

// RetryRequest asks for a run that retries another one.
type RetryRequest struct {
	// IdempotencyKey identifies the request: a second request with the key returns the run of the first.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// PastHook, unless empty, names the on_run_start hook that blocked the run, by its own name or by the agent, program, host or func that
	// it calls. The new run skips that hook. Reason, which is then required, says why.
	PastHook string `json:"past_hook,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// Detail says in the audit log what the request is for besides its run; empty for a plain retry.
func (r RetryRequest) Detail() string {
	if r.PastHook == "" {
		return ""
	}
	return "past " + r.PastHook + ": " + r.Reason
}

// Status is the status of a run, as the API has it.
type Status string

// The statuses of a run. The last three are ends.
const (
	// Pending: the run waits for a runner, or for its time.
	Pending Status = "pending"
	// Hooking: hooks decide whether and with which parameters the run starts.
	Hooking Status = "hooking"
	// Running: a runner executes the run.
	Running Status = "running"
	// Waiting: the run waits for people or other runs, or is paused. No runner has it.
	Waiting Status = "waiting"
	// Completed: the run has its result.
	Completed Status = "completed"
	// Failed: the run has an error, or a hook has blocked it.
	Failed Status = "failed"
	// Stopped: a limit, a person or a program has ended the run.
	Stopped Status = "stopped"
)

// Statuses are all statuses of the API.
var Statuses = []Status{Pending, Hooking, Running, Waiting, Completed, Failed, Stopped}

// Run is a run as the API has it.
type Run struct {
	RunID     agent.RunID     `json:"run_id"`
	SessionID agent.SessionID `json:"session_id"`
	// AgentName is the name of the blueprint, Version the version that the run has.
	AgentName string `json:"agent_name"`
	Version   string `json:"version,omitempty"`
	Type      Type   `json:"type"`
	Status    Status `json:"status"`
	// Blocked is set if a hook has blocked the run; its status is failed.
	Blocked bool `json:"blocked,omitempty"`
	// Paused is set while the run is paused, or will be after its current step or iteration.
	Paused bool `json:"paused,omitempty"`
	// CancelCause is why the run is or was cancelled.
	CancelCause durable.CancelCause `json:"cancel_cause,omitempty" enum:"request,deadline,start_by"`
	Ending
	// HasHooks is set if the blueprint has hooks around its runs. Hook is the type of the hook that has started the run.
	HasHooks bool   `json:"has_hooks,omitempty"`
	Hook     string `json:"hook,omitempty"`
	// ParentRunID is the run whose hook has started this one, ParentSessionID the session that has started the session.
	ParentRunID     agent.RunID     `json:"parent_run_id,omitempty"`
	ParentSessionID agent.SessionID `json:"parent_session_id,omitempty"`
	// Stage and Iteration are set for a run of an iteration of a pipeline. Its parent is the run of the pipeline.
	Stage     string `json:"stage,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	// ExecutionMode says who is told when the run has ended.
	ExecutionMode ExecutionMode     `json:"execution_mode"`
	Demands       map[string]string `json:"demands,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	SubmittedBy   string            `json:"submitted_by,omitempty"`
	// RetryOf is the run that this one retries. PastHook is the hook that an operator let it pass, Because the reason.
	RetryOf  agent.RunID `json:"retry_of,omitempty"`
	PastHook string      `json:"past_hook,omitempty"`
	Because  string      `json:"because,omitempty"`
	// Continues is set if the run continues a session.
	Continues bool `json:"continues_session,omitempty"`
	// Summary is the beginning of the parameters on one line, Outcome the beginning of the result or error.
	Summary string `json:"summary,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	// Steps is how many steps the run has taken. Usage is what they have used.
	Steps int           `json:"steps"`
	Usage durable.Usage `json:"usage,omitzero"`
	// Decisions says how often hooks have decided, by decision.
	Decisions map[durable.Decision]int64 `json:"decisions,omitempty"`
	// Runner is the runner that executes the run.
	Runner    string    `json:"runner,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	// EndedAt and DurationMS are absent before the end. The duration counts from CreatedAt.
	EndedAt    *time.Time `json:"ended_at,omitempty"`
	DurationMS *int64     `json:"duration_ms,omitempty"`
}

// RunDetail is everything about a run.
type RunDetail struct {
	Run

	// Parameters are what the runner gets. OriginalParameters are those of the request, if hooks have changed them.
	Parameters         json.RawMessage `json:"parameters"`
	OriginalParameters json.RawMessage `json:"original_parameters,omitempty"`
	// ResultText or ResultData is the result of a completed run; Error says why a run has failed or was stopped.
	ResultText *string         `json:"result_text"`
	ResultData json.RawMessage `json:"result_data"`
	Error      *string         `json:"error"`
	// LastError says why no runner could execute a run that waits to be tried again.
	LastError string `json:"last_error,omitempty"`
	// Hooks are the events of the hooks around the run, in order.
	Hooks []HookEvent `json:"hooks"`
	// Retries are the runs that retry this one, the newest first.
	Retries []Run `json:"retries,omitempty"`
	// Rules are the hooks of the version of the blueprint that the run has.
	Rules []RuleView `json:"rules,omitempty"`
	// WaitsFor is what a waiting run waits for.
	WaitsFor []WaitView `json:"waits_for,omitempty"`
	// Pipeline is what a run of a pipeline is doing, or how it has ended.
	Pipeline *PipelineView `json:"pipeline,omitempty"`
}

// PipelineView is what a run of a pipeline is doing, with its stages and their iterations.
type PipelineView struct {
	pipeline.SessionProgress

	// Limits are what the run may use at most.
	Limits LimitsView `json:"limits,omitzero"`
}

// LimitsView is what a run may use at most; zero means that there is no limit.
type LimitsView struct {
	Steps   int     `json:"steps,omitempty"`
	Tokens  int64   `json:"tokens,omitempty"`
	CostUSD float64 `json:"cost_usd,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
}

// WaitView is something that a run waits for.
type WaitView struct {
	Wait string           `json:"wait"`
	Kind durable.WaitKind `json:"kind"`
	Tool string           `json:"tool,omitempty"`
	// Questions are the IDs of the open questions. An answer names those that it covers.
	Questions []string `json:"questions,omitempty"`
	// Asked are the open questions in words.
	Asked []QuestionView `json:"asked,omitempty"`
	// The call would run with Arguments. Original is what the model sent, if hooks have changed it.
	Arguments string      `json:"arguments,omitempty"`
	Original  string      `json:"original,omitempty"`
	Run       agent.RunID `json:"run,omitempty"`
	Since     time.Time   `json:"since,omitzero"`
	Deadline  time.Time   `json:"deadline,omitzero"`
	// MayAnswer says whether the caller may approve, and WhyNot why not.
	MayAnswer bool   `json:"may_answer"`
	WhyNot    string `json:"why_not,omitempty"`
}

// QuestionView is an open question.
type QuestionView struct {
	ID     string `json:"id"`
	By     string `json:"by,omitempty"`
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Approvers are the names and roles of those who may answer; none means anyone. Quorum is how many must approve, Approvals how many
	// have.
	Approvers []string `json:"approvers,omitempty"`
	Quorum    int      `json:"quorum"`
	Approvals int      `json:"approvals"`
	// Waivable says whether a waiver can answer it: the agent has the hook for that, and the question is of a rule that is not required.
	Waivable bool `json:"waivable"`
}

// RuleView is a hook of a run's blueprint.
type RuleView struct {
	Hook string `json:"hook"`
	// Point is where it is called, such as RunStart, and Type its action's type; empty for a decision.
	Point string `json:"point"`
	Type  string `json:"type,omitempty"`
	// Mode is enforce, shadow, waived or observe.
	Mode string `json:"mode"`
	// Path is its place in the blueprint, such as hooks.on_run_start.
	Path string `json:"path,omitempty"`
}

// Ending says why a run has ended as it did, in a line each.
type Ending struct {
	// Reason is why the run failed, was stopped or was blocked; empty for one that is completed.
	Reason string `json:"reason,omitempty"`
	// BlockedBy names the hook that has blocked the run, as HookEvent.Title does.
	BlockedBy string `json:"blocked_by,omitempty"`
	// Changes are what hooks around the run have changed: "on_run_start hook (agent enrich) changed the parameters".
	Changes []string `json:"changes,omitempty"`
	// FailedHooks are the failures of hooks around the run, as HookEvent.Failure has them.
	FailedHooks []string `json:"failed_hooks,omitempty"`
}

// RunFilter has the parameters of a list of runs.
type RunFilter struct {
	Status        []string  `query:"status" doc:"Only these statuses." enum:"pending,hooking,running,waiting,completed,failed,stopped"`
	AgentName     string    `query:"agent_name" doc:"Only runs of this blueprint."`
	SessionID     string    `query:"session_id"`
	Parent        string    `query:"parent_run_id" doc:"Only runs that hooks of this run have started."`
	ParentSession string    `query:"parent_session_id" doc:"Only runs that this session has started."`
	Label         string    `query:"label" doc:"Only runs with this label, as NAME=VALUE."`
	HasHooks      bool      `query:"has_hooks" doc:"Only runs whose blueprint has hooks around them."`
	Blocked       bool      `query:"blocked" doc:"Only runs that a hook has blocked."`
	HookRuns      bool      `query:"hook_runs" doc:"Also runs that hooks have started. A list for an agent, a parent or a session has them anyway."`
	Top           bool      `query:"top" doc:"Only runs that no other run has started."`
	Query         string    `query:"q" maxLength:"200" doc:"Only runs with this text in their ID, agent, labels, submitter, summary or outcome."`
	Decision      string    `query:"decision" enum:"blocked,denied,asked,rewritten,withheld,failed,timeout,shadow,overridden" doc:"Only runs with this."`
	Hook          string    `query:"hook" doc:"Only runs in which the hook with this name has decided."`
	SubmittedBy   string    `query:"submitted_by" doc:"Only runs of this submitter."`
	Mine          bool      `query:"mine" doc:"Only runs that the caller has submitted."`
	Since         time.Time `query:"since" doc:"Only runs created at or after this time."`
	Until         time.Time `query:"until" doc:"Only runs created before this time."`
	Before        string    `query:"before" doc:"Only runs after this one in the order of the list: next of the page before."`
	Limit         int       `query:"limit" default:"100" minimum:"1" maximum:"1000"`
}

// RunList is a page of runs, newest first.
type RunList struct {
	Runs []Run `json:"runs"`
	// Next, unless empty, is the value of before for the next page. A page may be short, or empty, and still have a next one.
	Next string `json:"next,omitempty" doc:"The value of before for the next page. A page may be short, or empty, and still have a next one."`
	// Searched is how many runs a search with q has looked at. Older ones are searched with before.
	Searched int `json:"searched,omitempty" doc:"How many runs a search with q has looked at, the newest first. Next continues it."`
}

// Counts says what runs and what waits. Numbers of runs are 1000 at most, numbers of questions 100.
type Counts struct {
	// Pending runs wait for a runner, running ones are executed or have hooks called, and waiting ones wait for people or runs.
	Pending int `json:"pending"`
	Running int `json:"running"`
	Waiting int `json:"waiting"`
	// Inbox is how many questions are open, InboxMine how many of these the caller may approve, and OldestWaitS for how many seconds the
	// oldest is open.
	Inbox       int   `json:"inbox"`
	InboxMine   int   `json:"inbox_mine"`
	OldestWaitS int64 `json:"oldest_wait_s"`
}

// EventView is an event as the API has it.
type EventView struct {
	Seq  int64           `json:"seq"`
	Time time.Time       `json:"time"`
	Type string          `json:"event_type"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Submitted is the response to a request for a run.
type Submitted struct {
	RunID     agent.RunID     `json:"run_id"`
	SessionID agent.SessionID `json:"session_id"`
	Status    Status          `json:"status"`
}
