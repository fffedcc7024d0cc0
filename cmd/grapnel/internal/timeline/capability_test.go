package timeline

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
	"github.com/grapnel-go/grapnel/hooks"
)

// What capabilities tell of themselves stands in the step in which it happens, made
// harmless.
func TestCapabilities(t *testing.T) {
	command := `{"command":"` + strings.Repeat("go vet ", 40) + `"}`
	turns := func() *agenttest.Driver {
		turn := agenttest.Call("bash", command)
		return agenttest.Script(turn, turn, turn, agenttest.Say("Done."))
	}
	summed := func(err error) capability.Capability {
		return capability.UseCompaction{
			Messages: 4, Keep: 2,
			Summarize: func(context.Context, agent.State, []agent.Message) (string, error) { return "it vetted", err },
		}
	}
	selected := func(err error) capability.Capability {
		return kit.ToolSelection{Select: func(context.Context, agent.State, []agent.ToolSpec) ([]string, error) { return nil, err }}
	}
	ask := hooks.On(hooks.AtPreToolUse, "ask", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("") })
	clerk := builder.New().WithName("clerk").
		WithDriver(agenttest.Script(agenttest.Call("bash", command), agenttest.Say("Vetted.").WithTokens(3, 1).WithCost(0.5))).
		With(capability.UseTools(bash), capability.UseHooks(ask))
	broken := builder.New().WithName("clerk").WithDriver(agenttest.Script(agenttest.Fail(errors.New("no model\x1b[0m"))))
	boss := func() *agenttest.Driver {
		return agenttest.Script(agenttest.Call("task", `{"agent":"clerk","instruction":"Vet it."}`), agenttest.Say("Done."))
	}
	for name, tc := range map[string]struct {
		driver agent.Driver
		with   []capability.Capability
		want   []string
	}{
		"compaction":        {turns(), []capability.Capability{summed(nil)}, []string{"⇊ older messages are summarized: 5 messages become 4, "}},
		"failed compaction": {turns(), []capability.Capability{summed(errors.New("no paper\x1b[0m"))}, []string{"! older messages could not be summarized; the model sees all 5 messages:", "no paper␛[0m"}},
		"editing":           {turns(), []capability.Capability{kit.ContextEditing{Results: 2, Keep: 1}}, []string{"⇊ 2 old results no longer shown: ", " tokens become "}},
		"selection":         {turns(), []capability.Capability{selected(nil)}, []string{"⊂ the model sees no tool; 1 more are hidden"}},
		"failed selection":  {turns(), []capability.Capability{selected(errors.New("no idea"))}, []string{"! no tools could be selected; the model sees all of them: no idea"}},
		"fallback": {
			agenttest.Script(agenttest.Fail(errors.New("too busy"))), []capability.Capability{kit.ModelFallback{Drivers: []agent.Driver{turns()}}},
			[]string{"⤳ model 1 failed: too busy; asking model 2"},
		},
		"sub-agent": {boss(), []capability.Capability{
			capability.UseSubagents{Agents: []capability.Subagent{{Agent: clerk}}}, capability.UseApproval(agent.ParkApprover),
		}, []string{"↳ clerk begins", "↳ clerk waits for a person", "↳ clerk goes on", "↳ clerk: done · 3 in · 1 out · "}},
		"sub-agent that fails": {boss(), []capability.Capability{
			capability.UseSubagents{Agents: []capability.Subagent{{Agent: broken}}},
		}, []string{"↳ clerk begins", "↳ clerk: failed: ", "no model␛[0m"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			synctest.Test(t, func(t *testing.T) {
				a := builder.New().WithDriver(tc.driver).With(capability.UseTools(bash)).With(tc.with...).
					WithObserver(New(Config{Out: &out, Width: func() int { return 120 }})).Build().MustGet()
				s := a.Run(t.Context(), agent.NewState(), agent.UserText("Go.")).MustGet()
				for s.Waiting() {
					s = a.Resume(t.Context(), agenttest.WithApproval(s, s.Interventions()[0].CallID(), agent.Approval{Verdict: agent.Approve})).MustGet()
				}
				require.Equal(t, agent.StatusDone, s.Status())
			})
			rest := out.String()
			for _, want := range tc.want { // in this order
				_, after, found := strings.Cut(rest, want)
				require.True(t, found, "%q in:\n%s", want, out.String())
				rest = after
			}
			assert.NotContains(t, out.String(), "\x1b")
		})
	}
}
