package capability_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

// calledAgents remembers what was told at the points of a sub-agent.
type calledAgents struct {
	lines []string
	about map[hooks.PointName]hooks.Subagent
	by    map[hooks.PointName]agent.Run
}

// listen returns an observer of the three points, which says who it belongs to.
func (l *calledAgents) listen(t *testing.T, owner string) capability.Capability {
	t.Helper()
	if l.about == nil {
		l.about, l.by = map[hooks.PointName]hooks.Subagent{}, map[hooks.PointName]agent.Run{}
	}
	return capability.UseHooks(hooks.ObserveAll(owner+" listens", func(_ context.Context, c hooks.Context) error {
		about := c.(interface{ Subagent() hooks.Subagent }).Subagent()
		l.lines = append(l.lines, fmt.Sprintf("%s: %s of %s at %s", owner, about.Agent, c.Run().Agent, c.Point()))
		l.about[c.Point()], l.by[c.Point()] = about, c.Run()
		assert.Equal(t, c.Run().ID, about.Run.Parent)
		assert.Equal(t, c.Run(), c.State().Run())
		return nil
	}, hooks.PreSubagent, hooks.PostSubagent, hooks.SubagentFailed))
}

// LH-79: hooks before a sub-agent receive the agent, the instruction, its run and its session. Hooks after it receive
// its run's end, with the error of a failure. Run and session are the sub-agent's.
func TestWhatIsToldOfASubagent(t *testing.T) {
	for name, tc := range map[string]struct {
		turn   agenttest.Turn
		end    hooks.PointName
		status agent.Status
		result string
		err    error
	}{
		"success": {agenttest.Say("Nothing there."), hooks.PostSubagent, agent.StatusDone, "Nothing there.", nil},
		"failure": {agenttest.Fail(errInk), hooks.SubagentFailed, agent.StatusFailed, "", errInk},
	} {
		t.Run(name, func(t *testing.T) {
			var l calledAgents
			var own agent.Run
			driver := agenttest.Script(agenttest.Call("look", `{}`), tc.turn).EachRun()
			see := hooks.Observe(hooks.AtStepStart, "see", func(_ context.Context, c hooks.StepContext) error {
				own = c.Run()
				return nil
			})
			var b bench
			scout := builder.New().WithName("scout").WithDriver(driver).With(capability.UseTools(b.tool("look")), capability.UseHooks(see))
			s, events := boss(t, capability.UseSubagents{Agents: []capability.Subagent{{Agent: scout}}}, task("scout", "look around"), l.listen(t, "boss"))
			assert.Equal(t, []string{"boss: scout of boss at PreSubagent", fmt.Sprint("boss: scout of boss at ", tc.end)}, l.lines)
			require.NotEmpty(t, own.Session)
			assert.NotEqual(t, s.Session(), own.Session, "it is a conversation of its own")

			begun := own
			begun.Started = time.Time{}
			callID := answers(s)[0].CallID()
			assert.Equal(t, hooks.Subagent{Agent: "scout", Instruction: "look around", CallID: callID, Run: begun}, l.about[hooks.PreSubagent])
			end := l.about[tc.end]
			assert.Equal(t, "scout: look around, "+callID, end.Agent+": "+end.Instruction+", "+end.CallID)
			assert.Equal(t, own, end.Run)
			assert.Equal(t, tc.status, end.Status)
			assert.Equal(t, tc.result, end.Result)
			assert.Positive(t, end.Took)
			require.ErrorIs(t, end.Err, tc.err)

			started := ofKind[capability.SubagentStarted](events)
			require.Len(t, started, 1)
			assert.Equal(t, capability.SubagentStarted{Run: s.Run(), CallID: callID, Subagent: begun, MaxDepth: 2}, started[0])
			completed := ofKind[capability.SubagentCompleted](events)
			require.Len(t, completed, 1)
			assert.Equal(t, own, completed[0].Subagent)
			assert.Equal(t, tc.status, completed[0].Status)
			require.ErrorIs(t, completed[0].Err, tc.err)
		})
	}
}

func ofKind[E agent.Event](events []agent.Event) []E {
	return lo.FilterMap(events, func(e agent.Event, _ int) (E, bool) { kind, ok := e.(E); return kind, ok })
}

// LH-79: a sub-agent that waits for a person, and continues in another process, has the
// same run and session in all hooks.
func TestWhatIsToldOfASubagentThatWaits(t *testing.T) {
	var l calledAgents
	var b bench
	rec := agenttest.Record()
	build := func() *agent.Agent {
		ask := hooks.On(hooks.AtPreToolUse, "ask", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("may it?") }, hooks.ToolNamed("look"))
		scout := helper("scout", &b, agenttest.Call("look", `{}`), agenttest.Say("Nothing there.")).With(capability.UseHooks(ask))
		return builder.New().WithName("boss").WithDriver(agenttest.Script(task("scout", "look around"), agenttest.Say("Done."))).WithObserver(rec).
			With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: scout}}}, capability.UseApproval(agent.ParkApprover), l.listen(t, "boss")).
			Build().MustGet()
	}
	s := kept(t, build().Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet())
	require.True(t, s.Waiting())
	for _, i := range s.Interventions() {
		s = agenttest.WithApproval(s, i.CallID(), agent.Approval{Verdict: agent.Approve})
	}
	s = build().Resume(t.Context(), s).MustGet()
	require.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, []string{"boss: scout of boss at PreSubagent", "boss: scout of boss at PostSubagent"}, l.lines)

	own := l.about[hooks.PostSubagent].Run
	require.NotEmpty(t, own.Session)
	require.False(t, own.Started.IsZero())
	runs := []agent.Run{l.about[hooks.PreSubagent].Run}
	for _, e := range rec.Events() {
		switch e := e.(type) {
		case capability.SubagentStarted:
			runs = append(runs, e.Subagent)
		case capability.SubagentParked:
			runs = append(runs, e.Subagent)
			assert.True(t, own.Started.Equal(e.Subagent.Started))
		case capability.SubagentResumed:
			runs = append(runs, e.Subagent)
		case capability.SubagentCompleted:
			runs = append(runs, e.Subagent)
		}
	}
	require.Len(t, runs, 5)
	for _, run := range runs {
		run.Started = own.Started
		assert.Equal(t, own, run)
	}
}

// LH-80: only the parent run's hooks are called, not the sub-agent's hooks or hooks from runs further above. They are
// not called for an agent that no other agent started.
func TestTheParentIsToldOfASubagent(t *testing.T) {
	for name, tc := range map[string]struct {
		turn agenttest.Turn
		end  hooks.PointName
	}{
		"success": {agenttest.Say("Nothing there."), hooks.PostSubagent},
		"failure": {agenttest.Fail(errors.New("out of order")), hooks.SubagentFailed},
	} {
		t.Run(name, func(t *testing.T) {
			var l calledAgents
			deep := builder.New().WithName("deep").WithDriver(agenttest.Script(tc.turn).EachRun()).With(l.listen(t, "deep"))
			middle := builder.New().WithName("middle").WithDriver(agenttest.Script(task("deep", "dig"), agenttest.Say("Back.")).EachRun()).
				With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: deep}}}, l.listen(t, "middle"))
			ofDeep := []string{"middle: deep of middle at PreSubagent", fmt.Sprint("middle: deep of middle at ", tc.end)}

			s, events := boss(t, capability.UseSubagents{Agents: []capability.Subagent{{Agent: middle}}}, task("middle", "go"), l.listen(t, "boss"))
			assert.Equal(t, []string{"boss: middle of boss at PreSubagent", ofDeep[0], ofDeep[1], "boss: middle of boss at PostSubagent"}, l.lines)
			assert.Equal(t, s.Run(), l.by[hooks.PostSubagent])
			assert.Len(t, ofKind[capability.SubagentStarted](events), 1, "the observer of a run is told of those that it starts")
			assert.Len(t, ofKind[capability.SubagentCompleted](events), 1)

			l = calledAgents{about: l.about, by: l.by}
			alone := ran(t, middle.Build().MustGet(), agent.NewState(), agent.UserText("go"))
			assert.Empty(t, alone.Run().Parent)
			assert.Equal(t, ofDeep, l.lines, "nothing of itself")

			l.lines = nil
			rec := agenttest.Record()
			_ = deep.WithObserver(rec).Build().MustGet().Run(t.Context(), agent.NewState(), agent.UserText("dig"))
			assert.Empty(t, l.lines)
			assert.Empty(t, ofKind[capability.SubagentStarted](rec.Events()))
			assert.Empty(t, ofKind[capability.SubagentCompleted](rec.Events()))
		})
	}
}
