package approval_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// firm is a boss whose sub-agent has one tool, which needs a person. It outlives the processes that execute the run.
type firm struct {
	path  string
	asks  bool // the tool asks for input, and no hook for an approval
	ran   []string
	steps map[string]int
}

// process calls do as a process of its own: with the store opened again, a keeper and agents.
func (f *firm) process(t *testing.T, do func(store durable.Store, k *durable.Keeper, boss *agent.Agent)) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), f.path, sqlite.Options{Sync: sqlite.SyncNormal})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	scripted := func(name string, c agent.ToolCall) builder.AgentBuilder {
		return builder.New().WithName(name).WithDriver(agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			f.steps[name]++
			if s.RunStepCount() > 0 {
				last := s.LastStep()
				result := last.Result(0)
				return agent.Step{Message: agent.Assistant(name + " says: " + result.Text())}, nil
			}
			return agent.Step{Message: agent.Assistant("", c)}, nil
		}))
	}
	pay := toolexec.Raw(agent.ToolSpec{Name: "pay"}, func(_ context.Context, c toolexec.Call) (string, error) {
		if f.asks && len(c.Given) == 0 {
			return "", &agent.InputError{Request: agent.InputRequest{By: "the bank", Message: "Which account?", Schema: personForm}}
		}
		text := "paid"
		if len(c.Given) > 0 {
			text += " " + c.Given[0].Content
		}
		f.ran = append(f.ran, text)
		return text, nil
	})
	clerk := scripted("clerk", agent.ToolCall{ID: "p", Name: "pay", Arguments: `{}`}).With(capability.UseTools(pay))
	k := durable.Keep(store, durable.Options{})
	boss, err := scripted("boss", agent.ToolCall{ID: "t", Name: "task", Arguments: `{"agent":"clerk","instruction":"pay it"}`}).
		With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: clerk}}}, capability.UseDurability{Keeper: k},
			capability.UseApproval(agent.ParkApprover), capability.UseHooks(hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				if f.asks || c.Tool() != "pay" {
					return c.Pass()
				}
				return c.Ask("it costs money")
			}), waiver.Hook(store))).Build().Get()
	require.NoError(t, err)
	do(store, k, boss)
}

// What a sub-agent asks for is in the inbox, with the names of both agents. The answer, given to the run by another process,
// continues the sub-agent and the agent above it in a third one.
func TestASubagentThatAsks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asks   bool
		kind   durable.WaitKind
		answer agent.Approval
		ran    []string
		says   string
	}{
		"approval": {false, durable.WaitApproval, agent.Approval{Verdict: agent.Approve, By: "ann"}, []string{"paid"}, "boss says: clerk says: paid"},
		"rejected": {false, durable.WaitApproval, agent.Approval{Verdict: agent.RejectAndContinue, By: "ann", Reason: "too much"}, nil, "too much"},
		"input": {
			true, durable.WaitInput, agent.Approval{Verdict: agent.Approve, By: "ann", Input: `{"name":"Bo"}`},
			[]string{`paid {"name":"Bo"}`}, `boss says: clerk says: paid {"name":"Bo"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &firm{path: filepath.Join(t.TempDir(), "runs.db"), asks: tc.asks, steps: map[string]int{}}
			var id agent.RunID
			f.process(t, func(_ durable.Store, _ *durable.Keeper, boss *agent.Agent) {
				s, err := boss.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
				require.NoError(t, err)
				require.True(t, s.Waiting())
				id = s.Run().ID
			})
			f.process(t, func(store durable.Store, _ *durable.Keeper, _ *agent.Agent) {
				items, next, err := approval.Inbox(t.Context(), store, durable.WaitFilter{})
				require.NoError(t, err)
				require.Len(t, items, 1)
				assert.Nil(t, next)
				got := items[0]
				assert.Equal(t, []string{string(id), "t/p", string(tc.kind), "pay"}, []string{string(got.Run), got.Call, got.Kind, got.Tool})
				assert.Equal(t, []string{"clerk", "boss", "clerk, sub-agent of boss"}, []string{got.Agent, got.Parent, got.AgentText()})
				w, err := durabletest.FindWait(t.Context(), store, id, "t/p")
				require.NoError(t, err)
				page, err := approval.PageOf(t.Context(), store, w, &approval.Principal{Name: "ann"}, false)
				require.NoError(t, err)
				assert.Equal(t, tc.asks, page.Waiver.WhyNot != "", "a sub-agent has the waivers of the agent above: %s", page.Waiver.WhyNot)
				shown, err := approval.Show(t.Context(), store, w, true)
				require.NoError(t, err)
				assert.Equal(t, "boss", shown.Parent)
				assert.Equal(t, tc.asks, shown.Input != nil)
				require.Empty(t, f.ran)
				_, err = durable.Decide(t.Context(), store, w, tc.answer)
				require.NoError(t, err)
				left, _, err := approval.Inbox(t.Context(), store, durable.WaitFilter{})
				require.NoError(t, err)
				assert.Empty(t, left)
			})
			f.process(t, func(store durable.Store, k *durable.Keeper, boss *agent.Agent) {
				s, err := k.Resume(t.Context(), boss, id, durable.TakeFree).Get()
				require.NoError(t, err)
				require.Equal(t, agent.StatusDone, s.Status())
				assert.Contains(t, s.Answer(), tc.says)
				records, err := store.AuditRecords(t.Context(), durable.AuditFilter{Run: id})
				require.NoError(t, err)
				require.Len(t, records, 1)
				assert.Equal(t, "t/p", records[0].Answer.Subject)
				assert.WithinDuration(t, time.Now(), records[0].At, time.Minute)
			})
			assert.Equal(t, tc.ran, f.ran)
			assert.Equal(t, map[string]int{"boss": 2, "clerk": 2}, f.steps, "no model is asked again")
		})
	}
}
