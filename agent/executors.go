package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/mo"
)

// AnswerHandler is an Executor that takes part in calls which do not run because they
// have an answer already: calls that were denied, mocked or invalid, that a person
// rejected, or whose run was stopped or cancelled before them. HandleAnswer is called for
// such a call in the place of Execute, once, with Disposition DisposeAnswer and an Answer;
// the result is what is recorded. It must not run anything that the call asks for.
//
// A wrapper that records or reviews results has this method and hands the call on to the
// executor that it wraps with the func HandleAnswer. The agent passes over executors and
// wrappers without it.
type AnswerHandler interface {
	Executor
	HandleAnswer(ctx context.Context, s State, p *Prepared) mo.Result[*ToolResult]
}

// HandleAnswer returns what x makes of a call that has an answer: the result of its
// method of that name, or p.Answer where x is no AnswerHandler. Execute is not called.
func HandleAnswer(ctx context.Context, x Executor, s State, p *Prepared) mo.Result[*ToolResult] {
	if h, ok := x.(AnswerHandler); ok {
		return h.HandleAnswer(ctx, s, p)
	}
	return p.given()
}

// given returns the answer that a call has.
func (p *Prepared) given() mo.Result[*ToolResult] {
	if p.Disposition != DisposeAnswer || p.Answer == nil {
		return mo.Err[*ToolResult](errors.New("the call has no answer"))
	}
	return mo.Ok(p.Answer)
}

// wrapExecutor puts the wrappers around the innermost executor, the first outermost, with
// a gate in each place where Execute must see nothing but calls that run.
func wrapExecutor(wrappers []func(Executor) Executor, innermost Executor) (Executor, error) {
	var x Executor = &innerGate{innermost}
	for i := len(wrappers) - 1; i >= 0; i-- {
		wrap := wrappers[i]
		if wrap == nil {
			return nil, fmt.Errorf("wrapper %d of the executor is nil", i+1)
		}
		outer := wrap(x)
		if outer == nil {
			return nil, fmt.Errorf("wrapper %d of the executor returned nil", i+1)
		}
		if _, ok := outer.(AnswerHandler); !ok {
			outer = &gate{outer, x}
		}
		x = outer
	}
	return x, nil
}

// unobservedExecutor returns x without the wrappers that only look on, as far as they are
// outermost.
func unobservedExecutor(x Executor) Executor {
	for {
		outer := x
		if g, ok := x.(*gate); ok {
			outer = g.Executor
		}
		onlooker, ok := outer.(interface{ Unobserved() Executor })
		if !ok {
			return x
		}
		x = onlooker.Unobserved()
	}
}

// gate leads calls that have an answer around a wrapper that is no AnswerHandler, to the
// executor below it.
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

// innerGate stands around the innermost executor. It keeps from it every call that does
// not run, or that is not the one that was judged.
type innerGate struct{ Executor }

func (g *innerGate) Execute(ctx context.Context, s State, p *Prepared) mo.Result[*ToolResult] {
	if p.Disposition != DisposeRun {
		return g.HandleAnswer(ctx, s, p)
	}
	if p.Call == nil || p.Original == nil {
		return mo.Err[*ToolResult](errors.New("executing: the prepared call does not say what was called"))
	}
	if _, err := s.CheckJudgement(p); err != nil {
		return mo.Ok(refusal(p, err))
	}
	return g.Executor.Execute(ctx, s, p)
}

func (g *innerGate) HandleAnswer(ctx context.Context, s State, p *Prepared) mo.Result[*ToolResult] {
	return HandleAnswer(ctx, g.Executor, s, p)
}
