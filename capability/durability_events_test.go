package capability_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
)

// A keeper that stores events observes the agent and its sub-agents, once each, also when the sub-agent was built with
// the keeper.
func TestStoredEventsOfSubagents(t *testing.T) {
	for name, own := range map[string]bool{"the sub-agent has no keeper": false, "the sub-agent has the keeper": true} {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			defer store.Close()
			k := durable.Keep(store, durable.Options{Events: func(e agent.Event) (durable.EventForm, bool) {
				return durable.EventForm{Name: e.EventName()}, true
			}})
			below := builder.New().WithName("below").WithDriver(agenttest.Script(agenttest.Say("found")))
			if own {
				below = below.With(capability.UseDurability{Keeper: k})
			}
			a, err := builder.New().WithName("boss").
				WithDriver(agenttest.Script(agenttest.Call("task", `{"agent":"below","instruction":"look"}`), agenttest.Say("done"))).
				With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: below}}}, capability.UseDurability{Keeper: k}).
				Build().Get()
			require.NoError(t, err)
			final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)

			events, err := store.Events(t.Context(), final.Run().ID, 0, 1000)
			require.NoError(t, err)
			counts := map[string]int{}
			for i, e := range events {
				counts[e.Name]++
				assert.Equal(t, int64(i+1), e.Seq)
			}
			assert.Equal(t, map[string]int{"run.started": 2, "run.completed": 2, "step.started": 3, "step.completed": 3, "subagent.started": 1, "subagent.completed": 1},
				map[string]int{
					"run.started": counts["run.started"], "run.completed": counts["run.completed"], "step.started": counts["step.started"],
					"step.completed": counts["step.completed"], "subagent.started": counts["subagent.started"], "subagent.completed": counts["subagent.completed"],
				})
			assert.Equal(t, "run.started", events[0].Name)
			assert.Equal(t, "run.completed", events[len(events)-1].Name)
		})
	}
}
