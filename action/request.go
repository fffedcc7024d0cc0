package action

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// requestVersion is the version of the JSON form of a Request.
const requestVersion = 1

// Request is the question to a hook, as its action receives it. It must not be changed once an action has it. Processes
// read its JSON form on their standard input; web services and agents receive the same JSON. Functions receive the
// Request itself.
type Request struct {
	Version int             `json:"version"`
	Hook    string          `json:"hook"`
	Point   hooks.PointName `json:"point"`
	// Decides is set when a decision is expected; Decisions lists the allowed ones. When it is not set, the output of the
	// action is never read as a decision.
	Decides   bool             `json:"decides"`
	Decisions []hooks.Decision `json:"decisions,omitempty"`
	// Observer is set for the action of an observer, which runs after the filters of the point have been applied. It is
	// not part of the JSON form.
	Observer bool `json:"-"`
	// Deadline is the time limit for the answer. It is set when the action runs.
	Deadline time.Time `json:"deadline,omitzero"`
	Attempt  int       `json:"attempt,omitempty"`
	// IdempotencyKey stays the same each time that an action of a durable run is repeated because it is unknown whether
	// it already ran. It is set when the action runs and empty in a run that is not durable. See Keep.
	IdempotencyKey string `json:"idempotency_key,omitempty"`

	Run  agent.Run `json:"run"`
	Step int       `json:"step"`

	// Tool, CallID and Arguments describe the call with its current arguments. Original holds the model's arguments if
	// they differ. Invalid is the schema error of the arguments.
	Tool      string          `json:"tool,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitzero"`
	Original  json.RawMessage `json:"original_arguments,omitzero"`
	Invalid   string          `json:"invalid,omitempty"`
	Result    *ToolResult     `json:"result,omitempty"`

	// Input is the user's text, at the input points; Answer the model's reply, if any; Error the failure, if any; Status
	// the final status of the run.
	Input  string       `json:"input,omitempty"`
	Answer string       `json:"answer,omitempty"`
	Error  string       `json:"error,omitempty"`
	Status agent.Status `json:"status,omitempty"`
	// End is the reason why the run would end, or ended, and its source: at Stop and ExecutionEnd.
	End *agent.Signal `json:"end,omitempty"`

	// Usage is the consumption of the run so far, including the runs that it started.
	Usage Usage `json:"usage,omitzero"`
	// Calls are the tool calls of the recorded steps of the run.
	Calls Calls `json:"calls,omitzero"`
	// Duration is the duration of the call at PostToolUse and ToolFailed, of the step at StepEnd, of the run at
	// ExecutionEnd, RunFailed, RunTimeout and RunFinish, and of the sub-agent's run at PostSubagent and SubagentFailed. Zero elsewhere.
	Duration Milliseconds `json:"duration_ms,omitzero"`
	// Reply is the model's reply, at PostInference and StepEnd. StepKind is the kind of the finished step, and Continues
	// reports whether the step requires another one; both at StepEnd.
	Reply     *Reply         `json:"reply,omitempty"`
	StepKind  agent.StepKind `json:"step_kind,omitempty"`
	Continues *bool          `json:"should_continue,omitempty"`

	// Decided is the decision of the controls at the point, for observers, with its reason and the deciding hook.
	Decided *hooks.Outcome `json:"decided,omitempty"`
	// Question is the reason for asking a person.
	Question string `json:"question,omitempty"`
	// Approvals are the calls of the step that need approval, in call order, with the answers given so far: at
	// InterventionRequested, InterventionResolved and InterventionStopped. For a single call, CallID is set, too.
	Approvals []Approval `json:"approvals,omitempty"`
	// Subagent, Compaction, Conversation and Pipeline are set at their points.
	Subagent     *Subagent           `json:"subagent,omitempty"`
	Compaction   *Compaction         `json:"compaction,omitempty"`
	Conversation *hooks.Conversation `json:"conversation,omitempty"`
	Pipeline     *hooks.Pipeline     `json:"pipeline,omitempty"`

	// Continuations is how often hooks at Stop have already made the run continue, ContinuationsLeft how often they still
	// may; at Stop only.
	Continuations     *int `json:"continuations,omitempty"`
	ContinuationsLeft *int `json:"continuations_left,omitempty"`

	// BlueprintRun is set at the points of a coordinator's run.
	BlueprintRun

	Variables Variables `json:"variables"`
	// Vars are the variables of the policy.
	Vars map[string]any `json:"vars,omitempty"`

	// Edition distinguishes versions of a hook with the same name, for example by the hash of its policy. A recorded
	// answer is used only for the same edition. It is not part of the JSON form.
	Edition string `json:"-"`
	// OfRun says that actions receive what is about a coordinator's run and nothing else, as hooks of a blueprint expect it: see
	// BlueprintRun. It has an effect only at the points of a coordinator's run, and is not part of the JSON form.
	OfRun bool `json:"-"`
	// OnTimeout and OnFailure are the verdicts about a call whose gate waits in the store of the run, as the text of an
	// agent.ApprovalVerdict: when no answer comes in time, unless the gate says that itself, and when the gate fails. Empty
	// means reject_and_continue. They are not part of the JSON form.
	OnTimeout string `json:"-"`
	OnFailure string `json:"-"`

	stored []byte // the JSON form of a restored request; nil for others
	state  agent.State
	// firing identifies the firing of a point around runs; it is zero at other points.
	firing hooks.Firing
	// strict is set when every output must be a valid decision.
	strict bool
}

// ToolResult is the result of a tool call.
type ToolResult struct {
	Text    string           `json:"text"`
	IsError bool             `json:"is_error,omitempty"`
	Status  agent.ToolStatus `json:"status"`
	// Reason is the code for why the call did not run, or why its result is an error; empty on success.
	Reason agent.ReasonCode `json:"reason,omitempty"`
	// Attempts is the number of times the tool was started; zero for a call that did not run.
	Attempts int `json:"attempts,omitempty"`
}

// Subagent describes a sub-agent and its run.
type Subagent struct {
	Agent       string `json:"agent"`
	Instruction string `json:"instruction"`
	Result      string `json:"result,omitempty"`
	// CallID is the id of the tool call that starts it.
	CallID string `json:"call_id,omitempty"`
	// Run and Session are the ids of the sub-agent's run and session. Status is the final status of that run; empty
	// before it ends.
	Run     agent.RunID     `json:"run,omitempty"`
	Session agent.SessionID `json:"session,omitempty"`
	Status  agent.Status    `json:"status,omitempty"`
}

// Compaction describes a compaction of the transcript.
type Compaction struct {
	ID            string `json:"id"`
	Messages      int    `json:"messages"`
	Tokens        int64  `json:"tokens"`
	MessagesAfter int    `json:"messages_after,omitempty"`
	Summary       string `json:"summary,omitempty"`
}

// NewRequest returns the request that the action of the named hook receives for c. Set Decides to false for an action
// whose answer is ignored: the action of an observer, or a detached one.
func NewRequest(c hooks.Context, hook string) *Request {
	run := c.Run()
	r := &Request{
		Version: requestVersion, Hook: hook, Point: c.Point(), Attempt: 1, Run: run, Step: c.StepIndex(),
		Decisions: Decisions(c), Decided: c.Frozen(), state: c.State(),
	}
	r.Decides, r.strict = len(r.Decisions) > 0, guards(c)
	r.Variables = Variables{
		Session: string(run.Session), Stage: run.Stage, Iteration: run.Iteration, Timestamp: time.Now().UTC().Format(time.RFC3339),
	}
	if at, ok := c.(interface {
		Firing() hooks.Firing
		Time() time.Time
	}); ok {
		r.firing, r.Variables.Timestamp = at.Firing(), at.Time().UTC().Format(time.RFC3339)
	}
	r.Usage, r.Calls = Usage{run: r.state}, Calls{run: r.state}
	for _, part := range requestParts() {
		part.set(r, c)
	}
	return r
}

// callArguments returns the arguments of a call as JSON; text that is not JSON becomes a JSON string.
func callArguments(call hooks.Call) json.RawMessage {
	switch {
	case call.Arguments == "":
		return json.RawMessage("{}")
	case strictjson.CheckObject(call.Arguments) != nil:
		quoted, _ := json.Marshal(call.Arguments) //nolint:errchkjson // a string
		return quoted
	}
	return json.RawMessage(call.Arguments)
}

// lookup returns the text for a name: a variable, vars.name, or a dotted path into the JSON form of the request, where
// args is short for arguments. Objects and arrays are returned as JSON.
func (r *Request) lookup(name string) (string, bool) {
	if v, ok := r.Variables.value(name); ok {
		return v, true
	}
	form, err := r.json()
	if err != nil {
		return "", false
	}
	raw, ok := strictjson.Lookup(string(form), memberPath(name))
	if !ok {
		return "", false
	}
	if text, quoted := strictjson.Unquote(raw); quoted {
		return text, true
	}
	return raw, true
}

// memberPath expands the short forms of a value name to the dotted path of a member of a request.
func memberPath(name string) string {
	if rest, ok := cutPath(name, "args"); ok {
		return "arguments" + rest
	}
	return name
}

// cutPath removes the first element of a dotted path.
func cutPath(path, first string) (rest string, ok bool) {
	if path == first {
		return "", true
	}
	if len(path) > len(first) && path[:len(first)] == first && path[len(first)] == '.' {
		return path[len(first):], true
	}
	return "", false
}

// json returns the JSON form of the request.
func (r *Request) json() ([]byte, error) {
	if r.stored != nil {
		return r.storedJSON()
	}
	form := *r
	if !form.Decides {
		form.Decisions = nil
	}
	text, err := strictjson.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	return []byte(text), nil
}

// until returns a copy of the request with a deadline.
func (r *Request) until(deadline time.Time) *Request {
	with := *r
	with.Deadline = deadline
	return &with
}
