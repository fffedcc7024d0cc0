package processor

import (
	"context"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Func adapts a func with the results (agent.State, error) to the Processor interface. The func calls next once to
// continue. It must be safe for concurrent use.
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

// Before returns a processor that calls f and then next with the state that f returned. When f fails, the step or run
// does not take place and the run ends as failed. When f returns a stopped state, the run ends with that signal, and no
// step is taken.
func Before(f func(ctx context.Context, s agent.State) (agent.State, error)) agent.Processor {
	return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		s, err := f(ctx, s)
		if err != nil {
			return mo.Err[agent.State](err)
		}
		return next(ctx, s)
	})
}

// After returns a processor that calls next and then f. The state from f replaces the state from next. F is also called
// after a stopped or cancelled run, but not after a failed step or run. When f fails, the run ends as failed, and the
// state from next is kept.
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
