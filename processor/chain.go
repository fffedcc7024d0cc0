package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Chain returns several processors as one, the first outermost: Chain(a, b) around a step is a(b(step)). A Chain
// without processors calls next. When the chain reaches a nil processor, it returns an error.
func Chain(processors ...agent.Processor) agent.Processor {
	return &chain{slices.Clone(processors)}
}

type chain struct {
	processors []agent.Processor
}

func (c *chain) Process(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
	return link{c.processors, 0, next}.run(ctx, s)
}

// link is the part of a chain from i on, before next.
type link struct {
	processors []agent.Processor
	i          int
	next       agent.Next
}

func (l link) run(ctx context.Context, s agent.State) mo.Result[agent.State] {
	if l.i == len(l.processors) {
		return l.next(ctx, s)
	}
	p := l.processors[l.i]
	if p == nil {
		return mo.Err[agent.State](fmt.Errorf("processor %d of %d in a chain is nil", l.i+1, len(l.processors)))
	}
	return p.Process(ctx, s, link{l.processors, l.i + 1, l.next}.run)
}

// When returns a processor that runs p if met returns true, and otherwise calls next. It calls met each time. A nil p
// is an error.
func When(met func(s agent.State) bool, p agent.Processor) agent.Processor {
	return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		switch {
		case p == nil:
			return mo.Err[agent.State](errors.New("processor.When: the processor is nil"))
		case met(s):
			return p.Process(ctx, s, next)
		}
		return next(ctx, s)
	})
}
