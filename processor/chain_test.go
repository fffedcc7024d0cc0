package processor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/processor"
)

// mark notes on its way in and out.
func mark(name string) agent.Processor {
	return processor.Func(func(ctx context.Context, s agent.State, next processor.NextFunc) (agent.State, error) {
		s, err := next(ctx, note.In(s, note.Or(s, "")+"("+name))
		return note.In(s, note.Or(s, "")+name+")"), err
	})
}

func TestChainNests(t *testing.T) {
	for want, p := range map[string][]agent.Processor{
		"(a(b(cc)b)a)": {mark("a"), processor.Chain(mark("b"), processor.Chain(), mark("c"))},
		"(aa)":         {processor.Chain(mark("a"))},
		"":             {processor.Chain()},
		"(a(bb)a)":     {mark("a"), mark("b")},
	} {
		final, err := run(t.Context(), t, agent.Config{Driver: asks(0), AroundStep: p})
		require.NoError(t, err)
		assert.Equal(t, want, note.Or(final, ""))
		final, err = run(t.Context(), t, agent.Config{Driver: asks(0), AroundRun: p})
		require.NoError(t, err)
		assert.Equal(t, want, note.Or(final, ""))
	}
}

// A chain goes on as often as it is asked to, from the same place.
func TestChainCanBeCalledAgain(t *testing.T) {
	twice := processor.Func(func(ctx context.Context, s agent.State, next processor.NextFunc) (agent.State, error) {
		if _, err := next(ctx, s); err != nil {
			return s, err
		}
		return next(ctx, s)
	})
	final, err := run(t.Context(), t, agent.Config{
		Driver: asks(0), AroundStep: []agent.Processor{processor.Chain(mark("a"), twice, mark("b"))},
	})
	require.NoError(t, err)
	assert.Equal(t, "(a(bb)a)", note.Or(final, ""))
	assert.Equal(t, 1, final.RunStepCount())
}

func TestChainDoesNotShareItsList(t *testing.T) {
	list := []agent.Processor{mark("a")}
	p := processor.Chain(list...)
	list[0] = mark("b")
	final, err := run(t.Context(), t, agent.Config{Driver: asks(0), AroundStep: []agent.Processor{p}})
	require.NoError(t, err)
	assert.Equal(t, "(aa)", note.Or(final, ""))
}

func TestMissingProcessorIsAnError(t *testing.T) {
	always := func(agent.State) bool { return true }
	for want, p := range map[string]agent.Processor{
		"processor 2 of 2 in a chain is nil":   processor.Chain(mark("a"), nil),
		"processor.When: the processor is nil": processor.When(always, nil),
	} {
		final, err := run(t.Context(), t, agent.Config{Driver: asks(0), AroundStep: []agent.Processor{p}})
		require.ErrorContains(t, err, want)
		assert.Zero(t, final.RunStepCount())
	}
}

func TestWhen(t *testing.T) {
	later := func(s agent.State) bool { return s.RunStepCount() > 0 }
	final, err := run(t.Context(), t, agent.Config{
		Driver: asks(2), AroundStep: []agent.Processor{processor.When(later, mark("a"))},
	})
	require.NoError(t, err)
	assert.Equal(t, "(aa)(aa)", note.Or(final, ""), "in two of three steps")
}
