package hooks_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

// IP-09, IP-10: a hook is called at its points and at no other: one, several, all or
// none.
func TestHooksAreCalledAtTheirPoints(t *testing.T) {
	called := map[string][]hooks.PointName{}
	at := func(name string, points ...hooks.PointName) hooks.Hook {
		return hooks.ObserveAll(name, func(_ context.Context, c hooks.Context) error {
			called[name] = append(called[name], c.Point())
			return nil
		}, points...)
	}
	end := play(t, agenttest.Script(agenttest.Say("hi")), []hooks.Hook{
		at("one", hooks.StepEnd), at("several", hooks.ExecutionStart, hooks.ExecutionEnd), at("all"), at("elsewhere", hooks.AgentFailed),
	})
	require.NoError(t, end.err)
	assert.Equal(t, map[string][]hooks.PointName{
		"one":     {hooks.StepEnd},
		"several": {hooks.ExecutionStart, hooks.ExecutionEnd},
		"all": {hooks.InputSubmitted, hooks.ExecutionStart, hooks.StepStart, hooks.PreInference, hooks.PostInference,
			hooks.StepEnd, hooks.Stop, hooks.ExecutionEnd},
	}, called)
}

// IP-11, IP-12: what one hook writes, the next sees, at every point where controls may
// add; what two write under different names is both there.
func TestWritesAddUp(t *testing.T) {
	trail, first, second := agent.RunKey[string]("trail"), agent.RunKey[bool]("first"), agent.RunKey[bool]("second")
	add := func(c hooks.Context, name string, key agent.Key[bool]) []agent.Effect {
		return []agent.Effect{trail.Set(trail.Or(c.State(), "") + name), key.Set(true)}
	}
	for point, pair := range map[hooks.PointName]func(name string, key agent.Key[bool]) hooks.Hook{
		hooks.InputSubmitted: func(n string, k agent.Key[bool]) hooks.Hook {
			return onInput(n, func(c hooks.InputContext) hooks.Result { return c.Allow(add(c, n, k)...) })
		},
		hooks.ExecutionStart: func(n string, k agent.Key[bool]) hooks.Hook {
			return onStart(n, func(c hooks.ExecutionContext) hooks.Result { return c.Allow(add(c, n, k)...) })
		},
		hooks.StepStart: func(n string, k agent.Key[bool]) hooks.Hook {
			return beforeStep(n, func(c hooks.StepContext) hooks.Result { return c.Allow(add(c, n, k)...) })
		},
		hooks.PreInference: func(n string, k agent.Key[bool]) hooks.Hook {
			return beforeModel(n, func(c hooks.InferenceContext) hooks.Result { return c.Allow(add(c, n, k)...) })
		},
		hooks.PostInference: func(n string, k agent.Key[bool]) hooks.Hook {
			return afterModel(n, func(c hooks.ReplyContext) hooks.Result { return c.Allow(add(c, n, k)...) })
		},
		hooks.StepEnd: func(n string, k agent.Key[bool]) hooks.Hook {
			return afterStep(n, func(c hooks.StepEndContext) hooks.Result { return c.Allow(add(c, n, k)...) })
		},
		hooks.AgentFailed: func(n string, k agent.Key[bool]) hooks.Hook {
			return atFailure(n, func(c hooks.FailureContext) hooks.Result { return c.Allow(add(c, n, k)...) })
		},
	} {
		t.Run(string(point), func(t *testing.T) {
			turn := agenttest.Say("hi")
			if point == hooks.AgentFailed {
				turn = agenttest.Fail(errBoom)
			}
			end := play(t, agenttest.Script(turn), []hooks.Hook{
				pair("low", second).WithPriority(-1), pair("high", first).WithPriority(1),
			})
			want := "highlow"
			if slices.Contains([]hooks.PointName{hooks.PostInference, hooks.StepEnd, hooks.AgentFailed}, point) {
				want = "lowhigh" // who is asked first before is asked last after
			}
			assert.Equal(t, want, trail.Or(end.State, ""))
			assert.True(t, first.Or(end.State, false))
			assert.True(t, second.Or(end.State, false))
			assert.Equal(t, []string{"hook.conflict " + map[bool]string{true: "low", false: "high"}[want == "highlow"] + "@" + string(point)},
				end.told(hooks.HookConflict), "that both set the trail is told once")
		})
	}
}

// IP-15: hooks without an opinion hand on the very state that they were given.
func TestPassingHooksChangeNothing(t *testing.T) {
	compiled := lo.Must(hooks.NewSet(
		onInput("input", func(c hooks.InputContext) hooks.Result { return c.Pass() }),
		onStart("start", func(c hooks.ExecutionContext) hooks.Result { return c.Allow() }),
		beforeStep("before", func(hooks.StepContext) hooks.Result { return hooks.Result{} }),
		afterStep("after", func(c hooks.StepEndContext) hooks.Result { return c.Allow() }),
		atEnd("end", func(hooks.EndContext) error { return nil }),
	).Compile())
	given := agent.NewState(agent.UserText("hello"))
	for _, p := range []agent.Processor{compiled.AroundRun(), compiled.AroundStep()} {
		returned := agent.Checkpoint(given).WithStatus(agent.StatusDone)
		got, err := p.Process(t.Context(), given, func(_ context.Context, s agent.State) mo.Result[agent.State] {
			assert.Equal(t, given, s)
			return mo.Ok(returned)
		}).Get()
		require.NoError(t, err)
		assert.Equal(t, returned, got)
	}
}

func TestProcessorsKeepTheirContract(t *testing.T) {
	list := []hooks.Hook{
		onInput("input", func(c hooks.InputContext) hooks.Result { return c.Pass() }),
		onStart("start", func(c hooks.ExecutionContext) hooks.Result { return c.Allow() }),
		beforeStep("before", func(c hooks.StepContext) hooks.Result { return c.Pass() }),
		afterStep("after", func(c hooks.StepEndContext) hooks.Result { return c.Allow() }),
		atEnd("end", func(hooks.EndContext) error { return nil }),
		atFailure("failed", func(c hooks.FailureContext) hooks.Result { return c.Pass() }),
	}
	for name, processor := range map[string]func(*hooks.Compiled) agent.Processor{
		"around run":  func(c *hooks.Compiled) agent.Processor { return c.AroundRun() },
		"around step": func(c *hooks.Compiled) agent.Processor { return c.AroundStep() },
	} {
		t.Run(name, func(t *testing.T) {
			agenttest.TestProcessor(t, func(t *testing.T) agent.Processor {
				t.Helper()
				return processor(lo.Must(hooks.NewSet(list...).Compile()))
			})
		})
	}
}

// Session and run, the place in a pipeline and above other runs: a hook is told of
// all of it.
func TestHooksKnowWhichRunItIs(t *testing.T) {
	var seen []agent.Run
	a := hookedAgent(t, agenttest.Script(agenttest.Say("hi")), nil, []hooks.Hook{
		hooks.ObserveAll("all", func(_ context.Context, c hooks.Context) error { seen = append(seen, c.Run()); return nil }),
	}, capability.UseGuards{})
	parent := agent.Run{ID: "run_parent", Root: "run_root", Depth: 1}
	final := a.RunWith(t.Context(), agent.RunSettings{ID: "run_1", Parent: parent, Stage: "plan", Iteration: 3},
		agent.NewState(), agent.UserText("hello")).MustGet()
	require.NotEmpty(t, seen)
	for _, run := range seen {
		assert.Equal(t, final.Run(), run)
	}
	assert.Equal(t, agent.Run{
		ID: "run_1", Session: final.Session(), Agent: "tester", Parent: "run_parent", Root: "run_root", Depth: 2, Number: 1,
		Stage: "plan", Iteration: 3, Started: seen[0].Started,
	}, seen[0])
}

// A run without input may be given some by a hook at its start.
func TestStartHookMayGiveInput(t *testing.T) {
	a := hookedAgent(t, agenttest.Script(agenttest.Say("hi")), nil, []hooks.Hook{
		onStart("asks", func(c hooks.ExecutionContext) hooks.Result {
			assert.Empty(t, c.Messages())
			assert.Empty(t, c.Text())
			return c.RewriteText("what is new?")
		}),
	})
	final := a.Run(t.Context(), agent.NewState(agent.System("be kind"))).MustGet()
	assert.Equal(t, "system: be kind\nuser: what is new?\nassistant: hi\n", agenttest.Transcript(final))
}

// An observer may be as strict as a control: with Abort its failure fails the run. The
// other observers are told all the same.
func TestObserversThatAbort(t *testing.T) {
	for _, at := range []hooks.PointName{
		hooks.InputSubmitted, hooks.ExecutionStart, hooks.StepStart, hooks.PreInference, hooks.PostInference, hooks.StepEnd, hooks.Stop,
	} {
		t.Run(string(at), func(t *testing.T) {
			told := 0
			end := play(t, agenttest.Script(agenttest.Say("hi")), []hooks.Hook{
				hooks.ObserveAll("a", func(context.Context, hooks.Context) error { told++; return nil }, at),
				hooks.ObserveAll("strict", func(context.Context, hooks.Context) error { return errBoom }, at).WithFailure(hooks.Abort),
				hooks.ObserveAll("b", func(context.Context, hooks.Context) error { told++; return nil }, at),
			})
			require.ErrorIs(t, end.err, errBoom)
			assert.Equal(t, agent.StatusFailed, end.Status())
			assert.Equal(t, 2, told)
		})
	}
}

func TestProcessorSaysWhatItIs(t *testing.T) {
	assert.Equal(t, "HookProcessor", fmt.Sprint(lo.Must(hooks.NewSet().Compile()).AroundRun()))
}
