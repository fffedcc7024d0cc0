package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// Results are in the order of the calls, in whatever order the tools end.
func TestParallelCallsAreAnsweredInOrder(t *testing.T) {
	const n = 4
	ended := make([]chan struct{}, n+1) // the last call ends first
	for i := range ended {
		ended[i] = make(chan struct{})
	}
	close(ended[n])
	run := executor{execute: func(_ context.Context, s agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
		i := p.Call.Index
		<-ended[i+1]
		defer close(ended[i])
		return &agent.ToolResult{
			Content: agent.TextContent(fmt.Sprintf("%d of %d messages", i, s.MessageCount())),
			Effects: agent.EffectsOf(agent.AddMessage(agent.UserText(fmt.Sprintf("effect %d", i)))),
		}, nil
	}}
	a := build(t, agent.Config{
		Driver: agenttest.Script(calls("a", "b", "c", "d"), agenttest.Say("done")), Executor: run, Parallel: n,
	})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{
		"hello", "", "0 of 1 messages", "1 of 1 messages", "2 of 1 messages", "3 of 1 messages", // all see the same state
		"effect 0", "effect 1", "effect 2", "effect 3", "done",
	}, texts(final))
	for i, tool := range []string{"a", "b", "c", "d"} {
		assert.Equal(t, "tool:"+tool, final.Message(6+i).Source(), "what a tool says in the user's role is not the user's")
	}
}

// Exactly Parallel calls run at the same time while there is work.
func TestParallelIsTheWidth(t *testing.T) {
	const n, width = 9, 3
	var mu sync.Mutex
	begun, running, most := 0, 0, 0
	meeting := make(chan struct{}) // three have to meet before they go on
	run := executor{execute: func(context.Context, agent.State, *agent.Prepared) (*agent.ToolResult, error) {
		mu.Lock()
		begun++
		running++
		most = max(most, running)
		last := begun%width == 0
		mu.Unlock()
		if last {
			for range width - 1 {
				meeting <- struct{}{}
			}
		} else {
			<-meeting
		}
		mu.Lock()
		running--
		mu.Unlock()
		return &agent.ToolResult{}, nil
	}}
	a := build(t, agent.Config{
		Driver:   agenttest.Script(calls(slices.Repeat([]string{"a"}, n)...), agenttest.Say("done")),
		Executor: run, Parallel: width,
	})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Len(t, answers(final), n)
	assert.Equal(t, width, most)
}

func TestWithoutParallelCallsRunOneByOneWhereTheRunIs(t *testing.T) {
	var order []int // the race detector sees a second goroutine
	run := executor{execute: func(_ context.Context, _ agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
		order = append(order, p.Call.Index)
		return &agent.ToolResult{}, nil
	}}
	a := build(t, agent.Config{Driver: agenttest.Script(calls("a", "b", "c"), agenttest.Say("done")), Executor: run})
	_, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, []int{0, 1, 2}, order)
}

// All calls are prepared, in order, before the first is executed.
func TestEveryCallIsPreparedBeforeAnyRuns(t *testing.T) {
	var log []string
	both := executor{
		prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
			log = append(log, "prepare "+c.Name)
			return &agent.Prepared{Original: c, Call: c}, nil
		},
		execute: func(_ context.Context, _ agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
			log = append(log, "execute "+p.Call.Name)
			return &agent.ToolResult{}, nil
		},
	}
	a := build(t, agent.Config{Driver: agenttest.Script(calls("a", "b"), agenttest.Say("done")), Executor: both})
	_, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"prepare a", "prepare b", "execute a", "execute b"}, log)
}

func TestCallsWithoutAnIDOfTheirOwnGetOne(t *testing.T) {
	for name, tc := range map[string]struct{ given, want []string }{
		"all different":       {[]string{"a", "b"}, []string{"a", "b"}},
		"none":                {[]string{"", ""}, []string{"call_0_0", "call_0_1"}},
		"one twice":           {[]string{"a", "a", "b"}, []string{"a", "call_0_1", "b"}},
		"one that we give":    {[]string{"", "call_0_0"}, []string{"call_0_0_1", "call_0_0"}},
		"one that we give, 2": {[]string{"call_0_1", "", "call_0_1_1"}, []string{"call_0_1", "call_0_1_2", "call_0_1_1"}},
	} {
		t.Run(name, func(t *testing.T) {
			wish := lo.Map(tc.given, func(id string, _ int) agent.ToolCall { return agent.ToolCall{ID: id, Name: "add"} })
			driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
				if s.RunStepCount() > 0 {
					return agent.Step{Message: agent.Assistant("done")}, nil
				}
				return agent.Step{Message: agent.Assistant("", wish...)}, nil
			})
			a := build(t, agent.Config{Driver: driver, Executor: executor{}})
			final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
			require.NoError(t, err)
			var asked, answered []string
			for _, c := range final.Message(1).Calls() {
				asked = append(asked, c.ID)
			}
			for _, m := range final.MessagesFrom(2) {
				if m.Role() == agent.RoleTool {
					answered = append(answered, m.CallID())
				}
			}
			assert.Equal(t, tc.want, asked)
			assert.Equal(t, tc.want, answered)
		})
	}
}

// If preparing fails, no call of the batch runs, and every call is answered.
func TestAPrepareThatFailsRunsNothing(t *testing.T) {
	ran := false
	both := executor{
		prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
			switch c.Name {
			case "deny":
				return denied(c), nil
			case "mock":
				return mocked(c), nil
			case "break":
				return nil, errOutOfPaper
			}
			return &agent.Prepared{Original: c, Call: c}, nil
		},
		execute: func(context.Context, agent.State, *agent.Prepared) (*agent.ToolResult, error) {
			ran = true
			return &agent.ToolResult{}, nil
		},
	}
	a := build(t, agent.Config{Driver: agenttest.Script(calls("a", "deny", "mock", "break", "b")), Executor: both, Parallel: 2})
	failed := runError(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello"))))
	require.ErrorIs(t, failed, errOutOfPaper)
	require.ErrorContains(t, failed, `tool "break": preparing call call_1_4: `)
	assert.False(t, ran)
	assert.Equal(t, []string{
		"call_1_1 not_executed run_stopped", "call_1_2 not_executed denied", "call_1_3 not_executed run_stopped",
		"call_1_4 not_executed run_stopped", "call_1_5 not_executed run_stopped",
	}, answers(failed.State))
	assert.Equal(t, "not executed: the run failed", failed.State.Message(2).Text())
}

func denied(c *agent.ToolCall) *agent.Prepared {
	return &agent.Prepared{
		Original: c, Call: c, Disposition: agent.DisposeAnswer,
		Answer: agent.NotExecuted(c, agent.ReasonDenied, "guard", "denied by guard: no"),
	}
}

func mocked(c *agent.ToolCall) *agent.Prepared {
	return &agent.Prepared{
		Original: c, Call: c, Disposition: agent.DisposeAnswer,
		Answer: &agent.ToolResult{Status: agent.ToolMocked, Content: agent.TextContent("mock"), DecidedBy: "mocker"},
	}
}

// If preparing stops the run, no call of the batch runs, including earlier ones. Denied
// calls keep their own reason.
func TestAPrepareThatStopsRunsNothing(t *testing.T) {
	ran := false
	both := executor{
		prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
			switch c.Name {
			case "deny":
				return denied(c), nil
			case "stop":
				return &agent.Prepared{Original: c, Call: c, Disposition: agent.DisposeStop, Stop: &stopSignal}, nil
			}
			return &agent.Prepared{Original: c, Call: c}, nil
		},
		execute: func(context.Context, agent.State, *agent.Prepared) (*agent.ToolResult, error) {
			ran = true
			return &agent.ToolResult{}, nil
		},
	}
	driver := agenttest.Script(calls("a", "deny", "stop", "b"))
	a := build(t, agent.Config{Driver: driver, Executor: both})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.False(t, ran)
	assert.Equal(t, agent.StatusStopped, final.Status())
	assert.Equal(t, stopSignal, signalOf(t, final))
	assert.Equal(t, []string{
		"call_1_1 not_executed run_stopped", "call_1_2 not_executed denied",
		"call_1_3 not_executed run_stopped", "call_1_4 not_executed run_stopped",
	}, answers(final))
	assert.Equal(t, "not executed: run stopped by stop: enough", final.Message(2).Text())
	assert.Equal(t, "denied by guard: no", final.Message(3).Text())
	assert.Len(t, driver.Calls(), 1, "the driver is not asked once a stop was signalled") // IP-75
}

// IP-76: a stop that comes as an error of a tool, an executor, a driver, a
// processor or a criterion is a stop, with its message, details and source.
func TestAStopMayTravelAsAnError(t *testing.T) {
	stop := &agent.SignalError{Signal: stopSignal}
	driver := agenttest.Script(calls("a", "b"), agenttest.Say("done"))
	for name, tc := range map[string]struct {
		config  agent.Config
		answers []string
		steps   int
	}{
		"of a tool": {agent.Config{Driver: driver, Executor: executor{
			execute: func(_ context.Context, _ agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
				if p.Call.Name == "a" {
					return nil, fmt.Errorf("tool a: %w", stop)
				}
				return &agent.ToolResult{}, nil
			},
		}}, []string{"call_1_1 failed run_stopped", "call_1_2 executed "}, 1},
		"of what decides": {agent.Config{Driver: driver, Executor: executor{
			prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) { return nil, stop },
		}}, []string{"call_1_1 not_executed run_stopped", "call_1_2 not_executed run_stopped"}, 1},
		"of a driver":                  {agent.Config{Driver: agenttest.Script(agenttest.Fail(stop))}, nil, 0},
		"of a processor around a step": {agent.Config{Driver: driver, AroundStep: []agent.Processor{failing(stop)}}, nil, 0},
		"of a processor around a run":  {agent.Config{Driver: driver, AroundRun: []agent.Processor{failing(stop)}}, nil, 0},
		"of a criterion": {agent.Config{Driver: driver, Criterion: agent.CriterionFunc(
			func(context.Context, agent.State) (agent.Evaluation, error) { return agent.Evaluation{}, stop },
		)}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			final, err := build(t, tc.config).Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
			require.NoError(t, err)
			assert.Equal(t, agent.StatusStopped, final.Status())
			assert.Equal(t, stopSignal, signalOf(t, final))
			assert.Equal(t, tc.answers, answers(final))
			assert.Equal(t, tc.steps, final.RunStepCount())
			for _, step := range final.RunSteps() {
				assert.Nil(t, step.Failure(), "a stop is no failure")
			}
		})
	}
}

// A result can stop the run: the batch is finished first.
func TestAResultMayStopTheRun(t *testing.T) {
	weightier := agent.Signal{Reason: agent.StopTokenLimit, Source: "budget"}
	a := build(t, agent.Config{Driver: agenttest.Script(calls("a", "b", "c")), Executor: executor{
		execute: func(_ context.Context, _ agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
			stop := map[string]*agent.Signal{"a": &stopSignal, "b": &weightier}[p.Call.Name]
			return &agent.ToolResult{Content: agent.TextContent("ran"), Stop: stop}, nil
		},
	}})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"hello", "", "ran", "ran", "ran"}, texts(final))
	assert.Equal(t, agent.StatusStopped, final.Status())
	assert.Equal(t, weightier, signalOf(t, final)) // IP-71
}

// If the context ends while the batch runs, calls that have not begun do not begin, and
// are answered.
func TestCallsThatHaveNotBegunDoNotBeginAfterTheEnd(t *testing.T) {
	for _, width := range []int{1, 2} {
		t.Run(fmt.Sprintf("width %d", width), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var ran atomic.Int32
			run := executor{execute: func(ctx context.Context, _ agent.State, _ *agent.Prepared) (*agent.ToolResult, error) {
				if int(ran.Add(1)) == width {
					cancel()
				}
				<-ctx.Done() // as many as may run at once are running
				return &agent.ToolResult{Content: agent.TextContent("ran")}, nil
			}}
			a := build(t, agent.Config{Driver: agenttest.Script(calls("a", "b", "c", "d")), Executor: run, Parallel: width})
			failed := runError(t, a.Run(ctx, agent.NewState(agent.UserText("hello"))))
			require.ErrorIs(t, failed, context.Canceled)
			assert.Equal(t, agent.StatusCancelled, failed.State.Status())
			assert.Equal(t, int32(width), ran.Load())
			var want []string
			for i := range 4 {
				outcome := lo.Ternary(i < width, "executed ", "not_executed cancelled")
				want = append(want, fmt.Sprintf("call_1_%d %s", i+1, outcome))
			}
			assert.Equal(t, want, answers(failed.State))
		})
	}
}

func TestTheEndOfTheContextWhileDecidingRunsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	both := executor{
		prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
			if c.Name == "mock" {
				return mocked(c), nil
			}
			cancel()
			return &agent.Prepared{Original: c, Call: c}, nil
		},
		execute: func(context.Context, agent.State, *agent.Prepared) (*agent.ToolResult, error) {
			return nil, errors.New("a tool ran")
		},
	}
	a := build(t, agent.Config{Driver: agenttest.Script(calls("mock", "a", "b")), Executor: both})
	failed := runError(t, a.Run(ctx, agent.NewState(agent.UserText("hello"))))
	assert.Equal(t, agent.StatusCancelled, failed.State.Status())
	assert.Equal(t, []string{
		"call_1_1 not_executed cancelled", "call_1_2 not_executed cancelled", "call_1_3 not_executed cancelled",
	}, answers(failed.State), "a call that does not take place is not mocked either")
}

// If the context ends with the last decision, no call begins.
func TestTheEndOfTheContextAfterDecidingRunsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	both := executor{prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
		if c.Name == "last" {
			cancel()
		}
		return mocked(c), nil
	}}
	a := build(t, agent.Config{Driver: agenttest.Script(calls("mock", "last")), Executor: both})
	failed := runError(t, a.Run(ctx, agent.NewState(agent.UserText("hello"))))
	assert.Equal(t, []string{"call_1_1 not_executed cancelled", "call_1_2 not_executed cancelled"}, answers(failed.State))
}

// The loop sets the call that a result answers, even if the executor set another one.
func TestTheLoopNamesWhatIsAnswered(t *testing.T) {
	wrong := agent.ToolCall{ID: "other", Name: "other", Index: 7}
	both := executor{
		prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
			switch c.Name {
			case "nothing": // an executor that leaves it all to the loop
				return &agent.Prepared{}, nil
			case "rewrite":
				return &agent.Prepared{Original: &wrong, Call: &agent.ToolCall{ID: "x", Name: c.Name, Arguments: `{"safe":true}`}}, nil
			}
			return &agent.Prepared{Original: c, Call: c}, nil
		},
		execute: func(_ context.Context, _ agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
			return &agent.ToolResult{Content: agent.TextContent(wrong.ID)}, nil
		},
	}
	events := agenttest.Record()
	a := build(t, agent.Config{
		Driver: agenttest.Script(calls("nothing", "rewrite", "plain"), agenttest.Say("done")), Executor: both, Observer: events,
	})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"call_1_1 executed ", "call_1_2 executed ", "call_1_3 executed "}, answers(final))
	completed := agenttest.Of[agent.ToolCallCompleted](events)
	for i, asked := range final.Message(1).Calls() {
		r := completed[i].Result
		assert.Equal(t, asked, r.Original())
		assert.Equal(t, asked.ID, r.Call().ID)
		assert.Equal(t, asked.Name, r.Tool())
		assert.Equal(t, i, r.Call().Index)
		assert.Equal(t, asked.Name == "rewrite", r.Rewritten())
	}
}

func TestAnExecutorThatBreaksItsContractFailsTheStep(t *testing.T) {
	for name, tc := range map[string]struct {
		executor executor
		says     string
		answer   string
	}{
		"it prepares nothing": {executor{prepare: prepared(nil)}, "the executor returned no prepared call", "not_executed run_stopped"},
		"it prepares an answer without one": {
			executor{prepare: prepared(&agent.Prepared{Disposition: agent.DisposeAnswer})}, "returned DisposeAnswer without an answer",
			"not_executed run_stopped",
		},
		"it prepares a stop without a signal": {
			executor{prepare: prepared(&agent.Prepared{Disposition: agent.DisposeStop})}, "returned DisposeStop without a signal",
			"not_executed run_stopped",
		},
		"it prepares what there is not": {
			executor{prepare: prepared(&agent.Prepared{Disposition: 9})}, "disposition 9", "not_executed run_stopped",
		},
		"it gives no result": {executor{execute: executed(nil)}, "the executor returned no result", "failed error"},
		"it gives an undefined status": {
			executor{execute: executed(&agent.ToolResult{Status: "done"})}, `status "done"`, "failed error",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := build(t, agent.Config{Driver: agenttest.Script(calls("a")), Executor: tc.executor})
			failed := runError(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello"))))
			require.ErrorContains(t, failed, tc.says)
			assert.Equal(t, []string{"call_1_1 " + tc.answer}, answers(failed.State))
		})
	}
}

func prepared(p *agent.Prepared) func(context.Context, agent.State, *agent.ToolCall) (*agent.Prepared, error) {
	return func(context.Context, agent.State, *agent.ToolCall) (*agent.Prepared, error) { return p, nil }
}

func executed(r *agent.ToolResult) func(context.Context, agent.State, *agent.Prepared) (*agent.ToolResult, error) {
	return func(context.Context, agent.State, *agent.Prepared) (*agent.ToolResult, error) { return r, nil }
}

// Whatever an executor does with a step's calls, each call ID gets exactly one answer, in call order, and the state
// survives its JSON form.
func TestEveryCallIsAnsweredOnce(t *testing.T) {
	fates := []string{"run", "fail", "deny", "mock", "ask", "ask mock", "stop", "break", "panic stop", "cancel", "execute break", "nothing"}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom(fates), 1, 6).Draw(t, "fates")
		ids := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "call_0_0", "call_0_1"}), len(names), len(names)).Draw(t, "ids")
		verdicts := rapid.SliceOfN(rapid.Uint8Range(0, 3), len(names), len(names)).Draw(t, "approvals")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()

		both := executor{
			prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
				p := &agent.Prepared{Original: c, Call: c}
				switch c.Name {
				case "deny":
					return denied(c), nil
				case "mock":
					return mocked(c), nil
				case "ask":
					p.Disposition = agent.DisposeAsk
				case "ask mock":
					p.Disposition, p.Answer = agent.DisposeAsk, mocked(c).Answer
				case "stop":
					p.Disposition, p.Stop = agent.DisposeStop, &stopSignal
				case "panic stop":
					return nil, &agent.SignalError{Signal: stopSignal}
				case "break":
					return nil, errOutOfPaper
				case "cancel":
					cancel()
				}
				return p, nil
			},
			execute: func(_ context.Context, _ agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
				switch p.Call.Name {
				case "fail":
					return &agent.ToolResult{Status: agent.ToolFailed, Reason: agent.ReasonError}, nil
				case "execute break":
					return nil, errOutOfPaper
				case "nothing":
					return nil, nil
				}
				return &agent.ToolResult{Content: agent.TextContent("ran")}, nil
			},
		}
		c := agent.Config{
			Driver: agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
				if s.RunStepCount() > 0 {
					return agent.Step{Message: agent.Assistant("done")}, nil
				}
				wish := lo.Map(names, func(name string, i int) agent.ToolCall { return agent.ToolCall{ID: ids[i], Name: name} })
				return agent.Step{Message: agent.Assistant("", wish...)}, nil
			}),
			Executor: both,
			Parallel: rapid.IntRange(0, 3).Draw(t, "parallel"),
		}
		if rapid.Bool().Draw(t, "a person to ask") {
			c.Approver = agent.ApproverFunc(func(_ context.Context, _ agent.State, p *agent.Prepared) (agent.Approval, error) {
				verdict := verdicts[p.Call.Index]
				if verdict == 3 {
					return agent.Approval{}, errOutOfPaper
				}
				return agent.Approval{Verdict: agent.ApprovalVerdict(verdict)}, nil
			})
		}
		final, err := build(t, c).Run(ctx, agent.NewState(agent.UserText("hello"))).Get()
		if err != nil {
			var failed *agent.RunError
			require.ErrorAs(t, err, &failed)
			final = failed.State
		}
		require.True(t, final.Status().Terminal())

		asked := map[string]bool{}
		i := 2
		for at, call := range final.Message(1).Calls() {
			require.NotEmpty(t, call.ID)
			require.False(t, asked[call.ID], "two calls have the id %q", call.ID)
			asked[call.ID] = true
			answer := final.Message(i)
			require.Equal(t, agent.RoleTool, answer.Role())
			require.Equal(t, call.ID, answer.CallID())
			require.NotEmpty(t, answer.Status())
			for _, step := range final.RunSteps() {
				require.Equal(t, len(names), step.ResultCount())
				r := step.Result(at)
				require.True(t, agent.ToolAnswer(&r).Equal(answer), "the record says something else than the transcript")
				break
			}
			i++
		}
		for _, m := range final.MessagesFrom(i) {
			require.NotEqual(t, agent.RoleTool, m.Role(), "an answer too many: %s", m.CallID())
		}
		requireSame(t, final, throughJSON(t, final))
	})
}
