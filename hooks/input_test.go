package hooks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
)

// onInput returns a control at InputSubmitted, onStart the same at ExecutionStart.
func onInput(name string, f func(c hooks.InputContext) hooks.Result) hooks.Hook {
	return hooks.On(hooks.AtInputSubmitted, name, func(_ context.Context, c hooks.InputContext) hooks.Result { return f(c) })
}

func onStart(name string, f func(c hooks.ExecutionContext) hooks.Result) hooks.Hook {
	return hooks.On(hooks.AtExecutionStart, name, func(_ context.Context, c hooks.ExecutionContext) hooks.Result { return f(c) })
}

// SW-01, SW-05
func TestPreHooksAnswerBeforeTheModelIsAsked(t *testing.T) {
	script := agenttest.Script(agenttest.Say("hi"))
	var asked []int
	var ids []agent.Run
	see := func(c hooks.Context, text string) hooks.Result {
		asked = append(asked, len(script.Calls()))
		ids = append(ids, c.Run())
		assert.Equal(t, "hello", text)
		return hooks.Result{}
	}
	end := play(t, script, []hooks.Hook{
		onInput("input", func(c hooks.InputContext) hooks.Result { return see(c, c.Text()) }),
		onStart("start", func(c hooks.ExecutionContext) hooks.Result { return see(c, c.Text()) }),
	})
	require.NoError(t, end.err)
	assert.Equal(t, []int{0, 0}, asked)
	assert.Equal(t, []agent.Run{end.Run(), end.Run()}, ids)
	assert.Equal(t, "tester", ids[0].Agent)
	assert.NotEmpty(t, ids[0].Session)
}

// SW-06
func TestPreHooksRunInTheOrderTheyWereGiven(t *testing.T) {
	var order []string
	note := func(name string) hooks.Hook {
		return onStart(name, func(c hooks.ExecutionContext) hooks.Result { order = append(order, name); return c.Pass() })
	}
	end := play(t, agenttest.Script(agenttest.Say("hi")), []hooks.Hook{note("hook-1"), note("hook-2"), note("hook-3")})
	require.NoError(t, end.err)
	assert.Equal(t, []string{"hook-1", "hook-2", "hook-3"}, order)
}

// SW-07
func TestRewrittenInputIsWhatTheModelAndTheTranscriptGet(t *testing.T) {
	for name, rewriter := range map[string]hooks.Hook{
		"at InputSubmitted": onInput("polite", func(c hooks.InputContext) hooks.Result { return c.RewriteText(c.Text() + ", please") }),
		"at ExecutionStart": onStart("polite", func(c hooks.ExecutionContext) hooks.Result { return c.RewriteText(c.Text() + ", please") }),
	} {
		t.Run(name, func(t *testing.T) {
			end := play(t, agenttest.Script(agenttest.Say("hi")), []hooks.Hook{rewriter})
			require.NoError(t, end.err)
			assert.Equal(t, "user: hello, please\n", end.driver.Calls()[0].Transcript())
			assert.Equal(t, "user: hello, please\nassistant: hi\n", agenttest.Transcript(end.State))
		})
	}
}

// IP-116, SW-15: what one hook adds, the next one sees; all of it stays in order.
func TestEffectsOfInputHooksAddUp(t *testing.T) {
	mood := agent.RunKey[string]("mood")
	seen := ""
	end := play(t, agenttest.Script(agenttest.Say("hi")), []hooks.Hook{
		onInput("one", func(c hooks.InputContext) hooks.Result {
			return c.RewriteText("HELLO", agent.AddContext("it is late"), mood.Set("loud"))
		}),
		onInput("two", func(c hooks.InputContext) hooks.Result {
			seen = c.Text() + " " + mood.Or(c.State(), "?")
			return c.Allow(agent.AddMessage(agent.System("be brief")), agent.AddContext("and cold"), agent.AddContext("and wet"))
		}),
		hooks.Observe(hooks.AtExecutionEnd, "post", func(_ context.Context, c hooks.EndContext) error {
			seen += " " + mood.Or(c.State(), "?")
			return nil
		}),
	})
	require.NoError(t, end.err)
	assert.Equal(t, "HELLO loud loud", seen)
	assert.Equal(t, "user: HELLO\nuser: it is late\nsystem: be brief\nuser: and cold\n\nand wet\nassistant: hi\n", agenttest.Transcript(end.State))
	var sources []string
	for _, m := range end.Messages() {
		sources = append(sources, m.Source())
	}
	assert.Equal(t, []string{"", "one", "two", "two", ""}, sources)
}

func TestLaterRewriteWinsAndAnOrderIsKept(t *testing.T) {
	end := play(t, agenttest.Script(agenttest.Say("hi")), []hooks.Hook{
		onInput("split", func(c hooks.InputContext) hooks.Result {
			if c.Text() != "hello" { // asked again, about "ab"
				return c.Allow(agent.AddContext("note"))
			}
			return c.Rewrite([]agent.Message{agent.UserText("a"), agent.UserText("b")}, agent.AddContext("old note"))
		}),
		onInput("join", func(c hooks.InputContext) hooks.Result {
			assert.Len(t, c.Messages(), 2)
			assert.Equal(t, "a\nb", c.Text())
			return c.RewriteText("ab")
		}),
	})
	require.NoError(t, end.err)
	assert.Equal(t, "user: ab\nuser: note\nassistant: hi\n", agenttest.Transcript(end.State))
}

// A hook cannot hide from the hooks after it that a message is the user's.
func TestRewrittenInputIsStillInput(t *testing.T) {
	end := play(t, agenttest.Script(agenttest.Say("hi")), []hooks.Hook{
		onInput("disguise", func(c hooks.InputContext) hooks.Result {
			return c.Rewrite([]agent.Message{agent.UserText("secret").WithSource("system-notice")})
		}),
		onInput("guard", func(c hooks.InputContext) hooks.Result { return c.Deny("saw " + c.Text()) }),
	})
	require.NoError(t, end.err)
	assert.Equal(t, agent.StatusDenied, end.Status())
	assert.Equal(t, "saw secret", end.signal().Message)
	assert.Zero(t, end.MessageCount())
}

func TestDeniedInputIsNotKept(t *testing.T) {
	for name, guard := range map[string]hooks.Hook{
		"at InputSubmitted": onInput("guard", func(c hooks.InputContext) hooks.Result { return c.Deny("no swearing") }),
		"at ExecutionStart": onStart("guard", func(c hooks.ExecutionContext) hooks.Result { return c.Deny("no swearing") }),
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			end := play(t, agenttest.Script(), []hooks.Hook{guard,
				hooks.Observe(hooks.AtInputSubmitted, "audit", func(_ context.Context, c hooks.InputContext) error {
					told = append(told, c.Text()+": "+string(c.Frozen().Decision()))
					return nil
				}),
				hooks.Observe(hooks.AtExecutionStart, "audit-start", func(_ context.Context, c hooks.ExecutionContext) error {
					told = append(told, c.Text()+": "+string(c.Frozen().Decision()))
					return nil
				}),
			})
			require.NoError(t, end.err, "a denial is a decision, no error")
			assert.Equal(t, agent.StatusDenied, end.Status())
			assert.Equal(t, agent.Signal{Reason: agent.StopDenied, Message: "no swearing", Source: "guard"}, end.signal())
			assert.Zero(t, end.MessageCount())
			assert.Empty(t, end.driver.Calls())
			assert.Zero(t, end.count("judged"))
			assert.Contains(t, told, "hello: deny", "observers are told what was denied")
			assert.Equal(t, []string{"hook.blocked guard@" + name[len("at "):]}, end.told(hooks.HookBlocked, hooks.HookFailed))
		})
	}
}

// After a denial, the session continues without the denied input.
func TestSessionGoesOnAfterADenial(t *testing.T) {
	a := hookedAgent(t, agenttest.Script(agenttest.Say("hi"), agenttest.Say("bye")), nil, []hooks.Hook{
		onInput("guard", func(c hooks.InputContext) hooks.Result {
			if c.Text() == "bad" {
				return c.Deny("", agent.AddContext("something was denied"))
			}
			return c.Allow()
		}),
	})
	session := a.Session(agent.NewState())
	require.Equal(t, agent.StatusDone, session.Run(t.Context(), agent.UserText("good")).MustGet().Status())
	denied := session.Run(t.Context(), agent.UserText("bad")).MustGet()
	assert.Equal(t, agent.StatusDenied, denied.Status())
	assert.Equal(t, "no reason given", denied.StopSignal().Message)
	final := session.Run(t.Context(), agent.UserText("better")).MustGet()
	assert.Equal(t, "user: good\nassistant: hi\nuser: something was denied\nuser: better\nassistant: bye\n", agenttest.Transcript(final))
}

// SW-10: after a denial, no further control is asked; observers are called.
func TestFirstDenialEndsTheAsking(t *testing.T) {
	asked := false
	end := play(t, agenttest.Script(), []hooks.Hook{
		onInput("first", func(c hooks.InputContext) hooks.Result { return c.Deny("no") }),
		onInput("second", func(c hooks.InputContext) hooks.Result { asked = true; return c.Allow() }),
		onStart("start", func(c hooks.ExecutionContext) hooks.Result { asked = true; return c.Allow() }),
	})
	assert.Equal(t, agent.StatusDenied, end.Status())
	assert.False(t, asked)
}

func TestStopAtExecutionStartTakesNoStep(t *testing.T) {
	end := play(t, agenttest.Script(), []hooks.Hook{
		onStart("closed", func(c hooks.ExecutionContext) hooks.Result { return c.Stop("we are closed") }),
		onStart("later", func(c hooks.ExecutionContext) hooks.Result { return c.Deny("not asked") }),
	})
	require.NoError(t, end.err)
	assert.Equal(t, agent.StatusStopped, end.Status())
	assert.Equal(t, agent.Signal{Reason: agent.StopByHook, Message: "we are closed", Source: "closed"}, end.signal())
	assert.Zero(t, end.RunStepCount())
	assert.Equal(t, "user: hello\n", agenttest.Transcript(end.State), "stopping is no denial: what was said stays")
}

// InputSubmitted is for new user messages; ExecutionStart is for every run.
func TestRunWithoutInput(t *testing.T) {
	var points []hooks.PointName
	a := hookedAgent(t, agenttest.Script(agenttest.Say("hi")), nil, []hooks.Hook{
		hooks.ObserveAll("points", func(_ context.Context, c hooks.Context) error {
			points = append(points, c.Point())
			return nil
		}, hooks.InputSubmitted, hooks.ExecutionStart),
	})
	_, err := a.Run(t.Context(), agent.NewState(agent.System("say hi"))).Get()
	require.NoError(t, err)
	assert.Equal(t, []hooks.PointName{hooks.ExecutionStart}, points)
}

// A second turn of a conversation is a run of its own, and only what is new in it
// is input.
//
// IP-112
func TestEveryRunStartsOnceWithWhatIsNew(t *testing.T) {
	var starts []string
	var steps []int
	a := hookedAgent(t, agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Say("one"), agenttest.Say("two")), nil, []hooks.Hook{
		onStart("start", func(c hooks.ExecutionContext) hooks.Result {
			starts = append(starts, c.Text())
			steps = append(steps, c.StepIndex())
			return c.RewriteText(c.Text() + "!")
		}),
	})
	session := a.Session(agent.NewState())
	for _, text := range []string{"first", "second"} {
		_, err := session.Run(t.Context(), agent.UserText(text)).Get()
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"first", "second"}, starts)
	assert.Equal(t, []int{0, 0}, steps, "by the steps of the run, not of the session")
	assert.Equal(t, "two", session.State().Answer())
}

// A later hook that fails the run does not bring back what an earlier one took out.
func TestFailedRunKeepsTheRewrittenInput(t *testing.T) {
	redact := onInput("redact", func(c hooks.InputContext) hooks.Result { return c.RewriteText("my key is ***") })
	boom := errors.New("boom")
	for name, list := range map[string][]hooks.Hook{
		"same point": {redact, onInput("broken", func(c hooks.InputContext) hooks.Result { return c.Fail(boom) }).WithFailure(hooks.Abort)},
		"next point": {redact, onStart("broken", func(c hooks.ExecutionContext) hooks.Result { return c.Fail(boom) }).WithFailure(hooks.Abort)},
	} {
		t.Run(name, func(t *testing.T) {
			end := play(t, agenttest.Script(), list)
			require.ErrorIs(t, end.err, boom)
			assert.Equal(t, agent.StatusFailed, end.Status())
			assert.Equal(t, "user: my key is ***\n", agenttest.Transcript(end.State))
		})
	}
}

func TestRewritesThatMakeNoSenseAreFailures(t *testing.T) {
	for want, messages := range map[string][]agent.Message{
		"rewritten to no messages":              {},
		`rewritten into a message of role "sys`: {agent.System("x")},
	} {
		end := play(t, agenttest.Script(), []hooks.Hook{
			onInput("odd", func(c hooks.InputContext) hooks.Result { return c.Rewrite(messages) }),
		})
		assert.Equal(t, agent.StatusDenied, end.Status())
		assert.Contains(t, end.signal().Message, "could not decide")
		assert.Contains(t, end.signal().Message, want)
	}
}

// What was handed to a hook does not change later, and changing a copy is in vain.
func TestInputCannotBeEdited(t *testing.T) {
	var kept hooks.InputContext
	end := play(t, agenttest.Script(agenttest.Say("hi")), []hooks.Hook{
		onInput("keeps", func(c hooks.InputContext) hooks.Result {
			if c.Text() == "hello" { // else it is asked again, about the rewrite
				kept = c
			}
			c.Messages()[0] = agent.UserText("edited")
			return c.Pass()
		}),
		onInput("rewrites", func(c hooks.InputContext) hooks.Result { return c.RewriteText("rewritten") }),
	})
	require.NoError(t, end.err)
	assert.Equal(t, "hello", kept.Text())
	assert.Equal(t, "hello", kept.State().Message(0).Text())
	assert.Equal(t, "user: rewritten\nassistant: hi\n", agenttest.Transcript(end.State))
}
