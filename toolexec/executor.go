package toolexec

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/near"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Options configures an Executor. The zero value is the default.
type Options struct {
	// Policy sets the fields that a tool's own policy does not set.
	Policy Policy
	// FailRun turns a tool's failure into an Err from Execute, which ends the run. If it is false, the model receives
	// the failure and the run continues.
	FailRun bool
}

// Executor runs a toolbox's tools. It checks a call in Prepare and runs it in Execute. If either fails, the answer is
// text that the model can act on. An Executor is safe for concurrent use and can serve any number of runs at the same
// time.
type Executor struct {
	tools     map[string]*bound
	names     []string
	failRun   bool
	abandoned atomic.Int64
}

var _ agent.AnswerHandler = (*Executor)(nil)

// NewExecutor returns an executor for the tools in b.
func NewExecutor(b Toolbox, o Options) *Executor {
	e := &Executor{
		names:   lo.Map(b.entries, func(e entry, _ int) string { return e.spec.Name }),
		failRun: o.FailRun,
	}
	e.tools = lo.SliceToMap(b.entries, func(t entry) (string, *bound) { return t.spec.Name, t.under(o.Policy, e) })
	return e
}

// MayAddMessages reports whether a tool may append messages in the user or system role: see Policy.AddMessages.
func (e *Executor) MayAddMessages(tool string) bool {
	t := e.tools[tool]
	return t != nil && t.policy.AddMessages
}

// ready is a call between Prepare and Execute. Prepared.Carry stores it. Bodies in this package embed a preparedCall, so that
// one allocation holds both.
type ready interface {
	Body
	data() *preparedCall
}

// preparedCall is the executor's data about a call.
type preparedCall struct {
	prepared agent.Prepared
	tool     *bound
}

func (p *preparedCall) data() *preparedCall { return p }

// preparedBody is a tool's body that does not embed a preparedCall.
type preparedBody struct {
	preparedCall
	Body
}

// Prepare checks a call and runs nothing. An invalid call gets an answer, and Invalid is the error. Prepare checks, in
// this order, whether the arguments are one unambiguous JSON object, whether the tool exists, and whether the arguments
// fit its schema. Prepare is a pure function of the call and can be called again after a hook has changed the call. The
// tool's Policy.Doubt determines Prepared.Repeats.
func (e *Executor) Prepare(ctx context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(e.prepareCall(ctx, c))
}

func (e *Executor) prepareCall(ctx context.Context, c *agent.ToolCall) *agent.Prepared {
	tool := e.tools[c.Name]
	if tool == nil || !tool.strict {
		if err := strictjson.CheckObject(argumentsOf(c)); err != nil {
			return refuseCall(c, malformedArguments(err))
		}
	}
	if tool == nil {
		meant, _ := near.Name(c.Name, e.names)
		return refuseCall(c, &UnknownToolError{Name: c.Name, Nearest: meant, known: e.names})
	}
	body, err := tool.prepareBody(ctx, c)
	if err != nil {
		return refuseCall(c, err)
	}
	r, ok := body.(ready)
	if !ok {
		r = &preparedBody{Body: body}
	}
	p := r.data()
	p.tool = tool
	p.prepared.Original, p.prepared.Call, p.prepared.Carry, p.prepared.Strict = c, c, r, true
	p.prepared.Repeats = tool.policy.Doubt == DoubtRepeat
	return &p.prepared
}

// argumentsOf returns the call's arguments; {} if there are none.
func argumentsOf(c *agent.ToolCall) string {
	if c.Arguments == "" {
		return "{}"
	}
	return c.Arguments
}

// prepareBody calls the tool's Prepare, and recovers a panic.
func (t *bound) prepareBody(ctx context.Context, c *agent.ToolCall) (body Body, err error) {
	defer recoverPanic(ctx, t.name, &err)
	body, err = t.tool.Prepare(argumentsOf(c))
	if err == nil && body == nil {
		err = errors.New("the tool prepared nothing")
	}
	return body, err
}

// refuseCall returns the answer to an invalid call.
func refuseCall(c *agent.ToolCall, err error) *agent.Prepared {
	reason, text := agent.ReasonInvalid, fmt.Sprintf("tool %q: not executed: %v", shortenName(c.Name), err)
	switch err := err.(type) { //nolint:errorlint // errors that a tool wraps do not count
	case *agent.ArgumentsError:
		reason = err.Reason()
	case *UnknownToolError:
		reason, text = agent.ReasonUnknownTool, err.Error()
	case *PanicError:
		reason, text = agent.ReasonPanic, fmt.Sprintf("tool %q: not executed: it panicked while it read its arguments", c.Name)
	}
	answer := agent.NotExecuted(c, reason, "", "")
	answer.Content, answer.MaxBytes, answer.Err = validText(agent.TextContent(text)), defaultMaxResultBytes, err
	return &agent.Prepared{Original: c, Call: c, Disposition: agent.DisposeAnswer, Answer: answer, Invalid: err}
}

// AbandonedCalls returns the number of tool bodies that were abandoned after their time limit and that have not
// returned yet. Each of them holds a goroutine. A growing number means that a tool ignores its ctx.
func (e *Executor) AbandonedCalls() int { return int(e.abandoned.Load()) }
