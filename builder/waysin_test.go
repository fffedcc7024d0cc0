package builder_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// wayIn is one way in which input comes to an agent, with those hooks: it returns how the
// run that got the text ended.
type wayIn func(t *testing.T, a builder.AgentBuilder, text string) agent.State

// waysIn is all of them. The turn of a conversation before has the input "before".
var waysIn = map[string]wayIn{
	"run": func(t *testing.T, a builder.AgentBuilder, text string) agent.State {
		t.Helper()
		return ended(built(t, a).Run(t.Context(), agent.NewState(), agent.UserText(text)).Get())
	},
	"run, in the state": func(t *testing.T, a builder.AgentBuilder, text string) agent.State {
		t.Helper()
		return ended(built(t, a).Run(t.Context(), agent.NewState(agent.UserText(text))).Get())
	},
	"stepwise": func(t *testing.T, a builder.AgentBuilder, text string) (last agent.State) {
		t.Helper()
		for s, err := range built(t, a).Steps(t.Context(), agent.NewState(), agent.UserText(text)) {
			last = ended(s, err)
		}
		return last
	},
	"streaming": func(t *testing.T, a builder.AgentBuilder, text string) (last agent.State) {
		t.Helper()
		for p, err := range built(t, a).Stream(t.Context(), agent.NewState(), agent.UserText(text)) {
			last = ended(p.State, err)
		}
		return last
	},
	"typed": func(t *testing.T, a builder.AgentBuilder, text string) agent.State {
		t.Helper()
		answer, err := builder.RunAs[struct{ OK bool }](t.Context(), built(t, a), agent.NewState(), agent.UserText(text)).Get()
		return ended(answer.State, err)
	},
	"session": func(t *testing.T, a builder.AgentBuilder, text string) agent.State {
		t.Helper()
		c := before(t, a)
		return ended(c.Run(t.Context(), agent.UserText(text)).Get())
	},
	"session, stepwise": func(t *testing.T, a builder.AgentBuilder, text string) (last agent.State) {
		t.Helper()
		for s, err := range before(t, a).Steps(t.Context(), agent.UserText(text)) {
			last = ended(s, err)
		}
		return last
	},
	"session, streaming, as a chat is": func(t *testing.T, a builder.AgentBuilder, text string) (last agent.State) {
		t.Helper()
		for p, err := range before(t, a).Stream(t.Context(), agent.UserText(text)) {
			last = ended(p.State, err)
		}
		return last
	},
	"session of a state that was stored": func(t *testing.T, a builder.AgentBuilder, text string) agent.State {
		t.Helper()
		return ended(built(t, a).Session(asJSON(t, before(t, a).State())).Run(t.Context(), agent.UserText(text)).Get())
	},
	"session that was parked and resumed": func(t *testing.T, a builder.AgentBuilder, text string) agent.State {
		t.Helper()
		ask := hooks.On(hooks.AtPreToolUse, "ask", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("sure?") })
		plan, err := a.Plan().Get()
		require.NoError(t, err)
		a = a.WithDriver(agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
			if s.StepCount() == 0 {
				return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "call", Name: "nothing"})}, nil
			}
			return plan.Driver().Next(ctx, s).Get()
		})).
			With(capability.UseHooks(ask), capability.UseApproval(agent.ParkApprover),
				capability.UseTools(toolexec.Func("nothing", "", func(context.Context, struct{}) (string, error) { return "", nil })))
		c := before(t, a)
		require.True(t, c.State().Waiting())
		_, err = c.Run(t.Context(), agent.UserText(text)).Get()
		require.ErrorIs(t, err, agent.ErrParked, "not in the middle of a step")
		_, err = built(t, a).Resume(t.Context(), c.State().With(agent.UserText(text))).Get()
		require.ErrorContains(t, err, "the state has input that no hook has accepted")
		_, err = built(t, a).RunWith(t.Context(), agent.RunSettings{Resume: true}, c.State(), agent.UserText(text)).Get()
		require.ErrorContains(t, err, "input is not allowed")
		require.NoError(t, c.Approve(c.State().Interventions()[0].ID, agent.Approval{Verdict: agent.Approve}))
		require.Equal(t, agent.StatusDone, ended(c.Resume(t.Context()).Get()).Status())
		return ended(c.Run(t.Context(), agent.UserText(text)).Get())
	},
	"a job that was taken in": func(t *testing.T, a builder.AgentBuilder, text string) agent.State {
		t.Helper()
		store := memory.New()
		t.Cleanup(func() { assert.NoError(t, store.Close()) })
		k := durable.Keep(store, durable.Options{})
		job, err := durable.AgentJob("front", agent.NewState(), agent.UserText(text))
		require.NoError(t, err)
		runs, err := store.Submit(t.Context(), job)
		require.NoError(t, err)
		return ended(k.Resume(t.Context(), built(t, a.With(capability.UseDurability{Keeper: k})), runs[0].ID, durable.TakeFree).Get())
	},
	"sub-agent": func(t *testing.T, a builder.AgentBuilder, text string) agent.State {
		t.Helper()
		var child agent.State
		boss := builder.New().WithName("boss").WithDriver(agenttest.Script(
			agenttest.Call("task", fmt.Sprintf(`{"agent":"front","instruction":%q}`, text)), agenttest.Say("done"))).
			With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: a.WithObserver(agent.ObserverFunc(func(_ context.Context, e agent.Event) {
				if end, ok := e.(agent.RunCompleted); ok {
					child = end.State
				}
			}))}}})
		ended(built(t, boss).Run(t.Context(), agent.NewState(), agent.UserText("before")).Get())
		return child
	},
	"sub-agent, with the hooks of who starts it": func(t *testing.T, a builder.AgentBuilder, text string) agent.State {
		t.Helper()
		plan, err := a.Plan().Get()
		require.NoError(t, err)
		var child agent.State
		below := builder.New().WithName("front").WithDriver(plan.Driver()).WithObserver(agent.ObserverFunc(func(_ context.Context, e agent.Event) {
			if end, ok := e.(agent.RunCompleted); ok {
				child = end.State
			}
		}))
		var inherited []hooks.Hook
		for _, h := range plan.Hooks().All() {
			inherited = append(inherited, h)
		}
		boss := builder.New().WithName("boss").WithDriver(agenttest.Script(
			agenttest.Call("task", fmt.Sprintf(`{"agent":"front","instruction":%q}`, text)), agenttest.Say("done"))).
			With(capability.UseHooks(inherited...), capability.UseSubagents{Agents: []capability.Subagent{{Agent: below}}})
		ended(built(t, boss).Run(t.Context(), agent.NewState(), agent.UserText("before")).Get())
		return child
	},
}

func built(t *testing.T, a builder.AgentBuilder) *agent.Agent {
	t.Helper()
	b, err := a.Build().Get()
	require.NoError(t, err)
	return b
}

// before returns a conversation that has had a turn.
func before(t *testing.T, a builder.AgentBuilder) *agent.Session {
	t.Helper()
	c := built(t, a).Session(agent.NewState())
	require.NoError(t, c.Run(t.Context(), agent.UserText("before")).Error())
	return c
}

func ended(s agent.State, err error) agent.State {
	if failed, ok := err.(*agent.RunError); ok { //nolint:errorlint // of Run itself
		return failed.State
	}
	return s
}

func asJSON(t *testing.T, s agent.State) (out agent.State) {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// InputSubmitted is asked once about all input, on whichever way it comes, and can keep it
// out, change it and add to it.
func TestInputIsSubmittedOnEveryWayIn(t *testing.T) {
	const text = "the input"
	for name, way := range waysIn {
		t.Run(name, func(t *testing.T) {
			for what, tc := range map[string]struct {
				hook func(c hooks.InputContext) hooks.Result
				asks func(t *testing.T, end agent.State, asked []agenttest.Asking)
			}{
				"allow": {func(c hooks.InputContext) hooks.Result { return c.Pass() }, func(t *testing.T, _ agent.State, asked []agenttest.Asking) {
					t.Helper()
					assert.Contains(t, asked[len(asked)-1].Transcript(), "user: "+text+"\n")
				}},
				"deny": {func(c hooks.InputContext) hooks.Result { return c.Deny("not here") }, func(t *testing.T, end agent.State, asked []agenttest.Asking) {
					t.Helper()
					assert.Equal(t, agent.StatusDenied, end.Status())
					assert.NotContains(t, agenttest.Transcript(end), text)
					for _, a := range asked {
						assert.NotContains(t, a.Transcript(), text)
					}
				}},
				"rewrite": {func(c hooks.InputContext) hooks.Result { return c.RewriteText("another") }, func(t *testing.T, end agent.State, asked []agenttest.Asking) {
					t.Helper()
					assert.Contains(t, asked[len(asked)-1].Transcript(), "user: another\n")
					assert.NotContains(t, asked[len(asked)-1].Transcript(), text)
					assert.NotContains(t, agenttest.Transcript(end), text)
				}},
				"add context": {func(c hooks.InputContext) hooks.Result { return c.Allow(agent.AddContext("it is late")) }, func(t *testing.T, _ agent.State, asked []agenttest.Asking) {
					t.Helper()
					assert.Contains(t, asked[len(asked)-1].Transcript(), "it is late")
					assert.Contains(t, asked[len(asked)-1].Transcript(), text)
				}},
			} {
				t.Run(what, func(t *testing.T) {
					fired := map[string]int{}
					hook := hooks.On(hooks.AtInputSubmitted, "judge", func(_ context.Context, c hooks.InputContext) hooks.Result {
						if fired[c.Text()]++; c.Text() != text {
							return c.Pass()
						}
						return tc.hook(c)
					})
					driver := agenttest.Script().Then(agenttest.Say(`{"OK":true}`))
					end := way(t, builder.New().WithName("front").WithDriver(driver).With(capability.UseHooks(hook)), text)
					assert.Equal(t, 1, fired[text], "asked about %v", fired)
					assert.LessOrEqual(t, fired["before"], 1)
					tc.asks(t, end, driver.Calls())
				})
			}
		})
	}
}
