package kit_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
	"github.com/grapnel-go/grapnel/hooks/budget"
	"github.com/grapnel-go/grapnel/toolexec"
)

// overloaded is a failure of a model call that a retry helps against.
type overloaded struct{}

func (overloaded) Error() string              { return "overloaded" }
func (overloaded) ErrorKind() agent.ErrorKind { return agent.KindOverloaded }

// busyModel is a service that counts what it was asked for, and never has enough: agents with
// sub-agents start three at once, the others call a tool. Each reply takes a second and 20
// tokens; every fifth call fails.
type busyModel struct {
	calls, replies, running, most, summaries atomic.Int64
}

func (m *busyModel) driver(reply func() agent.Message) agent.Driver {
	return agent.DriverFunc(func(ctx context.Context, _ agent.State) (agent.Step, error) {
		running := m.running.Add(1)
		defer m.running.Add(-1)
		for {
			most := m.most.Load()
			if running <= most || m.most.CompareAndSwap(most, running) {
				break
			}
		}
		n := m.calls.Add(1)
		select {
		case <-time.After(time.Second + time.Duration(n)*time.Millisecond):
		case <-ctx.Done():
			return agent.Step{}, ctx.Err()
		}
		if n%5 == 0 {
			return agent.Step{}, overloaded{}
		}
		m.replies.Add(1)
		return agent.Step{Message: reply(), Usage: agent.Usage{InputTokens: 12, OutputTokens: 8, Cost: mo.Some(0.01)}}, nil
	})
}

// tree returns an agent with agents below it, three levels of them.
func (m *busyModel) tree(t *testing.T, level int, more ...capability.Capability) builder.AgentBuilder {
	t.Helper()
	look := toolexec.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	b := builder.New().WithName(fmt.Sprintf("level-%d", level)).WithParallel(3).With(kit.ModelRetry{Attempts: 4}).With(more...)
	if level == 3 {
		summarise := m.driver(func() agent.Message { m.summaries.Add(1); return agent.Assistant("so far: nothing") })
		return b.WithDriver(m.driver(func() agent.Message { return agent.Assistant("", agent.ToolCall{Name: "look", Arguments: "{}"}) })).
			With(capability.UseTools(look), capability.UseCompaction{Messages: 9, Driver: summarise}, capability.UseGuards{Steps: -1})
	}
	arguments := fmt.Sprintf(`{"agent":"level-%d","instruction":"go"}`, level+1)
	delegate := func() agent.Message {
		call := agent.ToolCall{Name: "task", Arguments: arguments}
		return agent.Assistant("", call, call, call)
	}
	return b.WithDriver(m.driver(delegate)).
		With(capability.UseSubagents{MaxDepth: 3, Agents: []capability.Subagent{{Agent: m.tree(t, level+1)}}})
}

// Issue of a tree of agents that never ends by itself: every kind of limit of the first agent stops
// all of it, and no running agent takes more than the reply that it was waiting for.
func TestARunawayTreeStopsAtItsLimits(t *testing.T) {
	const tokens, cost = 20, 0.01 // of a reply
	for name, tc := range map[string]struct {
		limit  []capability.Capability
		reason agent.StopReason
		used   func(s agent.Spending) float64 // in replies
		limits float64                        // in replies
	}{
		"steps":  {[]capability.Capability{capability.UseGuards{Steps: 200}}, agent.StopStepsLimit, func(s agent.Spending) float64 { return float64(s.Steps) }, 200},
		"tokens": {[]capability.Capability{capability.UseGuards{Steps: -1, Tokens: 4000 * tokens}}, agent.StopTokenLimit, func(s agent.Spending) float64 { return float64(s.Usage.Tokens()) / tokens }, 4000},
		"cost":   {[]capability.Capability{capability.UseGuards{Steps: -1, Cost: 40}}, agent.StopCostLimit, func(s agent.Spending) float64 { return s.Usage.Cost.OrEmpty() / cost }, 4000},
		"budget of tokens": {
			unlimited(budget.Limits{Tokens: 4000 * tokens}), agent.StopByHook,
			func(s agent.Spending) float64 { return float64(s.Usage.Tokens()) / tokens }, 4000,
		},
		"budget of cost": {
			unlimited(budget.Limits{Cost: 40}), agent.StopByHook, func(s agent.Spending) float64 { return s.Usage.Cost.OrEmpty() / cost }, 4000,
		},
		"no limit but the default": {nil, agent.StopStepsLimit, func(s agent.Spending) float64 { return float64(s.Steps) }, 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var m busyModel
				a, err := m.tree(t, 0, tc.limit...).Build().Get()
				require.NoError(t, err)
				began := time.Now()
				final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
				require.NoError(t, err)
				assert.Equal(t, agent.StatusStopped, final.Status())
				signal := final.StopSignal()
				assert.Equal(t, tc.reason, signal.Reason)
				spent := final.Spending()
				used, most := tc.used(spent), float64(m.most.Load())
				t.Logf("%-24s limit %4.0f  used %6.1f  over %5.1f  side by side %2.0f  summaries %d  failed %d  in %s: %s",
					name, tc.limits, used, used-tc.limits, most, m.summaries.Load(), m.calls.Load()-m.replies.Load(), time.Since(began).Round(time.Second), signal.Message)
				assert.GreaterOrEqual(t, most, 9.0, "agents ran side by side")
				assert.LessOrEqual(t, used, tc.limits+2*most, "each running agent took a reply too many at most, and a summary")
				assert.InEpsilon(t, float64(m.replies.Load())*tokens, float64(spent.Usage.Tokens()), 0.03, "every reply is counted, but for summaries that no reply follows")
			})
		})
	}
}

func unlimited(limits budget.Limits) []capability.Capability {
	return []capability.Capability{capability.UseGuards{Steps: -1}, capability.UseHooks(budget.Hooks(limits)...)}
}
