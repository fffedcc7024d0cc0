package hooks

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

var (
	stepStart, _ = infoOf(StepStart)
	stepEnd, _   = infoOf(StepEnd)
)

// StepContext is the context of AtStepStart.
type StepContext struct{ contextView }

// Allow allows the step, and can add effects before it.
func (c StepContext) Allow(effects ...agent.Effect) Result { return c.allowWith(effects) }

// Stop ends the run before this step.
func (c StepContext) Stop(reason string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: StopRun, reason: reason}, effects)
}

// StepEndContext is the context of AtStepEnd.
type StepEndContext struct {
	contextView
	p *stepEndPayload
}

type stepEndPayload struct {
	base
	record agent.StepRecord
	totals runTotals
}

// Record returns the step's record: reply, results, usage, times.
func (c StepEndContext) Record() agent.StepRecord { return c.p.record }

// Kind returns whether the step ran tools, gave an answer, or failed.
func (c StepEndContext) Kind() agent.StepKind { return c.p.record.Kind() }

// Content returns the model's text in this step; it may be empty.
func (c StepEndContext) Content() string { return c.p.record.Message().Text() }

// LastContent returns the model's last text in this run, from this step or an earlier one.
func (c StepEndContext) LastContent() string { return c.p.totals.text }

// Duration returns the step's duration, including its tools.
func (c StepEndContext) Duration() time.Duration { return c.p.record.Duration() }

// RunUsage returns the run's usage so far.
func (c StepEndContext) RunUsage() agent.Usage { return c.state.RunUsage() }

// RunToolCalls returns the run's number of tool calls so far.
func (c StepEndContext) RunToolCalls() int { return c.p.totals.tools }

// ShouldContinue reports whether the step gives a reason to continue: it called tools and nothing stopped the run. The
// criteria are asked later.
func (c StepEndContext) ShouldContinue() bool {
	return c.Kind() == agent.StepToolExecution && !c.state.Stopped()
}

// Allow can add effects after the step.
func (c StepEndContext) Allow(effects ...agent.Effect) Result { return c.allowWith(effects) }

// Stop ends the run after this step.
func (c StepEndContext) Stop(reason string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: StopRun, reason: reason}, effects)
}

// InferenceContext is the context of AtPreInference.
type InferenceContext struct {
	contextView
	p *inferencePayload
}

type inferencePayload struct {
	base
	reply agent.Step
	err   error
	held  *heldEvents // nil for observers
}

// Inference returns the model call's ID, the same at AtPostInference.
func (c InferenceContext) Inference() string { return agent.Checkpoint(c.state).InferenceID() }

// Request returns the request to the model, with earlier rewrites.
func (c InferenceContext) Request() agent.Request { return c.state.Request() }

// Messages iterates over the messages that the model is about to be shown.
func (c InferenceContext) Messages() iter.Seq2[int, agent.Message] { return c.state.Messages() }

// Allow allows the model call, and can add messages. The model is shown them in this call, and the transcript keeps
// them if the model answers.
func (c InferenceContext) Allow(effects ...agent.Effect) Result { return c.allowWith(effects) }

// Rewrite changes the request to the model, in this call only.
func (c InferenceContext) Rewrite(request agent.Request, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: Rewrite, request: &request}, effects)
}

// RewriteMessages shows the model other messages, in this call only. The transcript does not change.
func (c InferenceContext) RewriteMessages(messages []agent.Message, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: Rewrite, view: append([]agent.Message{}, messages...)}, effects)
}

// Stop ends the run before this call.
func (c InferenceContext) Stop(reason string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: StopRun, reason: reason}, effects)
}

// ReplyContext is the context of AtPostInference.
type ReplyContext struct {
	contextView
	p *inferencePayload
}

// Inference returns the model call's ID, the same at AtPreInference.
func (c ReplyContext) Inference() string { return agent.Checkpoint(c.state).InferenceID() }

// Tell sends an event about a hook to the run's observer. The event is sent after all controls were asked, with their
// filters applied.
func (c ReplyContext) Tell(ctx context.Context, e Event) {
	if e.Shadow && e.Decision == Filter {
		e = e.withFilter(e.Outcome.wouldChange(func(l filters) { l.filterReply(c.p.reply); _ = l.filterError(c.p.err) }))
	}
	c.p.held.holdOrSend(ctx, c.state, e)
}

// Err returns a failed model call's error, or nil. After a failure there is no reply. Replace and Withhold change the
// error text, and the call is still a failure.
func (c ReplyContext) Err() error { return c.p.err }

// Reply returns the model's turn, with earlier replacements.
func (c ReplyContext) Reply() agent.Step { return c.p.reply }

// Text returns the reply's text.
func (c ReplyContext) Text() string { return c.p.reply.Message.Text() }

// Tools returns the names of the tools that the reply calls, in call order.
func (c ReplyContext) Tools() []string {
	return lo.Map(slices.Collect(values(c.p.reply.Message.Calls())), func(call agent.ToolCall, _ int) string { return call.Name })
}

// Allow leaves the reply unchanged, and can add messages after it.
func (c ReplyContext) Allow(effects ...agent.Effect) Result { return c.allowWith(effects) }

// Filter applies f to every text that leaves the point: the model's text and reasoning, the names and arguments of its
// calls, a failed call's error, a stop's message, and the messages, context and metadata that middleware and hooks add,
// including hooks that are asked later. For JSON text, f is also called with each decoded string. f must return other
// text unchanged, and may be called again for its own result. If f panics, the reply is withheld and the run ends. A
// streamed reply is held back until all controls were asked.
func (c ReplyContext) Filter(f func(text string) string, effects ...agent.Effect) Result {
	return c.newAnswer(filterOutcome(f), effects)
}

// FilterOrWithhold works like Filter with a func that can also return an error, for text that must not leave the point.
// The whole reply is then withheld and the run ends with the error as the reason.
func (c ReplyContext) FilterOrWithhold(f func(text string) (string, error), effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: Filter, filter: f, invalid: missingFilter(f == nil)}, effects)
}

// Replace replaces the reply with another turn: text, calls, finish reason and usage. Start from Reply to keep the rest
// unchanged.
func (c ReplyContext) Replace(reply agent.Step, effects ...agent.Effect) Result {
	var err error
	if role := reply.Message.Role(); role != agent.RoleAssistant && c.p.err == nil {
		err = fmt.Errorf("the reply was replaced by a message of role %q: it must be %q", role, agent.RoleAssistant)
	}
	return c.newAnswer(Outcome{decision: Replace, reply: &reply, invalid: err}, effects)
}

// ReplaceText replaces the reply's text and keeps its calls.
func (c ReplyContext) ReplaceText(text string, effects ...agent.Effect) Result {
	reply := c.p.reply
	reply.Message = reply.Message.WithContent(agent.TextContent(text))
	return c.Replace(reply, effects...)
}

func values[K, V any](pairs iter.Seq2[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range pairs {
			if !yield(v) {
				return
			}
		}
	}
}
