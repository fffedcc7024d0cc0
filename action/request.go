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

// Request is what an action is told: what its hook was asked. It must not be changed once an action has it. Its JSON form
// is what processes read on their standard input, what web services and agents get, and what funcs see.
type Request struct {
	Version int             `json:"version"`
	Hook    string          `json:"hook"`
	Point   hooks.PointName `json:"point"`
	// Decides is set where a decision is asked for; what may be decided is in Decisions. Without it nothing that the
	// action says is taken for a decision.
	Decides   bool             `json:"decides"`
	Decisions []hooks.Decision `json:"decisions,omitempty"`
	// Observer is set for the action of an observer, which is asked when the filters of the point have been applied. It is
	// not told.
	Observer bool `json:"-"`
	// Deadline is when the answer must be there. It is set when the action is done.
	Deadline time.Time `json:"deadline,omitzero"`
	Attempt  int       `json:"attempt,omitempty"`
	// IdempotencyKey is the same each time that an action is done again, in a run that is kept, because it is unknown whether it
	// was done before. It is set when the action is done; empty in a run that is not kept. See Keep.
	IdempotencyKey string `json:"idempotency_key,omitempty"`

	Run  agent.Run `json:"run"`
	Step int       `json:"step"`

	// Tool, CallID and Arguments are the call as it would run, or ran; Original the arguments that the model gave where
	// they are others; Invalid what is wrong with the arguments by the tool's schema.
	Tool      string          `json:"tool,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Original  json.RawMessage `json:"original_arguments,omitempty"`
	Invalid   string          `json:"invalid,omitempty"`
	Result    *ToolResult     `json:"result,omitempty"`

	// Input is what the user said, at the input points; Answer what the model said, where it did; Error what went wrong,
	// where something did; Status how the run ended.
	Input  string       `json:"input,omitempty"`
	Answer string       `json:"answer,omitempty"`
	Error  string       `json:"error,omitempty"`
	Status agent.Status `json:"status,omitempty"`
	// End is why the run would end, or ended, and who said so: at Stop and ExecutionEnd.
	End *agent.Signal `json:"end,omitempty"`

	// Usage is what the run has used so far, with the runs that it started.
	Usage Usage `json:"usage,omitzero"`
	// Calls are the tool calls of the recorded steps of the run.
	Calls Calls `json:"calls,omitzero"`
	// Duration is how long it took what the point is about: the call at PostToolUse and ToolFailed, the step at StepEnd, the
	// run at ExecutionEnd, the sub-agent's run at PostSubagent and SubagentFailed. Zero elsewhere.
	Duration Milliseconds `json:"duration_ms,omitzero"`
	// Reply is what the model said, at PostInference and StepEnd; StepKind what became of the step, and Continues whether the
	// step leaves a reason to go on, at StepEnd.
	Reply     *Reply         `json:"reply,omitempty"`
	StepKind  agent.StepKind `json:"step_kind,omitempty"`
	Continues *bool          `json:"should_continue,omitempty"`

	// Decided is what the controls of the point have decided, for observers: which, why, and who.
	Decided *hooks.Outcome `json:"decided,omitempty"`
	// Question is why a person is asked.
	Question string `json:"question,omitempty"`
	// Approvals are the calls of the step that a person is asked about, with the answers where there are any, in call order:
	// at InterventionRequested, InterventionResolved and InterventionStopped. For a single call, CallID is its id, too.
	Approvals []Approval `json:"approvals,omitempty"`
	// Subagent, Compaction and Pipeline are what is known of them, at their points.
	Subagent   *Subagent       `json:"subagent,omitempty"`
	Compaction *Compaction     `json:"compaction,omitempty"`
	Pipeline   *hooks.Pipeline `json:"pipeline,omitempty"`

	// Continuations is how often hooks at Stop have made the run go on already, ContinuationsLeft how often they still may;
	// at Stop only.
	Continuations     *int `json:"continuations,omitempty"`
	ContinuationsLeft *int `json:"continuations_left,omitempty"`

	// BlueprintRun is there at the points of a coordinator's run.
	BlueprintRun

	Variables Variables `json:"variables"`
	// Vars are the variables of the policy.
	Vars map[string]any `json:"vars,omitempty"`

	// Edition tells the hook from others that had its name, such as the hash of its policy: an answer that was written
	// down is that of one edition. It is not told.
	Edition string `json:"-"`

	state agent.State
	// firing is that of a point around runs; zero elsewhere.
	firing hooks.Firing
	// strict: whatever is said is a decision or nothing.
	strict bool
}

// ToolResult is what a tool answered.
type ToolResult struct {
	Text    string           `json:"text"`
	IsError bool             `json:"is_error,omitempty"`
	Status  agent.ToolStatus `json:"status"`
	// Reason says in one word why the call did not run, or why its answer is an error; empty for a good answer.
	Reason agent.ReasonCode `json:"reason,omitempty"`
	// Attempts is how often the tool was started; zero for a call that did not run.
	Attempts int `json:"attempts,omitempty"`
}

// Subagent is what is known of a sub-agent.
type Subagent struct {
	Agent       string `json:"agent"`
	Instruction string `json:"instruction"`
	Result      string `json:"result,omitempty"`
	// CallID is the id of the tool call that starts it.
	CallID string `json:"call_id,omitempty"`
	// Run and Session are the ids of its run and of its session. Status says how its run ended; it is empty before.
	Run     agent.RunID     `json:"run,omitempty"`
	Session agent.SessionID `json:"session,omitempty"`
	Status  agent.Status    `json:"status,omitempty"`
}

// Compaction is what is known of a compaction.
type Compaction struct {
	ID            string `json:"id"`
	Messages      int    `json:"messages"`
	Tokens        int64  `json:"tokens"`
	MessagesAfter int    `json:"messages_after,omitempty"`
	Summary       string `json:"summary,omitempty"`
}

// NewRequest returns what the action of the named hook is told of c. Set Decides to false for an action whose answer does not
// count: one of an observer, or that is not waited for.
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

// callArguments returns those of a call; text that is no JSON becomes a string.
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

// lookup returns the text that a name stands for: one of the variables, vars.name, or a dotted path into the JSON form of the
// request, with args for arguments. Objects and arrays are JSON.
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

// memberPath returns the dotted path of a member of a request that a name stands for.
func memberPath(name string) string {
	if rest, ok := cutPath(name, "args"); ok {
		return "arguments" + rest
	}
	return name
}

// cutPath cuts the first name off a dotted path.
func cutPath(path, first string) (rest string, ok bool) {
	if path == first {
		return "", true
	}
	if len(path) > len(first) && path[:len(first)] == first && path[len(first)] == '.' {
		return path[len(first):], true
	}
	return "", false
}

// json returns the JSON form.
func (r *Request) json() ([]byte, error) {
	form := *r
	if !form.Decides {
		form.Decisions = nil
	}
	text, err := strictjson.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("writing down what is asked: %w", err)
	}
	return []byte(text), nil
}

// until returns the request with a deadline.
func (r *Request) until(deadline time.Time) *Request {
	with := *r
	with.Deadline = deadline
	return &with
}
