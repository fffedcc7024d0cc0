package action

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// requestVersion is the version of a Request's JSON form.
const requestVersion = 1

// Request is the question to a hook, as its action receives it. It must not be changed once an action has it. Processes
// read its JSON form on standard input. Web services and agents receive the same JSON. Functions receive the Request
// itself.
type Request struct {
	Version int             `json:"version"`
	Hook    string          `json:"hook"`
	Point   hooks.PointName `json:"point"`
	// Decides is set when a decision is expected. Decisions lists the allowed ones. When Decides is not set, the
	// action's output is never read as a decision.
	Decides   bool             `json:"decides"`
	Decisions []hooks.Decision `json:"decisions,omitempty"`
	// Observer is set for an observer's action, which runs after the point's filters. It is not part of the JSON form.
	Observer bool `json:"-"`
	// Deadline is the deadline for the answer. It is set when the action runs.
	Deadline time.Time `json:"deadline,omitzero"`
	Attempt  int       `json:"attempt,omitempty"`
	// IdempotencyKey identifies an action of a durable run. If it is unknown whether the action already ran, the action
	// is repeated with the same key. The key is set when the action runs. It is empty in a run that is not durable. See
	// Keep.
	IdempotencyKey string `json:"idempotency_key,omitempty"`

	Run  agent.Run `json:"run"`
	Step int       `json:"step"`

	// Tool, CallID and Arguments describe the call with its current arguments. Original holds the model's arguments if
	// they differ. Invalid is the arguments' schema error.
	Tool      string          `json:"tool,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitzero"`
	Original  json.RawMessage `json:"original_arguments,omitzero"`
	Invalid   string          `json:"invalid,omitempty"`
	Result    *ToolResult     `json:"result,omitempty"`

	// Input is the user's text, at the input points. Answer is the model's reply, Error the failure, and Status the
	// run's final status, where they exist.
	Input  string       `json:"input,omitempty"`
	Answer string       `json:"answer,omitempty"`
	Error  string       `json:"error,omitempty"`
	Status agent.Status `json:"status,omitempty"`
	// End is the reason why the run would end, or ended, and its source: at Stop and ExecutionEnd.
	End *agent.Signal `json:"end,omitempty"`

	// Usage is the run's usage so far, including runs that it started.
	Usage Usage `json:"usage,omitzero"`
	// Calls are the tool calls in the run's recorded steps.
	Calls Calls `json:"calls,omitzero"`
	// Duration depends on the point: the call's at PostToolUse and ToolFailed, the step's at StepEnd, the sub-agent
	// run's at PostSubagent and SubagentFailed, and the run's at ExecutionEnd, RunFailed, RunTimeout and RunFinish. It
	// is zero elsewhere.
	Duration Milliseconds `json:"duration_ms,omitzero"`
	// Reply is the model's reply, at PostInference and StepEnd. StepKind is the finished step's kind, at StepEnd.
	// Continues reports whether the step requires another one, also at StepEnd.
	Reply     *Reply         `json:"reply,omitempty"`
	StepKind  agent.StepKind `json:"step_kind,omitempty"`
	Continues *bool          `json:"should_continue,omitempty"`

	// Decided is the controls' decision at the point, for observers, with its reason and the deciding hook.
	Decided *hooks.Outcome `json:"decided,omitempty"`
	// Question is the reason for asking a person.
	Question string `json:"question,omitempty"`
	// Approvals are the step's calls that need approval, in call order, with the answers so far: at
	// InterventionRequested, InterventionResolved and InterventionStopped. For a single call, CallID is set, too.
	Approvals []Approval `json:"approvals,omitempty"`
	// Subagent, Compaction, Conversation and Pipeline are set at their points.
	Subagent     *Subagent           `json:"subagent,omitempty"`
	Compaction   *Compaction         `json:"compaction,omitempty"`
	Conversation *hooks.Conversation `json:"conversation,omitempty"`
	Pipeline     *hooks.Pipeline     `json:"pipeline,omitempty"`

	// Continuations is how often hooks at Stop have already made the run continue. ContinuationsLeft is how often they
	// still may. Both are set at Stop only.
	Continuations     *int `json:"continuations,omitempty"`
	ContinuationsLeft *int `json:"continuations_left,omitempty"`

	// BlueprintRun is set at the points of a coordinator's run.
	BlueprintRun

	Variables Variables `json:"variables"`
	// Vars are the policy's variables.
	Vars map[string]any `json:"vars,omitempty"`

	// Edition distinguishes versions of a hook with the same name, for example by its policy's hash. A recorded answer
	// is used only for the same edition. It is not part of the JSON form.
	Edition string `json:"-"`
	// OfRun limits the data that actions receive to facts about a coordinator's run, as blueprint hooks expect: see
	// BlueprintRun. It has an effect only at the points of a coordinator's run, and is not part of the JSON form.
	OfRun bool `json:"-"`
	// OnTimeout and OnFailure are verdicts for a call whose gate waits in the run's store, as agent.ApprovalVerdict
	// text. OnTimeout applies when no answer comes in time, unless the gate has its own. OnFailure applies when the
	// gate fails. Empty means reject_and_continue. They are not part of the JSON form.
	OnTimeout string `json:"-"`
	OnFailure string `json:"-"`

	stored []byte // a restored request's JSON form; nil for others
	state  agent.State
	// firing identifies the firing of a point around runs. It is zero at other points.
	firing hooks.Firing
	// strict is set when every output must be a valid decision.
	strict bool
}

// ToolResult is a tool call's result.
type ToolResult struct {
	Text    string           `json:"text"`
	IsError bool             `json:"is_error,omitempty"`
	Status  agent.ToolStatus `json:"status"`
	// Reason is the code for why the call did not run, or why its result is an error. It is empty on success.
	Reason agent.ReasonCode `json:"reason,omitempty"`
	// Attempts is how often the tool was started. It is zero if the call did not run.
	Attempts int `json:"attempts,omitempty"`
}

// Subagent describes a sub-agent and its run.
type Subagent struct {
	Agent       string `json:"agent"`
	Instruction string `json:"instruction"`
	Result      string `json:"result,omitempty"`
	// CallID is the ID of the tool call that starts it.
	CallID string `json:"call_id,omitempty"`
	// Run and Session are the IDs of the sub-agent's run and session. Status is the run's final status. It is empty
	// before the run ends.
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

// NewRequest returns the request that the named hook's action receives for c. Set Decides to false for an action whose
// answer is ignored: an observer's action, or a detached one.
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

// callArguments returns a call's arguments as JSON. Text that is not JSON becomes a JSON string.
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

// lookup returns the text for a name: a variable, vars.name, or a dotted path into the request's JSON form. args is
// short for arguments. Objects and arrays are returned as JSON.
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

// memberPath expands a value name's short form to the dotted path of a request member.
func memberPath(name string) string {
	if rest, ok := cutPath(name, "args"); ok {
		return "arguments" + rest
	}
	return name
}

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
