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
		"a cancelled context": {fmt.Errorf("asking: %w", context.Canceled), agent.KindCancelled},
		"a kind and deadline": {kinded{context.DeadlineExceeded, agent.KindModel}, agent.KindModel},
	} {
		assert.Equal(t, tc.want, agent.KindOf(tc.err), name)
	}
}

// The error of a cancelled run has KindCancelled for every cause of the cancellation.
func TestACancelledRunIsOfKindCancelled(t *testing.T) {
	for name, tc := range map[string]struct {
		cause error
		want  agent.ErrorKind
	}{
		"no cause":           {nil, agent.KindCancelled},
		"a plain cause":      {errGoneHome, agent.KindCancelled},
		"a cause of a kind":  {kinded{errOutOfPaper, agent.KindRateLimit}, agent.KindCancelled},
		"a passed deadline":  {context.DeadlineExceeded, agent.KindTimeout},
		"a deadline, in all": {fmt.Errorf("today: %w", context.DeadlineExceeded), agent.KindTimeout},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(tc.cause)
		err := build(t, agent.Config{Driver: agenttest.Script()}).Run(ctx, agent.NewState(agent.UserText("hello"))).Error()
		require.Error(t, err)
		assert.Equal(t, tc.want, agent.KindOf(fmt.Errorf("at work: %w", err)), name)
	}
	// An error with which a driver cancels its own call is a failure of the model call.
	err := build(t, agent.Config{Driver: agenttest.Script(agenttest.Fail(context.Canceled))}).
		Run(t.Context(), agent.NewState(agent.UserText("hello"))).Error()
	assert.Equal(t, agent.KindModel, agent.KindOf(err))
}

func TestStateOf(t *testing.T) {
	of := func(text string) agent.State { return agent.NewState(agent.UserText(text)) }
	run := &agent.RunError{State: of("run"), Err: &agent.StepError{State: of("step"), Err: errOutOfPaper}}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"nothing":                            {nil, ""},
		"a plain error":                      {errOutOfPaper, ""},
		"a run":                              {run, "run"},
		"a run, below":                       {fmt.Errorf("at work: %w", run), "run"},
		"a step":                             {fmt.Errorf("at work: %w", run.Err), "step"},
		"a run in a step, as of a sub-agent": {&agent.StepError{State: of("above"), Err: run}, "above"},
		"among others":                       {errors.Join(errGoneHome, run), "run"},
	} {
		s, ok := agent.StateOf(tc.err)
		assert.Equal(t, tc.want != "", ok, name)
		if ok {
			assert.Equal(t, tc.want, s.Message(0).Text(), name)
		}
	}
}

// A processor can handle a failed step, leave it to the criteria, or end the run with
// another error.
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
	if kept, ok := agent.StateOf(err); ok {
		fmt.Println(err)
		fmt.Print(agenttest.Transcript(kept)) // nothing is lost with the run
	}
	// Output:
	// agent "clerk": run run_1 failed at step 2: asking the model: out of paper
	// user: 1+2?
	// assistant calls add {"a":1,"b":2}
	// tool add (executed): 3
}
