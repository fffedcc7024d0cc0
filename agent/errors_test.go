package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

func TestARunErrorSaysWhichRunFailedWhereAndWhy(t *testing.T) {
	a := build(t, agent.Config{
		Name: "clerk", Driver: agenttest.Script(calls("add"), agenttest.Fail(errOutOfPaper)), Executor: tools().Executor(),
	})
	failed := runError(t, a.RunWith(t.Context(), agent.RunSettings{ID: "run_7"}, agent.NewState(agent.UserText("hello"))))
	require.EqualError(t, failed, `agent "clerk": run run_7 failed at step 2: asking the model: out of paper`)
	assert.Equal(t, "asking the model: out of paper", signalOf(t, failed.State).Message)
	require.ErrorIs(t, failed, errOutOfPaper)
	var failure *agent.Failure
	require.ErrorAs(t, failed, &failure)
	assert.Equal(t, agent.KindModel, failure.Kind)
	assert.Equal(t, agent.KindModel, agent.KindOf(failed))
}

func TestKindOf(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want agent.ErrorKind
	}{
		"nothing":             {nil, agent.KindUnknown},
		"a plain error":       {errOutOfPaper, agent.KindUnknown},
		"one with a kind":     {kinded{errOutOfPaper, agent.KindRateLimit}, agent.KindRateLimit},
		"below another":       {fmt.Errorf("asking: %w", kinded{errOutOfPaper, agent.KindTool}), agent.KindTool},
		"a deadline":          {fmt.Errorf("asking: %w", context.DeadlineExceeded), agent.KindTimeout},
		"a kind and deadline": {kinded{context.DeadlineExceeded, agent.KindModel}, agent.KindModel},
	} {
		assert.Equal(t, tc.want, agent.KindOf(tc.err), name)
	}
}

// A processor may do something about a failed step, leave it to the criteria, or
// end the run with an error of its own.
func TestAProcessorSeesAFailedStep(t *testing.T) {
	around := func(f func(ctx context.Context, s agent.State, err error) mo.Result[agent.State]) agent.Config {
		return agent.Config{
			Driver: agenttest.Script(agenttest.Tries(agenttest.Fail(errOutOfPaper), agenttest.Say("found some"))),
			AroundStep: []agent.Processor{agent.ProcessorFunc(
				func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
					result := next(ctx, s)
					if err := result.Error(); err != nil {
						return f(context.WithValue(ctx, nextKey{}, next), s, err)
					}
					return result
				},
			)},
		}
	}
	t.Run("and tries again", func(t *testing.T) {
		a := build(t, around(func(ctx context.Context, s agent.State, _ error) mo.Result[agent.State] {
			return ctx.Value(nextKey{}).(agent.Next)(ctx, s)
		}))
		final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
		require.NoError(t, err)
		assert.Equal(t, "found some", final.Answer())
		assert.Equal(t, 1, final.RunStepCount(), "the failed try is no step")
		assert.Zero(t, final.RunFailures())
	})
	t.Run("and says more", func(t *testing.T) {
		a := build(t, around(func(_ context.Context, _ agent.State, err error) mo.Result[agent.State] {
			return mo.Err[agent.State](fmt.Errorf("on a Sunday: %w", err))
		}))
		failed := runError(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello"))))
		require.ErrorIs(t, failed, errOutOfPaper)
		assert.Equal(t, 1, failed.State.RunStepCount(), "it is the failed step that it was")
	})
	t.Run("and gives up", func(t *testing.T) {
		a := build(t, around(func(context.Context, agent.State, error) mo.Result[agent.State] {
			return mo.Err[agent.State](errGoneHome)
		}))
		failed := runError(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello"))))
		require.ErrorIs(t, failed, errGoneHome)
	})
}

type nextKey struct{}

func TestFailureIsAnErrorWithOrWithoutItsValue(t *testing.T) {
	overloaded := kinded{errors.New("overloaded"), agent.KindRateLimit}
	a := build(t, agent.Config{Driver: agenttest.Script(agenttest.Fail(overloaded))})
	s := runError(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello")))).State
	failure := lastStep(t, s).Failure()
	require.ErrorIs(t, failure, overloaded)
	back := lastStep(t, throughJSON(t, s)).Failure()
	require.EqualError(t, back, failure.Error())
	assert.Equal(t, agent.KindRateLimit, agent.KindOf(back))
	require.NoError(t, errors.Unwrap(back))
}

func ExampleRunError() {
	a := agent.New(agent.Config{
		Name: "clerk", Driver: agenttest.Script(agenttest.Call("add", `{"a":1,"b":2}`), agenttest.Fail(errOutOfPaper)),
		Executor: tools().Executor(),
	}).MustGet()
	_, err := a.RunWith(context.Background(), agent.RunSettings{ID: "run_1"}, agent.NewState(), agent.UserText("1+2?")).Get()
	if failed, ok := errors.AsType[*agent.RunError](err); ok {
		fmt.Println(failed)
		fmt.Print(agenttest.Transcript(failed.State)) // nothing is lost with the run
	}
	// Output:
	// agent "clerk": run run_1 failed at step 2: asking the model: out of paper
	// user: 1+2?
	// assistant calls add {"a":1,"b":2}
	// tool add (executed): 3
}
