package builder_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/hooks"
)

var noPerson = agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
	return agent.Approval{Verdict: agent.RejectAndContinue, By: "bob"}, nil
})

func TestBuiltAgentHasWhatItWasGiven(t *testing.T) {
	recorder := agenttest.Record()
	script := agenttest.Script(agenttest.Say("hi"))
	a, err := builder.New().WithName("helper").WithModel("small").WithInstructions("Be kind.").WithDriver(script).WithObserver(recorder).
		WithRequest(func(r agent.Request) agent.Request { r.Temperature = mo.Some(0.5); return r }).
		With(capability.UseTools(tool("a")), capability.UseInstructions("Be brief.")).Build().Get()
	require.NoError(t, err)
	assert.Equal(t, "helper", a.Name())
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	require.NoError(t, err)
	assert.Equal(t, "hi", final.Answer())
	assert.Equal(t, "helper", final.Run().Agent)
	request := script.Calls()[0].Request
	assert.Equal(t, "small", request.Model)
	assert.Equal(t, "Be kind.\n\nBe brief.", request.Instructions)
	assert.Equal(t, mo.Some(0.5), request.Temperature)
	assert.Equal(t, 1, request.Tools.Len())
	assert.NotEmpty(t, recorder.Events())
}

func TestParallelTools(t *testing.T) {
	both := make(chan struct{})
	meet := func(name string) agenttest.Func {
		return func(ctx context.Context, _ agent.ToolCall) (string, error) {
			select {
			case both <- struct{}{}:
			case <-both:
			case <-time.After(10 * time.Second):
				return "", errors.New(name + " was alone")
			}
			return "met", nil
		}
	}
	x := agenttest.Tools{"a": meet("a"), "b": meet("b")}.Executor()
	a := builder.New().WithDriver(agenttest.Script(agenttest.Call("a", `{}`).Call("b", `{}`), agenttest.Say("done"))).WithParallel(2).
		With(capability.Func(func(p capability.Plan) (capability.Plan, error) { return p.WithExecutor(x), nil })).Build().MustGet()
	final := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
	assert.Equal(t, 2, strings.Count(agenttest.Transcript(final), "(executed): met"))
}

// IP-07, IP-17: a builder that is extended in two ways gives two independent agents.
func TestBuildersDoNotChange(t *testing.T) {
	asked := map[string]int{}
	counts := func(name string) capability.Capability {
		return capability.UseHooks(hooks.On(hooks.AtStepStart, name, func(_ context.Context, c hooks.StepContext) hooks.Result {
			asked[name]++
			return c.Pass()
		}))
	}
	seen := map[string]int{}
	observer := func(name string) agent.Observer {
		return agent.ObserverFunc(func(context.Context, agent.Event) { seen[name]++ })
	}
	script := agenttest.Script().Then(agenttest.Say("hi"))
	base := builder.New().WithDriver(script).With(counts("one"), counts("two"))
	before, err := base.Plan().Get()
	require.NoError(t, err)
	old := base.WithName("old").With(counts("old")).WithObserver(observer("old")).WithInstructions("old")
	young := base.WithName("new").With(counts("new")).WithObserver(observer("new")).WithModel("new").WithParallel(3)
	base.With(counts("another"), counts("more"))

	_, err = young.Build().MustGet().Run(t.Context(), agent.NewState(), agent.UserText("x")).Get()
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"one": 1, "two": 1, "new": 1}, asked)
	assert.Equal(t, []string{"new"}, lo.Keys(seen))
	assert.Empty(t, script.Calls()[0].Request.Instructions)

	_, err = old.Build().MustGet().Run(t.Context(), agent.NewState(), agent.UserText("x")).Get()
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"one": 2, "two": 2, "new": 1, "old": 1}, asked)
	assert.Equal(t, before.String(), base.Plan().MustGet().String())
}

// IP-16: building twice gives two agents that behave alike and share nothing that
// changes.
func TestBuildingTwice(t *testing.T) {
	b := builder.New().WithDriver(agenttest.Script(agenttest.Call("a", `{}`), agenttest.Say("done"))).With(
		capability.UseTools(tool("a")), capability.UseGuards{Steps: 5}, capability.UseHooks(passes("h")))
	one, two := b.Build().MustGet(), b.Build().MustGet()
	assert.NotSame(t, one, two)
	var transcripts []string
	for _, a := range []*agent.Agent{one, two} {
		final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("x")).Get()
		require.NoError(t, err)
		transcripts = append(transcripts, agenttest.Transcript(final))
	}
	assert.Equal(t, transcripts[0], transcripts[1])
	one.Cancel()
	require.NoError(t, two.Drain(t.Context()))
}

// IP-109: the order of settings and capabilities does not matter.
func TestSettingsAndCapabilitiesCommute(t *testing.T) {
	driver, recorder := agenttest.Script(), agenttest.Record()
	x := capability.UseHooks(passes("x"))
	steps := []func(builder.AgentBuilder) builder.AgentBuilder{
		func(b builder.AgentBuilder) builder.AgentBuilder { return b.WithName("n") },
		func(b builder.AgentBuilder) builder.AgentBuilder { return b.WithDriver(driver) },
		func(b builder.AgentBuilder) builder.AgentBuilder { return b.WithObserver(recorder) },
		func(b builder.AgentBuilder) builder.AgentBuilder { return b.WithModel("m") },
		func(b builder.AgentBuilder) builder.AgentBuilder { return b.WithInstructions("i") },
		func(b builder.AgentBuilder) builder.AgentBuilder { return b.WithParallel(2) },
		func(b builder.AgentBuilder) builder.AgentBuilder {
			return b.With(x, capability.UseInstructions("more"))
		},
	}
	plan := func(steps []func(builder.AgentBuilder) builder.AgentBuilder) string {
		b := builder.New()
		for _, step := range steps {
			b = step(b)
		}
		return b.Plan().MustGet().String()
	}
	want := plan(steps)
	rapid.Check(t, func(t *rapid.T) {
		assert.Equal(t, want, plan(rapid.Permutation(steps).Draw(t, "steps")))
	})
}

// Capabilities that do not need each other may be given in any order: the agent is
// the same and does the same.
func TestCapabilitiesCommute(t *testing.T) {
	note := agent.RunKey[string]("note")
	log := agenttest.Record
	capabilities := func(r *agenttest.Recorder) []capability.Capability {
		return []capability.Capability{
			capability.UseTools(tool("a"), tool("b")),
			capability.UseInstructions("Be kind."),
			capability.UseGuards{Steps: 4},
			capability.UseErrorPolicy(continuation.RetryToolErrors(1)),
			capability.UseApproval(noPerson),
			capability.UseObserver(r),
			capability.UseStepProcessor("p", agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
				return next(ctx, note.In(s, note.Or(s, "")+"p"))
			})),
			capability.UseHooks(hooks.On(hooks.AtStepStart, "low", func(_ context.Context, c hooks.StepContext) hooks.Result {
				return c.Allow(note.Set(note.Or(c.State(), "") + "low"))
			}).WithPriority(-1)),
			capability.UseHooks(hooks.On(hooks.AtStepStart, "high", func(_ context.Context, c hooks.StepContext) hooks.Result {
				return c.Allow(note.Set(note.Or(c.State(), "") + "high"))
			}).WithPriority(1)),
			capability.UseHooks(hooks.On(hooks.AtPreToolUse, "asks", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				return c.Ask("sure?")
			}, hooks.ToolNamed("b"))),
		}
	}
	outcome := func(recorder *agenttest.Recorder, list []capability.Capability) (plan, behaviour string) {
		b := builder.New().WithDriver(agenttest.Script().Then(agenttest.Call("a", `{}`).Call("b", `{}`))).With(list...)
		final := b.Build().MustGet().Run(context.Background(), agent.NewState(), agent.UserText("go")).MustGet()
		behaviour = agenttest.Transcript(final) + note.Or(final, "") + final.StopSignal().Message + strings.Join(recorder.Names(), " ")
		return sortedCriteria(b.Plan().MustGet().String()), behaviour
	}
	recorder := log()
	wantPlan, want := outcome(recorder, capabilities(recorder))
	require.Contains(t, want, "highlowp")
	require.Contains(t, want, "rejected by bob")
	require.Contains(t, want, "4 of at most 4 steps")
	rapid.Check(t, func(t *rapid.T) {
		recorder := log()
		plan, got := outcome(recorder, rapid.Permutation(capabilities(recorder)).Draw(t, "order"))
		assert.Equal(t, want, got)
		assert.Equal(t, wantPlan, plan)
	})
}

// sortedCriteria returns a printed plan with its criteria in alphabetical order. Their real order, which follows the
// capabilities, does not matter.
func sortedCriteria(plan string) string {
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  judge") {
			parts := strings.Split(line, ", ")
			slices.Sort(parts)
			lines[i] = strings.Join(parts, ", ")
		}
	}
	return strings.Join(lines, "\n")
}

func TestEverythingThatIsWrongIsToldAtOnce(t *testing.T) {
	err := builder.New().WithName("helper").WithRequest(nil).WithObserver(nil).With(
		nil, capability.UseHooks(passes("h"), passes("h")), capability.UseTools(tool("a"), tool("a")), capability.UseGuards{Steps: -2, Time: -1},
		capability.UseApproval(nil), part{name: "b", requires: []string{"c"}},
	).Build().Error()
	require.Error(t, err)
	assert.Equal(t, []string{
		`building agent "helper":`,
		`capability 1 of 6 is nil`,
		`capability "b" requires "c", which is not installed`,
		`capability "guards": the limit of steps is -2: it must not be less than -1, which means none, and zero means 100`,
		`capability "guards": the limit of time is -1ns: it must not be negative, and zero means none`,
		`building the toolbox: tool "a": the name is given twice`,
		`hook "h" is declared twice: names must be unique`,
		`the func that changes the request is nil`,
		`the approver is nil: omit it if no person can be asked`,
		`no driver: set one with WithDriver`,
		`observer 1 of 1 is nil`,
	}, strings.Split(err.Error(), "\n"))
}

func TestEmptyBuilder(t *testing.T) {
	require.EqualError(t, builder.AgentBuilder{}.Build().Error(), "building the agent:\nno driver: set one with WithDriver")
}
