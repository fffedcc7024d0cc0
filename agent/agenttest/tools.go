package agenttest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Func is a tool's body: it receives the effective call and returns text. An error or a panic becomes the answer to the
// model. An *agent.SignalError ends the run.
type Func func(ctx context.Context, c agent.ToolCall) (string, error)

// Tools are tools by name. They have no schema: a Func receives the arguments unchanged.
type Tools map[string]Func

// Specs returns the tools' specs for the model, sorted by name.
func (t Tools) Specs() agent.Tools {
	return agent.ToolsOf(lo.Map(slices.Sorted(maps.Keys(t)), func(name string, _ int) agent.ToolSpec {
		return agent.ToolSpec{Name: name}
	})...)
}

// Executor returns an executor for the tools. They are copied.
func (t Tools) Executor() *Executor { return &Executor{tools: maps.Clone(t)} }

// Executor runs Tools and records the calls. It is safe for concurrent use.
type Executor struct {
	tools Tools

	mu    sync.Mutex
	calls []agent.ToolCall
}

var _ agent.Executor = (*Executor)(nil)

// Calls returns the calls whose tools were run, in the order in which they began.
func (e *Executor) Calls() []agent.ToolCall {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls)
}

// Prepare allows the call if there is a tool with that name.
func (e *Executor) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	p := &agent.Prepared{Original: c, Call: c}
	if _, ok := e.tools[c.Name]; !ok {
		p.Invalid = fmt.Errorf("unknown tool %q", c.Name)
		p.Disposition = agent.DisposeAnswer
		p.Answer = agent.NotExecuted(c, agent.ReasonUnknownTool, "", p.Invalid.Error())
	}
	return mo.Ok(p)
}

// Execute runs the tool, or returns the prepared answer if the call does not run.
func (e *Executor) Execute(ctx context.Context, _ agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if p.Call == nil || p.Original == nil {
		return mo.Err[*agent.ToolResult](errors.New("execute: the prepared call has no Call or no Original"))
	}
	switch p.Disposition {
	case agent.DisposeAnswer:
		return mo.Ok(p.Answer)
	case agent.DisposeRun:
		return e.run(ctx, p)
	}
	return mo.Err[*agent.ToolResult](fmt.Errorf("tool %q: execute: the call neither runs nor has an answer", p.Call.Name))
}

func (e *Executor) run(ctx context.Context, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	e.mu.Lock()
	e.calls = append(e.calls, *p.Call)
	e.mu.Unlock()
	r := agent.NewResult(p)
	r.Status, r.Attempts, r.Started = agent.ToolExecuted, 1, time.Now()
	text, panicked, err := e.tools[p.Call.Name].callSafely(ctx, *p.Call)
	r.Duration = time.Since(r.Started)
	if stop, ok := errors.AsType[*agent.SignalError](err); ok {
		return mo.Err[*agent.ToolResult](stop)
	}
	if err != nil {
		text = err.Error()
		r.Status, r.Err = agent.ToolFailed, err
		r.Reason = lo.Ternary(panicked, agent.ReasonPanic, agent.ReasonError)
	}
	r.Content = agent.TextContent(text)
	return mo.Ok(r)
}

// callSafely calls the body and turns a panic into an error.
func (f Func) callSafely(ctx context.Context, c agent.ToolCall) (text string, panicked bool, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			text, panicked, err = "", true, fmt.Errorf("tool %q: panic: %v", c.Name, cause)
		}
	}()
	text, err = f(ctx, c)
	return text, false, err
}
