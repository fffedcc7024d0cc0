package hookstest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
)

// failingTest is a test that remembers how it was ended.
type failingTest struct {
	testing.TB

	ctx    context.Context //nolint:containedctx // a test has one
	failed string
}

func (f *failingTest) Helper() {}

func (f *failingTest) Context() context.Context { return f.ctx }

func (f *failingTest) Fatal(args ...any) {
	f.failed = fmt.Sprint(args...)
	panic(f)
}

// What cannot be fired is an error that says why, and ends the test.
func TestMomentsThatCannotBeFired(t *testing.T) {
	pass := answering(func(c hooks.ToolContext) hooks.Result { return c.Pass() })
	call := hookstest.ToolCall("bash", `{}`)
	step := hooks.On(hooks.AtStepStart, "step", func(_ context.Context, c hooks.StepContext) hooks.Result { return c.Pass() })
	for name, tc := range map[string]struct {
		hook hooks.Hook
		at   hookstest.Moment
		want string
	}{
		"no moment":               {pass, hookstest.Moment{}, "firing a moment: the zero Moment is at no point: make one with ToolCall, Input or another func"},
		"another point":           {step, call, "firing PreToolUse: no hook is at this point\nhook \"step\" is at [StepStart]"},
		"a wrong hook":            {pass.Matching(hooks.Or()), call, `firing PreToolUse: hook "guard": Or without matchers matches nothing: add a matcher, or remove it`},
		"no hook at all":          {hooks.Hook{}, call, "firing PreToolUse: hook 1 has no name"},
		"no tool":                 {pass, hookstest.ToolCall("", `{}`), "the tool has no name"},
		"unreadable arguments":    {pass, hookstest.ToolCall("bash", `{"a":1,"a":2}`), "no hook is asked about arguments that cannot be read: reading arguments: "},
		"a step before the input": {hooks.ObserveAll("all", func(context.Context, hooks.Context) error { return nil }), hookstest.Input("x").AfterSteps(agent.Step{}), "AfterSteps: no step is taken before InputSubmitted"},
		"no error of a tool":      {pass, hookstest.ToolFailure("bash", `{}`, nil), "ToolFailure: the error is nil"},
		"no error of a run":       {pass, hookstest.RunFailure(nil), "RunFailure: the error is nil"},
		"no end":                  {pass, hookstest.End(agent.StatusRunning), `End("running"): a run does not end with that status`},
		"no schema error":         {pass, call.Invalid(nil), "Invalid: the error is nil"},
		"no executor":             {pass, call.WithExecutor(nil), "WithExecutor: the executor is nil"},
		"two schemas":             {pass, call.Invalid(errBoom).WithExecutor(agentExecutor{}), "Invalid: the executor of WithExecutor says what is invalid"},
		"a mocking tool":          {pass, call.WithResult(agent.ToolResult{Status: agent.ToolMocked}), `WithResult: the tool answers with status "mocked": that is for hooks to make at PreToolUse`},
		"a result of a step":      {step, hookstest.StepStart().WithResult(agent.ToolResult{}), "WithResult says nothing about StepStart: it is for [PreToolUse PostToolUse ToolFailed StepEnd]"},
		"a reply before it":       {step, hookstest.StepStart().WithReply(agent.Step{}), "WithReply says nothing about StepStart: it is for [PostInference StepEnd Stop ExecutionEnd]"},
		"a signal of a step":      {step, hookstest.StepStart().WithSignal(agent.Signal{}), "WithSignal says nothing about StepStart: it is for [Stop ExecutionEnd]"},
		"a hard stop":             {step, hookstest.Stop("x").WithSignal(agent.Signal{Reason: agent.StopCostLimit}), `no hook is asked at Stop when a run ends for "cost_limit": it does not end by itself`},
		"less than none":          {step, hookstest.Stop("x").WithContinuations(-1), "WithContinuations(-1): it must not be negative"},
		"continued elsewhere":     {step, hookstest.StepStart().WithContinuations(1), "WithContinuations says nothing about StepStart: it is for [Stop]"},
		"invalid elsewhere":       {step, hookstest.StepStart().Invalid(errBoom), "Invalid says nothing about StepStart: it is for [PreToolUse PostToolUse]"},
		"tools elsewhere":         {step, hookstest.StepStart().WithExecutor(agentExecutor{}), "WithExecutor says nothing about StepStart: it is for [PreToolUse PostToolUse ToolFailed StepEnd]"},
		"a reply of a user":       {step, hookstest.Reply("").WithReply(agent.Step{Message: agent.UserText("x")}), `WithReply: the reply is a message of role "user": it must be "assistant"`},
		"a stop that calls": {
			hooks.On(hooks.AtStop, "stop", func(_ context.Context, c hooks.StopContext) hooks.Result { return c.Pass() }),
			hookstest.Stop("").WithReply(agent.Step{Message: agent.Assistant("").WithCalls(agent.ToolCall{Name: "bash"})}),
			"the run did not reach the point: it ended as done after 2 steps",
		},
		"a reserved name": {hooks.ObserveAll("moment", func(context.Context, hooks.Context) error { return nil }), call, `hook "moment" is declared twice`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.at.Fire(t.Context(), hooks.NewSet(tc.hook)).Get()
			require.ErrorContains(t, err, tc.want)

			ended := &failingTest{ctx: t.Context()}
			assert.PanicsWithValue(t, ended, func() { hookstest.Fire(ended, tc.hook, tc.at) })
			assert.Equal(t, err.Error(), ended.failed)
		})
	}
}

// agentExecutor is an executor that is never called.
type agentExecutor struct{ agent.Executor }

// A moment whose context ended before is not reached.
func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	step := hooks.On(hooks.AtStepStart, "step", func(_ context.Context, c hooks.StepContext) hooks.Result { return c.Pass() })
	_, err := hookstest.StepStart().Fire(ctx, hooks.NewSet(step)).Get()
	require.ErrorContains(t, err, "firing StepStart: the run did not reach the point: ")
	require.ErrorIs(t, err, context.Canceled)
}

// A run that is cancelled while the hook is asked: its answer is no permission.
func TestCancelledMeanwhile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	late := answering(func(c hooks.ToolContext) hooks.Result { cancel(); return c.Fail(errBoom) })
	fired := hookstest.ToolCall("bash", ls).Fire(ctx, hooks.NewSet(late)).MustGet()
	assert.False(t, fired.Ran())
	assert.Equal(t, "bash", fired.Call.Name)
	assert.Equal(t, agent.ReasonCancelled, fired.Result.Reason)
	require.ErrorIs(t, fired.RunErr, context.Canceled)
	require.NoError(t, fired.Err, "cancelling is no failure of the hook")
}

// Time limits, retries and their policies apply.
func TestTimeAndFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		slow := hooks.On(hooks.AtPreToolUse, "slow", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
			<-ctx.Done()
			return c.Fail(ctx.Err())
		}).WithTimeout(time.Second)
		fired := hookstest.Fire(t, slow, hookstest.ToolCall("bash", ls))
		assert.Equal(t, time.Second, time.Since(began))
		assert.Equal(t, hooks.Deny, fired.Decision)
		require.ErrorIs(t, fired.Err, hooks.ErrTimeout)

		fired = hookstest.Fire(t, slow.WithFailure(hooks.Open), hookstest.ToolCall("bash", ls))
		assert.Equal(t, "pass (failed open: the hook did not answer in time: 1s)", fired.String())
		assert.Equal(t, "open", fired.Policy)

		tries := 0
		flaky := hooks.On(hooks.AtStepStart, "flaky", func(_ context.Context, c hooks.StepContext) hooks.Result {
			if tries++; tries < 3 {
				return c.Fail(errBoom)
			}
			return c.Stop("third time")
		}).WithFailure(hooks.Retry(5, time.Minute, hooks.Closed))
		fired = hookstest.Fire(t, flaky, hookstest.StepStart())
		assert.Equal(t, "stop by flaky: third time", fired.String())
		assert.Equal(t, []string{"flaky"}, fired.Called)
		require.NoError(t, fired.Err, "it did decide")
		assert.Empty(t, fired.Policy)
	})
}

// Abort fails the run.
func TestAbort(t *testing.T) {
	fired := hookstest.Fire(t, answering(func(c hooks.ToolContext) hooks.Result { return c.Fail(errBoom) }).WithFailure(hooks.Abort), hookstest.ToolCall("bash", ls))
	assert.Equal(t, hooks.Pass, fired.Decision)
	assert.Equal(t, "abort", fired.Policy)
	require.ErrorIs(t, fired.RunErr, errBoom)
	failed, ok := errors.AsType[*hooks.HookError](fired.RunErr)
	require.True(t, ok)
	assert.Equal(t, "guard", failed.Hook)
	assert.False(t, fired.Ran())
	assert.Equal(t, agent.StatusFailed, fired.State.Status())
}

// Detached hooks have ended when Fire returns, and what they failed with is told.
func TestDetachedHooksAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := false
		notify := hooks.Observe(hooks.AtExecutionEnd, "notify", func(context.Context, hooks.EndContext) error {
			time.Sleep(time.Minute / 2)
			done = true
			return errBoom
		}).Detach()
		fired := hookstest.Fire(t, notify, hookstest.End(agent.StatusDone))
		assert.True(t, done)
		require.ErrorIs(t, fired.Err, errBoom)
		assert.Equal(t, "open", fired.Policy)
	})
}

// A set is asked in its order; the first failure is told, and who decided.
func TestSetIsAskedInItsOrder(t *testing.T) {
	named := func(name string, f func(c hooks.ToolContext) hooks.Result) hooks.Hook {
		return hooks.On(hooks.AtPreToolUse, name, func(_ context.Context, c hooks.ToolContext) hooks.Result { return f(c) })
	}
	fails := func(c hooks.ToolContext) hooks.Result { return c.Fail(errBoom) }
	set := hooks.NewSet(
		named("user", func(c hooks.ToolContext) hooks.Result { return c.Allow(agent.AddContext("user")) }),
		named("first", fails).WithFailure(hooks.Open).WithPriority(hooks.PriorityGuard),
		named("second", fails).WithFailure(hooks.Open).WithPriority(hooks.PriorityInfrastructure),
		named("mock", func(c hooks.ToolContext) hooks.Result { return c.Mock("x", agent.AddMessage(agent.UserText("mock"))) }),
		named("last", func(c hooks.ToolContext) hooks.Result { return c.Deny("no") }),
		named("never", func(c hooks.ToolContext) hooks.Result { return c.Stop("never") }),
		hooks.Observe(hooks.AtPreToolUse, "audit", func(_ context.Context, c hooks.ToolContext) error {
			assert.Equal(t, "last", c.Frozen().Hook())
			return nil
		}),
		hooks.Observe(hooks.AtStepEnd, "elsewhere", func(context.Context, hooks.StepEndContext) error { return errBoom }),
	)
	fired := hookstest.FireSet(t, set, hookstest.ToolCall("bash", ls))
	assert.Equal(t, []string{"first", "second", "user", "mock", "last", "audit"}, fired.Called)
	assert.Equal(t, "deny by last: no (failed open: boom)", fired.String())
	assert.Equal(t, "last", fired.Hook)
	assert.Equal(t, []string{"user", "mock"}, fired.AddedTexts())
	kinds := map[hooks.EventKind]int{}
	for _, e := range fired.Events {
		kinds[e.Kind]++
	}
	assert.Equal(t, map[hooks.EventKind]int{hooks.HookStart: 6, hooks.HookFailed: 2, hooks.HookComplete: 3, hooks.HookBlocked: 1}, kinds)
}

// A moment's surroundings: the run, its state, its metadata.
func TestWhereAMomentIs(t *testing.T) {
	runKey, sessionKey := agent.RunKey[string]("r"), agent.SessionKey[string]("s")
	run := agent.Run{ID: "run_7", Parent: "run_6", Root: "run_1", Agent: "coder", Depth: 3, Stage: "plan", Iteration: 2}
	old := agent.NewState(agent.UserText("first"), agent.Assistant("second"))
	for at, moment := range moments() {
		t.Run(string(at), func(t *testing.T) {
			told := 0
			spy := hooks.ObserveAll("spy", func(_ context.Context, c hooks.Context) error {
				told++
				want := run
				want.Session, want.Number, want.Started = c.Run().Session, 1, c.Run().Started // made up
				assert.NotEmpty(t, want.Session)
				assert.Equal(t, want, c.Run())
				assert.Equal(t, "run", runKey.Or(c.State(), ""))
				assert.Equal(t, "session", sessionKey.Or(c.State(), ""))
				assert.Equal(t, "first", c.State().Message(0).Text())
				assert.Equal(t, "second", c.State().Message(1).Text())
				return nil
			}, at)
			hookstest.Fire(t, spy, moment.WithRun(run).WithState(sessionKey.In(old, "session")).WithEffects(runKey.Set("run")))
			assert.Equal(t, 1, told)

			hookstest.Fire(t, hooks.ObserveAll("root", func(_ context.Context, c hooks.Context) error {
				assert.Equal(t, agent.Run{ID: c.Run().ID, Root: c.Run().ID, Session: c.Run().Session, Number: 1, Started: c.Run().Started}, c.Run())
				return nil
			}, at), moment)
			hookstest.Fire(t, hooks.ObserveAll("child", func(_ context.Context, c hooks.Context) error {
				assert.Equal(t, 2, c.Run().Depth)
				assert.NotEmpty(t, c.Run().Parent)
				return nil
			}, at), moment.WithRun(agent.Run{Depth: 2}))
		})
	}
}

// One moment may be fired by many at once.
func TestMomentsAreSafeForConcurrentUse(t *testing.T) {
	call := hookstest.ToolCall("bash", `{"command":"git push --force"}`).AfterSteps(make([]agent.Step, 2)...)
	answers := make(chan hooks.Decision)
	for range 8 {
		go func() {
			fired, _ := call.Fire(t.Context(), hooks.NewSet(noPush)).Get()
			answers <- fired.Decision
		}()
	}
	for range 8 {
		assert.Equal(t, hooks.Deny, <-answers)
	}
}
