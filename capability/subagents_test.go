package capability_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// bench is tools that note who used them.
type bench struct {
	mu   sync.Mutex
	used []string
}

func (b *bench) tool(name string) toolexec.Tool {
	return toolexec.CallFunc(agent.ToolSpec{Name: name}, func(_ context.Context, c toolexec.Call, _ struct{}) (string, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		run := c.State.Run()
		b.used = append(b.used, fmt.Sprintf("%s by %s at %d", name, run.Agent, run.Depth))
		return name + " says secret", nil
	})
}

func helper(name string, b *bench, turns ...agenttest.Turn) builder.AgentBuilder {
	return builder.New().WithName(name).WithDriver(agenttest.Script(turns...).EachRun()).
		With(capability.UseTools(b.tool("look"), b.tool("write")))
}

func task(name, instruction string) agenttest.Turn {
	return agenttest.Call("task", fmt.Sprintf(`{"agent":%q,"instruction":%q}`, name, instruction))
}

func boss(t *testing.T, subagents capability.UseSubagents, turn agenttest.Turn, more ...capability.Capability) (agent.State, []agent.Event) {
	t.Helper()
	recorder := agenttest.Record()
	a, err := builder.New().WithName("boss").WithDriver(agenttest.Script(turn, agenttest.Say("Done."))).WithObserver(recorder).WithParallel(2).
		With(subagents).With(more...).Build().Get()
	require.NoError(t, err)
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.Equal(t, agent.StatusDone, s.Status())
	return s, recorder.Events()
}

func answers(s agent.State) []agent.ToolResult {
	var out []agent.ToolResult
	for _, step := range s.RunSteps() {
		for _, r := range step.Results() {
			out = append(out, r)
		}
		break
	}
	return out
}

func TestTheToolOfSubagentsHasAName(t *testing.T) {
	var b bench
	subagents := capability.UseSubagents{
		Agents: []capability.Subagent{{Description: "Reads.", Agent: helper("reader", &b, agenttest.Say("read"))}}, Tool: "delegate",
	}
	s, _ := boss(t, subagents, agenttest.Call("delegate", `{"agent":"reader","instruction":"read"}`))
	require.Len(t, answers(s), 1)
	assert.Equal(t, "read", answers(s)[0].Text())
}

// IP-100, IP-101: a sub-agent has a transcript of its own, its answer is the call's, and
// the hooks and the observer of the agent that starts it are told.
func TestASubagentAnswers(t *testing.T) {
	var b bench
	var told []string
	tell := func(_ context.Context, c hooks.Context) error {
		switch c := c.(type) {
		case hooks.PreSubagentContext:
			told = append(told, fmt.Sprintf("pre %s %s %s", c.Run().Agent, c.Subagent().Agent, c.Subagent().Instruction))
		case hooks.PostSubagentContext:
			told = append(told, fmt.Sprintf("post %s %s %s %s", c.Run().Agent, c.Subagent().Agent, c.Subagent().Status, c.Subagent().Result))
			assert.NotEmpty(t, c.Subagent().Run.ID)
		}
		return nil
	}
	s, events := boss(t, capability.UseSubagents{Agents: []capability.Subagent{
		{Agent: helper("scout", &b, agenttest.Call("look", `{}`), agenttest.Say("Nothing there.")), Description: "looks around"},
	}}, task("scout", "look around"), capability.UseHooks(hooks.ObserveAll("tell", tell, hooks.PreSubagent, hooks.PostSubagent)))
	assert.Equal(t, "Nothing there.", answers(s)[0].Text())
	assert.Equal(t, 4, s.MessageCount())
	assert.Equal(t, []string{"look by scout at 1"}, b.used)
	assert.Equal(t, []string{"pre boss scout look around", "post boss scout done Nothing there."}, told)
	var names []string
	for _, e := range events {
		switch e := e.(type) {
		case capability.SubagentStarted:
			names = append(names, fmt.Sprint(e.EventName(), e.Subagent.Agent, e.Subagent.Depth, e.MaxDepth))
			assert.Equal(t, s.Run().ID, e.Subagent.Parent)
		case capability.SubagentCompleted:
			names = append(names, fmt.Sprint(e.EventName(), e.Status))
		}
	}
	assert.Equal(t, []string{"subagent.startedscout1 2", "subagent.completeddone"}, names)
}

// IP-98, IP-103: the failure of a sub-agent is an answer for the model, and
// SubagentFailed fires if it ran.
func TestASubagentFails(t *testing.T) {
	for name, tc := range map[string]struct {
		turn   agenttest.Turn
		asks   string
		depth  int
		says   string
		failed int
	}{
		"unknown":            {agenttest.Say("hi"), "other", 0, `unknown agent "other": available: scout`, 0},
		"a model that fails": {agenttest.Fail(errors.New("out of order")), "scout", 0, "out of order", 1},
		"nothing to say":     {agenttest.Say(""), "scout", 0, "(the agent's answer is empty)", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var b bench
			failed := 0
			s, _ := boss(t, capability.UseSubagents{Agents: []capability.Subagent{{Agent: helper("scout", &b, tc.turn)}}, MaxDepth: tc.depth},
				task(tc.asks, "look"), capability.UseHooks(hooks.Observe(hooks.AtSubagentFailed, "f", func(_ context.Context, c hooks.SubagentFailedContext) error {
					failed++
					return c.Err()
				})))
			assert.Contains(t, answers(s)[0].Text(), tc.says)
			assert.Equal(t, tc.failed, failed)
		})
	}
}

// IP-99: a sub-agent below the maximum depth does not run: its call fails, the model is
// told why, and the hooks for sub-agents are not called. Down to the limit all sub-agents
// run.
func TestDepthOfSubagents(t *testing.T) {
	const agents = 4 // below the first
	for name, tc := range map[string]struct{ maxDepth, limit int }{
		"one":         {1, 1},
		"two":         {2, 2},
		"three":       {3, 3},
		"the default": {0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var b bench
			var points []string
			results := map[int]agent.ToolResult{} // the task call in each run, by depth
			tell := hooks.ObserveAll("tell", func(_ context.Context, c hooks.Context) error {
				points = append(points, fmt.Sprint(c.Point(), c.Run().Depth))
				return nil
			}, hooks.PreSubagent, hooks.PostSubagent, hooks.SubagentFailed)
			note := hooks.Observe(hooks.AtPostToolUse, "note", func(_ context.Context, c hooks.ToolResultContext) error {
				results[c.Run().Depth] = c.Result()
				return nil
			}, hooks.ToolNamed("task"))
			at := func(depth int) builder.AgentBuilder {
				turn := task(fmt.Sprint("agent ", depth+1), "go on")
				if depth > 0 {
					turn = turn.Call("look", `{}`)
				}
				return builder.New().WithName(fmt.Sprint("agent ", depth)).
					WithDriver(agenttest.Script(turn, agenttest.Say(fmt.Sprint("back at ", depth))).EachRun()).
					With(capability.UseTools(b.tool("look")), capability.UseHooks(tell, note))
			}
			below := helper(fmt.Sprint("agent ", agents), &b, agenttest.Call("look", `{}`), agenttest.Say("down here"))
			for depth := agents - 1; depth >= 0; depth-- {
				below = at(depth).With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: below}}, MaxDepth: tc.maxDepth})
			}
			rec := agenttest.Record()
			s := ran(t, below.WithObserver(rec).Build().MustGet(), agent.NewState(), agent.UserText("go"))
			assert.Equal(t, "back at 0", s.Answer())

			var used, told []string
			for depth := 1; depth <= tc.limit; depth++ {
				used = append([]string{fmt.Sprintf("look by agent %d at %d", depth, depth)}, used...)
				told = append(append([]string{fmt.Sprint("PreSubagent", tc.limit-depth)}, told...), fmt.Sprint("PostSubagent", tc.limit-depth))
				good := results[depth-1]
				assert.Equal(t, agent.ToolExecuted, good.Status)
				assert.False(t, good.IsError())
			}
			assert.Equal(t, used, b.used)
			assert.Equal(t, told, points)
			require.Len(t, results, tc.limit+1)
			refused := results[tc.limit]
			assert.Equal(t, agent.ToolFailed, refused.Status)
			assert.True(t, refused.IsError())
			assert.Contains(t, refused.Text(), fmt.Sprintf(`agent "agent %d" is not started: its parent has depth %d and the limit is %d`,
				tc.limit+1, tc.limit, tc.limit))
			for _, e := range agenttest.Of[capability.SubagentStarted](rec) {
				assert.LessOrEqual(t, e.Subagent.Depth, e.MaxDepth)
				assert.Equal(t, tc.limit, e.MaxDepth)
			}
		})
	}
}

// IP-104: delegation does not bypass hooks at any depth: for the call of a sub-agent's
// sub-agent, denials and redactions apply, and a person is asked.
func TestSubagentsHaveTheHooksOfWhoStartsThem(t *testing.T) {
	var b bench
	var asked []string
	var parents []agent.RunID
	deep := helper("deep", &b, agenttest.Call("look", `{}`).Call("write", `{}`), agenttest.Say("done")).
		With(capability.UseHooks(hooks.On(hooks.AtPreToolUse, "own", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Allow() })))
	middle := builder.New().WithName("middle").WithDriver(agenttest.Script(task("deep", "go on"), agenttest.Say("back")).EachRun()).
		With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: deep}}})
	var seen []string
	s, _ := boss(t, capability.UseSubagents{Agents: []capability.Subagent{{Agent: middle}}}, task("middle", "go"),
		capability.UseHooks(
			hooks.On(hooks.AtPreToolUse, "no-write", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				if c.Run().Depth == 2 {
					parents = append(parents, c.Run().Parent)
				}
				switch c.Tool() {
				case "write":
					return c.Deny("read only")
				case "look":
					return c.Ask("may it look?")
				}
				return c.Pass()
			}),
			hooks.On(hooks.AtPostToolUse, "clean", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
				seen = append(seen, c.Tool())
				return c.Replace("***")
			}),
			hooks.On(hooks.AtStop, "never", func(_ context.Context, c hooks.StopContext) hooks.Result {
				assert.Zero(t, c.Run().Depth, "Stop is not inherited")
				return c.Pass()
			})),
		capability.UseApproval(agent.ApproverFunc(func(_ context.Context, s agent.State, p *agent.Prepared) (agent.Approval, error) {
			asked = append(asked, p.Call.Name+" of "+s.Run().Agent)
			return agent.Approval{Verdict: agent.Approve}, nil
		})))
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, []string{"look by deep at 2"}, b.used)
	assert.Equal(t, []string{"look of deep"}, asked)
	assert.Equal(t, []string{"look", "write", "task", "task"}, seen)
	require.NotEmpty(t, parents)
	assert.NotEqual(t, s.Run().ID, parents[0])
}

// IP-102: a sub-agent's allowed tools, denied tools, and both.
func TestToolsOfASubagent(t *testing.T) {
	turns := []agenttest.Turn{agenttest.Call("look", `{}`).Call("write", `{}`), agenttest.Say("done")}
	for name, tc := range map[string]struct {
		allow, deny, used []string
	}{
		"all":   {nil, nil, []string{"look by scout at 1", "write by scout at 1"}},
		"allow": {[]string{"look"}, nil, []string{"look by scout at 1"}},
		"deny":  {nil, []string{"look"}, []string{"write by scout at 1"}},
		"both":  {[]string{"look", "write"}, []string{"write"}, []string{"look by scout at 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var b bench
			boss(t, capability.UseSubagents{Agents: []capability.Subagent{{Agent: helper("scout", &b, turns...), Allow: tc.allow, Deny: tc.deny}}},
				task("scout", "go"))
			assert.Equal(t, tc.used, b.used)
		})
	}
}

// The decisions of hooks at the points of a sub-agent take effect.
func TestHooksDecideOnSubagents(t *testing.T) {
	var b bench
	driver := agenttest.Script(agenttest.Say("the secret plan")).EachRun()
	scout := builder.New().WithName("scout").WithDriver(driver)
	s, _ := boss(t, capability.UseSubagents{Agents: []capability.Subagent{{Agent: scout}, {Agent: helper("spy", &b, agenttest.Say("x"))}}},
		task("scout", "look").Call("task", `{"agent":"spy","instruction":"spy"}`), capability.UseHooks(
			hooks.On(hooks.AtPreSubagent, "pre", func(_ context.Context, c hooks.PreSubagentContext) hooks.Result {
				if c.Subagent().Agent == "spy" {
					return c.Deny("no spies")
				}
				return c.Rewrite(c.Subagent().Instruction + ", carefully")
			}),
			hooks.On(hooks.AtPostSubagent, "post", func(_ context.Context, c hooks.PostSubagentContext) hooks.Result { return c.Replace("***") })))
	results := answers(s)
	assert.Equal(t, "***", results[0].Text())
	assert.Contains(t, results[1].Text(), "no spies")
	assert.Contains(t, driver.Calls()[0].Transcript(), "look, carefully")
}

// Cancelling reaches a sub-agent.
func TestASubagentIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	scout := builder.New().WithName("scout").WithDriver(agent.DriverFunc(func(ctx context.Context, _ agent.State) (agent.Step, error) {
		cancel()
		<-ctx.Done()
		return agent.Step{}, ctx.Err()
	}))
	a, err := builder.New().WithDriver(agenttest.Script(task("scout", "go"), agenttest.Say("Done."))).
		With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: scout}}}).Build().Get()
	require.NoError(t, err)
	_, err = a.Run(ctx, agent.NewState(), agent.UserText("go")).Get()
	require.ErrorIs(t, err, context.Canceled)
}

// What cannot work is found when the agent is built.
func TestSubagentsThatCannotBe(t *testing.T) {
	var b bench
	scout := helper("scout", &b, agenttest.Say("x"))
	for name, tc := range map[string]struct {
		use  capability.UseSubagents
		says string
	}{
		"none":           {capability.UseSubagents{}, "no agents: set Agents"},
		"no agent":       {capability.UseSubagents{Agents: []capability.Subagent{{}}}, "sub-agent 1: the agent is nil"},
		"no name":        {capability.UseSubagents{Agents: []capability.Subagent{{Agent: builder.New().WithDriver(agenttest.Script())}}}, "missing name"},
		"twice":          {capability.UseSubagents{Agents: []capability.Subagent{{Agent: scout}, {Agent: scout}}}, "sub-agent 2: the name is used twice"},
		"unknown tool":   {capability.UseSubagents{Agents: []capability.Subagent{{Agent: scout, Deny: []string{"wirte"}}}}, "unknown tool wirte"},
		"a hook's name":  {capability.UseSubagents{Agents: []capability.Subagent{{Agent: scout.With(capability.UseHooks(guard()))}}}, "twice"},
		"negative depth": {capability.UseSubagents{Agents: []capability.Subagent{{Agent: scout}}, MaxDepth: -1}, "negative"},
		"no driver":      {capability.UseSubagents{Agents: []capability.Subagent{{Agent: builder.New().WithName("x")}}}, "no driver"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := builder.New().WithDriver(agenttest.Script()).With(tc.use, capability.UseHooks(guard())).Build().Get()
			require.ErrorContains(t, err, tc.says)
		})
	}
}

func guard() hooks.Hook {
	return hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Pass() })
}

// Drain and Cancel of the starting agent include the background work of a sub-agent, also
// if the run had additional hooks.
func TestTheBackgroundOfASubagent(t *testing.T) {
	for name, settings := range map[string]agent.RunSettings{
		"a run":                {},
		"a run with own hooks": hooks.WithHooks(hooks.Observe(hooks.AtStepEnd, "more", func(context.Context, hooks.StepEndContext) error { return nil })),
	} {
		t.Run(name, func(t *testing.T) {
			var b bench
			begun, ended := make(chan struct{}), make(chan struct{})
			slow := hooks.Observe(hooks.AtPostToolUse, "slow", func(ctx context.Context, _ hooks.ToolResultContext) error {
				close(begun)
				<-ctx.Done()
				close(ended)
				return ctx.Err()
			}).Detach()
			work := &errands{}
			scout := helper("scout", &b, agenttest.Call("look", `{}`), agenttest.Say("Nothing there.")).With(capability.UseHooks(slow),
				capability.Func(func(p capability.Plan) (capability.Plan, error) { return p.WithBackground(work), nil }))
			a, err := builder.New().WithName("boss").WithDriver(agenttest.Script(task("scout", "look around"), agenttest.Say("Done."))).
				With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: scout}}}).Build().Get()
			require.NoError(t, err)
			_, err = a.RunWith(t.Context(), settings, agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			<-begun
			enough, cancel := context.WithCancel(t.Context())
			cancel()
			require.EqualError(t, a.Drain(enough), "draining detached hooks: 1 not done: context canceled", "told once")
			a.Cancel()
			<-ended
			require.NoError(t, a.Drain(t.Context()))
			assert.Positive(t, work.drained)
			assert.Positive(t, work.cancelled)
		})
	}
}

// errands is background work that counts calls to Drain and Cancel.
type errands struct{ drained, cancelled int }

func (b *errands) Drain(context.Context) error { b.drained++; return nil }
func (b *errands) Cancel()                     { b.cancelled++ }
