package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// Run, Steps and Stream end in the same state, with the same error, in all cases; only ids and
// times differ.
func TestThreeWaysToRunEndInTheSameState(t *testing.T) {
	turn := rapid.SampledFrom([]agenttest.Turn{
		agenttest.Say("hm").Call("add", `{"a":1,"b":2}`).WithTokens(10, 2).WithCost(0.1), calls("fail", "add"), calls("nothing"),
		calls("stop", "add"), agenttest.Fail(errOutOfPaper), agenttest.Say("done and done").WithTokens(1, 1),
	})
	rapid.Check(t, func(t *rapid.T) {
		a := build(t, agent.Config{
			Name: "x", Driver: agenttest.Script(rapid.SliceOfN(turn, 0, 5).Draw(t, "turns")...), Executor: tools().Executor(),
			Parallel: rapid.IntRange(0, 2).Draw(t, "parallel"),
		})
		settings := agent.RunSettings{ID: "run_1"}
		var s agent.State
		require.NoError(t, s.UnmarshalJSON([]byte(`{"version":3,"session":"ses_1"}`)))
		s = s.With(agent.System("be brief"))
		hello := agent.UserText("hello")

		want, wantErr := a.RunWith(context.Background(), settings, s, hello).Get()
		if failed, ok := errors.AsType[*agent.RunError](wantErr); ok {
			want = failed.State
		}

		var states []agent.State
		var errs []error
		for state, err := range a.StepsWith(context.Background(), settings, s, hello) {
			states, errs = append(states, state), append(errs, err)
		}
		requireEnd(t, want, wantErr, states[len(states)-1], errs[len(errs)-1])
		require.Len(t, states, want.RunStepCount()+1, "a state for each step, and the end")
		for i, state := range states[:len(states)-1] {
			require.NoError(t, errs[i])
			require.Equal(t, i+1, state.RunStepCount())
			require.Equal(t, agent.StatusRunning, state.Status())
		}

		states, errs = nil, nil
		var text strings.Builder
		for progress, err := range a.StreamWith(context.Background(), settings, s, hello) {
			if progress.Delta != nil {
				require.NoError(t, err)
				text.WriteString(progress.Delta.Text)
				continue
			}
			if _, stepped := progress.Event.(agent.StepCompleted); !stepped && !progress.Ended() {
				require.Equal(t, agent.State{}, progress.State)
				continue
			}
			states, errs = append(states, progress.State), append(errs, err)
		}
		requireEnd(t, want, wantErr, states[len(states)-1], errs[len(errs)-1])
		require.Len(t, states, want.RunStepCount()+1, "a state for each step, and the end")
		var said strings.Builder
		for _, step := range want.RunSteps() {
			said.WriteString(step.Message().Text())
		}
		require.Equal(t, said.String(), text.String(), "the pieces are the whole")
	})
}

func requireEnd(t tester, want agent.State, wantErr error, got agent.State, gotErr error) {
	t.Helper()
	require.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(gotErr))
	require.Equal(t, want.Status(), got.Status())
	require.Equal(t, want.StopSignal(), got.StopSignal())
	require.Equal(t, texts(want), texts(got))
	require.Equal(t, answers(want), answers(got))
	require.Equal(t, want.Usage(), got.Usage())
	require.Equal(t, want.RunFailures(), got.RunFailures())
	require.Equal(t, withoutClock(want.Run()), withoutClock(got.Run()))
	require.Equal(t, kinds(want), kinds(got))
}

// Leaving Steps or Stream early cancels the run; goleak checks that no goroutine remains.
func TestWhoLeavesEarlyCancelsTheRun(t *testing.T) {
	for name, leave := range map[string]func(a *agent.Agent, ctx context.Context){
		"Steps": func(a *agent.Agent, ctx context.Context) {
			for s, err := range a.Steps(ctx, agent.NewState(), agent.UserText("hello")) {
				assert.NoError(t, err)
				assert.Equal(t, 1, s.RunStepCount())
				return
			}
		},
		"Stream, after a step": func(a *agent.Agent, ctx context.Context) {
			for progress, err := range a.Stream(ctx, agent.NewState(), agent.UserText("hello")) {
				assert.NoError(t, err)
				if _, stepped := progress.Event.(agent.StepCompleted); stepped {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			driver := agenttest.Script(calls("add", "add"), agenttest.Say("never said"))
			events := agenttest.Record()
			leave(build(t, agent.Config{Driver: driver, Executor: tools().Executor(), Observer: events, Parallel: 2}), t.Context())
			assert.Len(t, driver.Calls(), 1)
			ended := agenttest.Of[agent.RunCompleted](events)
			require.Len(t, ended, 1)
			assert.Equal(t, agent.StatusCancelled, ended[0].State.Status())
			assert.Equal(t, "the caller ended the run early", signalOf(t, ended[0].State).Message)
			assert.Len(t, answers(ended[0].State), 2)
		})
	}
	t.Run("Stream, in a reply", func(t *testing.T) {
		var streamed []string
		driver := agenttest.Script(agenttest.Say("one two three").Call("add", `{}`))
		events := agenttest.Record()
		a := build(t, agent.Config{Driver: driver, Executor: tools().Executor(), Observer: events})
		for progress, err := range a.Stream(t.Context(), agent.NewState(), agent.UserText("hello")) {
			require.NoError(t, err)
			if progress.Delta == nil {
				continue
			}
			streamed = append(streamed, progress.Delta.Text)
			if len(streamed) == 2 {
				break
			}
		}
		assert.Equal(t, []string{"one ", "two "}, streamed)
		ended := agenttest.Of[agent.RunCompleted](events)
		require.Len(t, ended, 1)
		assert.Equal(t, agent.StatusCancelled, ended[0].State.Status())
		assert.Zero(t, ended[0].State.RunStepCount(), "a reply that was cut off is no step")
	})
	t.Run("Stream, of a driver that does not care", func(t *testing.T) {
		stubborn := agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
			return agent.Step{Message: agent.Assistant("one", agent.ToolCall{ID: "1", Name: "add"})}, nil
		})
		events := agenttest.Record()
		inner := tools().Executor()
		a := build(t, agent.Config{Driver: stubborn, Executor: inner, Observer: events})
		for progress, err := range a.Stream(t.Context(), agent.NewState(), agent.UserText("hello")) {
			require.NoError(t, err)
			if progress.Delta != nil {
				break
			}
		}
		ended := agenttest.Of[agent.RunCompleted](events)
		require.Len(t, ended, 1)
		assert.Equal(t, agent.StatusCancelled, ended[0].State.Status())
		assert.Equal(t, []string{"1 not_executed cancelled"}, answers(ended[0].State))
		assert.Empty(t, inner.Calls())
	})
}

// A stream yields events in order, and ends once.
func TestAStreamTellsWhatHappens(t *testing.T) {
	driver := agenttest.Script(agenttest.Say("hm").Call("add", `{"a":1,"b":2}`).Call("nothing", `{}`), agenttest.Say("done"))
	told := func(a *agent.Agent) (out []string) {
		for progress, err := range a.Stream(t.Context(), agent.NewState(), agent.UserText("hello")) {
			switch e := progress.Event.(type) {
			case nil:
				if text := progress.Delta.Text; text != "" {
					out = append(out, text)
				}
			case agent.ToolCallStarted:
				out = append(out, fmt.Sprint(e.EventName(), " ", e.Call.Name, " ", e.Runs))
			case agent.ToolCallCompleted:
				out = append(out, fmt.Sprint(e.EventName(), " ", e.Result.Text()))
			case agent.RunCompleted:
				out = append(out, fmt.Sprint(e.EventName(), " ", e.State.Status(), " ", e.Err, " ", err, " ", progress.Ended()))
			case agent.RunParked:
				out = append(out, fmt.Sprint(e.EventName(), " ", progress.Ended()))
			case agent.ApprovalRequested:
				out = append(out, e.EventName()+" "+e.Call.Name)
			default:
				out = append(out, e.EventName())
			}
		}
		return out
	}
	want := []string{
		"run.started", "judged", "step.started", "hm", "tool_call.started add true", "tool_call.completed 3",
		"tool_call.started nothing false", `tool_call.completed unknown tool "nothing"`, "step.completed",
		"judged", "step.started", "done", "step.completed", "judged", "run.completed done <nil> <nil> true",
	}
	assert.Equal(t, want, told(build(t, agent.Config{Driver: driver, Executor: tools().Executor()})))
	observed := agent.Config{Driver: driver, Executor: tools().Executor(), Observer: agenttest.Record()}
	assert.Equal(t, want, told(build(t, observed)), "an observer changes nothing")

	asks := executor{prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
		return &agent.Prepared{Original: c, Call: c, Disposition: agent.DisposeAsk}, nil
	}}
	parking := build(t, agent.Config{Driver: agenttest.Script(calls("pay")), Executor: asks, Approver: agent.ParkApprover})
	assert.Equal(t, []string{"run.started", "judged", "step.started", "approval.requested pay", "run.parked true"}, told(parking))
	alone := build(t, agent.Config{Driver: agenttest.Script(calls("pay"), agenttest.Say("no")), Executor: asks})
	assert.NotContains(t, told(alone), "approval.requested pay", "there is no one to ask")
	failing := told(build(t, agent.Config{Driver: agenttest.Script(agenttest.Fail(errOutOfPaper))}))
	assert.True(t, strings.HasPrefix(failing[len(failing)-1], "run.completed failed"), failing)
	assert.True(t, strings.HasSuffix(failing[len(failing)-1], " true"), failing)
}

// Events of parallel calls are yielded while the calls run, and never two at the same time.
func TestAStreamOfParallelCalls(t *testing.T) {
	begun := make(chan struct{}, 3)
	waits := executor{execute: func(ctx context.Context, s agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
		<-begun // until the loop has seen that all began
		return &agent.ToolResult{Content: agent.TextContent(p.Call.Name)}, nil
	}}
	a := build(t, agent.Config{Driver: agenttest.Script(calls("a", "b", "c"), agenttest.Say("done")), Executor: waits, Parallel: 3})
	started, within := 0, false
	for progress, err := range a.Stream(t.Context(), agent.NewState(), agent.UserText("hello")) {
		require.NoError(t, err)
		require.False(t, within)
		within = true //nolint:ineffassign // read if the loop is entered again before its end
		if _, ok := progress.Event.(agent.ToolCallStarted); ok {
			if started++; started == 3 {
				for range 3 {
					begun <- struct{}{}
				}
			}
		}
		within = false
	}
	assert.Equal(t, 3, started)
}

// A consumer that leaves at any event stops the run; goleak checks that no goroutine remains.
func TestAStreamMayBeLeftAnywhere(t *testing.T) {
	for n := 1; ; n++ {
		events := agenttest.Record()
		a := build(t, agent.Config{
			Driver: agenttest.Script(calls("add", "add", "fail"), agenttest.Say("one two")), Executor: tools().Executor(), Parallel: 2, Observer: events,
		})
		seen, ended, judged := 0, false, false
		for progress := range a.Stream(t.Context(), agent.NewState(), agent.UserText("hello")) { //nolint:errcheck // the end says it
			if ended = progress.Ended(); ended {
				continue
			}
			if seen++; seen == n {
				last, ok := progress.Event.(agent.Judged)
				judged = ok && last.Evaluation.Stops()
				break
			}
		}
		over := agenttest.Of[agent.RunCompleted](events)
		require.Len(t, over, 1, "the run has ended when the loop has")
		if ended {
			assert.Greater(t, n, 12)
			return
		}
		assert.Equal(t, lo.Ternary(judged, agent.StatusDone, agent.StatusCancelled), over[0].State.Status(), "left at %d", n)
	}
}

// A run's panic reaches the loop's goroutine, and a panic in the loop ends the run.
func TestAStreamThatPanics(t *testing.T) {
	events := agenttest.Record()
	a := build(t, agent.Config{Driver: agenttest.Script(agenttest.Say("one two")), Observer: events})
	assert.PanicsWithValue(t, "mine", func() {
		for progress := range a.Stream(t.Context(), agent.NewState(), agent.UserText("hello")) { //nolint:errcheck // the end says it
			if progress.Delta != nil {
				panic("mine")
			}
		}
	})
	assert.Len(t, agenttest.Of[agent.RunCompleted](events), 1)
	a = build(t, agent.Config{Driver: agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) { panic("its own") })})
	assert.PanicsWithValue(t, "its own", func() {
		for range a.Stream(t.Context(), agent.NewState(), agent.UserText("hello")) { //nolint:errcheck // the end says it
		}
	})
}

func TestAPanicOfTheListenerIsItsOwn(t *testing.T) {
	session := build(t, agent.Config{Driver: agenttest.Script(agenttest.Say("hi"), agenttest.Say("ho"))}).Session(agent.NewState())
	assert.PanicsWithValue(t, "mine", func() {
		for _, err := range session.Steps(t.Context(), agent.UserText("hello")) {
			assert.NoError(t, err)
			panic("mine")
		}
	})
	_, err := session.Run(t.Context(), agent.UserText("hello")).Get()
	require.NoError(t, err, "the session is not busy for ever")
}

// The last yielded item is the end, with the error.
func TestTheEndIsYieldedWithItsError(t *testing.T) {
	a := build(t, agent.Config{Driver: agenttest.Script(agenttest.Say("one").Call("add", `{}`), agenttest.Fail(errOutOfPaper)), Executor: tools().Executor()})
	var got []string
	for s, err := range a.Steps(t.Context(), agent.NewState(), agent.UserText("hello")) {
		got = append(got, fmt.Sprintf("%d %s %v", s.RunStepCount(), s.Status(), errors.Is(err, errOutOfPaper)))
	}
	assert.Equal(t, []string{"1 running false", "2 running false", "2 failed true"}, got)
}

// Stream passes through the wrappers around the driver, like Next.
func TestWrappersStayStreamers(t *testing.T) {
	a := build(t, agent.Config{
		Driver:     agenttest.Script(agenttest.Say("one two")),
		WrapDriver: []func(agent.Driver) agent.Driver{func(d agent.Driver) agent.Driver { return shouting{d} }},
	})
	var pieces []string
	for progress, err := range a.Stream(t.Context(), agent.NewState(), agent.UserText("hello")) {
		require.NoError(t, err)
		if progress.Delta != nil {
			pieces = append(pieces, progress.Delta.Text)
		}
	}
	assert.Equal(t, []string{"ONE ", "TWO"}, pieces)
}

type shouting struct{ agent.Driver }

func (d shouting) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	return agent.Stream(ctx, d.Driver, s, func(delta agent.Delta) {
		delta.Text = strings.ToUpper(delta.Text)
		emit(delta)
	})
}

func TestEmitWholeTellsOfEverything(t *testing.T) {
	message := agent.AssistantContent(agent.ContentOf(
		agent.Reasoning("hm", "sig"), agent.Reasoning("", "only opaque"), agent.Text("so"), agent.ImageURL("https://example.com"),
	), agent.ToolCall{ID: "1", Name: "a", Arguments: `{}`}, agent.ToolCall{ID: "2", Name: "b"})
	var got []agent.Delta
	agent.EmitWhole(agent.Step{Message: message}, func(d agent.Delta) { got = append(got, d) })
	assert.Equal(t, []agent.Delta{
		{Reasoning: "hm"}, {Text: "so"}, {Call: message.Call(0)}, {Call: message.Call(1), CallIndex: 1},
	}, got)
}

func ExampleAgent_Stream() {
	a := agent.New(agent.Config{
		Driver:   agenttest.Script(agenttest.Say("let me see").Call("add", `{"a":1,"b":2}`), agenttest.Say("it is three")),
		Executor: tools().Executor(),
	}).MustGet()
	for progress, err := range a.Stream(context.Background(), agent.NewState(), agent.UserText("1+2?")) {
		if progress.Delta != nil {
			fmt.Print(progress.Delta.Text)
		}
		switch e := progress.Event.(type) {
		case agent.ToolCallStarted:
			fmt.Printf("\n> %s %s", e.Call.Name, e.Call.Arguments)
		case agent.ToolCallCompleted:
			fmt.Println(" =", e.Result.Text())
		case agent.RunCompleted: // the last thing
			fmt.Printf("\n%s after %d steps, error %v\n", progress.State.Status(), progress.State.RunStepCount(), err)
		}
	}
	// Output:
	// let me see
	// > add {"a":1,"b":2} = 3
	// it is three
	// done after 2 steps, error <nil>
}

func ExampleAgent_Steps() {
	a := agent.New(agent.Config{
		Driver:   agenttest.Script(agenttest.Call("add", `{"a":1,"b":2}`), agenttest.Say("three")),
		Executor: tools().Executor(),
	}).MustGet()
	for s, err := range a.Steps(context.Background(), agent.NewState(), agent.UserText("1+2?")) {
		last := s.LastMessage()
		fmt.Println(s.RunStepCount(), s.Status(), lo.Ellipsis(last.Text(), 20), err)
	}
	// Output:
	// 1 running 3 <nil>
	// 2 running three <nil>
	// 2 done three <nil>
}
