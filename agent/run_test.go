package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

func TestNewSaysEverythingThatIsMissing(t *testing.T) {
	err := agent.New(agent.Config{Name: "x", Parallel: -1, AroundRun: []agent.Processor{nil}}).Error()
	require.Error(t, err)
	for _, part := range []string{`agent "x": `, "no driver", "parallel is -1", "a processor is nil"} {
		assert.ErrorContains(t, err, part)
	}
}

// A wrapper that returns nil is an error, because it may be a missing guard.
func TestWrappersMustReturnSomething(t *testing.T) {
	swallow := func(agent.Driver) agent.Driver { return nil }
	keep := func(d agent.Driver) agent.Driver { return d }
	err := agent.New(agent.Config{
		Driver: agenttest.Script(), WrapDriver: []func(agent.Driver) agent.Driver{keep, swallow},
		WrapExecutor: []func(agent.Executor) agent.Executor{nil},
	}).Error()
	require.ErrorContains(t, err, "wrapper 2 of the driver returned nil")
	require.ErrorContains(t, err, "wrapper 1 of the executor is nil")
}

// SW-19: an agent without hooks is the plain loop.
func TestRunIsTheLoop(t *testing.T) {
	final := play(t,
		agenttest.Call("add", `{"a":1,"b":2}`).WithTokens(100, 10).WithCost(0.5),
		agenttest.Say("three").WithTokens(120, 2).WithCost(0.25),
	)
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, "three", final.Answer())
	assert.Equal(t, agent.StopCompleted, signalOf(t, final).Reason) // IP-62
	assert.Equal(t, []string{"hello", "", "3", "three"}, texts(final))
	assert.Equal(t, agent.Usage{InputTokens: 220, OutputTokens: 12, Cost: mo.Some(0.75)}, final.RunUsage())
	assert.Equal(t, final.RunUsage(), final.Usage())
	assert.Equal(t, []agent.StepKind{agent.StepToolExecution, agent.StepFinalResponse}, kinds(final))
	assert.Equal(t, 2, final.StepCount())
	assert.Zero(t, final.RunFailures())

	run := final.Run()
	assert.Equal(t, "test", run.Agent)
	assert.Equal(t, 1, run.Number)
	assert.Equal(t, run.ID, run.Root)
	assert.Equal(t, final.Session(), run.Session)
	assert.True(t, strings.HasPrefix(string(run.ID), "run_"))
	assert.True(t, strings.HasPrefix(string(run.Session), "ses_"))
}

func kinds(s agent.State) []agent.StepKind {
	var out []agent.StepKind
	for _, r := range s.RunSteps() {
		out = append(out, r.Kind())
	}
	return out
}

func TestAStateBelongsToItsRunOnlyWhileItRuns(t *testing.T) {
	var during agent.State
	a := build(t, agent.Config{
		Request: agent.Request{Model: "m1"}, Observer: agenttest.Record(),
		Driver: agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			during = s
			return agent.Step{Message: agent.Assistant("hi")}, nil
		}),
	})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.StatusRunning, during.Status())
	assert.Equal(t, "m1", during.Request().Model)
	assert.True(t, during.Observed())
	assert.Empty(t, final.Request().Model)
	assert.False(t, final.Observed())
}

func TestARunStandsBelowItsParent(t *testing.T) {
	a := build(t, agent.Config{Name: "child", Driver: agenttest.Script(agenttest.Say("hi")).EachRun()})
	parent := agent.Run{ID: "run_p", Root: "run_r", Depth: 2}
	final, err := a.RunWith(t.Context(), agent.RunSettings{ID: "run_c", Parent: parent, Stage: "plan", Iteration: 3}, agent.NewState()).Get()
	require.NoError(t, err)
	run := final.Run()
	assert.Equal(t, agent.RunID("run_c"), run.ID)
	assert.Equal(t, agent.RunID("run_p"), run.Parent)
	assert.Equal(t, agent.RunID("run_r"), run.Root)
	assert.Equal(t, 3, run.Depth)
	assert.Equal(t, "plan", run.Stage)
	assert.Equal(t, 3, run.Iteration)
}

// IP-17: the same parts under other wrappers are another agent. The first agent's wrappers are not called. The second
// agent's wrappers are called once for each call they wrap.
func TestAnAgentIsBoundToItsOwnWrappers(t *testing.T) {
	script := agenttest.Script(agenttest.Call("add", `{}`), agenttest.Say("done"))
	inner := tools().Executor()
	wrappers := func() (agent.Config, *int, *int) {
		drivers, executors := new(int), new(int)
		return agent.Config{
			Driver: script, Executor: inner, Observer: agenttest.Record(),
			WrapDriver: []func(agent.Driver) agent.Driver{func(d agent.Driver) agent.Driver {
				return agent.DriverFunc(func(ctx context.Context, s agent.State) (agent.Step, error) {
					*drivers++
					return d.Next(ctx, s).Get()
				})
			}},
			WrapExecutor: []func(agent.Executor) agent.Executor{func(e agent.Executor) agent.Executor {
				return executor{execute: func(ctx context.Context, s agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
					*executors++
					return e.Execute(ctx, s, p).Get()
				}}
			}},
		}, drivers, executors
	}
	first, oldDriver, oldExecutor := wrappers()
	build(t, first)
	second, newDriver, newExecutor := wrappers()
	_, err := build(t, second).Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Zero(t, *oldDriver+*oldExecutor, "wrappers of the first agent")
	assert.Equal(t, 2, *newDriver)
	assert.Equal(t, 1, *newExecutor)
	assert.Empty(t, first.Observer.(*agenttest.Recorder).Names())
	assert.NotEmpty(t, second.Observer.(*agenttest.Recorder).Names())
}

// IP-53, without hooks: the request's event comes before the reply's, both with the same inference ID. IP-88: the
// verdicts after each step are sent in order.
func TestEventsComeInOrder(t *testing.T) {
	events := agenttest.Record()
	var ids []string
	see := agenttest.Play(func(_ context.Context, s agent.State) (agent.Step, error) {
		ids = append(ids, agent.Checkpoint(s).InferenceID())
		return agent.Step{Message: agent.Assistant("done")}, nil
	})
	a := build(t, agent.Config{
		Driver: agenttest.Script(agenttest.Call("add", `{}`), see), Executor: tools().Executor(), Observer: events,
	})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{
		"run.started", "judged",
		"step.started", "inference.started", "inference.completed", "tool_call.started", "tool_call.completed", "step.completed", "judged",
		"step.started", "inference.started", "inference.completed", "step.completed", "judged",
		"run.completed",
	}, events.Names())

	started, completed := agenttest.Of[agent.InferenceStarted](events), agenttest.Of[agent.InferenceCompleted](events)
	require.Len(t, started, 2)
	for i := range started {
		assert.Equal(t, started[i].Inference, completed[i].Inference)
		assert.Equal(t, i, started[i].Step)
		assert.Equal(t, i, completed[i].Step)
	}
	assert.NotEqual(t, started[0].Inference, started[1].Inference)
	assert.Equal(t, []string{started[1].Inference}, ids)

	judged := agenttest.Of[agent.Judged](events)
	assert.Equal(t, []int{0, 1, 2}, lo.Map(judged, func(e agent.Judged, _ int) int { return e.Step }))
	assert.Equal(t, []agent.Verdict{agent.NoOpinion, agent.AllowContinuation, agent.AllowStop},
		lo.Map(judged, func(e agent.Judged, _ int) agent.Verdict { return e.Evaluation.Verdict }))
	for _, e := range agenttest.Of[agent.StepStarted](events) {
		assert.Equal(t, final.Run(), e.Run)
	}
}

// IP-85: a step that a processor refuses to begin has a started event, and no other
// effect.
func TestAStepThatDoesNotBeginIsNoStep(t *testing.T) {
	events := agenttest.Record()
	driver := agenttest.Script()
	a := build(t, agent.Config{
		Driver: driver, Observer: events,
		AroundStep: []agent.Processor{agent.ProcessorFunc(func(context.Context, agent.State, agent.Next) mo.Result[agent.State] {
			return mo.Err[agent.State](errOutOfPaper)
		})},
	})
	failed := runError(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello"))))
	require.ErrorIs(t, failed, errOutOfPaper)
	assert.Equal(t, agent.StatusFailed, failed.State.Status())
	assert.Zero(t, failed.State.RunStepCount())
	assert.Empty(t, driver.Calls())
	assert.Len(t, agenttest.Of[agent.StepStarted](events), 1)
	assert.Empty(t, agenttest.Of[agent.StepCompleted](events))
}

// IP-86: a model call or an executor that fails after the step began: one failed
// step is kept, with the error, and one step-completed event tells of it.
// IP-87: the last event says how the run stands, and never that it is running.
// IP-89: it carries the error.
func TestAStepThatFailsIsKept(t *testing.T) {
	overloaded := kinded{errors.New("overloaded"), agent.KindRateLimit}
	for name, tc := range map[string]struct {
		turn     agenttest.Turn
		executor agent.Executor
		err      error
		kind     agent.ErrorKind
		messages []string
	}{
		"the model":              {agenttest.Fail(overloaded), nil, overloaded, agent.KindRateLimit, []string{"hello"}},
		"a model without a word": {agenttest.Fail(errOutOfPaper), nil, errOutOfPaper, agent.KindModel, []string{"hello"}},
		"the executor": {calls("add", "add"), executor{ // IP-46: an executor's Err is not an answer
			execute: func(_ context.Context, _ agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
				if p.Call.Index == 0 {
					return nil, errOutOfPaper
				}
				return &agent.ToolResult{Content: agent.TextContent("fine")}, nil
			},
		}, errOutOfPaper, agent.KindUnknown, []string{"hello", "", "no result: the run failed", "fine"}},
	} {
		t.Run(name, func(t *testing.T) {
			events := agenttest.Record()
			a := build(t, agent.Config{Name: "x", Driver: agenttest.Script(tc.turn), Executor: tc.executor, Observer: events})
			failed := runError(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello"))))
			require.ErrorIs(t, failed, tc.err)
			s := failed.State
			assert.Equal(t, agent.StatusFailed, s.Status())
			assert.Equal(t, agent.StopError, signalOf(t, s).Reason)
			assert.Equal(t, 1, s.RunStepCount())
			assert.Equal(t, 1, s.RunFailures())
			assert.Equal(t, tc.messages, texts(s))
			step := lastStep(t, s)
			assert.Equal(t, agent.StepFailure, step.Kind())
			require.NotNil(t, step.Failure())
			assert.Equal(t, tc.kind, step.Failure().ErrorKind())
			require.ErrorIs(t, step.Failure(), tc.err)

			completed := agenttest.Of[agent.StepCompleted](events)
			require.Len(t, completed, 1)
			assert.Equal(t, step, completed[0].Record)
			last := agenttest.Of[agent.RunCompleted](events)
			require.Len(t, last, 1)
			assert.Equal(t, agent.StatusFailed, last[0].State.Status())
			require.ErrorIs(t, last[0].Err, tc.err)
			assert.Equal(t, "run.completed", events.Names()[len(events.Names())-1])
		})
	}
}

type kinded struct {
	error
	kind agent.ErrorKind
}

func (k kinded) ErrorKind() agent.ErrorKind { return k.kind }

// IP-46: the failure of a tool is an answer for the model, and the batch continues.
func TestAFailedToolIsAnAnswer(t *testing.T) {
	final := play(t, calls("fail", "add"), agenttest.Say("sorry"))
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, []string{"call_1_1 failed error", "call_1_2 executed "}, answers(final))
	assert.Equal(t, 1, final.RunFailures())
	for _, step := range final.RunSteps() {
		assert.Nil(t, step.Failure())
	}
}

// A session has the id that its first run was given, and keeps it.
func TestTheSessionOfANewState(t *testing.T) {
	a := build(t, agent.Config{Driver: agenttest.Script(agenttest.Say("one"), agenttest.Say("two"))})
	s, err := a.RunWith(t.Context(), agent.RunSettings{Session: "ses_mine"}, agent.NewState(), agent.UserText("hello")).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.SessionID("ses_mine"), s.Session())
	assert.Equal(t, agent.SessionID("ses_mine"), s.Run().Session)
	s, err = a.RunWith(t.Context(), agent.RunSettings{Session: "ses_other"}, s, agent.UserText("and?")).Get()
	require.NoError(t, err)
	assert.Equal(t, agent.SessionID("ses_mine"), s.Session())
	assert.Equal(t, agent.SessionID("ses_mine"), s.Run().Session)
}

// IP-90: each run of the same state is a separate execution that counts only its own
// steps, and that begins and ends once.
func TestTheSameStateMayRunTwice(t *testing.T) {
	events := agenttest.Record()
	var begins []int
	a := build(t, agent.Config{
		Observer: events,
		Driver:   agenttest.Script(agenttest.Say("one").WithTokens(10, 1), agenttest.Say("two").WithTokens(20, 2)),
		Criterion: agent.CriterionFunc(func(ctx context.Context, s agent.State) (agent.Evaluation, error) {
			if s.RunStepCount() == 0 {
				begins = append(begins, s.StepCount())
			}
			return agent.Base.Evaluate(ctx, s).Get()
		}),
	})
	first, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	second, err := a.Run(t.Context(), first, agent.UserText("and?")).Get()
	require.NoError(t, err)

	assert.Equal(t, []int{0, 1}, begins)
	assert.Equal(t, 1, second.RunStepCount())
	assert.Equal(t, 2, second.StepCount())
	assert.Equal(t, 2, second.Run().Number)
	assert.Equal(t, first.Session(), second.Session())
	assert.NotEqual(t, first.Run().ID, second.Run().ID)
	assert.Equal(t, int64(22), second.RunUsage().Tokens())
	assert.Equal(t, int64(33), second.Usage().Tokens())
	for i, step := range second.RunSteps() {
		assert.Equal(t, 0, i)
		assert.Equal(t, 0, step.Index())
		assert.Equal(t, "two", step.Message().Text())
	}
	assert.Equal(t, 2, lo.Count(events.Names(), "run.started"))
	assert.Equal(t, 2, lo.Count(events.Names(), "run.completed"))
	assert.Equal(t, 1, first.StepCount(), "the first state stays as it was")
}

// IP-55: a driver without streaming and events works, and every listener receives the
// whole reply.
func TestADriverNeedNotStream(t *testing.T) {
	events := agenttest.Record()
	plain := struct{ agent.Driver }{agenttest.Script(agenttest.Say("one two"))}
	a := build(t, agent.Config{Driver: plain, Observer: events})
	var pieces []string
	for progress, err := range a.Stream(t.Context(), agent.NewState(agent.UserText("hello"))) {
		require.NoError(t, err)
		if progress.Delta != nil {
			pieces = append(pieces, progress.Delta.Text)
		}
	}
	assert.Equal(t, []string{"one two"}, pieces)
	assert.Len(t, agenttest.Of[agent.InferenceStarted](events), 1)
}

func TestADriverMustAnswerAsTheAssistant(t *testing.T) {
	for name, message := range map[string]agent.Message{"no role": {}, "the user": agent.UserText("hi")} {
		t.Run(name, func(t *testing.T) {
			a := build(t, agent.Config{Driver: agenttest.Script(agenttest.Reply(agent.Step{Message: message}))})
			failed := runError(t, a.Run(t.Context(), agent.NewState(agent.UserText("hello"))))
			require.ErrorContains(t, failed, "the driver answered with a message of role")
			assert.Equal(t, []string{"hello"}, texts(failed.State))
		})
	}
}

func TestWithoutToolsEveryCallIsAnswered(t *testing.T) {
	a := build(t, agent.Config{Driver: agenttest.Script(calls("add", "ls"), agenttest.Say("I see"))})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"call_1_1 not_executed unknown_tool", "call_1_2 not_executed unknown_tool"}, answers(final))
	assert.Equal(t, `unknown tool "ls"`, final.Message(3).Text())
}

func TestProcessorsThatBreakTheirContractFailTheRun(t *testing.T) {
	other := build(t, agent.Config{Driver: agenttest.Script(agenttest.Say("of another run")).EachRun()})
	foreign := func(ctx context.Context) agent.State {
		return other.Run(ctx, agent.NewState(agent.UserText("x"))).MustGet()
	}
	for name, tc := range map[string]struct {
		process agent.ProcessorFunc
		run     string // what is said of it around a run, and
		step    string // around a step
	}{
		"it does not go on": {func(_ context.Context, s agent.State, _ agent.Next) mo.Result[agent.State] {
			return mo.Ok(s)
		}, "returned a state that has not ended", "without taking the step and without stopping"},
		"it hands on a state of no run": {func(ctx context.Context, _ agent.State, next agent.Next) mo.Result[agent.State] {
			return next(ctx, agent.NewState(agent.UserText("mine")))
		}, "of another run", "of another run"},
		"it returns a state of another run": {func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
			return next(ctx, s).FlatMap(func(agent.State) mo.Result[agent.State] { return mo.Ok(foreign(ctx)) })
		}, "", "of another run"},
		"it returns an earlier state": {func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
			return next(ctx, s).FlatMap(func(agent.State) mo.Result[agent.State] { return mo.Ok(s) })
		}, "returned a state that has not ended", "without taking the step and without stopping"},
	} {
		for place, want := range map[string]string{"run": tc.run, "step": tc.step} {
			if want == "" {
				continue
			}
			t.Run(name+" around a "+place, func(t *testing.T) {
				c := agent.Config{Driver: agenttest.Script(agenttest.Say("hi"))}
				if place == "run" {
					c.AroundRun = []agent.Processor{tc.process}
				} else {
					c.AroundStep = []agent.Processor{tc.process}
				}
				failed := runError(t, build(t, c).Run(t.Context(), agent.NewState(agent.UserText("hello"))))
				require.ErrorContains(t, failed, want)
				assert.Equal(t, agent.StatusFailed, failed.State.Status())
			})
		}
	}
}

// A request or a view applies to one model call; a request that a processor around the
// run sets applies to the whole run.
func TestARequestOfAStepEndsWithIt(t *testing.T) {
	driver := agenttest.Script(agenttest.Call("add", `{}`), agenttest.Say("done"))
	set := func(model string, when func(agent.State) bool) agent.Processor {
		return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
			if when(s) {
				r := s.Request()
				r.Model += model
				s = s.WithRequest(r).WithView(agent.UserText("shown"))
			}
			return next(ctx, s)
		})
	}
	a := build(t, agent.Config{
		Driver: driver, Executor: tools().Executor(), Request: agent.Request{Model: "m"},
		AroundRun:  []agent.Processor{set("+run", func(agent.State) bool { return true })},
		AroundStep: []agent.Processor{set("+step", func(s agent.State) bool { return s.RunStepCount() == 0 })},
	})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	asked := driver.Calls()
	require.Len(t, asked, 2)
	assert.Equal(t, "m+run+step", asked[0].Request.Model)
	assert.Equal(t, "m+run", asked[1].Request.Model)
	assert.Equal(t, "user: shown\n", asked[0].Transcript())
	assert.Equal(t, "user: hello\nassistant calls add {}\ntool add (executed): 0\n", asked[1].Transcript())
	assert.Equal(t, []string{"hello", "", "0", "done"}, texts(final), "the transcript is not touched")
}

// Messages that a criterion or a step adds are not input that the next run must accept.
func TestWhatARunAddsIsNoInput(t *testing.T) {
	once := agent.CriterionFunc(func(ctx context.Context, s agent.State) (agent.Evaluation, error) {
		e, err := agent.Base.Evaluate(ctx, s).Get()
		e.Effects = agent.EffectsOf(agent.AddContext("remember the milk"))
		return e, err
	})
	a := build(t, agent.Config{Driver: agenttest.Script(agenttest.Say("hi")), Criterion: once})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"hello", "remember the milk", "hi", "remember the milk"}, texts(final))
	for i, m := range agent.Checkpoint(final).Pending() {
		assert.Fail(t, "a message counts as input", "%d: %s", i, m.Text())
	}

	say := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		s, err := next(ctx, s).Get()
		return mo.TupleToResult(s.With(agent.UserText("by the way")), err)
	})
	a = build(t, agent.Config{Driver: agenttest.Script(agenttest.Say("hi")), AroundStep: []agent.Processor{say}})
	final, err = a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"hello", "hi", "by the way"}, texts(final))
	for i, m := range agent.Checkpoint(final).Pending() {
		assert.Fail(t, "a message counts as input", "%d: %s", i, m.Text())
	}
}

func TestInputIsWhatNoRunHasLetIn(t *testing.T) {
	var seen []string
	letIn := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		for _, m := range s.Input() {
			seen = append(seen, m.Text())
		}
		return next(ctx, agent.Checkpoint(s).WithInput(agent.UserText("cleaned")))
	})
	a := build(t, agent.Config{Driver: agenttest.Script(agenttest.Say("hi"), agenttest.Say("ho")), AroundRun: []agent.Processor{letIn}})
	s := agent.NewState(agent.System("be brief"), agent.UserText("one"))
	s, err := a.Run(t.Context(), s, agent.UserText("two")).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two"}, seen)
	assert.Equal(t, []string{"cleaned", "hi"}, texts(s))
	s, err = a.Run(t.Context(), s, agent.UserText("three")).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "three"}, seen)
	assert.Equal(t, []string{"cleaned", "hi", "cleaned", "ho"}, texts(s))
}

// The error of a sub-agent's run is not mistaken for the error of the outer run.
func TestTheErrorOfASubAgentIsAnErrorLikeAnyOther(t *testing.T) {
	child := build(t, agent.Config{Name: "child", Driver: agenttest.Script(agenttest.Fail(errOutOfPaper))})
	delegate := agent.ProcessorFunc(func(ctx context.Context, s agent.State, _ agent.Next) mo.Result[agent.State] {
		return child.RunWith(ctx, agent.RunSettings{Parent: s.Run()}, agent.NewState(agent.UserText("work")))
	})
	parent := build(t, agent.Config{Name: "parent", Driver: agenttest.Script(), AroundRun: []agent.Processor{delegate}})
	failed := runError(t, parent.Run(t.Context(), agent.NewState(agent.UserText("hello"))))
	assert.Equal(t, "parent", failed.State.Run().Agent)
	assert.Equal(t, []string{"hello"}, texts(failed.State))
	require.ErrorIs(t, failed, errOutOfPaper)
}

func TestBackgroundIsDrainedAndCancelled(t *testing.T) {
	works := []*background{{err: errOutOfPaper}, {}}
	a := build(t, agent.Config{
		Driver:     agenttest.Script(),
		Background: lo.Map(works, func(b *background, _ int) agent.Background { return b }),
	})
	require.ErrorIs(t, a.Drain(t.Context()), errOutOfPaper)
	a.Cancel()
	for _, b := range works {
		assert.Equal(t, []string{"drain", "cancel"}, b.calls)
	}
}

type background struct {
	err   error
	calls []string
}

func (b *background) Drain(context.Context) error { b.calls = append(b.calls, "drain"); return b.err }
func (b *background) Cancel()                     { b.calls = append(b.calls, "cancel") }

func failing(err error) agent.Processor {
	return agent.ProcessorFunc(func(context.Context, agent.State, agent.Next) mo.Result[agent.State] {
		return mo.Err[agent.State](err)
	})
}

// IP-87, IP-90: the last event of every run is its end, exactly once, with its final
// status.
func TestEveryRunIsToldToHaveEnded(t *testing.T) {
	reject := agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
		return agent.Approval{}, nil
	})
	deny := agent.ProcessorFunc(func(_ context.Context, s agent.State, _ agent.Next) mo.Result[agent.State] {
		return mo.Ok(agent.Checkpoint(s).WithStatus(agent.StatusDenied).WithStop(agent.Signal{Reason: agent.StopDenied, Source: "guard"}))
	})
	var ran []string
	for want, config := range map[agent.Status]agent.Config{
		agent.StatusDone:        {Driver: agenttest.Script(agenttest.Say("hi"))},
		agent.StatusStopped:     {Driver: agenttest.Script(calls("stop")), Executor: tools().Executor()},
		agent.StatusFailed:      {Driver: agenttest.Script(agenttest.Fail(errOutOfPaper))},
		agent.StatusDenied:      {Driver: agenttest.Script(), AroundRun: []agent.Processor{deny}},
		agent.StatusCancelled:   {Driver: agenttest.Script(agenttest.Hang())},
		agent.StatusInterrupted: {Driver: agenttest.Script(calls("ask")), Executor: asking(&ran), Approver: reject},
	} {
		t.Run(string(want), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			events := agenttest.Record()
			config.Observer = agent.ObserverFunc(func(ctx context.Context, e agent.Event) {
				events.Observe(ctx, e)
				if e.EventName() == "inference.started" && want == agent.StatusCancelled {
					cancel()
				}
			})
			final := stateOf(t, build(t, config).Run(ctx, agent.NewState(agent.UserText("hello"))))
			assert.Equal(t, want, final.Status())
			assert.True(t, want.Terminal())
			ended := agenttest.Of[agent.RunCompleted](events)
			require.Len(t, ended, 1)
			assert.Equal(t, want, ended[0].State.Status())
			assert.Equal(t, want == agent.StatusFailed || want == agent.StatusCancelled, ended[0].Err != nil)
			names := events.Names()
			assert.Equal(t, 1, lo.Count(names, "run.started"))
			assert.Equal(t, []string{"run.started", "run.completed"}, []string{names[0], names[len(names)-1]})
		})
	}
}
