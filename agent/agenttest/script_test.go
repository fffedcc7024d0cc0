package agenttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

func add(_ context.Context, c agent.ToolCall) (string, error) {
	var in struct{ A, B int }
	err := json.Unmarshal([]byte(c.Arguments), &in)
	return fmt.Sprint(in.A + in.B), err
}

func build(t *testing.T, c agent.Config) *agent.Agent {
	t.Helper()
	a, err := agent.New(c).Get()
	require.NoError(t, err)
	return a
}

func ExampleScript() {
	driver := agenttest.Script(
		agenttest.Call("add", `{"a":1,"b":2}`).Call("add", `{"a":3,"b":4}`).WithTokens(100, 20).WithCost(0.002),
		agenttest.Say("3 and 7").WithTokens(150, 5).WithCost(0.001),
	)
	tools := agenttest.Tools{"add": add}.Executor()
	a := agent.New(agent.Config{Driver: driver, Executor: tools}).MustGet()

	final := a.Run(context.Background(), agent.NewState(), agent.UserText("1+2 and 3+4?")).MustGet()
	fmt.Print(agenttest.Transcript(final))
	fmt.Println(final.Usage().Tokens(), "tokens,", len(tools.Calls()), "calls,", len(driver.Calls()), "askings")
	// Output:
	// user: 1+2 and 3+4?
	// assistant calls add {"a":1,"b":2}
	// assistant calls add {"a":3,"b":4}
	// tool add (executed): 3
	// tool add (executed): 7
	// assistant: 3 and 7
	// 275 tokens, 2 calls, 2 askings
}

func ExampleRecord() {
	events := agenttest.Record()
	a := agent.New(agent.Config{Driver: agenttest.Script(agenttest.Say("hi")), Observer: events}).MustGet()
	a.Run(context.Background(), agent.NewState(), agent.UserText("hello"))
	fmt.Println(strings.Join(events.Names(), "\n"))
	fmt.Println(agenttest.Of[agent.RunCompleted](events)[0].State.Status())
	// Output:
	// run.started
	// judged
	// step.started
	// inference.started
	// inference.completed
	// step.completed
	// judged
	// run.completed
	// done
}

func TestScriptSaysThatItIsExhausted(t *testing.T) {
	a := build(t, agent.Config{Driver: agenttest.Script(agenttest.Call("add", `{}`)), Executor: agenttest.Tools{"add": add}.Executor()})
	_, err := a.RunWith(t.Context(), agent.RunSettings{ID: "run_1"}, agent.NewState(agent.UserText("hi"))).Get()
	require.ErrorIs(t, err, agenttest.ErrExhausted)
	assert.ErrorContains(t, err, `it has 1 turns, and run "run_1" asks for turn 2: add turns, or a last one with Then`)
}

func TestThenGoesOnForEver(t *testing.T) {
	driver := agenttest.Script(agenttest.Say("first")).Then(agenttest.Say("again"))
	session := build(t, agent.Config{Driver: driver}).Session(agent.NewState())
	for _, want := range []string{"first", "again", "again"} {
		final, err := session.Run(t.Context(), agent.UserText("hi")).Get()
		require.NoError(t, err)
		assert.Equal(t, want, final.Answer())
	}
}

func TestScriptGoesOnWithItsSession(t *testing.T) {
	driver := agenttest.Script(agenttest.Say("one"), agenttest.Say("two"))
	a := build(t, agent.Config{Driver: driver})
	for range 2 { // two sessions, one driver
		session := a.Session(agent.NewState())
		for _, want := range []string{"one", "two"} {
			final, err := session.Run(t.Context(), agent.UserText("hi")).Get()
			require.NoError(t, err)
			assert.Equal(t, want, final.Answer())
		}
	}
}

func TestEachRunStartsTheScriptAgain(t *testing.T) {
	session := build(t, agent.Config{Driver: agenttest.Script(agenttest.Say("one"), agenttest.Say("two")).EachRun()}).
		Session(agent.NewState())
	for range 2 {
		final, err := session.Run(t.Context(), agent.UserText("hi")).Get()
		require.NoError(t, err)
		assert.Equal(t, "one", final.Answer())
	}
}

func TestOneScriptServesManyRunsAtOnce(t *testing.T) {
	driver := agenttest.Script(agenttest.Call("add", `{"a":1,"b":1}`), agenttest.Say("two"))
	tools := agenttest.Tools{"add": add}.Executor()
	a := build(t, agent.Config{Driver: driver, Executor: tools})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			final, err := a.Run(t.Context(), agent.NewState(agent.UserText("1+1?"))).Get()
			if assert.NoError(t, err) {
				assert.Equal(t, "two", final.Answer())
			}
		})
	}
	wg.Wait()
	assert.Len(t, driver.Calls(), 40)
	assert.Len(t, tools.Calls(), 20)
}

func TestAskedIsWhatTheModelWasShown(t *testing.T) {
	request := agent.Request{Model: "m1", Instructions: "be brief", Tools: agenttest.Tools{"add": add}.Specs()}
	driver := agenttest.Script(agenttest.Call("add", `{"a":1,"b":1}`), agenttest.Say("two"))
	a := build(t, agent.Config{Driver: driver, Executor: agenttest.Tools{"add": add}.Executor(), Request: request})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("1+1?"))).Get()
	require.NoError(t, err)

	asked := driver.Calls()
	require.Len(t, asked, 2)
	assert.Equal(t, "user: 1+1?\n", asked[0].Transcript())
	assert.Equal(t, "user: 1+1?\nassistant calls add {\"a\":1,\"b\":1}\ntool add (executed): 2\n", asked[1].Transcript())
	for i, asking := range asked {
		assert.Equal(t, request, asking.Request)
		assert.Equal(t, final.Run(), asking.Run)
		assert.Equal(t, i, asking.Step)
	}
	assert.NotEqual(t, asked[0].Inference, asked[1].Inference)
}

func TestTriesGoDifferentlyWhenAskedAgain(t *testing.T) {
	overloaded := errors.New("overloaded")
	driver := agenttest.Script(agenttest.Tries(agenttest.Fail(overloaded), agenttest.Fail(overloaded), agenttest.Say("at last")))
	retrying := func(inner agent.Driver) agent.Driver {
		return agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
			for {
				if step, err := inner.Next(ctx, s).Get(); !errors.Is(err, overloaded) {
					return step, err
				}
			}
		})
	}
	a := build(t, agent.Config{Driver: driver, WrapDriver: []func(agent.Driver) agent.Driver{retrying}})
	for range 2 { // each run has its own tries
		final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hi"))).Get()
		require.NoError(t, err)
		assert.Equal(t, "at last", final.Answer())
	}
	assert.Len(t, driver.Calls(), 6)
}

func TestTurns(t *testing.T) {
	usage := agent.Usage{InputTokens: 3, Cost: mo.Some(0.5)}
	for name, tc := range map[string]struct {
		turn   agenttest.Turn
		text   string
		calls  []agent.ToolCall
		finish agent.FinishReason
		usage  agent.Usage
	}{
		"the zero turn": {turn: agenttest.Turn{}, finish: agent.FinishStop},
		"text":          {turn: agenttest.Say("hi"), text: "hi", finish: agent.FinishStop},
		"a call": {
			turn: agenttest.Call("a", `{}`), finish: agent.FinishToolCalls,
			calls: []agent.ToolCall{{ID: "call_1_1", Name: "a", Arguments: `{}`}},
		},
		"text and two calls": {
			turn: agenttest.Say("hm").Call("a", `{}`).Call("b", `{"x":1}`), text: "hm", finish: agent.FinishToolCalls,
			calls: []agent.ToolCall{
				{ID: "call_1_1", Name: "a", Arguments: `{}`}, {ID: "call_1_2", Name: "b", Arguments: `{"x":1}`, Index: 1},
			},
		},
		"usage": {turn: agenttest.Say("").WithUsage(usage), finish: agent.FinishStop, usage: usage},
		"tokens and cost": {
			turn: agenttest.Say("").WithTokens(1, 2).WithCost(0.25), finish: agent.FinishStop,
			usage: agent.Usage{InputTokens: 1, OutputTokens: 2, Cost: mo.Some(0.25)},
		},
		"finish": {turn: agenttest.Say("and").WithFinish(agent.FinishLength), text: "and", finish: agent.FinishLength},
		"reply": {
			turn: agenttest.Reply(agent.Step{Message: agent.Assistant("x", agent.ToolCall{ID: "mine", Name: "a"})}),
			text: "x", calls: []agent.ToolCall{{ID: "mine", Name: "a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			step, err := agenttest.Script(tc.turn).Next(t.Context(), agent.NewState()).Get()
			require.NoError(t, err)
			var calls []agent.ToolCall
			for _, c := range step.Message.Calls() {
				calls = append(calls, c)
			}
			assert.Equal(t, agent.RoleAssistant, step.Message.Role())
			assert.Equal(t, tc.text, step.Message.Text())
			assert.Equal(t, tc.calls, calls)
			assert.Equal(t, tc.finish, step.FinishReason)
			assert.Equal(t, tc.usage, step.Usage)
		})
	}
}

func TestTurnsDoNotShareTheirCalls(t *testing.T) {
	base := agenttest.Call("a", `{}`)
	left, right := base.Call("left", `{}`), base.Call("right", `{}`)
	for turn, want := range map[string]agenttest.Turn{"left": left, "right": right} {
		step := agenttest.Script(want).Next(t.Context(), agent.NewState()).MustGet()
		assert.Equal(t, turn, step.Message.Call(1).Name)
	}
}

func TestHangEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone home")
	driver := agenttest.Script(agenttest.Hang())
	cancel(gone)
	_, err := driver.Next(ctx, agent.NewState()).Get()
	require.ErrorIs(t, err, gone)

	ctx, cancel = context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		_, err := driver.Next(ctx, agent.NewState()).Get()
		done <- err
	}()
	cancel(gone)
	require.ErrorIs(t, <-done, gone)
}

func TestStreamStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var got []string
	_, err := agenttest.Script(agenttest.Say("one two three")).Stream(ctx, agent.NewState(), func(d agent.Delta) {
		got = append(got, d.Text)
		cancel()
	}).Get()
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []string{"one "}, got)
}

func TestToolsAnswerForErrorsPanicsAndStops(t *testing.T) {
	paper := errors.New("out of paper")
	signal := agent.Signal{Reason: agent.StopByHook, Message: "enough", Source: "stop"}
	tools := agenttest.Tools{
		"fails":  func(context.Context, agent.ToolCall) (string, error) { return "unread", paper },
		"panics": func(context.Context, agent.ToolCall) (string, error) { panic("no ink") },
		"stops":  func(context.Context, agent.ToolCall) (string, error) { return "", &agent.SignalError{Signal: signal} },
	}.Executor()
	execute := func(name string) (*agent.ToolResult, error) {
		c := agent.ToolCall{ID: "1", Name: name}
		return tools.Execute(t.Context(), agent.State{}, tools.Prepare(t.Context(), agent.State{}, &c).MustGet()).Get()
	}

	r, err := execute("fails")
	require.NoError(t, err)
	assert.Equal(t, agent.ToolFailed, r.Status)
	assert.Equal(t, agent.ReasonError, r.Reason)
	assert.Equal(t, "out of paper", r.Text())
	require.ErrorIs(t, r.Err, paper)

	r, err = execute("panics")
	require.NoError(t, err)
	assert.Equal(t, agent.ReasonPanic, r.Reason)
	assert.Equal(t, `tool "panics": panic: no ink`, r.Text())

	_, err = execute("stops")
	stop, ok := errors.AsType[*agent.SignalError](err)
	require.True(t, ok)
	assert.Equal(t, signal, stop.Signal)

	r, err = execute("unknown")
	require.NoError(t, err)
	assert.Equal(t, agent.ReasonUnknownTool, r.Reason)

	c := &agent.ToolCall{ID: "1", Name: "fails"}
	_, err = tools.Execute(t.Context(), agent.State{}, &agent.Prepared{Original: c, Call: c, Disposition: agent.DisposeAsk}).Get()
	require.ErrorContains(t, err, `tool "fails": execute: the call neither runs nor has an answer`)
	_, err = tools.Execute(t.Context(), agent.State{}, &agent.Prepared{}).Get()
	require.ErrorContains(t, err, "the prepared call has no Call or no Original")
}
