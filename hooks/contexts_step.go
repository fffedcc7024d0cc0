package hooks

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// StepContext is the context of AtStepStart.
type StepContext struct{ Common }

// Allow has nothing against the step, and may add to the state before it.
func (c StepContext) Allow(effects ...agent.Effect) Result { return c.allow(effects) }

// Stop ends the run before this step.
func (c StepContext) Stop(reason string, effects ...agent.Effect) Result {
	return c.answer(Outcome{decision: StopRun, reason: reason}, effects)
}

// StepEndContext is the context of AtStepEnd.
type StepEndContext struct {
	Common
	p *stepEndPayload
}

type stepEndPayload struct {
	base
	record agent.StepRecord
	totals runTotals
}

// Record is the step as it was recorded: reply, results, usage, times.
func (c StepEndContext) Record() agent.StepRecord { return c.p.record }

// Kind says whether the step ran tools, gave an answer, or failed.
func (c StepEndContext) Kind() agent.StepKind { return c.p.record.Kind() }

// Content is what the model said in this step; it may be empty.
func (c StepEndContext) Content() string { return c.p.record.Message().Text() }

// LastContent is what the model last said in this run, in this step or before.
func (c StepEndContext) LastContent() string { return c.p.totals.text }

// Duration is how long the step took, its tools included.
func (c StepEndContext) Duration() time.Duration { return c.p.record.Duration() }

// RunUsage is what the run consumed so far.
func (c StepEndContext) RunUsage() agent.Usage { return c.state.RunUsage() }

// RunToolCalls is the number of tool calls of the run so far.
func (c StepEndContext) RunToolCalls() int { return c.p.totals.tools }

// ShouldContinue reports whether the step leaves a reason to go on: it called
// tools and nothing stopped the run. The criteria are asked later.
func (c StepEndContext) ShouldContinue() bool {
	return c.Kind() == agent.StepToolExecution && !c.state.Stopped()
}

// Allow adds to the state after the step.
func (c StepEndContext) Allow(effects ...agent.Effect) Result { return c.allow(effects) }

// Stop ends the run after this step.
func (c StepEndContext) Stop(reason string, effects ...agent.Effect) Result {
	return c.answer(Outcome{decision: StopRun, reason: reason}, effects)
}

// InferenceContext is the context of AtPreInference.
type InferenceContext struct {
	Common
	p *inferencePayload
}

type inferencePayload struct {
	base
	reply agent.Step
}

// Inference is the id of the model call, the same at AtPostInference.
func (c InferenceContext) Inference() string { return c.state.InferenceID() }

// Request is what the model is about to be asked with, earlier rewrites applied.
func (c InferenceContext) Request() agent.Request { return c.state.Request() }

// Messages iterates over what the model is about to be shown.
func (c InferenceContext) Messages() iter.Seq2[int, agent.Message] { return c.state.Messages() }

// Allow has nothing against the call, and may add: what is added is shown to the
// model in this call, and kept when it answers.
func (c InferenceContext) Allow(effects ...agent.Effect) Result { return c.allow(effects) }

// Rewrite asks the model with another request, in this call only.
func (c InferenceContext) Rewrite(request agent.Request, effects ...agent.Effect) Result {
	return c.answer(Outcome{decision: Rewrite, request: &request}, effects)
}

// RewriteMessages shows the model other messages, in this call only; the
// transcript stays.
func (c InferenceContext) RewriteMessages(messages []agent.Message, effects ...agent.Effect) Result {
	return c.answer(Outcome{decision: Rewrite, view: append([]agent.Message{}, messages...)}, effects)
}

// Stop ends the run before this call.
func (c InferenceContext) Stop(reason string, effects ...agent.Effect) Result {
	return c.answer(Outcome{decision: StopRun, reason: reason}, effects)
}

// ReplyContext is the context of AtPostInference.
type ReplyContext struct {
	Common
	p *inferencePayload
}

// Inference is the id of the model call, the same at AtPreInference.
func (c ReplyContext) Inference() string { return c.state.InferenceID() }

// Reply is the model's turn, earlier replacements applied.
func (c ReplyContext) Reply() agent.Step { return c.p.reply }

// Text is the text of the reply.
func (c ReplyContext) Text() string { return c.p.reply.Message.Text() }

// Tools is the names of the tools that the reply calls, in call order.
func (c ReplyContext) Tools() []string {
	return lo.Map(slices.Collect(values(c.p.reply.Message.Calls())), func(call agent.ToolCall, _ int) string { return call.Name })
}

// Allow lets the reply stand, and may add after it.
func (c ReplyContext) Allow(effects ...agent.Effect) Result { return c.allow(effects) }

// Replace puts another turn in the place of the reply: other text, calls, finish
// reason and usage. Start from Reply, so that what is not to change stays.
func (c ReplyContext) Replace(reply agent.Step, effects ...agent.Effect) Result {
	var err error
	if role := reply.Message.Role(); role != agent.RoleAssistant {
		err = fmt.Errorf("the reply was replaced by a message of role %q: it must be %q", role, agent.RoleAssistant)
	}
	return c.answer(Outcome{decision: Replace, reply: &reply, invalid: err}, effects)
}

// ReplaceText puts another text in the place of the reply's; its calls stay.
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
