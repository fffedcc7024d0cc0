package agent_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// limits is a criterion that has only limits.
type limits agent.Limits

func (l limits) Limits() agent.Limits { return agent.Limits(l) }

func (l limits) Evaluate(_ context.Context, s agent.State) mo.Result[agent.Evaluation] {
	if over, ok := agent.Limits(l).StopFor(s); ok {
		return mo.Ok(agent.Evaluation{Verdict: agent.Forbid, Signal: over})
	}
	return agent.Base.Evaluate(context.Background(), s)
}

// counting returns a driver whose every reply takes a second and ten tokens, and calls a tool until
// it has been asked n times in a run.
func counting(name string, n int) agent.Driver {
	return agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return agent.Step{}, ctx.Err()
		}
		step := agent.Step{Message: agent.Assistant("done"), Usage: agent.Usage{InputTokens: 4, OutputTokens: 6, Cost: mo.Some(0.5)}}
		if s.RunStepCount() < n {
			step.Message = agent.Assistant("", agent.ToolCall{ID: "a", Name: name}, agent.ToolCall{ID: "b", Name: name})
		}
		return step, nil
	})
}

// plainTool is an executor whose every call works.
type plainTool struct{}

func (plainTool) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(&agent.Prepared{Original: c, Call: c})
}

func (plainTool) Execute(_ context.Context, _ agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	return mo.Ok(agent.NewResult(p))
}

func made(t *testing.T, c agent.Config) *agent.Agent {
	t.Helper()
	a, err := agent.New(c).Get()
	require.NoError(t, err)
	return a
}

// family returns an agent whose calls, two at the same time, run another agent that takes three steps.
func family(t *testing.T, c agent.Criterion) *agent.Agent {
	t.Helper()
	child := made(t, agent.Config{Name: "child", Driver: counting("look", 2), Executor: plainTool{}})
	return made(t, agent.Config{
		Name: "parent", Driver: counting("delegate", 1), Executor: &delegates{to: child}, Parallel: 2, Criterion: c,
	})
}

func TestSpendingCountsTheRunsBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		final, err := family(t, nil).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		want := agent.Spending{Steps: 8, Usage: agent.Usage{InputTokens: 32, OutputTokens: 48, Cost: mo.Some(4.0)}, Below: true}
		assert.Equal(t, want, final.Spending(), "two steps of its own, three of each child")
		assert.Equal(t, want, stored(t, final).Spending())
		assert.EqualValues(t, 20, final.RunUsage().Tokens(), "what the run used itself stays apart")
		next, err := family(t, nil).Run(t.Context(), final, agent.UserText("go on")).Get()
		require.NoError(t, err)
		assert.Equal(t, want, next.Spending(), "another run begins at nothing")
	})
}

// Parallel runs wait for one another when little of the limit remains, and do not begin a model call that would
// exceed it.
func TestLimitsHoldOverTheRunsBelow(t *testing.T) {
	for name, tc := range map[string]struct {
		limits  agent.Limits
		reason  agent.StopReason
		says    string
		steps   int
		seconds float64
	}{
		"steps":  {agent.Limits{Steps: 4}, agent.StopStepsLimit, "4 of at most 4 steps taken, with the runs that it started", 4, 3},
		"tokens": {agent.Limits{Tokens: 40}, agent.StopTokenLimit, "40 of at most 40 tokens used, with the runs that it started", 4, 4},
		"cost":   {agent.Limits{Cost: 1.7}, agent.StopCostLimit, "$2 of at most $1.7 spent, with the runs that it started", 4, 4},
		"time":   {agent.Limits{Time: 1500 * time.Millisecond}, agent.StopTimeLimit, "2s of at most 1.5s passed", 3, 2},
		"all":    {agent.Limits{Steps: 4, Tokens: 40, Cost: 2, Time: time.Hour}, agent.StopCostLimit, "$2 of at most $2 spent", 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				final, err := family(t, limits(tc.limits)).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
				require.NoError(t, err)
				assert.Equal(t, agent.StatusStopped, final.Status())
				got := final.StopSignal()
				assert.Equal(t, tc.reason, got.Reason)
				assert.Contains(t, got.Message, tc.says)
				assert.Equal(t, tc.steps, final.Spending().Steps)
				assert.InDelta(t, tc.seconds, time.Since(began).Seconds(), 0.01)
			})
		})
	}
}

// A run that is stopped for the limit of another run names that run.
func TestARunBelowSaysWhoseLimitStopsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stopped []agent.Signal
		child := made(t, agent.Config{Name: "child", Driver: counting("look", 9), Executor: plainTool{}, Observer: agent.ObserverFunc(func(_ context.Context, e agent.Event) {
			if e, ok := e.(agent.RunCompleted); ok {
				stopped = append(stopped, e.State.StopSignal())
			}
		})})
		parent := made(t, agent.Config{Name: "parent", Driver: counting("delegate", 1), Executor: &delegates{to: child}, Criterion: limits{Tokens: 30}})
		final, err := parent.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		require.NotEmpty(t, stopped)
		assert.Equal(t, agent.StopTokenLimit, stopped[0].Reason)
		assert.Equal(t, "limits of run "+string(final.Run().ID), stopped[0].Source)
		assert.Contains(t, stopped[0].Message, `of agent "parent": 30 of at most 30 tokens used`)
	})
}

// A run that waits for a reservation ends with its context.
func TestWaitingForRoomEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		err := family(t, limits{Tokens: 4000}).Run(ctx, agent.NewState(), agent.UserText("go")).Error()
		failed := runError(t, mo.Err[agent.State](err))
		assert.Equal(t, agent.StatusCancelled, failed.State.Status())
		assert.Equal(t, 1, failed.State.RunStepCount(), "both calls of the first step were answered")
	})
}

// The usage of an unfinished child run is in its own state, and is counted once, even after a restart.
func TestSpendingOfParkedRuns(t *testing.T) {
	asks := made(t, agent.Config{Name: "child", Driver: counting("write", 1), Executor: &wantsYes{}, Approver: agent.ParkApprover})
	x := &delegates{to: asks}
	parent := made(t, agent.Config{Name: "parent", Driver: counting("delegate", 1), Executor: x, Parallel: 2, Criterion: limits{Tokens: 1000}})
	synctest.Test(t, func(t *testing.T) {
		s, err := parent.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		require.True(t, s.Parked())
		assert.Equal(t, 3, s.Spending().Steps, "a reply of each")
		assert.EqualValues(t, 30, s.Spending().Usage.Tokens())
		s = stored(t, s)
		assert.Equal(t, 3, s.Spending().Steps)
		assert.EqualValues(t, 30, s.Spending().Usage.Tokens())
		for len(s.Interventions()) > 0 && s.Parked() {
			for _, i := range s.Interventions() {
				s = agenttest.WithApproval(s, i.CallID(), agent.Approval{Verdict: agent.Approve})
			}
			s, err = parent.Resume(t.Context(), stored(t, s)).Get()
			require.NoError(t, err)
		}
		assert.Equal(t, agent.StatusDone, s.Status())
		assert.Equal(t, 6, s.Spending().Steps, "two steps of each")
		assert.EqualValues(t, 60, stored(t, s).Spending().Usage.Tokens())
	})
}

// A journal that records a call's answer keeps the usage of the call's child run.
func TestSpendingOfAnsweredCalls(t *testing.T) {
	s, err := delegatingState(t, agent.ToolCall{ID: "w", Name: "delegate"})
	require.NoError(t, err)
	before := s.Spending()
	assert.EqualValues(t, 7, before.Usage.InputTokens)
	call := agent.ToolCall{ID: "w", Name: "delegate"}
	r := agent.NewResult(&agent.Prepared{Original: &call, Call: &call})
	r.Status = agent.ToolExecuted
	answered := agent.Checkpoint(s).WithCallAnswered(r)
	assert.Equal(t, before, answered.Spending())
	first, err := agent.Checkpoint(s).Changes(agent.State{})
	require.NoError(t, err)
	second, err := agent.Checkpoint(answered).Changes(s)
	require.NoError(t, err)
	restored, err := agent.Restore(first, second)
	require.NoError(t, err)
	assert.Equal(t, before, restored.Spending())
}

func TestSmallerLimitsHold(t *testing.T) {
	a := agent.Limits{Steps: 5, Cost: 2, Time: time.Minute}
	b := agent.Limits{Steps: -1, Tokens: 9, Cost: 1, Time: time.Hour}
	want := agent.Limits{Steps: -1, Tokens: 9, Cost: 1, Time: time.Minute}
	assert.Equal(t, want, a.Merge(b))
	assert.Equal(t, want, b.Merge(a))
	assert.Equal(t, a, a.Merge(agent.Limits{}))
	nothing := agent.Limits{Cost: math.NaN()}
	for _, l := range []agent.Limits{a.Merge(nothing), nothing.Merge(a), nothing.Merge(agent.Limits{}), (agent.Limits{}).Merge(nothing)} {
		assert.True(t, math.IsNaN(l.Cost), "what is no number allows nothing")
	}
}

// Hooks of parallel model calls can run agents: such runs do not wait for the calls that wait for them.
func TestRunsWithinAModelCallDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := made(t, agent.Config{Name: "inner", Driver: counting("look", 0)})
		asks := counting("look", 0)
		child := made(t, agent.Config{Name: "child", Executor: plainTool{}, Driver: agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
			time.Sleep(time.Second) // until the other call is under way, too
			if err := inner.Run(ctx, agent.NewState(), agent.UserText("go")).Error(); err != nil {
				return agent.Step{}, err
			}
			return asks.Next(ctx, s).Get()
		})})
		parent := made(t, agent.Config{
			Name: "parent", Driver: counting("delegate", 1), Executor: &delegates{to: child}, Parallel: 2, Criterion: limits{Tokens: 5000},
		})
		final, err := parent.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.StatusDone, final.Status())
		assert.Equal(t, 6, final.Spending().Steps)
	})
}

// A model call that is repeated, or whose step is dropped, counts as one step for the runs above.
func TestStepsThatAreTakenAgainCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := 2
		asks := counting("look", 0)
		child := made(t, agent.Config{
			Name: "child",
			Driver: agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
				if fails--; fails >= 0 {
					return agent.Step{}, assert.AnError
				}
				return asks.Next(ctx, s).Get()
			}),
			AroundStep: []agent.Processor{agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
				out := next(ctx, s)
				for out.IsError() {
					out = next(ctx, s)
				}
				return next(ctx, s) // a reply that is thrown away was paid for all the same
			})},
		})
		parent := made(t, agent.Config{Name: "parent", Driver: counting("delegate", 1), Executor: &delegates{to: child}})
		final, err := parent.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, 4, final.Spending().Steps, "two of the parent, one of each child")
		assert.EqualValues(t, 60, final.Spending().Usage.Tokens(), "two replies of each")
	})
}

// The usage of replies that a processor dropped stays in the run's state, also when the model finally fails.
func TestRepliesThatAreDroppedStayPaidFor(t *testing.T) {
	twice := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		next(ctx, s)
		return next(ctx, s)
	})
	say := agenttest.Say("x").WithTokens(10, 5).WithCost(0.25)
	for name, tc := range map[string]struct {
		last agenttest.Turn
		want int64
	}{"answers": {say, 60}, "fails": {agenttest.Tries(say, agenttest.Fail(assert.AnError)), 45}} {
		a := made(t, agent.Config{Driver: agenttest.Script(say.Call("look", `{}`), tc.last), AroundStep: []agent.Processor{twice}})
		final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		if kept, ok := agent.StateOf(err); ok {
			final = kept
		}
		assert.Equal(t, tc.want, final.RunUsage().Tokens(), name)
		assert.Equal(t, tc.want, final.Spending().Usage.Tokens(), name)
		assert.InDelta(t, float64(tc.want)/60, final.RunUsage().Cost.OrEmpty(), 1e-9, name)
	}
}

// A model call that panics releases its reservation, so that another child run that waits continues.
func TestAModelCallThatPanicsReservesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		var mu sync.Mutex
		asks := counting("look", 0)
		child := made(t, agent.Config{Name: "child", Driver: agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
			mu.Lock()
			panics := first
			first = false
			mu.Unlock()
			if panics {
				time.Sleep(time.Second) // until the other waits
				panic("no model")
			}
			return asks.Next(ctx, s).Get()
		})})
		parent := made(t, agent.Config{
			Name: "parent", Driver: counting("delegate", 1), Executor: recovering{&delegates{to: child}}, Parallel: 2, Criterion: limits{Tokens: 4000},
		})
		final, err := parent.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.StatusDone, final.Status())
		assert.EqualValues(t, 30, final.Spending().Usage.Tokens())
	})
}

// recovering is an executor that answers when a call panics, as package toolexec's does.
type recovering struct{ *delegates }

func (x recovering) Execute(ctx context.Context, s agent.State, p *agent.Prepared) (result mo.Result[*agent.ToolResult]) {
	defer func() {
		if recover() != nil {
			r := agent.NewResult(p)
			r.Status = agent.ToolFailed
			result = mo.Ok(r)
		}
	}()
	return x.delegates.Execute(ctx, s, p)
}

// RunSettings.Limits stop a run and the runs below it, beside the limits of the criterion.
func TestLimitsOfOneRun(t *testing.T) {
	for name, tc := range map[string]struct {
		criterion agent.Criterion
		limits    agent.Limits
		reason    agent.StopReason
		says      string
		steps     int
		seconds   float64
	}{
		"steps":                  {nil, agent.Limits{Steps: 4}, agent.StopStepsLimit, "4 of at most 4 steps taken, with the runs that it started", 4, 3},
		"tokens":                 {nil, agent.Limits{Tokens: 40}, agent.StopTokenLimit, "40 of at most 40 tokens used, with the runs that it started", 4, 4},
		"cost":                   {nil, agent.Limits{Cost: 1.7}, agent.StopCostLimit, "$2 of at most $1.7 spent, with the runs that it started", 4, 4},
		"time interrupts a step": {nil, agent.Limits{Time: 1500 * time.Millisecond}, agent.StopTimeLimit, "the time limit of 1.5s has passed", 1, 1.5},
		"the stricter of both":   {limits{Steps: 3}, agent.Limits{Steps: 4}, agent.StopStepsLimit, "3 of at most 3 steps taken", 3, 2},
		"the other is stricter":  {limits{Steps: 7}, agent.Limits{Steps: 4}, agent.StopStepsLimit, "4 of at most 4 steps taken", 4, 3},
		"different ones":         {limits{Tokens: 1000}, agent.Limits{Steps: 4}, agent.StopStepsLimit, "4 of at most 4 steps taken", 4, 4},
		"nothing is left":        {nil, agent.Limits{Tokens: -1}, agent.StopTokenLimit, "0 of at most 0 tokens used", 0, 0},
		"no time is left":        {nil, agent.Limits{Time: -1}, agent.StopTimeLimit, "the time limit of 0s has passed", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				settings := agent.RunSettings{Limits: tc.limits}
				final, err := family(t, tc.criterion).RunWith(t.Context(), settings, agent.NewState(), agent.UserText("go")).Get()
				require.NoError(t, err)
				assert.Equal(t, agent.StatusStopped, final.Status())
				got := final.StopSignal()
				assert.Equal(t, tc.reason, got.Reason)
				assert.Contains(t, got.Message, tc.says)
				assert.Equal(t, tc.steps, final.Spending().Steps)
				assert.InDelta(t, tc.seconds, time.Since(began).Seconds(), 0.01)
			})
		})
	}
}

// Usage from before a run was resumed counts, also from the runs below, but not the time that it was parked.
func TestLimitsOfAResumedRun(t *testing.T) {
	asks := made(t, agent.Config{Name: "child", Driver: counting("write", 1), Executor: &wantsYes{}, Approver: agent.ParkApprover})
	parent := made(t, agent.Config{Name: "parent", Driver: counting("delegate", 1), Executor: &delegates{to: asks}, Parallel: 2})
	for name, tc := range map[string]struct {
		limits agent.Limits
		reason agent.StopReason
		steps  int
	}{
		"steps":  {agent.Limits{Steps: 3}, agent.StopStepsLimit, 3},
		"tokens": {agent.Limits{Tokens: 30}, agent.StopTokenLimit, 3},
		"time":   {agent.Limits{Time: time.Hour}, agent.StopCompleted, 6},
		"enough": {agent.Limits{Steps: 7, Tokens: 70, Time: 3 * time.Hour}, agent.StopCompleted, 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := parent.RunWith(t.Context(), agent.RunSettings{Limits: agent.Limits{Steps: 4}}, agent.NewState(), agent.UserText("go")).Get()
				require.NoError(t, err)
				time.Sleep(2 * time.Hour)
				for s.Parked() {
					require.NotEmpty(t, s.Interventions())
					for _, i := range s.Interventions() {
						s = agenttest.WithApproval(s, i.CallID(), agent.Approval{Verdict: agent.Approve})
					}
					s, err = parent.RunWith(t.Context(), agent.RunSettings{Resume: true, Limits: tc.limits}, stored(t, s)).Get()
					require.NoError(t, err)
				}
				assert.Equal(t, tc.reason, s.StopSignal().Reason)
				assert.Equal(t, tc.steps, s.Spending().Steps)
			})
		})
	}
}
