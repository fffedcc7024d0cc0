package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/internal/nils"
)

// An AnswerHandler is an Executor that also handles calls that do not run because they already have an answer. Such
// calls were denied, mocked, invalid, rejected by a person, or overtaken by the end of their run. For each of them the
// agent calls HandleAnswer once in place of Execute, with Disposition DisposeAnswer and an Answer, and records the
// result. HandleAnswer must not run anything that the call asks for.
//
// A wrapper that records or reviews results implements this method. It calls the func HandleAnswer to pass the call to
// the executor that it wraps. The agent skips executors and wrappers without the method.
type AnswerHandler interface {
	Executor
	HandleAnswer(ctx context.Context, s State, p *Prepared) mo.Result[*ToolResult]
}

// HandleAnswer returns the result of x.HandleAnswer for a call with an answer. When x is not an AnswerHandler, it
// returns p.Answer. Execute is not called.
func HandleAnswer(ctx context.Context, x Executor, s State, p *Prepared) mo.Result[*ToolResult] {
	if h, ok := x.(AnswerHandler); ok {
		return h.HandleAnswer(ctx, s, p)
	}
	return p.givenAnswer()
}

// givenAnswer returns the call's answer, or an error if it has none.
func (p *Prepared) givenAnswer() mo.Result[*ToolResult] {
	if p.Disposition != DisposeAnswer || p.Answer == nil {
		return mo.Err[*ToolResult](errors.New("the call has no answer"))
	}
	return mo.Ok(p.Answer)
}

// wrapExecutor wraps the innermost executor. The first wrapper is the outermost. It puts a gate around each executor
// whose Execute must see only calls that run.
func wrapExecutor(wrappers []func(Executor) Executor, innermost Executor) (Executor, error) {
	inner := &innerGate{Executor: innermost}
	var x Executor = inner
	for i, wrap := range slices.Backward(wrappers) {
		if wrap == nil {
			return nil, fmt.Errorf("wrapper %d of the executor is nil", i+1)
		}
		outer := wrap(x)
		if nils.Is(outer) {
			return nil, fmt.Errorf("wrapper %d of the executor returned nil", i+1)
		}
		if judge, ok := outer.(interface{ JudgesCalls() bool }); ok && judge.JudgesCalls() {
			inner.judged = true
		}
		if _, ok := outer.(AnswerHandler); !ok {
			outer = &gate{outer, x}
		}
		x = outer
	}
	return x, nil
}

// gate takes calls with an answer past a wrapper that is not an AnswerHandler, to the executor below it.
type gate struct {
	Executor

	below Executor
}

func (g *gate) Execute(ctx context.Context, s State, p *Prepared) mo.Result[*ToolResult] {
	if p.Disposition != DisposeRun {
		return g.HandleAnswer(ctx, s, p)
	}
	return g.Executor.Execute(ctx, s, p)
}

func (g *gate) HandleAnswer(ctx context.Context, s State, p *Prepared) mo.Result[*ToolResult] {
	return HandleAnswer(ctx, g.below, s, p)
}

// innerGate is around the innermost executor. It blocks every call that does not run. If the agent has hooks that judge
// calls, it also blocks calls that they did not judge in this form, whichever middleware made them. It allows only the
// effects that tools may have.
type innerGate struct {
	Executor

	judged bool // a wrapper judges calls
}

func (g *innerGate) Prepare(ctx context.Context, s State, c *ToolCall) mo.Result[*Prepared] {
	result := g.Executor.Prepare(ctx, s, c)
	p, err := result.Get()
	if err != nil || p == nil || !p.Begun && p.Effects.Len() == 0 && (p.Answer == nil || p.Answer.Effects.Len() == 0) {
		return result
	}
	q := *p
	q.Begun = false // the loop sets it
	err = g.checkEffects(c.Name, q.Effects)
	if err == nil && q.Answer != nil {
		q.Answer = g.vet(&Prepared{Call: c}, q.Answer)
	}
	if err != nil {
		q.Effects, q.Disposition = Effects{}, DisposeAnswer
		q.Answer = NotExecuted(c, ReasonError, "", fmt.Sprintf("tool %q: not executed: %v", c.Name, err))
		q.Answer.Err = err
	}
	own, others := q.Effects.splitBySource()
	if q.Effects = others; own.Len() > 0 {
		q.changeApprovalData(func(rest *approvalData) { rest.effects = own.From(toolSource + c.Name) })
	}
	return mo.Ok(&q)
}

func (g *innerGate) Execute(ctx context.Context, s State, p *Prepared) mo.Result[*ToolResult] {
	if p.Disposition != DisposeRun {
		return g.HandleAnswer(ctx, s, p)
	}
	if p.Call == nil || p.Original == nil {
		return mo.Err[*ToolResult](errors.New("executing: the prepared call has no Call or no Original"))
	}
	if err := s.beginJudged(ctx, p, g.judged); err != nil {
		return mo.Ok(refusal(p, err))
	}
	result := g.Executor.Execute(ctx, s, p)
	r, err := result.Get()
	if err != nil || r == nil || r.Effects.Len() == 0 && p.extra == nil {
		return result
	}
	return mo.Ok(g.vet(p, r))
}

func (g *innerGate) HandleAnswer(ctx context.Context, s State, p *Prepared) mo.Result[*ToolResult] {
	result := HandleAnswer(ctx, g.Executor, s, p)
	r, err := result.Get()
	if err != nil || r == nil || r.Effects.Len() == 0 && p.extra == nil || p.Call == nil {
		return result
	}
	if r == p.Answer { // its effects were checked before or come from hooks
		n := *r
		n.Effects = p.approvalData().effects.Add(r.Effects)
		return mo.Ok(&n)
	}
	return mo.Ok(g.vet(p, r))
}

// vet returns r with the executor's effects and the tool as their source. Effects from Prepare come before effects from
// Execute. If the tool may not have these effects, vet returns a failure without them.
func (g *innerGate) vet(p *Prepared, r *ToolResult) *ToolResult {
	call, n := p.Call, *r
	if err := g.checkEffects(call.Name, r.Effects); err != nil {
		n.Effects, n.Reason, n.Err = Effects{}, ReasonError, err
		n.Content = TextContent(fmt.Sprintf("tool %q: failed: %v", call.Name, err))
		if n.Status == "" || n.Status == ToolExecuted {
			n.Status = ToolFailed
		}
		return &n
	}
	n.Effects = p.approvalData().effects.Add(r.Effects.From(toolSource + call.Name))
	return &n
}

// checkEffects returns an error when the tool may not have these effects.
func (g *innerGate) checkEffects(tool string, effects Effects) error {
	if err := effects.Validate(); err != nil {
		return err
	}
	m, ok := effects.posing()
	if !ok {
		return nil
	}
	if x, ok := g.Executor.(interface{ MayAddMessages(tool string) bool }); ok && x.MayAddMessages(tool) {
		return nil
	}
	return fmt.Errorf("appending a message in the role %q: the tool is not allowed to: set AddMessages in its toolexec.Policy", m.Role())
}
