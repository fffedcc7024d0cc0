package agent

import (
	"cmp"
	"iter"
	"strings"
	"time"

	"github.com/samber/mo"
)

// FinishReason says why a model stopped writing.
type FinishReason string

// The finish reasons that drivers translate to.
const (
	FinishStop      FinishReason = "stop"
	FinishLength    FinishReason = "length"
	FinishToolCalls FinishReason = "tool_calls"
	FinishFilter    FinishReason = "content_filter"
	FinishError     FinishReason = "error"
	// FinishPause: the service paused a long turn. The next step continues it.
	FinishPause FinishReason = "pause_turn"
)

// Usage is what model calls consumed.
type Usage struct {
	// InputTokens counts all input, including cached input.
	InputTokens int64 `json:"input_tokens"`
	// OutputTokens counts all output, including reasoning.
	OutputTokens int64 `json:"output_tokens"`
	// CacheReadTokens is the part of the input that was read from a cache.
	CacheReadTokens int64 `json:"cache_read_tokens,omitempty"`
	// CacheWriteTokens is the part of the input that was written to a cache.
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
	// ReasoningTokens is the part of the output that was reasoning.
	ReasoningTokens int64 `json:"reasoning_tokens,omitempty"`
	// Cost is in US dollars. None means unknown.
	Cost mo.Option[float64] `json:"cost"`
}

// Tokens returns the sum of input and output tokens.
func (u Usage) Tokens() int64 { return u.InputTokens + u.OutputTokens }

// Add adds two usages. The cost of the sum is unknown if either cost is unknown.
func (u Usage) Add(v Usage) Usage {
	addTo(&u, &v)
	return u
}

func addTo(u, v *Usage) {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CacheReadTokens += v.CacheReadTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.ReasoningTokens += v.ReasoningTokens
	a, known := u.Cost.Get()
	if b, also := v.Cost.Get(); known && also {
		u.Cost = mo.Some(a + b)
		return
	}
	u.Cost = mo.None[float64]()
}

var (
	// noUsage is the start of a sum: zero usage at zero cost.
	noUsage = Usage{Cost: mo.Some(0.0)}
	// noStepUsage is the usage of a step whose usage is unknown.
	noStepUsage Usage
)

// Step is one model turn, as a driver replies.
type Step struct {
	// Message is the assistant's message with its tool calls.
	Message Message
	// FinishReason says why the model stopped writing. It is empty when the service did not say.
	FinishReason FinishReason
	Usage        Usage
	// Model is the model that answered, under its service's name for it.
	Model string
	// ID is the service's reply ID.
	ID string
	// Prior are changes to the state that middleware around the driver requests. They are applied before the reply is
	// recorded, and Effects after it. A model service's driver leaves both empty.
	Prior, Effects Effects
	// Stop, when set by middleware, ends the run, and no call of the reply runs. If Message is empty, the model was not
	// asked, and no step is recorded.
	Stop *Signal
}

// Empty reports whether the reply is empty: it has no call, no image, no file, and no text other than white space.
// Reasoning does not count.
func (s Step) Empty() bool {
	if s.Message.CallCount() > 0 {
		return false
	}
	for _, part := range s.Message.Content().Parts() {
		switch part.Kind {
		case PartReasoning:
		case PartText:
			if strings.TrimSpace(part.Text) != "" {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// StepKind distinguishes steps that ran tools from steps that gave an answer.
type StepKind string

// The kinds of steps.
const (
	StepToolExecution StepKind = "tool_execution"
	StepFinalResponse StepKind = "final_response"
	StepFailure       StepKind = "failure"
)

// StepRecord is a step as recorded: the reply, the results of its calls, and its time. It is immutable, one word wide,
// and safe for concurrent use. The zero StepRecord is an empty step.
type StepRecord struct {
	body *stepBody
}

func (r StepRecord) read() *stepBody {
	if r.body == nil {
		return &emptyStep
	}
	return r.body
}

// Index returns the step's number in its run, counted from zero.
func (r StepRecord) Index() int { return int(r.read().index) }

// Reply returns the model's turn. Its Message is empty when the model call failed.
func (r StepRecord) Reply() Step {
	b := r.read()
	return Step{Message: b.message, FinishReason: b.finish, Usage: *cmp.Or(b.usage, &noStepUsage), Model: b.model, ID: b.id}
}

// Message returns the assistant's message.
func (r StepRecord) Message() Message { return r.read().message }

// Usage returns the model call's usage.
func (r StepRecord) Usage() Usage { return *cmp.Or(r.read().usage, &noStepUsage) }

// ResultCount returns the number of tool results, one for each call in the message.
func (r StepRecord) ResultCount() int { return len(r.read().answers) }

// Result returns the answer to call i. It panics when i is out of range.
func (r StepRecord) Result(i int) ToolResult { return *r.read().answers[i].result }

// Results iterates over the answers in call order.
func (r StepRecord) Results() iter.Seq2[int, ToolResult] {
	return func(yield func(int, ToolResult) bool) {
		for i := range r.ResultCount() {
			if !yield(i, r.Result(i)) {
				return
			}
		}
	}
}

// StartTime returns when the step began.
func (r StepRecord) StartTime() time.Time { return r.read().started }

// Duration returns how long the step took, including its tools.
func (r StepRecord) Duration() time.Duration { return r.read().took }

// Failure returns the error that ended the step early, or nil. That is a failed model call, or a hook whose failure
// aborts the run. A failed tool does not fail the step.
func (r StepRecord) Failure() *Failure { return r.read().failure }

// ToolFailures returns the number of calls whose tool failed with an error, a panic or a timeout.
func (r StepRecord) ToolFailures() int {
	n := 0
	answers := r.read().answers
	for i := range answers {
		if answers[i].result.Status == ToolFailed {
			n++
		}
	}
	return n
}

// Kind returns whether the step ran tools, answered, or failed. The zero StepRecord has no kind.
func (r StepRecord) Kind() StepKind {
	switch b := r.read(); {
	case r.body == nil:
		return ""
	case b.failure != nil:
		return StepFailure
	case b.message.CallCount() > 0, b.paused(): // a service pauses while its own tools run
		return StepToolExecution
	}
	return StepFinalResponse
}

// finishTexts describes replies that the model did not end by itself.
var finishTexts = map[FinishReason]string{
	FinishLength: "the reply was cut at its token limit",
	FinishFilter: "the model service withheld the reply, or the rest of it",
	FinishError:  "the model service ended the reply because of an error",
	FinishPause:  "the model service paused the reply too often",
}

// EndSignal returns the signal for a run that ends by itself with this step, without a Source: StopCompleted,
// StopFinishReason or StopEmptyReply.
func (r StepRecord) EndSignal() Signal {
	reply := r.Reply()
	text, unusual := finishTexts[FinishReasonOf(string(reply.FinishReason))]
	empty := reply.Empty()
	if !unusual && !empty {
		return Signal{Reason: StopCompleted}
	}
	signal := Signal{Reason: StopFinishReason, Message: text, Details: map[string]any{"finishReason": string(reply.FinishReason)}}
	if empty {
		signal.Details["emptyReply"] = true
		if !unusual {
			signal.Reason, signal.Message = StopEmptyReply, "the reply is empty: neither text nor tool calls"
		}
	}
	return signal
}

// Tools returns the names of the called tools, in call order.
func (r StepRecord) Tools() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, c := range r.Message().Calls() {
			if !yield(c.Name) {
				return
			}
		}
	}
}
