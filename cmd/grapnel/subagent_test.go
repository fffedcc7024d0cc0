//go:build unix

package main

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// The denied call of a sub-agent is shown with the run that has started the sub-agent.
func TestDeniedCallOfASubagentIsShown(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "runs.db")
	store, err := sqlite.Open(t.Context(), at, sqlite.Options{})
	require.NoError(t, err)
	keeper := durable.Keep(store, durable.Options{Events: events.Stored})
	agentOf := func(name string, calls ...agent.ToolCall) builder.AgentBuilder {
		return builder.New().WithName(name).WithDriver(agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			if s.RunStepCount() > 0 {
				return agent.Step{Message: agent.Assistant(name + " is done.")}, nil
			}
			return agent.Step{Message: agent.Assistant("", calls...)}, nil
		}))
	}
	pay := toolexec.CallFunc(agent.ToolSpec{Name: "pay"}, func(context.Context, toolexec.Call, struct{}) (string, error) { return "paid", nil })
	clerk := agentOf("clerk", agent.ToolCall{ID: "c", Name: "pay"}).With(capability.UseTools(pay))
	boss, err := agentOf("boss", agent.ToolCall{ID: "t", Name: "task", Arguments: `{"agent":"clerk","instruction":"pay"}`}).With(
		capability.UseSubagents{Agents: []capability.Subagent{{Agent: clerk}}}, capability.UseDurability{Keeper: keeper},
		capability.UseHooks(hooks.On(hooks.AtPreToolUse, "budget", func(_ context.Context, c hooks.ToolContext) hooks.Result {
			if c.Tool() != "pay" {
				return c.Pass()
			}
			return c.Deny("the budget is spent")
		}))).Build().Get()
	require.NoError(t, err)
	final, err := boss.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.NoError(t, store.Close())

	p := command(t, nil, "runs", "show", string(final.Run().ID), "--store", at)
	require.Zero(t, p.run(), p.written())
	assert.Regexp(t, `(?m)^  \S+  clerk \(run_\S+\): PreToolUse hook budget about pay \(c\): deny, \S+: the budget is spent$`, p.written())
}
