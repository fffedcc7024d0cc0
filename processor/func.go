package processor

import (
	"context"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Func is a processor from a plain func with (T, error) results. It calls next once
// to go on, and may do anything before and after. It must be safe for concurrent
// use.
type Func func(ctx context.Context, s agent.State, next NextFunc) (agent.State, error)

// NextFunc is agent.Next for a Func: the rest of the chain.
type NextFunc func(ctx context.Context, s agent.State) (agent.State, error)

var _ agent.Processor = Func(nil)

// Process calls f.
func (f Func) Process(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	return mo.TupleToResult(f(ctx, s, func(ctx context.Context, s agent.State) (agent.State, error) {
		return next(ctx, s).Get()
	}))
}

// Before returns the processor that calls f and goes on with the state that f
// returned. When f fails, the step or run does not take place and the run ends as
// failed. When f returns a state that is stopped, the run ends with that signal, and
// no step is taken.
func Before(f func(ctx context.Context, s agent.State) (agent.State, error)) agent.Processor {
	return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		s, err := f(ctx, s)
		if err != nil {
			return mo.Err[agent.State](err)
		}
		return next(ctx, s)
	})
}

// After returns the processor that calls next and then f, whose state replaces the
// one from next. F is not called for a step or run that failed, but for a run that
// was stopped or cancelled. When f fails, the run ends as failed, and everything
// that was done before is kept.
func After(f func(ctx context.Context, s agent.State) (agent.State, error)) agent.Processor {
	return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		done, err := next(ctx, s).Get()
		if err != nil {
			return mo.Err[agent.State](err)
		}
		out, err := f(ctx, done)
		if err != nil {
			return mo.Err[agent.State](&agent.RunError{State: done, Err: err})
		}
		return mo.Ok(out)
	})
}
