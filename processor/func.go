package processor

import (
	"context"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Func is a processor from a plain func, for those who think in (T, error). It
// calls next once to go on, and may do what it likes before and after. It must be
// safe for concurrent use.
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
// returned. When f fails, nothing of the step or run takes place and the run ends
// as failed. When f returns a state that is stopped, the run ends with that
// signal, and no step is taken.
func Before(f func(ctx context.Context, s agent.State) (agent.State, error)) agent.Processor {
	return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		s, err := f(ctx, s)
		if err != nil {
			return mo.Err[agent.State](err)
		}
		return next(ctx, s)
	})
}

// After returns the processor that goes on and then calls f, whose state takes the
// place of the one that came back. A step or run that failed does not come to f; a
// run that was stopped or cancelled does. When f fails, the run ends as failed,
// with everything that was done before kept.
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
