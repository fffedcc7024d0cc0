package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

func atConversation(name string, f func(c hooks.ConversationContext) hooks.Result) hooks.Hook {
	return hooks.On(hooks.AtConversationStart, name, func(_ context.Context, c hooks.ConversationContext) hooks.Result { return f(c) })
}

func atClose(name string, f func(ctx context.Context, c hooks.ConversationEndContext) error) hooks.Hook {
	return hooks.Observe(hooks.AtConversationEnd, name, f)
}

// chatter returns a driver that says "hi" in every step.
func chatter() *agenttest.Driver { return agenttest.Script().Then(agenttest.Say("hi")) }

func throughText(t *testing.T, s agent.State) agent.State {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	var out agent.State
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// textsOf returns the text of each message that the model was shown in a call.
func textsOf(asked agenttest.Asking) []string {
	return lo.Map(asked.Messages, func(m agent.Message, _ int) string { return m.Text() })
}

// A conversation starts once, before the input of its first run is submitted, and what hooks add there is shown to the
// model in that run. It ends once, when it is closed.
func TestAConversationStartsAndEndsOnce(t *testing.T) {
	var points []hooks.PointName
	var about []hooks.Conversation
	see := hooks.ObserveAll("see", func(_ context.Context, c hooks.Context) error {
		points = append(points, c.Point())
		if c, ok := c.(interface{ Conversation() hooks.Conversation }); ok {
			about = append(about, c.Conversation())
		}
		return nil
	}, hooks.ConversationStart, hooks.InputSubmitted, hooks.ExecutionEnd, hooks.ConversationEnd)
	welcome := atConversation("welcome", func(c hooks.ConversationContext) hooks.Result { return c.Allow(agent.AddContext("be polite")) })
	driver, recorder := chatter(), agenttest.Record()
	session := hookedAgent(t, driver, recorder, []hooks.Hook{see, welcome}).Session(agent.NewState())
	for _, text := range []string{"one", "two"} {
		_, err := session.Run(t.Context(), agent.UserText(text)).Get()
		require.NoError(t, err)
	}
	require.NoError(t, session.CloseWith(t.Context(), "idle"))
	require.NoError(t, session.Close(t.Context()), "to close it again does nothing")

	assert.Equal(t, []hooks.PointName{
		hooks.ConversationStart, hooks.InputSubmitted, hooks.ExecutionEnd, hooks.InputSubmitted, hooks.ExecutionEnd, hooks.ConversationEnd,
	}, points)
	assert.Equal(t, []hooks.Conversation{{Source: agent.ConversationStartup}, {Reason: "idle", Turns: 2}}, about)
	require.Len(t, driver.Calls(), 2)
	assert.Equal(t, []string{"one", "be polite"}, textsOf(driver.Calls()[0]))
	assert.Equal(t, []string{"one", "be polite", "hi", "two"}, textsOf(driver.Calls()[1]))

	events := lo.Filter(agenttest.Of[hooks.Event](recorder), func(e hooks.Event, _ int) bool {
		return e.Point == hooks.ConversationStart || e.Point == hooks.ConversationEnd
	})
	require.Len(t, events, 6, "start and complete of two hooks, and of one")
	first, last := driver.Calls()[0].Run, session.State().Run()
	assert.Equal(t, first.ID, events[0].Run.ID)
	assert.Equal(t, last, events[5].Run)
	assert.Equal(t, "tester", events[5].Run.Agent)
	assert.Equal(t, hooks.HookComplete, events[5].Kind)
}

// After Close, nothing runs in the session, however it is asked for; its state stays.
func TestAClosedSession(t *testing.T) {
	session := hookedAgent(t, chatter(), nil, nil).Session(agent.NewState())
	_, err := session.Run(t.Context(), agent.UserText("one")).Get()
	require.NoError(t, err)
	require.NoError(t, session.Close(t.Context()))
	before := session.State()

	require.ErrorIs(t, session.Run(t.Context(), agent.UserText("two")).Error(), agent.ErrSessionClosed)
	require.ErrorIs(t, session.Resume(t.Context()).Error(), agent.ErrSessionClosed)
	require.ErrorIs(t, session.Approve("call_1", agent.Approval{}), agent.ErrSessionClosed)
	for _, err := range session.Steps(t.Context(), agent.UserText("two")) {
		require.ErrorIs(t, err, agent.ErrSessionClosed)
	}
	for _, err := range session.Stream(t.Context(), agent.UserText("two")) {
		require.ErrorIs(t, err, agent.ErrSessionClosed)
	}
	assert.Equal(t, before, session.State())
}

// Close refuses while a run is in progress, and leaves the session open.
func TestCloseDuringARun(t *testing.T) {
	ends := 0
	end := atClose("end", func(context.Context, hooks.ConversationEndContext) error { ends++; return nil })
	begun, finish := make(chan struct{}), make(chan struct{})
	driver := agenttest.Script(agenttest.Play(func(context.Context, agent.State) (agent.Step, error) {
		close(begun)
		<-finish
		return agent.Step{Message: agent.Assistant("hi")}, nil
	}), agenttest.Say("again"))
	session := hookedAgent(t, driver, nil, []hooks.Hook{end}).Session(agent.NewState())
	done := make(chan error)
	go func() { done <- session.Run(t.Context(), agent.UserText("one")).Error() }()
	<-begun
	require.ErrorIs(t, session.Close(t.Context()), agent.ErrSessionBusy)
	close(finish)
	require.NoError(t, <-done)
	require.NoError(t, session.Run(t.Context(), agent.UserText("two")).Error())
	assert.Zero(t, ends)
	require.NoError(t, session.Close(t.Context()))
	assert.Equal(t, 1, ends)
}

// A session that goes on from a state with runs resumes the conversation. Streams start conversations as Run does.
func TestAConversationIsResumed(t *testing.T) {
	var about []hooks.Conversation
	see := atConversation("see", func(c hooks.ConversationContext) hooks.Result {
		about = append(about, c.Conversation())
		return c.Pass()
	})
	a := hookedAgent(t, chatter(), nil, []hooks.Hook{see})
	first := a.Session(agent.NewState())
	for _, err := range first.Stream(t.Context(), agent.UserText("one")) {
		require.NoError(t, err)
	}
	for _, err := range first.Steps(t.Context(), agent.UserText("two")) {
		require.NoError(t, err)
	}
	second := a.Session(throughText(t, first.State()))
	require.NoError(t, second.Run(t.Context(), agent.UserText("three")).Error())
	assert.Equal(t, []hooks.Conversation{{Source: agent.ConversationStartup}, {Source: agent.ConversationResume, Turns: 2}}, about)
}

// A run without a session starts no conversation, and neither does the run of a sub-agent in one.
func TestOnlySessionsStartConversations(t *testing.T) {
	starts := 0
	see := atConversation("see", func(c hooks.ConversationContext) hooks.Result {
		starts++
		assert.Zero(t, c.Run().Depth)
		return c.Pass()
	})
	require.NoError(t, hookedAgent(t, chatter(), nil, []hooks.Hook{see}).Run(t.Context(), agent.NewState(), agent.UserText("hello")).Error())
	assert.Zero(t, starts)

	worker := builder.New().WithName("worker").WithDriver(chatter())
	driver := agenttest.Script(agenttest.Call("task", `{"agent":"worker","prompt":"help"}`)).Then(agenttest.Say("done"))
	a := hookedAgent(t, driver, nil, []hooks.Hook{see}, capability.UseSubagents{Agents: []capability.Subagent{{Agent: worker}}})
	session := a.Session(agent.NewState())
	final, err := session.Run(t.Context(), agent.UserText("go")).Get()
	require.NoError(t, err)
	step := final.LastStep()
	assert.Equal(t, agent.StepFinalResponse, step.Kind())
	assert.Equal(t, 2, final.RunStepCount())
	assert.Equal(t, 1, starts)
}

// While a control at ConversationStart cannot decide, no run gets further: its input is not kept, hooks behind it are not
// asked, and nothing is added. The next run asks again. A conversation that never started does not end.
func TestAConversationThatCannotStart(t *testing.T) {
	broken, inputs, ends := true, 0, 0
	list := []hooks.Hook{
		atConversation("adds", func(c hooks.ConversationContext) hooks.Result { return c.Allow(agent.AddContext("once")) }),
		atConversation("sandbox", func(c hooks.ConversationContext) hooks.Result {
			if broken {
				return c.Fail(errPaper)
			}
			return c.Pass()
		}),
		hooks.Observe(hooks.AtInputSubmitted, "input", func(context.Context, hooks.InputContext) error { inputs++; return nil }),
		atClose("end", func(context.Context, hooks.ConversationEndContext) error { ends++; return nil }),
	}
	driver, recorder := chatter(), agenttest.Record()
	a := hookedAgent(t, driver, recorder, list)
	session := a.Session(agent.NewState())
	for range 2 {
		final, err := session.Run(t.Context(), agent.UserText("my secret plan")).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.StatusDenied, final.Status())
		signal := final.StopSignal()
		assert.Equal(t, "sandbox", signal.Source)
		assert.Contains(t, signal.Message, "could not decide")
		assert.Zero(t, final.MessageCount())
	}
	assert.Empty(t, driver.Calls())
	assert.Zero(t, inputs)
	assert.Equal(t, 2, lo.Count(recorder.Names(), string(hooks.HookFailed)))

	broken = false
	require.NoError(t, session.Run(t.Context(), agent.UserText("hello")).Error())
	assert.Equal(t, []string{"hello", "once"}, textsOf(driver.Calls()[0]))
	require.NoError(t, session.Close(t.Context()))
	assert.Equal(t, 1, ends)

	broken = true
	never := a.Session(agent.NewState())
	require.NoError(t, never.Run(t.Context(), agent.UserText("hello")).Error())
	require.NoError(t, never.Close(t.Context()))
	require.NoError(t, a.Session(agent.NewState()).Close(t.Context()), "it had no run")
	assert.Equal(t, 1, ends)
}

// The other failure policies hold at ConversationStart as elsewhere, and so do panics and shadow mode.
func TestFailuresAtConversationStart(t *testing.T) {
	fail := atConversation("fails", func(c hooks.ConversationContext) hooks.Result { return c.Fail(errPaper) })
	panics := atConversation("panics", func(hooks.ConversationContext) hooks.Result { panic(errPaper) })
	for name, tc := range map[string]struct {
		hook   hooks.Hook
		status agent.Status
	}{
		"closed": {fail, agent.StatusDenied},
		"panic":  {panics, agent.StatusDenied},
		"open":   {fail.WithFailure(hooks.Open), agent.StatusDone},
		"abort":  {fail.WithFailure(hooks.Abort), agent.StatusFailed},
		"shadow": {fail.InShadow(), agent.StatusDone},
	} {
		t.Run(name, func(t *testing.T) {
			session := hookedAgent(t, chatter(), nil, []hooks.Hook{tc.hook}).Session(agent.NewState())
			err := session.Run(t.Context(), agent.UserText("hello")).Error()
			assert.Equal(t, tc.status, session.State().Status())
			_, aborted := errors.AsType[*hooks.HookError](err)
			assert.Equal(t, tc.status == agent.StatusFailed, aborted)
		})
	}
}

// A cancelled hook gives no permission: the conversation has not started, and its start is asked again.
func TestCancelledConversationStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	wait := hooks.On(hooks.AtConversationStart, "wait", func(ctx context.Context, c hooks.ConversationContext) hooks.Result {
		if asked++; asked == 1 {
			cancel()
			<-ctx.Done()
			return c.Fail(ctx.Err())
		}
		return c.Pass()
	}).WithFailure(hooks.Open)
	driver := chatter()
	session := hookedAgent(t, driver, nil, []hooks.Hook{wait}).Session(agent.NewState())
	require.ErrorIs(t, session.Run(ctx, agent.UserText("one")).Error(), context.Canceled)
	assert.Empty(t, driver.Calls())
	require.NoError(t, session.Run(t.Context(), agent.UserText("two")).Error())
	assert.Equal(t, 2, asked)
}

// A resumed run goes on where it was, and asks nothing at ConversationStart; the next new run does. The conversation ends
// with the session that resumed it.
func TestAResumedRunStartsNoConversation(t *testing.T) {
	var sources []agent.ConversationSource
	turns := 0
	list := []hooks.Hook{
		atConversation("see", func(c hooks.ConversationContext) hooks.Result {
			sources = append(sources, c.Conversation().Source)
			return c.Pass()
		}),
		hooks.On(hooks.AtPreToolUse, "asks", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("sure?") }),
		atClose("end", func(_ context.Context, c hooks.ConversationEndContext) error {
			turns = c.Conversation().Turns
			return nil
		}),
	}
	driver := agenttest.Script(agenttest.Call("echo", `{"text":"x"}`)).Then(agenttest.Say("done"))
	a := hookedAgent(t, driver, nil, list, capability.UseApproval(agent.ParkApprover))
	first := a.Session(agent.NewState())
	parked, err := first.Run(t.Context(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.True(t, parked.Parked())

	second := a.Session(throughText(t, parked))
	for _, i := range parked.Interventions() {
		require.NoError(t, second.Approve(i.ID, agent.Approval{Verdict: agent.Approve}))
	}
	final, err := second.Resume(t.Context()).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, []agent.ConversationSource{agent.ConversationStartup}, sources)

	third := a.Session(throughText(t, final))
	require.NoError(t, second.Close(t.Context()))
	assert.Equal(t, 1, turns)
	require.NoError(t, third.Run(t.Context(), agent.UserText("more")).Error())
	assert.Equal(t, []agent.ConversationSource{agent.ConversationStartup, agent.ConversationResume}, sources)
}

// Close waits for detached hooks. When its context is done, it cancels them, and returns when they have ended.
func TestCloseWaitsForDetachedHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, state := make(chan struct{}), ""
		slow := atClose("slow", func(ctx context.Context, c hooks.ConversationEndContext) error {
			assert.Equal(t, "hi", c.State().Answer())
			select {
			case <-release:
				state = "whole"
			case <-ctx.Done():
				state = "cancelled"
			}
			return ctx.Err()
		}).Detach()
		a := hookedAgent(t, chatter(), nil, []hooks.Hook{slow})
		closing := func(ctx context.Context) <-chan error {
			session := a.Session(agent.NewState())
			require.NoError(t, session.Run(t.Context(), agent.UserText("hello")).Error())
			closed := make(chan error, 1)
			go func() { closed <- session.Close(ctx) }()
			synctest.Wait()
			assert.Empty(t, closed, "the hook has not returned")
			return closed
		}
		ctx, cancel := context.WithCancel(t.Context())
		closed := closing(ctx)
		cancel()
		require.ErrorIs(t, <-closed, context.Canceled)
		assert.Equal(t, "cancelled", state)

		closed = closing(t.Context())
		close(release)
		require.NoError(t, <-closed)
		assert.Equal(t, "whole", state)
	})
}

// The failure of a hook at ConversationEnd is an event; only a policy that aborts makes it the error of Close. The session
// is closed all the same.
func TestFailuresAtConversationEnd(t *testing.T) {
	fails := atClose("fails", func(context.Context, hooks.ConversationEndContext) error { return errPaper })
	for name, hook := range map[string]hooks.Hook{"open": fails, "abort": fails.WithFailure(hooks.Abort)} {
		t.Run(name, func(t *testing.T) {
			recorder := agenttest.Record()
			session := hookedAgent(t, chatter(), recorder, []hooks.Hook{hook}).Session(agent.NewState())
			require.NoError(t, session.Run(t.Context(), agent.UserText("hello")).Error())
			err := session.Close(t.Context())
			if name == "abort" {
				require.ErrorIs(t, err, errPaper)
				assert.ErrorContains(t, err, "closing session "+string(session.ID()))
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, 1, lo.Count(recorder.Names(), string(hooks.HookFailed)))
			assert.ErrorIs(t, session.Run(t.Context(), agent.UserText("more")).Error(), agent.ErrSessionClosed)
		})
	}
}
