package hooks_test

import (
	"context"
	"errors"
	"slices"
	"strings"
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

func beforeModel(name string, f func(c hooks.InferenceContext) hooks.Result) hooks.Hook {
	return hooks.On(hooks.AtPreInference, name, func(_ context.Context, c hooks.InferenceContext) hooks.Result { return f(c) })
}

func afterModel(name string, f func(c hooks.ReplyContext) hooks.Result) hooks.Hook {
	return hooks.On(hooks.AtPostInference, name, func(_ context.Context, c hooks.ReplyContext) hooks.Result { return f(c) })
}

// IP-51: the model receives the hook's rewritten request, in this call only.
func TestRewrittenRequest(t *testing.T) {
	end := play(t, agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Say("done")), []hooks.Hook{
		beforeModel("cheaper", func(c hooks.InferenceContext) hooks.Result {
			if c.StepIndex() > 0 {
				return c.Pass()
			}
			r := c.Request()
			r.Model = "small"
			r.Tools = r.Tools.Keep(func(agent.ToolSpec) bool { return false })
			return c.Rewrite(r)
		}),
		beforeModel("sees", func(c hooks.InferenceContext) hooks.Result {
			assert.Equal(t, lo.Ternary(c.StepIndex() == 0, "small", ""), c.Request().Model, "earlier rewrites are seen")
			return c.Pass()
		}),
	})
	require.NoError(t, end.err)
	asked := end.driver.Calls()
	assert.Equal(t, "small", asked[0].Request.Model)
	assert.Zero(t, asked[0].Request.Tools.Len())
	assert.Empty(t, asked[1].Request.Model)
	assert.Equal(t, 1, asked[1].Request.Tools.Len())
	started := agenttest.Of[agent.InferenceStarted](end.recorder)
	assert.Equal(t, "small", started[0].State.Request().Model, "events tell of what the model was asked with")
}

// IP-51: messages can be shown in place of the transcript, which stays as it is;
// what is added later is shown behind them.
func TestRewrittenMessages(t *testing.T) {
	end := play(t, agenttest.Script(agenttest.Call("echo", `{"text":"long"}`), agenttest.Say("done")), []hooks.Hook{
		beforeModel("first", func(c hooks.InferenceContext) hooks.Result { return c.Allow(agent.AddContext("first")) }),
		beforeModel("short", func(c hooks.InferenceContext) hooks.Result {
			if c.StepIndex() == 0 {
				return c.Pass()
			}
			return c.RewriteMessages([]agent.Message{agent.UserText("in short")}, agent.AddContext("second"))
		}),
		beforeModel("third", func(c hooks.InferenceContext) hooks.Result { return c.Allow(agent.AddContext("third")) }),
		beforeModel("sees", func(c hooks.InferenceContext) hooks.Result {
			var texts []string
			for _, m := range c.Messages() {
				texts = append(texts, m.Text())
			}
			want := []string{"hello", "first", "third"}
			if c.StepIndex() == 1 {
				want = []string{"in short", "second", "third"}
			}
			assert.Equal(t, want, texts)
			return c.Pass()
		}),
	})
	require.NoError(t, end.err)
	assert.Equal(t, "user: in short\nuser: second\nuser: third\n", end.driver.Calls()[1].Transcript())
	assert.Equal(t, `user: hello
user: first
user: third
assistant calls echo {"text":"long"}
tool echo (executed): long
user: first
user: second
user: third
assistant: done
`, agenttest.Transcript(end.State))
}

// IP-52: step and events show the hook's replacement of the reply.
func TestReplacedReply(t *testing.T) {
	end := play(t, agenttest.Script(agenttest.Call("echo", `{"text":"x"}`).WithTokens(1, 1), agenttest.Say("never asked")), []hooks.Hook{
		afterModel("sees", func(c hooks.ReplyContext) hooks.Result { // after-hooks go in reverse
			assert.Equal(t, "replaced", c.Text())
			assert.Empty(t, c.Tools())
			return c.Pass()
		}),
		afterModel("replaces", func(c hooks.ReplyContext) hooks.Result {
			assert.Equal(t, []string{"echo"}, c.Tools())
			r := c.Reply()
			r.Message, r.FinishReason = agent.Assistant("replaced"), agent.FinishLength
			r.Usage.OutputTokens, r.Usage.Cost = 7, mo.Some(0.5)
			return c.Replace(r)
		}),
	})
	require.NoError(t, end.err)
	assert.Equal(t, "replaced", end.Answer())
	assert.Equal(t, agent.Usage{InputTokens: 1, OutputTokens: 7, Cost: mo.Some(0.5)}, end.RunUsage())
	for _, reply := range []agent.Step{
		end.LastStep().Reply(), agenttest.Of[agent.InferenceCompleted](end.recorder)[0].Reply,
	} {
		assert.Equal(t, "replaced", reply.Message.Text())
		assert.Equal(t, agent.FinishLength, reply.FinishReason)
		assert.Equal(t, "script", reply.Model)
	}
}

func TestReplacedTextKeepsTheCalls(t *testing.T) {
	end := play(t, agenttest.Script(
		agenttest.Reply(agent.Step{Message: agent.Assistant("I use the key hunter2", agent.ToolCall{Name: "echo", Arguments: `{"text":"x"}`})}),
		agenttest.Say("done"),
	), []hooks.Hook{
		afterModel("redact", func(c hooks.ReplyContext) hooks.Result {
			return c.ReplaceText(strings.ReplaceAll(c.Text(), "hunter2", "***"))
		}),
	})
	require.NoError(t, end.err)
	assert.Equal(t, "user: hello\nassistant: I use the key ***\nassistant calls echo {\"text\":\"x\"}\ntool echo (executed): x\nassistant: done\n",
		agenttest.Transcript(end.State))
}

// IP-53: the event that the model is asked stands between the hooks before it and
// the reply, the event of the reply behind the hooks after it; the id is one.
func TestOrderOfInferenceHooksAndEvents(t *testing.T) {
	var order, ids []string
	note := func(what, id string) { order, ids = append(order, what), append(ids, id) }
	a := hookedAgent(t, agenttest.Script(agenttest.Play(func(context.Context, agent.State) (agent.Step, error) {
		order = append(order, "model")
		return agent.Step{Message: agent.Assistant("hi")}, nil
	})), nil, []hooks.Hook{
		beforeModel("before", func(c hooks.InferenceContext) hooks.Result { note("before_hook", c.Inference()); return c.Pass() }),
		afterModel("after", func(c hooks.ReplyContext) hooks.Result { note("after_hook", c.Inference()); return c.Pass() }),
	}, capability.UseObserver(agent.ObserverFunc(func(_ context.Context, e agent.Event) {
		switch e := e.(type) {
		case agent.InferenceStarted:
			note(e.EventName(), e.Inference)
		case agent.InferenceCompleted:
			note(e.EventName(), e.Inference)
		}
	})))
	require.NoError(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Error())
	assert.Equal(t, []string{"before_hook", "inference.started", "model", "after_hook", "inference.completed"}, order)
	assert.Len(t, lo.Uniq(ids), 1)
	assert.NotEmpty(t, ids[0])
}

// Where a hook keeps the model from being asked, no event says that it was asked or answered.
func TestNoInferenceEventsWithoutAModelCall(t *testing.T) {
	end := play(t, agenttest.Script(agenttest.Say("never")), []hooks.Hook{
		hooks.On(hooks.AtPreInference, "broken", func(context.Context, hooks.InferenceContext) hooks.Result {
			return mo.Err[*hooks.Outcome](errors.New("no idea"))
		}).WithFailure(hooks.Abort),
	})
	require.Error(t, end.err)
	assert.Empty(t, agenttest.Of[agent.InferenceStarted](end.recorder))
	assert.Empty(t, agenttest.Of[agent.InferenceCompleted](end.recorder))
}

// IP-54
func TestEffectsOfInferenceHooksReachTheState(t *testing.T) {
	asked, answered := agent.SessionKey[int]("asked"), agent.SessionKey[string]("answered")
	end := play(t, agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Say("hi")), []hooks.Hook{
		beforeModel("before", func(c hooks.InferenceContext) hooks.Result { return c.Allow(asked.Set(asked.Or(c.State(), 0) + 1)) }),
		afterModel("after", func(c hooks.ReplyContext) hooks.Result {
			assert.Equal(t, c.StepIndex()+1, asked.Or(c.State(), 0), "and the hooks after them")
			return c.Allow(answered.Set(answered.Or(c.State(), "")+"x"), agent.AddContext("noted"))
		}),
	})
	require.NoError(t, end.err)
	assert.Equal(t, 2, asked.Or(end.State, 0))
	assert.Equal(t, "xx", answered.Or(end.State, ""))
	assert.Equal(t, "user: hello\nassistant calls echo {}\ntool echo (executed): \nuser: noted\nassistant: hi\nuser: noted\n", agenttest.Transcript(end.State))
}

// IP-55: hooks are asked whatever the driver is: one that knows nothing but Next, and
// one that streams.
func TestEveryDriverHasInferenceHooks(t *testing.T) {
	for name, driver := range map[string]agent.Driver{
		"plain": agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
			return agent.Step{Message: agent.Assistant("hi")}, nil
		}),
		"streams": agenttest.Script(agenttest.Say("hi")),
	} {
		for _, streaming := range []bool{false, true} {
			var order []string
			a := hookedAgent(t, driver, nil, []hooks.Hook{
				beforeModel("before", func(c hooks.InferenceContext) hooks.Result { order = append(order, "before"); return c.Pass() }),
				afterModel("after", func(c hooks.ReplyContext) hooks.Result { order = append(order, "after"); return c.Pass() }),
			})
			if streaming {
				for _, err := range a.Stream(t.Context(), agent.NewState(agent.UserText("hello"))) {
					require.NoError(t, err)
				}
			} else {
				require.NoError(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Error())
			}
			assert.Equal(t, []string{"before", "after"}, order, name)
		}
	}
}

func TestDriverKeepsItsContract(t *testing.T) {
	agenttest.TestDriver(t, func(t *testing.T) agent.Driver {
		t.Helper()
		compiled := lo.Must(hooks.NewSet(
			beforeModel("before", func(c hooks.InferenceContext) hooks.Result { return c.Pass() }),
			afterModel("after", func(c hooks.ReplyContext) hooks.Result { return c.Pass() }),
		).Compile())
		return compiled.WrapDriver(agenttest.Script().Then(agenttest.Say("hello there, and welcome")))
	})
}

func TestStopBeforeTheModelIsAsked(t *testing.T) {
	spent := agent.SessionKey[bool]("spent")
	end := play(t, agenttest.Script(agenttest.Call("echo", `{}`)), []hooks.Hook{
		beforeModel("budget", func(c hooks.InferenceContext) hooks.Result {
			if c.StepIndex() == 0 {
				return c.Allow()
			}
			return c.Stop("spent", spent.Set(true))
		}),
		beforeModel("later", func(c hooks.InferenceContext) hooks.Result { assert.Zero(t, c.StepIndex()); return c.Pass() }),
	})
	require.NoError(t, end.err)
	assert.Equal(t, agent.StatusStopped, end.Status())
	assert.Equal(t, agent.Signal{Reason: agent.StopByHook, Message: "spent", Source: "budget"}, end.signal())
	assert.Equal(t, 1, end.RunStepCount())
	assert.Len(t, end.driver.Calls(), 1)
	assert.True(t, spent.Or(end.State, false))
	assert.Equal(t, 1, end.count("inference.started"))
	assert.Equal(t, 1, end.count("inference.completed"))
}

// A reply whose guard could not decide is not shown, stored or executed.
func TestWithheldReply(t *testing.T) {
	end := play(t, agenttest.Script(
		agenttest.Reply(agent.Step{Message: agent.Assistant("the key is hunter2", agent.ToolCall{Name: "echo", Arguments: `{"text":"hunter2"}`})}),
	), []hooks.Hook{
		afterModel("later", func(c hooks.ReplyContext) hooks.Result { assert.NotContains(t, c.Text(), "hunter2"); return c.Pass() }),
		afterModel("guard", func(c hooks.ReplyContext) hooks.Result { return c.Fail(errors.New("no idea")) }),
		hooks.Observe(hooks.AtPostInference, "audit", func(_ context.Context, c hooks.ReplyContext) error {
			assert.Equal(t, hooks.Withhold, c.Frozen().Decision())
			assert.True(t, c.Frozen().HookFailed())
			assert.NotContains(t, c.Text(), "hunter2")
			return nil
		}),
	})
	require.NoError(t, end.err)
	assert.Equal(t, agent.StatusStopped, end.Status())
	assert.Equal(t, agent.Signal{
		Reason: agent.StopByHook, Source: "guard", Message: "the hook could not decide: no idea", Details: map[string]any{"hook_failed": true},
	}, end.signal())
	assert.Equal(t, "user: hello\nassistant: reply withheld by guard: the hook could not decide: no idea\n", agenttest.Transcript(end.State))
	assert.NotContains(t, lo.Must(end.MarshalJSON()), "hunter2")
}

// A failed model call has no reply. The hooks after it see the error, and what hooks before it added
// goes with it.
func TestFailedModelCallHasNoReply(t *testing.T) {
	var after error
	end := play(t, agenttest.Script(agenttest.Fail(errors.New("down"))), []hooks.Hook{
		beforeModel("before", func(c hooks.InferenceContext) hooks.Result { return c.Allow(agent.AddContext("x")) }),
		afterModel("after", func(c hooks.ReplyContext) hooks.Result { after = c.Err(); return c.Pass() }),
	})
	assert.Equal(t, agent.StatusFailed, end.Status())
	require.EqualError(t, after, "down")
	require.ErrorIs(t, end.err, after)
	assert.Equal(t, "user: hello\n", agenttest.Transcript(end.State), "what was added for the call went with it")
}

// A wrapper further in that wants the run to end is not overruled by a new reply.
func TestReplacedReplyKeepsWhatMiddlewareWants(t *testing.T) {
	key := agent.SessionKey[bool]("noted")
	limiter := agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
		return agent.Step{
			Message: agent.Assistant("last words"), Effects: agent.EffectsOf(key.Set(true)),
			Stop: &agent.Signal{Reason: agent.StopCostLimit, Source: "limiter"},
		}, nil
	})
	a := hookedAgent(t, limiter, nil, []hooks.Hook{
		afterModel("new", func(c hooks.ReplyContext) hooks.Result {
			return c.Replace(agent.Step{Message: agent.Assistant("other words")})
		}),
	})
	final := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).MustGet()
	assert.Equal(t, "other words", final.Answer())
	assert.Equal(t, agent.StopCostLimit, final.StopSignal().Reason)
	assert.True(t, key.Or(final, false))
}

func TestReplyOfAnotherRoleIsAFailure(t *testing.T) {
	end := play(t, agenttest.Script(agenttest.Say("hi")), []hooks.Hook{
		afterModel("odd", func(c hooks.ReplyContext) hooks.Result { return c.Replace(agent.Step{Message: agent.UserText("me")}) }),
	})
	assert.Equal(t, agent.StatusStopped, end.Status())
	assert.Contains(t, end.signal().Message, `replaced by a message of role "user"`)
}

// SW-08: a streamed run asks the same hooks, in the same order, and ends alike.
func TestStreamingAsksTheSameHooks(t *testing.T) {
	run := func(streaming bool) (order []string, final agent.State) {
		a := hookedAgent(t, agenttest.Script(agenttest.Call("echo", `{"text":"x"}`), agenttest.Say("done")), nil, []hooks.Hook{
			hooks.ObserveAll("all", func(_ context.Context, c hooks.Context) error {
				order = append(order, string(c.Point()))
				return nil
			}),
			onInput("polite", func(c hooks.InputContext) hooks.Result { return c.RewriteText(c.Text() + ", please") }),
			afterModel("louder", func(c hooks.ReplyContext) hooks.Result { return c.ReplaceText(strings.ToUpper(c.Text())) }),
		})
		input := agent.UserText("hello")
		if !streaming {
			return order, a.Run(t.Context(), agent.NewState(), input).MustGet()
		}
		for p, err := range a.Stream(t.Context(), agent.NewState(), input) {
			require.NoError(t, err)
			final = p.State
		}
		return order, final
	}
	want, blocking := run(false)
	got, streamed := run(true)
	assert.Equal(t, want, got)
	assert.Equal(t, "InputSubmitted ExecutionStart StepStart PreInference PostInference PreToolUse PostToolUse StepEnd "+
		"StepStart PreInference PostInference StepEnd Stop ExecutionEnd", strings.Join(got, " "))
	assert.Equal(t, agenttest.Transcript(blocking), agenttest.Transcript(streamed))
	assert.Equal(t, "DONE", streamed.Answer())
}

// Pieces are held back where a control may still replace the reply, and only there.
func TestPiecesAreHeldBackForControls(t *testing.T) {
	const secret, words = "the key is hunter2", 4
	streamed := func(list ...hooks.Hook) (pieces []string) {
		a := hookedAgent(t, agenttest.Script(agenttest.Say(secret)), nil, list)
		for p, err := range a.Stream(t.Context(), agent.NewState(agent.UserText("hello"))) {
			require.NoError(t, err)
			if p.Delta != nil {
				pieces = append(pieces, p.Delta.Text)
			}
		}
		return pieces
	}
	watch := hooks.Observe(hooks.AtPostInference, "watch", func(context.Context, hooks.ReplyContext) error { return nil })
	assert.Len(t, streamed(), words)
	assert.Len(t, streamed(watch), words, "an observer holds back nothing")
	assert.Equal(t, []string{"the key is ***"}, streamed(watch, afterModel("redact", func(c hooks.ReplyContext) hooks.Result {
		return c.ReplaceText(strings.ReplaceAll(c.Text(), "hunter2", "***"))
	})))
	assert.Equal(t, []string{secret}, streamed(afterModel("fine", func(c hooks.ReplyContext) hooks.Result { return c.Allow() })))
	broken := streamed(afterModel("guard", func(hooks.ReplyContext) hooks.Result { panic("no idea") }))
	assert.False(t, slices.ContainsFunc(broken, func(s string) bool { return strings.Contains(s, "hunter2") }), broken)
}

func TestWithoutInferenceHooksTheDriverIsItself(t *testing.T) {
	driver := agenttest.Script()
	compiled := lo.Must(hooks.NewSet(onInput("other", func(c hooks.InputContext) hooks.Result { return c.Pass() })).Compile())
	assert.Same(t, driver, compiled.WrapDriver(driver))
}
