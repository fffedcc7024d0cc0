package hooks

import (
	"context"
	"fmt"
	"strings"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// A Call is the tool call that a hook receives. Its arguments are one well-formed JSON object,
// without duplicate names.
type Call struct{ agent.ToolCall }

// Decode decodes the arguments into a pointer to a struct, a map or any other Go value. Names are case-sensitive.
// Members without a field in the struct are ignored. Big integers keep their digits.
func (c Call) Decode(into any) error {
	if err := strictjson.Unmarshal(argumentsOf(c.ToolCall), into); err != nil {
		return fmt.Errorf("reading the arguments of tool %q: %w", c.Name, err)
	}
	return nil
}

// Argument returns the JSON text of the value at a path such as "path" or "to.0.email",
// and whether there is one.
func (c Call) Argument(path string) (raw string, ok bool) {
	return strictjson.Lookup(argumentsOf(c.ToolCall), path)
}

// Text returns the string at a path, and whether there is a string. A guard that only checks
// the string allows calls without it; RequireText denies them.
func (c Call) Text(path string) (string, bool) {
	raw, ok := c.Argument(path)
	if !ok {
		return "", false
	}
	return strictjson.Unquote(raw)
}

func argumentsOf(c agent.ToolCall) string {
	if c.Arguments == "" {
		return "{}"
	}
	return c.Arguments
}

// The points of a tool call.
var (
	preToolUse, _  = infoOf(PreToolUse)
	toolFailed, _  = infoOf(ToolFailed)
	postToolUse, _ = infoOf(PostToolUse)
)

// ToolContext is the context of AtPreToolUse.
type ToolContext struct {
	contextView

	p *agent.Prepared // with the changes so far
	x *HookedToolExecutor
}

// Call returns the call that would run, with earlier rewrites.
func (c ToolContext) Call() Call { return Call{*c.p.Call} }

// Original returns the model's original call.
func (c ToolContext) Original() Call { return Call{*c.p.Original} }

// Tool returns the tool's name.
func (c ToolContext) Tool() string { return c.p.Call.Name }

// Index returns the call's position in its step, counted from zero.
func (c ToolContext) Index() int { return c.p.Original.Index }

// Invalid returns the error in the arguments according to the tool's schema, or the error that the tool does not exist.
// It returns nil for a valid call. Unless a hook denies the call or rewrites it into a valid one, the model receives
// the error and the tool does not run.
func (c ToolContext) Invalid() error { return c.p.Invalid }

// Allow allows the call. Other hooks and approvals still apply.
func (c ToolContext) Allow(effects ...agent.Effect) Result {
	if len(effects) == 0 {
		return mo.Ok(c.info.allowed) // inlined, so that c is not copied
	}
	return c.allowWith(effects)
}

// Deny denies the call. The tool does not run, the model receives the reason, and the step's other calls continue. An
// empty reason is still a denial.
func (c ToolContext) Deny(reason string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: Deny, reason: reason}, effects)
}

// Stop ends the run. None of the step's calls run.
func (c ToolContext) Stop(reason string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: StopRun, reason: reason}, effects)
}

// Ask asks for approval before the call runs.
func (c ToolContext) Ask(reason string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: Ask, reason: reason}, effects)
}

// AskAbout works like Ask. The Question can also set a time limit, the verdict after that time, who may answer, and how
// many people must approve. AskAbout fills in the hook's name. A Question with a Gate waits for its event instead of a
// person. Its Kind is then agent.QuestionGate. A question with another Kind or with Answers is a hook failure.
func (c ToolContext) AskAbout(q agent.Question, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: Ask, reason: q.Reason, question: &q, invalid: wrongQuestion(q)}, effects)
}

func wrongQuestion(q agent.Question) error {
	if q.Within < 0 || q.OnTimeout > agent.Approve {
		return fmt.Errorf("invalid question: within %s, on timeout %s", q.Within, q.OnTimeout)
	}
	gate := q.Kind == agent.QuestionGate
	if q.Kind != agent.QuestionOrdinary && !gate || len(q.Answers) > 0 {
		return fmt.Errorf("invalid question: a hook must not set its kind (%q) or its answers (%d)", q.Kind, len(q.Answers))
	}
	if gate != (q.Gate != nil) || gate && q.Restricted() || q.Quorum < 0 {
		return fmt.Errorf("invalid question: kind %q, gate %t, approvers %q, quorum %d", q.Kind, q.Gate != nil, q.Approvers, q.Quorum)
	}
	for _, name := range q.Approvers {
		if strings.TrimSpace(name) == "" {
			return fmt.Errorf("invalid question: approvers %q: an empty text names no person and no role", q.Approvers)
		}
	}
	return nil
}

// Asked returns the intervention about the call from before the run was parked, with the answers. ok is false when no
// person was asked.
func (c ToolContext) Asked() (i agent.Intervention, ok bool) {
	return agent.Checkpoint(c.state).Intervention(c.p.Original.ID)
}

// Rewrite replaces all of the call's arguments. They are a json.RawMessage or any value that marshals to a JSON object.
// They are checked against the tool's schema immediately. Arguments that violate the schema are a hook failure: neither
// the original nor the rewritten call runs.
func (c ToolContext) Rewrite(arguments any, effects ...agent.Effect) Result {
	text, err := objectOf(arguments)
	return c.newAnswer(Outcome{decision: Rewrite, arguments: text, invalid: err}, effects)
}

// objectOf returns the JSON text of an object that a hook passes as a replacement.
func objectOf(value any) (string, error) {
	text, err := strictjson.Marshal(value)
	if err == nil {
		err = strictjson.CheckObject(text)
	}
	if err != nil {
		return text, &rewriteError{err}
	}
	return text, nil
}

// Mock answers the call with a text instead of the tool. The tool does not run.
func (c ToolContext) Mock(text string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: Mock, mock: &agent.ToolResult{Content: agent.TextContent(text)}}, effects)
}

// MockContent answers the call instead of the tool. The tool does not run.
func (c ToolContext) MockContent(content agent.Content, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: Mock, mock: &agent.ToolResult{Content: content}}, effects)
}

// MockFailure answers the call as if the tool had failed with this text.
func (c ToolContext) MockFailure(text string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: Mock, mock: &agent.ToolResult{
		Content: agent.TextContent(text), Reason: agent.ReasonError,
	}}, effects)
}

func (c ToolContext) toolCall() *agent.ToolCall { return c.p.Call }

// vet passes rewritten arguments to the inner executor, which checks them.
func (c ToolContext) vet(ctx context.Context, o *Outcome) (*Outcome, error) {
	if o.decision != Rewrite {
		return o, nil
	}
	call := *c.p.Call
	call.Arguments = o.arguments
	p, err := c.x.prepareRewritten(ctx, c.state, &call)
	switch {
	case err != nil:
		return nil, &executorError{err}
	case p.Invalid != nil:
		return nil, &rewriteError{p.Invalid}
	}
	vetted := *o
	vetted.prepared = p
	return &vetted, nil
}

// resultView is the common part of the contexts at the points after a tool call.
type resultView struct {
	contextView

	p *agent.Prepared // the call that is answered
	r *agent.ToolResult
	h *heldEvents // nil for observers
}

// Tell sends an event about a hook to the run's observer. The event is sent after all controls were asked, with their
// filters applied.
func (c resultView) Tell(ctx context.Context, e Event) {
	if e.Shadow && e.Decision == Filter {
		e = e.withFilter(e.Outcome.wouldChange(func(l filters) { l.filterResult(c.r) }))
	}
	c.h.holdOrSend(ctx, c.state, e)
}

func (c resultView) toolCall() *agent.ToolCall { return c.p.Call }

// Result returns the current answer, with earlier replacements.
func (c resultView) Result() agent.ToolResult {
	return *c.r.To(c.p)
}

// Status returns the call's status: executed, failed, mocked or not executed.
func (c resultView) Status() agent.ToolStatus { return c.r.Status }

// Denied reports whether a hook or a person decided that the call must not run.
func (c resultView) Denied() bool { return c.r.Denied() }

// IsError reports whether the answer tells the model about a failure.
func (c resultView) IsError() bool { return c.r.IsError() }

// Call returns the call that ran, or would have run.
func (c resultView) Call() Call { return Call{*c.p.Call} }

// Original returns the model's original call.
func (c resultView) Original() Call { return Call{*c.p.Original} }

// Tool returns the tool's name.
func (c resultView) Tool() string { return c.p.Call.Name }

// Index returns the call's position in its step, counted from zero.
func (c resultView) Index() int { return c.p.Original.Index }

// Text returns the answer's text.
func (c resultView) Text() string { return c.r.Text() }

// Allow leaves the answer unchanged, and can add effects.
func (c resultView) Allow(effects ...agent.Effect) Result {
	if len(effects) == 0 {
		return mo.Ok(c.info.allowed)
	}
	return c.allowWith(effects)
}

// Replace replaces the answer with another text and keeps its status.
func (c resultView) Replace(text string, effects ...agent.Effect) Result {
	return c.ReplaceContent(agent.TextContent(text), effects...)
}

// ReplaceContent replaces the answer's content and keeps its status.
func (c resultView) ReplaceContent(content agent.Content, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: Replace, content: &content}, effects)
}

// Filter applies f to every text that leaves the point: all parts of the content, the error, a stop's message, and the
// messages, context and metadata that the tool and hooks add, including hooks that are asked later. For JSON text, f is
// also called with each decoded string. f must return other text unchanged, and may be called again for its own result.
// If f panics, the answer is withheld. If f changes an error's text, a new error of the same kind replaces the original
// error.
func (c resultView) Filter(f func(text string) string, effects ...agent.Effect) Result {
	return c.newAnswer(filterOutcome(f), effects)
}

// FilterOrWithhold works like Filter with a func that can also return an error, for text that must not leave the point.
// The whole answer is then withheld, and the model receives the error as the reason.
func (c resultView) FilterOrWithhold(f func(text string) (string, error), effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: Filter, filter: f, invalid: missingFilter(f == nil)}, effects)
}

// Withhold withholds the answer from the model, which receives the reason instead. It also drops all effects from the
// tool and from hooks that were asked earlier.
func (c resultView) Withhold(reason string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: Withhold, reason: reason}, effects)
}

// Stop ends the run after this step. The answer is kept.
func (c resultView) Stop(reason string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: StopRun, reason: reason}, effects)
}

// ToolResultContext is the context of AtPostToolUse.
type ToolResultContext struct{ resultView }

// ToolFailureContext is the context of AtToolFailed.
type ToolFailureContext struct{ resultView }

// Err returns the tool's error.
func (c ToolFailureContext) Err() error { return c.r.Err }
