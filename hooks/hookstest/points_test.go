package hookstest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
)

var errBoom = errors.New("boom")

// moments returns one moment for each point.
func moments() map[hooks.PointName]hookstest.Moment {
	return map[hooks.PointName]hookstest.Moment{
		hooks.InputSubmitted:        hookstest.Input("in"),
		hooks.ExecutionStart:        hookstest.Start("in"),
		hooks.StepStart:             hookstest.StepStart(),
		hooks.PreInference:          hookstest.Request(agent.Request{Model: "small"}),
		hooks.PostInference:         hookstest.Reply("said"),
		hooks.PreToolUse:            hookstest.ToolCall("bash", `{}`),
		hooks.PostToolUse:           hookstest.ToolResult("bash", `{}`, "out"),
		hooks.ToolFailed:            hookstest.ToolFailure("bash", `{}`, errBoom),
		hooks.InterventionRequested: hookstest.Intervention("bash", `{}`),
		hooks.PreCompact:            hookstest.Compact(hooks.Compaction{Messages: 9}),
		hooks.PostCompact:           hookstest.CompactResult(hooks.Compaction{Messages: 9, MessagesAfter: 3, Summary: "in short"}),
		hooks.CompactFailed:         hookstest.CompactFailure(hooks.Compaction{Messages: 9, Err: errBoom}),
		hooks.PreSubagent:           hookstest.Subagent("helper", "help"),
		hooks.PostSubagent:          hookstest.SubagentResult("helper", "help", "helped"),
		hooks.SubagentFailed:        hookstest.SubagentFailure("helper", "help", errBoom),
		hooks.InterventionResolved:  hookstest.InterventionAnswer("bash", `{}`, agent.Approval{Verdict: agent.Approve}),
		hooks.InterventionStopped:   hookstest.InterventionStopped("bash", `{}`, "no"),
		hooks.StepEnd:               hookstest.StepEnd("said"),
		hooks.Stop:                  hookstest.Stop("said"),
		hooks.AgentFailed:           hookstest.RunFailure(errBoom),
		hooks.ExecutionEnd:          hookstest.End(agent.StatusDone),
		hooks.ConversationStart:     hookstest.Conversation(hooks.ConversationStart, hooks.Conversation{}),
		hooks.ConversationEnd:       hookstest.Conversation(hooks.ConversationEnd, hooks.Conversation{Reason: agent.ClosedByUser}),
		hooks.SessionStart:          hookstest.Pipeline(hooks.SessionStart, hooks.Pipeline{Name: "work"}),
		hooks.SessionComplete:       hookstest.Pipeline(hooks.SessionComplete, hooks.Pipeline{Reason: "max"}),
		hooks.IterationStart:        hookstest.Pipeline(hooks.IterationStart, hooks.Pipeline{MaxIterations: 3}),
		hooks.IterationComplete:     hookstest.Pipeline(hooks.IterationComplete, hooks.Pipeline{ChangedFiles: []string{"a.go"}}),
		hooks.IterationFailed:       hookstest.Pipeline(hooks.IterationFailed, hooks.Pipeline{Err: errBoom}),
		hooks.StageComplete:         hookstest.Pipeline(hooks.StageComplete, hooks.Pipeline{NextStage: "deploy"}),
		hooks.RunStart:              hookstest.Blueprint(hooks.RunStart, hooks.BlueprintRun{Parameters: []byte(`{"a":1}`)}),
		hooks.RunResult:             hookstest.Blueprint(hooks.RunResult, hooks.BlueprintRun{ResultText: "42"}),
		hooks.RunFailed:             hookstest.Blueprint(hooks.RunFailed, hooks.BlueprintRun{Err: errBoom}),
		hooks.RunTimeout:            hookstest.Blueprint(hooks.RunTimeout, hooks.BlueprintRun{Err: errBoom}),
		hooks.RunFinish:             hookstest.Blueprint(hooks.RunFinish, hooks.BlueprintRun{Status: agent.StatusDone}),
	}
}

// There is a moment for every point, and a hook that is everywhere is asked there
// only, once.
func TestEveryPointHasAMoment(t *testing.T) {
	all := moments()
	for _, at := range hooks.PointNames() {
		t.Run(string(at), func(t *testing.T) {
			moment, ok := all[at]
			require.True(t, ok)
			assert.Equal(t, at, moment.Point())
			var told []hooks.PointName
			everywhere := hooks.ObserveAll("everywhere", func(_ context.Context, c hooks.Context) error {
				told = append(told, c.Point())
				return nil
			})
			fired := hookstest.Fire(t, everywhere, moment)
			assert.Equal(t, []hooks.PointName{at}, told)
			assert.Equal(t, []string{"everywhere"}, fired.Called)
			assert.Equal(t, at, fired.Point)
			assert.Equal(t, hooks.Pass, fired.Decision)
			assert.Nil(t, fired.Outcome)
			assert.Len(t, fired.Events, 2, "start and complete")
		})
	}
}

// At every point in later steps, a hook that makes the run go on or calls tools is
// still asked once.
func TestHooksAreAskedOnce(t *testing.T) {
	busy := agent.Step{Message: agent.Assistant("looking").WithCalls(agent.ToolCall{Name: "look"}, agent.ToolCall{Name: "look"})}
	for at, moment := range moments() {
		switch {
		case at.IsAroundRuns(), slices.Contains([]hooks.PointName{hooks.ConversationStart, hooks.InputSubmitted, hooks.ExecutionStart, hooks.ConversationEnd}, at):
			continue // there are no steps before, or they are over
		}
		t.Run(string(at), func(t *testing.T) {
			steps := []int{}
			spy := hooks.ObserveAll("spy", func(_ context.Context, c hooks.Context) error {
				steps = append(steps, c.StepIndex())
				return nil
			}, at)
			hookstest.Fire(t, spy, moment.AfterSteps(busy, agent.Step{}, busy))
			want := 3
			if at == hooks.Stop || at == hooks.ExecutionEnd || at == hooks.AgentFailed || at == hooks.InterventionStopped {
				want = 4 // steps taken
			}
			assert.Equal(t, []int{want}, steps)
		})
	}
}

// What each point leaves.
func TestInputPoints(t *testing.T) {
	input := hooks.On(hooks.AtInputSubmitted, "both", func(_ context.Context, c hooks.InputContext) hooks.Result {
		assert.Equal(t, "one\ntwo", c.Text())
		return c.RewriteText("three", agent.AddContext("it was two"))
	})
	fired := hookstest.Fire(t, input, hookstest.InputOf(agent.UserText("one"), agent.UserText("two")))
	assert.Equal(t, hooks.Rewrite, fired.Decision)
	assert.Equal(t, "three", fired.Text())
	assert.Len(t, fired.Input, 1)
	assert.Equal(t, []string{"it was two"}, fired.AddedTexts())

	start := hooks.On(hooks.AtExecutionStart, "closed", func(_ context.Context, c hooks.ExecutionContext) hooks.Result {
		return c.Stop("we are closed", agent.AddMessage(agent.UserText("closed")))
	})
	fired = hookstest.Fire(t, start, hookstest.Start("hi"))
	assert.Equal(t, hooks.StopRun, fired.Decision)
	assert.Equal(t, "hi", fired.Text())
	assert.Equal(t, agent.StatusStopped, fired.State.Status())
	assert.Equal(t, []string{"closed"}, fired.AddedTexts())
}

func TestModelPoints(t *testing.T) {
	key := agent.RunKey[int]("asked")
	request := hooks.On(hooks.AtPreInference, "cheap", func(_ context.Context, c hooks.InferenceContext) hooks.Result {
		assert.Equal(t, "big", c.Request().Model)
		r := c.Request()
		r.Model = "small"
		return c.Rewrite(r, key.Set(key.Or(c.State(), 0)+1), agent.AddContext("be short"))
	})
	fired := hookstest.Fire(t, request, hookstest.Request(agent.Request{Model: "big"}).
		WithState(agent.NewState(agent.System("be kind"), agent.UserText("hello"))))
	assert.Equal(t, hooks.Rewrite, fired.Decision)
	assert.Equal(t, "small", fired.Request.Model)
	require.Len(t, fired.Shown, 3)
	assert.Equal(t, "be kind", fired.Shown[0].Text())
	assert.Equal(t, "be short", fired.Shown[2].Text())
	assert.Equal(t, 1, key.Or(fired.State, 0), "the hook is asked once")

	reply := hooks.On(hooks.AtPostInference, "calm", func(_ context.Context, c hooks.ReplyContext) hooks.Result {
		assert.Equal(t, []string{"bash"}, c.Tools())
		assert.Equal(t, int64(7), c.Reply().Usage.Tokens())
		return c.ReplaceText("calm")
	})
	fired = hookstest.Fire(t, reply, hookstest.Reply("").WithReply(agent.Step{
		Message: agent.Assistant("wild").WithCalls(agent.ToolCall{Name: "bash"}), Usage: agent.Usage{InputTokens: 7},
	}))
	assert.Equal(t, hooks.Replace, fired.Decision)
	assert.Equal(t, "calm", fired.Text())
	assert.Equal(t, 1, fired.Reply.Message.CallCount())
	assert.False(t, fired.Ran(), "the point has no tool, whatever the run goes on to do")
}

func TestStepPoints(t *testing.T) {
	end := hooks.On(hooks.AtStepEnd, "end", func(_ context.Context, c hooks.StepEndContext) hooks.Result {
		assert.Equal(t, agent.StepToolExecution, c.Kind())
		assert.Equal(t, "looking", c.Content())
		assert.Equal(t, 3, c.RunToolCalls(), "with the steps before")
		result := c.Record().Result(0)
		assert.Equal(t, "no such file", result.Text())
		return c.Stop("enough")
	})
	look := agent.ToolCall{Name: "look"}
	fired := hookstest.Fire(t, end, hookstest.StepEnd("").
		AfterSteps(agent.Step{Message: agent.Assistant("").WithCalls(look)}, agent.Step{Message: agent.Assistant("").WithCalls(look)}).
		WithReply(agent.Step{Message: agent.Assistant("looking").WithCalls(look)}).
		WithResult(agent.ToolResult{Content: agent.TextContent("no such file"), Reason: agent.ReasonError}))
	assert.Equal(t, hooks.StopRun, fired.Decision)
	assert.Equal(t, 3, fired.State.RunStepCount())
	assert.Equal(t, agent.StatusStopped, fired.State.Status())
}

func TestStopPoint(t *testing.T) {
	again := hooks.On(hooks.AtStop, "again", func(_ context.Context, c hooks.StopContext) hooks.Result {
		if c.Continuations() < 2 && c.Signal().Reason == agent.StopCompleted {
			return c.Continue("the tests fail: " + c.Answer())
		}
		return c.Stop("give up")
	})
	hookstest.Cases{
		"first": {At: hookstest.Stop("all done"), Want: hooks.Continue, Saying: "the tests fail: all done", Also: func(t *testing.T, f hookstest.Fired) {
			t.Helper()
			assert.Equal(t, 2, f.State.RunStepCount(), "it went on, and was not asked again")
		}},
		"second":       {At: hookstest.Stop("x").WithContinuations(1), Want: hooks.Continue},
		"third":        {At: hookstest.Stop("x").WithContinuations(2), Want: hooks.StopRun, Saying: "give up"},
		"other reason": {At: hookstest.Stop("x").WithSignal(agent.Signal{Reason: agent.StopFinishReason}), Want: hooks.StopRun},
	}.Test(t, again)

	stubborn := hooks.On(hooks.AtStop, "stubborn", func(_ context.Context, c hooks.StopContext) hooks.Result { return c.Continue("more") })
	capped := hookstest.Fire(t, stubborn, hookstest.Stop("x").WithContinuations(hooks.DefaultContinuations))
	assert.Equal(t, hooks.Pass, capped.Decision, "no hook can make it go on for ever")
	assert.Equal(t, 1, capped.State.RunStepCount())
}

// The possible ends for a run, as hooks see them.
func TestEndPoint(t *testing.T) {
	for status, reason := range map[agent.Status]agent.StopReason{
		agent.StatusDone: agent.StopCompleted, agent.StatusStopped: agent.StopByHook, agent.StatusFailed: agent.StopError,
		agent.StatusDenied: agent.StopDenied, agent.StatusCancelled: agent.StopUser, agent.StatusInterrupted: agent.StopRejected,
	} {
		t.Run(string(status), func(t *testing.T) {
			told := 0
			fired := hookstest.Fire(t, hooks.Observe(hooks.AtExecutionEnd, "report", func(_ context.Context, c hooks.EndContext) error {
				told++
				assert.Equal(t, status, c.Status())
				assert.Equal(t, reason, c.Reason().Reason)
				assert.Equal(t, status == agent.StatusFailed || status == agent.StatusCancelled, c.Err() != nil)
				return nil
			}), hookstest.End(status))
			assert.Equal(t, 1, told)
			assert.Equal(t, status, fired.State.Status())
		})
	}
	hookstest.Fire(t, hooks.Observe(hooks.AtExecutionEnd, "report", func(_ context.Context, c hooks.EndContext) error {
		assert.Equal(t, agent.Signal{Reason: agent.StopCostLimit, Message: "1 dollar", Source: "guards"}, c.Reason())
		assert.Equal(t, "half of it", c.Answer())
		assert.Equal(t, 3, c.State().RunStepCount())
		return nil
	}), hookstest.End(agent.StatusStopped).WithSignal(agent.Signal{Reason: agent.StopCostLimit, Message: "1 dollar", Source: "guards"}).
		WithReply(agent.Step{Message: agent.Assistant("half of it")}).AfterSteps(agent.Step{}, agent.Step{}))
	hookstest.Fire(t, hooks.Observe(hooks.AtExecutionEnd, "report", func(_ context.Context, c hooks.EndContext) error {
		assert.Equal(t, agent.Signal{Reason: agent.StopFinishReason, Message: "cut"}, c.Reason())
		return nil
	}), hookstest.End(agent.StatusDone).WithSignal(agent.Signal{Reason: agent.StopFinishReason, Message: "cut"}))
}

func TestRunFailurePoint(t *testing.T) {
	key := agent.SessionKey[string]("failure")
	fired := hookstest.Fire(t, hooks.On(hooks.AtAgentFailed, "note", func(_ context.Context, c hooks.FailureContext) hooks.Result {
		assert.ErrorIs(t, c.Err(), errBoom)
		return c.Allow(key.Set("noted"))
	}), hookstest.RunFailure(errBoom))
	assert.Equal(t, hooks.Allow, fired.Decision)
	require.ErrorIs(t, fired.RunErr, errBoom)
	assert.Equal(t, "noted", key.Or(fired.State, ""))
}

// A conversation starts in a new state or goes on in one with runs, and ends with a reason.
func TestConversationPoints(t *testing.T) {
	greet := hooks.On(hooks.AtConversationStart, "greet", func(_ context.Context, c hooks.ConversationContext) hooks.Result {
		about := c.Conversation()
		if about.Source == agent.ConversationResume {
			return c.Allow(agent.AddContext(fmt.Sprintf("back after %d turns", about.Turns)))
		}
		return c.Allow(agent.AddContext("new here"))
	})
	hookstest.Cases{
		"new":     {At: hookstest.Conversation(hooks.ConversationStart, hooks.Conversation{}), Want: hooks.Allow, Also: added("new here")},
		"resumed": {At: hookstest.Conversation(hooks.ConversationStart, hooks.Conversation{Source: agent.ConversationResume}), Want: hooks.Allow, Also: added("back after 1 turns")},
		"later":   {At: hookstest.Conversation(hooks.ConversationStart, hooks.Conversation{Turns: 3}), Want: hooks.Allow, Also: added("back after 3 turns")},
	}.Test(t, greet)

	broken := hooks.On(hooks.AtConversationStart, "broken", func(_ context.Context, c hooks.ConversationContext) hooks.Result { return c.Fail(errBoom) })
	fired := hookstest.Fire(t, broken, hookstest.Conversation(hooks.ConversationStart, hooks.Conversation{}))
	assert.Equal(t, hooks.Deny, fired.Decision)
	assert.Equal(t, agent.StatusDenied, fired.State.Status())
	assert.Zero(t, fired.State.MessageCount(), "the input is not kept")

	var told hooks.Conversation
	tell := hooks.Observe(hooks.AtConversationEnd, "tell", func(_ context.Context, c hooks.ConversationEndContext) error {
		told = c.Conversation()
		assert.Equal(t, "done", c.State().Answer())
		return nil
	})
	hookstest.Fire(t, tell, hookstest.Conversation(hooks.ConversationEnd, hooks.Conversation{Turns: 2, Reason: "idle"}))
	assert.Equal(t, hooks.Conversation{Turns: 2, Reason: "idle"}, told)
	hookstest.Fire(t, tell.WithFailure(hooks.Abort), hookstest.Conversation(hooks.ConversationEnd, hooks.Conversation{}))
	assert.Equal(t, hooks.Conversation{Turns: 1, Reason: agent.ClosedOtherwise}, told)

	for _, wrong := range []hookstest.Moment{
		hookstest.Conversation(hooks.ConversationStart, hooks.Conversation{Source: agent.ConversationStartup, Turns: 1}),
		hookstest.Conversation(hooks.ConversationStart, hooks.Conversation{Source: "clear"}),
		hookstest.Conversation(hooks.ConversationStart, hooks.Conversation{Reason: "idle"}),
		hookstest.Conversation(hooks.ConversationStart, hooks.Conversation{Turns: -1}),
		hookstest.Conversation(hooks.ConversationEnd, hooks.Conversation{Source: agent.ConversationResume}),
		hookstest.Conversation(hooks.SessionStart, hooks.Conversation{}),
		hookstest.Conversation(hooks.ConversationStart, hooks.Conversation{}).AfterSteps(agent.Step{}),
	} {
		_, err := wrong.Fire(t.Context(), hooks.NewSet(hooks.ObserveAll("all", func(context.Context, hooks.Context) error { return nil }))).Get()
		assert.Error(t, err)
	}
}

func added(text string) func(t *testing.T, f hookstest.Fired) {
	return func(t *testing.T, f hookstest.Fired) {
		t.Helper()
		assert.Equal(t, []string{text}, f.AddedTexts())
	}
}
