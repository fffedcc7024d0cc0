package hooks_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Parallel calls start sub-agents. When one sub-agent's hook has returned, no other hook's context is cancelled,
// neither another sub-agent's nor one around another call, although none had looked at its context when all were
// called.
func TestContextsOfParallelSubagents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 4
		var called sync.WaitGroup
		called.Add(calls)
		patient := func(ctx context.Context, seconds int) error {
			called.Done()
			called.Wait()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(seconds) * time.Second):
				return nil
			}
		}
		delegate := toolexec.CallFunc(agent.ToolSpec{Name: "delegate"}, func(ctx context.Context, c toolexec.Call, _ struct{}) (string, error) {
			says, denied, err := hooks.Of(c.State).PreSubagent(ctx, c.State, hooks.Subagent{Instruction: "look", Run: agent.Run{Depth: c.Index}})
			require.NoError(t, err)
			return says, denied
		})
		w := workWith(t, []hooks.Hook{
			hooks.On(hooks.AtPreSubagent, "patient", func(ctx context.Context, c hooks.PreSubagentContext) hooks.Result {
				if err := patient(ctx, c.Subagent().Run.Depth); err != nil {
					return c.Fail(err)
				}
				return c.Allow()
			}),
			hooks.On(hooks.AtPostToolUse, "as-patient", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result {
				if err := patient(ctx, calls); err != nil {
					return c.Fail(err)
				}
				return c.Allow()
			}, hooks.ToolNamed("bash")),
		}, wants("bash", ls, "delegate", "{}", "delegate", "{}", "delegate", "{}"), parallel(calls), capability.UseTools(delegate),
			capability.UseLater(capability.Later{Points: []hooks.PointName{hooks.PreSubagent}}))
		require.NoError(t, w.err)
		for i, r := range w.results() {
			assert.Equal(t, []string{"ran ls", "look", "look", "look"}[i], r.Text())
		}
	})
}

// The batch of interventions that a hook received does not change later. This is for the
// race detector.
func TestInterventionsThatAreKept(t *testing.T) {
	var kept []hooks.InterventionContext
	looked := make(chan []agent.Intervention, 2)
	w := workWith(t, append(refuseCall(),
		hooks.On(hooks.AtInterventionRequested, "rewrites", func(_ context.Context, c hooks.InterventionContext) hooks.Result {
			kept = append(kept, c)
			return c.Rewrite(map[string]string{"command": "ls -l"})
		}),
		hooks.Observe(hooks.AtInterventionRequested, "looks-on", func(_ context.Context, c hooks.InterventionContext) error {
			looked <- c.Interventions()
			return nil
		}).Detach(),
	), wants("bash", ls, "bash", ls), personSays(agent.RejectAndContinue))
	require.NoError(t, w.err)
	require.Len(t, kept, 2)
	for _, batch := range [][]agent.Intervention{kept[0].Interventions(), <-looked, <-looked} {
		require.Len(t, batch, 2)
		for _, i := range batch {
			assert.Nil(t, i.Answer(), "no answer had come")
		}
	}
	assert.JSONEq(t, ls, kept[0].Interventions()[0].Call.Arguments)
}

// A hook's approval for a person counts only for the call that the hook saw. If another
// hook then rewrites the call, the person is asked.
func TestYesToACallThatIsRewrittenLater(t *testing.T) {
	yes := hooks.On(hooks.AtInterventionRequested, "yes-to-ls", func(_ context.Context, c hooks.InterventionContext) hooks.Result {
		if command, _ := c.Call().Text("command"); command == "ls" {
			return c.Approve("it only looks")
		}
		return c.Pass()
	})
	rewrites := hooks.On(hooks.AtInterventionRequested, "rewrites", func(_ context.Context, c hooks.InterventionContext) hooks.Result {
		return c.Rewrite(map[string]string{"command": "rm"})
	})
	asked := 0
	person := capability.UseApproval(agent.ApproverFunc(func(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
		asked++
		assert.JSONEq(t, `{"command":"rm"}`, p.Call.Arguments)
		return agent.Approval{Verdict: agent.RejectAndContinue, By: "ann"}, nil
	}))
	w := workWith(t, append(refuseCall(), yes, rewrites), wants("bash", ls), person)
	require.NoError(t, w.err)
	assert.Empty(t, w.ran)
	assert.Equal(t, 1, asked)

	w = workWith(t, append(refuseCall(), rewrites.WithPriority(1), hooks.On(hooks.AtInterventionRequested, "yes", func(_ context.Context, c hooks.InterventionContext) hooks.Result {
		return c.Approve("it saw what it is to be")
	})), wants("bash", ls), person)
	require.NoError(t, w.err)
	assert.Equal(t, []string{`bash {"command":"rm"}`}, w.ran)
	assert.Equal(t, 1, asked)
}
