package action

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Milliseconds is a duration whose JSON form is a whole number of milliseconds.
type Milliseconds time.Duration

// MarshalJSON returns the milliseconds, rounded down.
func (m Milliseconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(m).Milliseconds())
}

// UsageFigures are the figures of a Usage. Tokens counts input and output together. Cached tokens are part of the
// input, and reasoning is part of the output.
type UsageFigures struct {
	Tokens           int64 `json:"tokens"`
	InputTokens      int64 `json:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	CacheReadTokens  int64 `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
	ReasoningTokens  int64 `json:"reasoning_tokens,omitempty"`
	// Cost is in US dollars. It is nil when it is unknown.
	Cost *float64 `json:"cost,omitempty"`
}

func figuresOf(u agent.Usage) UsageFigures {
	return UsageFigures{
		u.Tokens(), u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens, u.Cost.ToPointer(),
	}
}

// Usage is a run's usage, including the runs that it started. It is computed on demand. The zero value means no usage.
type Usage struct{ run agent.State }

// Figures returns the usage so far.
func (u Usage) Figures() UsageFigures { return figuresOf(u.run.Spending().Usage) }

// IsZero reports whether nothing was used.
func (u Usage) IsZero() bool {
	used := u.run.Spending().Usage
	return used.Tokens() == 0 && used.Cost.OrEmpty() == 0
}

// MarshalJSON returns the Figures.
func (u Usage) MarshalJSON() ([]byte, error) {
	text, err := strictjson.Marshal(u.Figures())
	return []byte(text), err
}

// CallCount counts a tool's calls in a run's recorded steps: all Calls, successful calls (OK), and Denied calls.
type CallCount struct {
	Calls  int `json:"calls"`
	OK     int `json:"ok"`
	Denied int `json:"denied"`
}

// Calls are a run's tool calls. They are counted on demand, each step once. The zero value has no calls.
type Calls struct{ run agent.State }

// countedCalls holds the counts for a run's first steps.
type countedCalls struct {
	mu     sync.Mutex
	steps  int
	counts map[string]CallCount
}

var callsOfRun = agent.NewScratch[countedCalls](nil)

// ByTool returns the counts by tool name. It omits tools that were not called.
func (c Calls) ByTool() map[string]CallCount {
	known := callsOfRun.Get(c.run)
	known.mu.Lock()
	defer known.mu.Unlock()
	steps := c.run.RunStepCount()
	if known.counts == nil || steps < known.steps {
		known.steps, known.counts = 0, map[string]CallCount{}
	}
	for _, step := range c.run.RunStepsBackward() {
		if known.steps == steps {
			break
		}
		known.steps++
		for _, result := range step.Results() {
			n := known.counts[result.Tool()]
			n.Calls++
			switch {
			case result.Denied():
				n.Denied++
			case !result.IsError():
				n.OK++
			}
			known.counts[result.Tool()] = n
		}
	}
	return maps.Clone(known.counts)
}

// IsZero reports whether no tool was called.
func (c Calls) IsZero() bool { return len(c.ByTool()) == 0 }

// MarshalJSON encodes the result of ByTool.
func (c Calls) MarshalJSON() ([]byte, error) {
	text, err := strictjson.Marshal(c.ByTool())
	return []byte(text), err
}

// Reply is a model's turn.
type Reply struct {
	Text string `json:"text"`
	// Tools are the names of the called tools, in call order.
	Tools []string `json:"tools,omitempty"`
	// FinishReason says why the model stopped writing. It is empty when the provider did not report it.
	FinishReason agent.FinishReason `json:"finish_reason,omitempty"`
	// Model is the provider's name for the model that answered.
	Model string       `json:"model,omitempty"`
	Usage UsageFigures `json:"usage"`
}

func replyOf(step agent.Step) *Reply {
	r := &Reply{Text: step.Message.Text(), FinishReason: step.FinishReason, Model: step.Model, Usage: figuresOf(step.Usage)}
	for _, call := range step.Message.Calls() {
		r.Tools = append(r.Tools, call.Name)
	}
	return r
}

// Approval is a tool call that requires a person's approval, and the answer.
type Approval struct {
	CallID    string          `json:"call_id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	// Run is the ID of the sub-agent's run that makes the call. It is empty for the run's own call.
	Run agent.RunID `json:"run,omitempty"`
	// Question is the reason for asking the person.
	Question string `json:"question,omitempty"`
	// Action is the answer: "approve", "reject" or "reject_and_continue". It is empty until there is an answer. By
	// names the person who answered, and Reason is that person's reason.
	Action string `json:"action,omitempty"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func approvalOf(i agent.Intervention) Approval {
	a := Approval{
		CallID: i.CallID(), Tool: i.Call.Name, Arguments: callArguments(hooks.Call{ToolCall: i.Call}), Run: i.Child.ID,
		Question: i.Questions.Reason(),
	}
	if answer := i.Answer(); answer != nil {
		a.Action, a.By, a.Reason = answer.Verdict.String(), answer.By, answer.Reason
	}
	return a
}

// sameAgain returns the request without members that may differ when a run reaches the same place again, such as
// durations. It also omits members that follow from others. Journals that were written without these members stay
// valid.
func (r *Request) sameAgain() Request {
	about := *r
	about.Usage, about.Calls, about.Duration = Usage{}, Calls{}, 0
	about.Reply, about.StepKind, about.Continues, about.End, about.Pipeline = nil, "", nil, nil, nil
	if r.Result != nil {
		about.Result = &ToolResult{Text: r.Result.Text, IsError: r.Result.IsError, Status: r.Result.Status}
	}
	if r.Subagent != nil {
		about.Subagent = new(*r.Subagent)
		about.Subagent.CallID = ""
	}
	return about
}
