package capability_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	"github.com/grapnel-go/grapnel/toolexec"
)

// office is a chain of agents that delegate work, down to one that makes a payment, which needs a person's approval. It
// records the actions and the hook calls.
type office struct {
	mu       sync.Mutex
	log      []string
	within   time.Duration
	deny     string // the tool that a control denies now
	rewrite  string // the arguments that a control gives to "task" now
	depth    int
	parallel int
	boss     []agenttest.Turn // instead of the usual
}

func (o *office) note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log = append(o.log, fmt.Sprintf(format, args...))
}

// logged returns what was noted, and forgets it.
func (o *office) logged() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { o.log = nil }()
	return o.log
}

func (o *office) tool(name string) toolexec.Tool {
	return toolexec.CallFunc(agent.ToolSpec{Name: name}, func(_ context.Context, c toolexec.Call, in struct {
		Cents int `json:"cents,omitempty"`
	}) (string, error) {
		o.note("%s %d by %s", name, in.Cents, c.State.Run().Agent)
		return fmt.Sprintf("%s %d done", name, in.Cents), nil
	})
}

// build returns the agents as each process builds them: boss, and clerks below it.
func (o *office) build(t *testing.T, more ...capability.Capability) *agent.Agent {
	t.Helper()
	told := func(_ context.Context, c hooks.Context) error {
		switch c := c.(type) {
		case hooks.PreSubagentContext:
			o.note("%s of %s: %s", c.Point(), c.Run().Agent, c.Subagent().Agent)
		case hooks.PostSubagentContext:
			o.note("%s of %s: %s %s", c.Point(), c.Run().Agent, c.Subagent().Agent, c.Subagent().Result)
		case hooks.SubagentFailedContext:
			o.note("%s of %s: %s %s", c.Point(), c.Run().Agent, c.Subagent().Agent, c.Subagent().Status)
		case hooks.ToolResultContext:
			o.note("%s of %s: %s", c.Point(), c.Run().Agent, c.Tool())
		default:
			o.note("%s of %s", c.Point(), c.Run().Agent)
		}
		return nil
	}
	listen := func(name string) capability.Capability {
		return capability.UseHooks(hooks.ObserveAll("told "+name, told, hooks.InputSubmitted, hooks.StepStart, hooks.PostToolUse, hooks.StepEnd,
			hooks.PreSubagent, hooks.PostSubagent, hooks.SubagentFailed, hooks.ExecutionEnd))
	}
	guard := hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		switch {
		case o.deny == c.Tool():
			return c.Deny("changed its mind")
		case c.Tool() == "task" && o.rewrite != "" && c.Run().Agent == "boss":
			return c.Rewrite(json.RawMessage(o.rewrite))
		case c.Tool() == "pay":
			return c.AskAbout(agent.Question{Reason: "it pays", Within: o.within, OnTimeout: agent.RejectAndContinue})
		}
		return c.Pass()
	})
	below := builder.New().WithName("clerk 1").WithDriver(agenttest.Script(
		agenttest.Call("look", `{"cents":1}`), agenttest.Call("pay", `{"cents":100}`), agenttest.Say("Paid.")).EachRun()).
		With(capability.UseTools(o.tool("look"), o.tool("pay")), listen("clerk 1"))
	for i := 2; i <= o.depth; i++ {
		name := fmt.Sprint("clerk ", i)
		below = builder.New().WithName(name).WithDriver(agenttest.Script(task(fmt.Sprint("clerk ", i-1), "Pay."), agenttest.Say("It was paid.")).EachRun()).
			With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: below}}, MaxDepth: o.depth}, listen(name))
	}
	turns := o.boss
	if turns == nil {
		turns = []agenttest.Turn{o.ask("look").Call("task", o.task()).Call("write", `{"cents":2}`), agenttest.Say("All is well.")}
	}
	a, err := builder.New().WithName("boss").WithParallel(o.parallel).WithDriver(agenttest.Script(turns...)).
		With(capability.UseTools(o.tool("look"), o.tool("write")), capability.UseHooks(guard),
			capability.UseSubagents{Agents: []capability.Subagent{{Agent: below}}, MaxDepth: o.depth}, listen("boss"),
			capability.UseApproval(agent.ParkApprover)).With(more...).Build().Get()
	require.NoError(t, err)
	return a
}

func (o *office) task() string {
	return fmt.Sprintf(`{"agent":"clerk %d","instruction":"Pay."}`, o.depth)
}

func (o *office) ask(tool string) agenttest.Turn { return agenttest.Call(tool, `{"cents":1}`) }

// kept returns the state as another process reads it.
func kept(t *testing.T, s agent.State) agent.State {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	var out agent.State
	require.NoError(t, json.Unmarshal(text, &out), string(text))
	again, err := json.Marshal(out)
	require.NoError(t, err)
	require.JSONEq(t, string(text), string(again))
	changes, err := agent.Checkpoint(s).Changes(agent.State{})
	require.NoError(t, err)
	folded, err := agent.Restore(changes)
	require.NoError(t, err)
	again, err = json.Marshal(folded)
	require.NoError(t, err)
	require.JSONEq(t, string(text), string(again))
	return out
}

func (o *office) park(t *testing.T) agent.State {
	t.Helper()
	s, err := o.build(t).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.Equal(t, agent.StatusParked, s.Status())
	require.True(t, s.Waiting())
	return kept(t, s)
}

func counted(list []string) map[string]int { return lo.CountValues(list) }

// A sub-agent at any depth that waits for a person parks the run that started it. Answers are kept, and events are
// not repeated. Only the state is kept.
func TestASubagentParksTheRunThatStartedIt(t *testing.T) {
	for _, tc := range []struct{ depth, parallel int }{{1, 0}, {1, 4}, {2, 0}, {3, 4}} {
		t.Run(fmt.Sprintf("depth %d, parallel %d", tc.depth, tc.parallel), func(t *testing.T) {
			o := &office{depth: tc.depth, parallel: tc.parallel}
			s := o.park(t)
			before := counted(o.logged())
			assert.Equal(t, 1, before["look 1 by boss"])
			assert.Equal(t, 1, before["look 1 by clerk 1"])
			assert.Equal(t, lo.Ternary(tc.parallel > 1, 1, 0), before["write 2 by boss"], "in order, what stands behind it comes later")
			assert.Zero(t, before["ExecutionEnd of boss"]+before["ExecutionEnd of clerk 1"]+before["StepEnd of boss"])
			assert.Zero(t, s.RunStepCount())

			waits := s.Interventions()
			require.Len(t, waits, 1)
			assert.Equal(t, "call_1_2/"+strings.Repeat("call_1_1/", tc.depth-1)+"call_2_1", waits[0].CallID())
			assert.Equal(t, "clerk 1", waits[0].Child.Agent)
			assert.Equal(t, tc.depth, waits[0].Child.Depth)
			assert.Equal(t, "it pays", waits[0].Questions.Reason())
			one, ok := agent.Checkpoint(s).Intervention(waits[0].CallID())
			assert.True(t, ok)
			assert.Equal(t, waits[0], one)

			same, err := o.build(t).Resume(t.Context(), s).Get()
			require.NoError(t, err)
			assert.True(t, same.Waiting())
			assert.Empty(t, o.logged(), "no answer came: nothing is asked and nothing told")

			assert.True(t, agenttest.WithApproval(s, "call_2_1", agent.Approval{Verdict: agent.Approve}).Waiting(), "that is another call")
			s = agenttest.WithApproval(s, waits[0].CallID(), agent.Approval{Verdict: agent.Approve, By: "ann"})
			require.False(t, s.Waiting())
			s, err = o.build(t).Resume(t.Context(), kept(t, s)).Get()
			require.NoError(t, err)
			assert.Equal(t, agent.StatusDone, s.Status())
			assert.Equal(t, "All is well.", s.Answer())
			assert.Equal(t, 2, s.RunStepCount())
			kept(t, s)
			after := o.logged()
			assert.Equal(t, 1, counted(after)["pay 100 by clerk 1"])
			for what, n := range counted(append(lo.Flatten(lo.MapToSlice(before, func(k string, n int) []string { return slices.Repeat([]string{k}, n) })), after...)) {
				switch {
				case strings.HasPrefix(what, "StepStart"), strings.HasPrefix(what, "StepEnd"), what == "PostToolUse of clerk 1: look":
				default:
					assert.Equal(t, 1, n, what)
				}
			}
			both := counted(after)
			assert.Equal(t, 3, before["StepStart of clerk 1"]+both["StepStart of clerk 1"])
			assert.Equal(t, 3, before["StepEnd of clerk 1"]+both["StepEnd of clerk 1"])
			assert.Equal(t, 2, before["StepStart of boss"]+both["StepStart of boss"])
			assert.Equal(t, 2, both["StepEnd of boss"])
			first, _ := lo.First(slices.Collect(values(s.RunSteps())))
			assert.Equal(t, []string{"look", "task", "write"}, slices.Collect(first.Tools()))
		})
	}
}

func values[K, V any](pairs func(func(K, V) bool)) func(func(V) bool) {
	return func(yield func(V) bool) { pairs(func(_ K, v V) bool { return yield(v) }) }
}

// The answers of a person to a waiting sub-agent, and the outcome of both runs.
func TestAnswersToASubagent(t *testing.T) {
	const call = "call_1_2/call_2_1"
	for name, tc := range map[string]struct {
		answer func(*office, agent.State) agent.State
		status agent.Status
		told   string // to the boss's model, of the task
		logs   []string
		never  []string
	}{
		"yes": {
			func(_ *office, s agent.State) agent.State {
				return agenttest.WithApproval(s, call, agent.Approval{Verdict: agent.Approve})
			},
			agent.StatusDone, "Paid.", []string{"pay 100 by clerk 1", "PostSubagent of boss: clerk 1 Paid.", "write 2 by boss"}, nil,
		},
		"yes to less": {
			func(_ *office, s agent.State) agent.State {
				return agenttest.WithApproval(s, call, agent.Approval{Verdict: agent.Approve, Arguments: `{"cents":5}`})
			},
			agent.StatusDone, "Paid.", []string{"pay 5 by clerk 1"}, []string{"pay 100 by clerk 1"},
		},
		"no, and go on": {
			func(_ *office, s agent.State) agent.State {
				return agenttest.WithApproval(s, call, agent.Approval{Verdict: agent.RejectAndContinue, By: "ann"})
			},
			agent.StatusDone, "Paid.", []string{"ExecutionEnd of clerk 1", "write 2 by boss"}, []string{"pay 100 by clerk 1"},
		},
		"no": {
			func(_ *office, s agent.State) agent.State {
				return agenttest.WithApproval(s, call, agent.Approval{Verdict: agent.RejectAndEnd, By: "ann", Reason: "not today"})
			},
			agent.StatusInterrupted, `agent "clerk 1" interrupted: not today`,
			[]string{"SubagentFailed of boss: clerk 1 interrupted", "ExecutionEnd of clerk 1", "ExecutionEnd of boss", "PostToolUse of boss: task"},
			[]string{"pay 100 by clerk 1"},
		},
		"nothing in time": {
			func(_ *office, s agent.State) agent.State {
				return agent.Checkpoint(s).WithExpired(time.Now().Add(2 * time.Hour))
			},
			agent.StatusDone, "Paid.", []string{"ExecutionEnd of clerk 1"}, []string{"pay 100 by clerk 1"},
		},
		"the controls have changed their mind about the payment": {
			func(o *office, s agent.State) agent.State {
				o.deny = "pay"
				return agenttest.WithApproval(s, call, agent.Approval{Verdict: agent.Approve})
			},
			agent.StatusDone, "Paid.", nil, []string{"pay 100 by clerk 1"},
		},
		"the controls have changed their mind about the task": {
			func(o *office, s agent.State) agent.State {
				o.deny = "task"
				return agenttest.WithApproval(s, call, agent.Approval{Verdict: agent.Approve})
			},
			agent.StatusDone, `tool "task": denied by guard: changed its mind`,
			[]string{"ExecutionEnd of clerk 1", "SubagentFailed of boss: clerk 1 cancelled", "PostToolUse of boss: task", "write 2 by boss"},
			[]string{"pay 100 by clerk 1", "PostSubagent of boss: clerk 1 Paid."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &office{depth: 1, within: time.Hour}
			s := o.park(t)
			o.logged()
			s = tc.answer(o, s)
			require.False(t, s.Waiting())
			s, err := o.build(t).Resume(t.Context(), kept(t, s)).Get()
			require.NoError(t, err)
			kept(t, s)
			assert.Equal(t, tc.status, s.Status())
			first, _ := lo.First(slices.Collect(values(s.RunSteps())))
			r := first.Result(1)
			assert.Equal(t, tc.told, r.Text())
			logs := counted(o.logged())
			for _, want := range tc.logs {
				assert.Equal(t, 1, logs[want], "%s in %v", want, logs)
			}
			for _, not := range tc.never {
				assert.Zero(t, logs[not], not)
			}
		})
	}
}

// A sub-agent that has begun continues where it was and is not started again, even if a control rewrites the call
// that started it. The ignored rewrite is reported.
func TestATaskThatIsRewrittenGoesOn(t *testing.T) {
	o := &office{depth: 1}
	s := o.park(t)
	old := s.Interventions()[0].Child.ID
	o.logged()
	for n := range 3 {
		recorder := agenttest.Record()
		o.rewrite = fmt.Sprintf(`{"agent":"clerk 1","instruction":"Pay %d."}`, n)
		if n == 2 {
			s = agenttest.WithApproval(s, "call_1_2/call_2_1", agent.Approval{Verdict: agent.Approve})
		} else { // as if it was cut off while it waited
			s = agent.Checkpoint(s).WithStatus(agent.StatusRunning)
		}
		var err error
		s, err = o.build(t, capability.UseObserver(recorder)).Resume(t.Context(), kept(t, s)).Get()
		require.NoError(t, err)
		conflicts := lo.FilterMap(recorder.Events(), func(e agent.Event, _ int) (hooks.Event, bool) {
			h, ok := e.(hooks.Event)
			return h, ok && h.Kind == hooks.HookConflict
		})
		require.Len(t, conflicts, 1)
		assert.Equal(t, "guard", conflicts[0].Hook)
		assert.Equal(t, hooks.Rewrite, conflicts[0].Decision)
		assert.Equal(t, o.task(), conflicts[0].Before)
		assert.Equal(t, o.rewrite, conflicts[0].After)
		if n < 2 {
			require.True(t, s.Waiting())
			assert.Equal(t, old, s.Interventions()[0].Child.ID)
		}
	}
	assert.Equal(t, agent.StatusDone, s.Status())
	logs := counted(o.logged())
	assert.Zero(t, logs["SubagentFailed of boss: clerk 1 cancelled"])
	assert.Zero(t, logs["PreSubagent of boss: clerk 1"], "it was started once, before")
	assert.Equal(t, 1, logs["pay 100 by clerk 1"])
}

// A failed sub-agent is not started again, even if retries are configured.
func TestSubagentsAreNotRetried(t *testing.T) {
	starts := 0
	below := builder.New().WithName("clerk").WithDriver(agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
		starts++
		return agent.Step{}, errors.New("the model is away")
	}))
	retry := capability.Func(func(p capability.Plan) (capability.Plan, error) {
		return p.WithToolOptions(toolexec.Options{Policy: toolexec.Policy{Retry: toolexec.Retry{Attempts: 3}}}), nil
	})
	own := toolexec.CallFunc(agent.ToolSpec{Name: "own"}, func(ctx context.Context, _ toolexec.Call, _ struct{}) (string, error) {
		a, err := below.Build().Get()
		require.NoError(t, err)
		_, err = a.Run(ctx, agent.NewState(), agent.UserText("go")).Get()
		return "", err
	})
	for _, turn := range []agenttest.Turn{agenttest.Call("task", `{"agent":"clerk","instruction":"Go."}`), agenttest.Call("own", `{}`)} {
		starts = 0
		a, err := builder.New().WithDriver(agenttest.Script(turn, agenttest.Say("Well."))).
			With(capability.UseTools(own), capability.UseSubagents{Agents: []capability.Subagent{{Agent: below}}}, retry).Build().Get()
		require.NoError(t, err)
		s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		step, _ := lo.First(slices.Collect(values(s.RunSteps())))
		assert.Equal(t, agent.ToolFailed, step.Result(0).Status)
		assert.Equal(t, 1, step.Result(0).Attempts)
		assert.Equal(t, 1, starts)
	}
}

// Several sub-agents wait at the same time. The run continues when all are answered, or ends when one rejection
// ends it; the other sub-agents then end as cancelled.
func TestSeveralSubagentsWait(t *testing.T) {
	start := func(t *testing.T) (*office, agent.State) {
		t.Helper()
		o := &office{depth: 1, parallel: 2}
		o.boss = []agenttest.Turn{agenttest.Call("task", o.task()).Call("task", o.task()), agenttest.Say("All is well.")}
		s := o.park(t)
		o.logged()
		require.Equal(t, []string{"call_1_1/call_2_1", "call_1_2/call_2_1"},
			lo.Map(s.Interventions(), func(i agent.Intervention, _ int) string { return i.CallID() }))
		return o, s
	}
	t.Run("yes to both", func(t *testing.T) {
		o, s := start(t)
		s = agenttest.WithApproval(s, "call_1_2/call_2_1", agent.Approval{Verdict: agent.Approve})
		require.True(t, s.Waiting())
		s, err := o.build(t).Resume(t.Context(), agenttest.WithApproval(kept(t, s), "call_1_1/call_2_1", agent.Approval{Verdict: agent.Approve})).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.StatusDone, s.Status())
		assert.Equal(t, 2, counted(o.logged())["pay 100 by clerk 1"])
	})
	t.Run("no to one", func(t *testing.T) {
		for _, answered := range []string{"call_1_1/call_2_1", "call_1_2/call_2_1"} {
			for _, parallel := range []int{1, 2} {
				o, s := start(t)
				o.parallel = parallel // of the process that goes on
				s = agenttest.WithApproval(s, answered, agent.Approval{By: "ann"})
				require.False(t, s.Waiting())
				s, err := o.build(t).Resume(t.Context(), kept(t, s)).Get()
				require.NoError(t, err)
				assert.Equal(t, agent.StatusInterrupted, s.Status())
				logs := counted(o.logged())
				assert.Equal(t, 1, logs["SubagentFailed of boss: clerk 1 interrupted"])
				assert.Equal(t, 1, logs["SubagentFailed of boss: clerk 1 cancelled"])
				assert.Equal(t, 2, logs["ExecutionEnd of clerk 1"])
				assert.Equal(t, 1, logs["ExecutionEnd of boss"])
				assert.Zero(t, logs["pay 100 by clerk 1"])
				kept(t, s)
			}
		}
	})
}

// A parked run that is cancelled ends with all below it.
func TestAParkedSubagentIsCancelled(t *testing.T) {
	o := &office{depth: 2}
	s := o.park(t)
	o.logged()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone home"))
	_, err := o.build(t).Resume(ctx, s).Get()
	var failed *agent.RunError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, agent.StatusCancelled, failed.State.Status())
	kept(t, failed.State)
	logs := counted(o.logged())
	for _, who := range []string{"boss", "clerk 2", "clerk 1"} {
		assert.Equal(t, 1, logs["ExecutionEnd of "+who], who)
	}
	assert.Equal(t, 1, logs["SubagentFailed of boss: clerk 2 cancelled"])
	assert.Equal(t, 1, logs["SubagentFailed of clerk 2: clerk 1 cancelled"])
}

// A person who approved a call before the sub-agent waited is not asked again.
func TestAYesBeforeASubagentWaits(t *testing.T) {
	o := &office{depth: 1}
	asked := 0
	park := func(t *testing.T) *agent.Agent {
		t.Helper()
		below := builder.New().WithName("clerk 1").WithDriver(agenttest.Script(agenttest.Call("pay", `{"cents":100}`), agenttest.Say("Paid.")).EachRun()).
			With(capability.UseTools(o.tool("pay")), capability.UseApproval(agent.ParkApprover))
		a, err := builder.New().WithName("boss").WithDriver(agenttest.Script(task("clerk 1", "Pay."), agenttest.Say("All is well."))).
			With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: below}}},
				capability.UseHooks(hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("sure?") })),
				capability.UseApproval(agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
					asked++
					return agent.Approval{Verdict: agent.Approve, By: "ann"}, nil
				}))).Build().Get()
		require.NoError(t, err)
		return a
	}
	s, err := park(t).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.True(t, s.Waiting())
	require.Len(t, s.Interventions(), 2, "the one that has its answer, and the one that waits")
	s, err = park(t).Resume(t.Context(), agenttest.WithApproval(kept(t, s), "call_1_1/call_1_1", agent.Approval{Verdict: agent.Approve})).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, 1, asked)
	assert.Equal(t, []string{"pay 100 by clerk 1"}, o.logged())
}

// A rejection that ends a sub-agent also ends the run that started it, also if the person answered immediately.
func TestANoToASubagentWhileThePersonIsThere(t *testing.T) {
	o := &office{depth: 2}
	no := agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
		return agent.Approval{Verdict: agent.RejectAndEnd, By: "ann", Reason: "not today"}, nil
	})
	plan := func(p capability.Plan) (capability.Plan, error) { return p.WithApprover(no), nil }
	s, err := o.build(t, capability.Func(plan)).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusInterrupted, s.Status())
	signal := s.StopSignal()
	assert.Equal(t, agent.Signal{Reason: agent.StopRejected, Message: "not today", Source: "ann"}, signal)
	logs := counted(o.logged())
	for _, who := range []string{"boss", "clerk 2", "clerk 1"} {
		assert.Equal(t, 1, logs["ExecutionEnd of "+who], who)
	}
	assert.Zero(t, logs["pay 100 by clerk 1"])
}

// Observers receive one event each time that a run is parked or resumed.
func TestEventsOfAParkedSubagent(t *testing.T) {
	o := &office{depth: 1}
	recorder := agenttest.Record()
	about := func() []string {
		var out []string
		for _, e := range recorder.Events() {
			switch e.(type) {
			case agent.RunParked, agent.RunResumed, agent.RunStarted, agent.RunCompleted,
				capability.SubagentStarted, capability.SubagentParked, capability.SubagentResumed, capability.SubagentCompleted:
				out = append(out, e.EventName())
			}
		}
		return out
	}
	s, err := o.build(t, capability.UseObserver(recorder)).Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"run.started", "subagent.started", "subagent.parked", "run.parked"}, about())
	recorder = agenttest.Record()
	_, err = o.build(t, capability.UseObserver(recorder)).Resume(t.Context(), agenttest.WithApproval(s, "call_1_2/call_2_1", agent.Approval{Verdict: agent.Approve})).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"run.resumed", "subagent.resumed", "subagent.completed", "run.completed"}, about())
}
