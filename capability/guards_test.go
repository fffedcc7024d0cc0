package capability_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/toolexec"
)

// IP-79, IP-80, IP-81, IP-82: each limit ends a real run, with its figures.
func TestEachGuardEndsARun(t *testing.T) {
	slow := toolexec.Func("slow", "Takes its time.", func(_ context.Context, _ nothing) (string, error) {
		time.Sleep(4 * time.Second)
		return "slept", nil
	})
	for name, tc := range map[string]struct {
		guards  capability.UseGuards
		steps   int
		status  agent.Status
		reason  agent.StopReason
		details map[string]any
	}{
		"steps": {capability.UseGuards{Steps: 3}, 3, agent.StatusStopped, agent.StopStepsLimit, map[string]any{"currentSteps": 3, "maxSteps": 3}},
		"tokens": {capability.UseGuards{Tokens: 3}, 2, agent.StatusStopped, agent.StopTokenLimit,
			map[string]any{"totalTokens": int64(4), "inputTokens": int64(2), "outputTokens": int64(2), "maxTokens": int64(3)}},
		"cost":          {capability.UseGuards{Cost: 1.5}, 2, agent.StatusStopped, agent.StopCostLimit, map[string]any{"currentCost": 2.0, "maxCost": 1.5}},
		"time":          {capability.UseGuards{Time: 6 * time.Second}, 2, agent.StatusStopped, agent.StopTimeLimit, map[string]any{"elapsedSeconds": 6.0, "maxSeconds": 6.0}},
		"finish reason": {capability.UseGuards{FinishReasons: []agent.FinishReason{agent.FinishToolCalls}}, 1, agent.StatusDone, agent.StopFinishReason, nil},
		"the first":     {capability.UseGuards{Steps: 9, Cost: 3, Tokens: 100, Time: time.Hour}, 3, agent.StatusStopped, agent.StopCostLimit, map[string]any{"currentCost": 3.0, "maxCost": 3.0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				final, err := run(t, installed(t, calls("slow"), capability.UseTools(slow), tc.guards))
				require.NoError(t, err)
				synctest.Wait()
				assert.Equal(t, tc.status, final.Status())
				assert.Equal(t, tc.steps, final.RunStepCount())
				signal := final.StopSignal()
				assert.Equal(t, tc.reason, signal.Reason)
				if tc.details != nil {
					assert.Equal(t, tc.details, signal.Details)
				}
			})
		})
	}
}

// IP-81: the time also ends a model call that hangs.
func TestTimeGuardInterruptsAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		final, err := run(t, installed(t, agenttest.Script(agenttest.Hang()), capability.UseGuards{Time: time.Minute}))
		require.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(began))
		assert.Equal(t, agent.StatusStopped, final.Status())
		assert.Equal(t, agent.StopTimeLimit, final.StopSignal().Reason)
	})
}

// IP-83: below its limits an agent behaves as without them.
func TestGuardsLetRunsPass(t *testing.T) {
	script := func() *agenttest.Driver {
		return agenttest.Script(agenttest.Call("a", `{}`).WithCost(0.1), agenttest.Say("done").WithCost(0.1))
	}
	with, err := run(t, installed(t, script(), capability.UseTools(tool("a")), capability.UseGuards{
		Steps: 3, Tokens: 10, Cost: 1, Time: time.Hour, FinishReasons: []agent.FinishReason{agent.FinishLength}, Continuations: 1,
	}))
	require.NoError(t, err)
	without, err := run(t, installed(t, script(), capability.UseTools(tool("a")), capability.UseGuards{}))
	require.NoError(t, err)
	assert.Equal(t, agenttest.Transcript(without), agenttest.Transcript(with))
	assert.Equal(t, without.StopSignal(), with.StopSignal())
}

// IP-84: two concurrent runs do not share a clock or other data.
func TestGuardsKeepRunsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := installed(t, agenttest.Script(agenttest.Hang()), capability.UseGuards{Time: time.Minute, Steps: 2}).Agent().Get()
		require.NoError(t, err)
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 40 * time.Second)
				began := time.Now()
				final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
				assert.NoError(t, err)
				assert.Equal(t, time.Minute, time.Since(began))
				assert.Equal(t, agent.StopTimeLimit, final.StopSignal().Reason)
			})
		}
		wg.Wait()
	})
}

// An unknown cost does not count as zero.
func TestUnknownCostEndsARun(t *testing.T) {
	final, err := run(t, installed(t, agenttest.Script().Then(agenttest.Call("a", `{}`)), capability.UseTools(tool("a")), capability.UseGuards{Cost: 1}))
	require.NoError(t, err)
	assert.Equal(t, 1, final.RunStepCount())
	assert.Contains(t, final.StopSignal().Message, "the cost of the run is unknown")
}

func TestGuardsThatAreNoLimits(t *testing.T) {
	err := capability.UseGuards{Steps: -3, Tokens: -2, Cost: math.NaN(), Time: -time.Second, Continuations: -3}.Install(capability.Plan{}).Error()
	require.EqualError(t, err, `the limit of steps is -3: it must not be less than -1, which means none, and zero means 100
the limit of tokens is -2: it must not be negative, and zero means none
the limit of cost is NaN: it must not be negative, and zero means none
the limit of time is -1s: it must not be negative, and zero means none
the limit of continuations is -3: it must not be negative, and zero means none`)
}
