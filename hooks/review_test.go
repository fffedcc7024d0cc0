package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// IP-44: the model, the transcript and the events receive only the replacement of a
// result.
func TestReplace(t *testing.T) {
	w := workWith(t, []hooks.Hook{
		after("redact", func(c hooks.ToolResultContext) hooks.Result {
			return c.Replace(strings.ReplaceAll(c.Text(), "a.txt", "[file]"))
		}),
		after("frame", func(c hooks.ToolResultContext) hooks.Result { return c.Replace("<" + c.Text() + ">") }),
	}, wants("read_file", file))
	require.NoError(t, w.err)
	assert.Equal(t, []string{"call_1_1 read_file executed: <content of [file]>"}, w.answers(), "in reverse order: the first speaks last")
	r := w.result(0)
	assert.Equal(t, agent.ToolExecuted, r.Status)
	assert.Equal(t, 1, r.Attempts)
	assert.Equal(t, "redact", r.DecidedBy)
	assert.Contains(t, w.driver.Calls()[1].Transcript(), "<content of [file]>")
	for _, e := range w.recorder.Events() {
		if done, ok := e.(agent.ToolCallCompleted); ok {
			assert.Equal(t, "<content of [file]>", done.Result.Content.Text())
		}
	}
	assert.NotContains(t, fmt.Sprintf("%+v", w.events(hooks.HookComplete)), "content of a.txt", "nor do the hook events hold it")
}

// LH-50: what is withheld is gone: from the transcript, the events, the error and the
// state, together with what the tool wanted to add to it.
func TestWithhold(t *testing.T) {
	const secret = "hunter2"
	leaks := capability.UseTools(toolexec.Func("leaks", "Leaks.", func(context.Context, struct{}) (toolexec.Output, error) {
		return toolexec.Output{
			Content: agent.TextContent(secret),
			Effects: agent.EffectsOf(agent.AddContext("the password is "+secret), note.Set(secret)),
		}, nil
	}))
	checked := agent.SessionKey[bool]("checked")
	w := workWith(t, []hooks.Hook{
		after("keeper", func(c hooks.ToolResultContext) hooks.Result {
			if strings.Contains(c.Text(), secret) {
				return c.Withhold("it has a password", checked.Set(true))
			}
			return c.Allow()
		}),
		after("first", func(c hooks.ToolResultContext) hooks.Result { return c.Allow(agent.AddContext("first looked")) }),
	}, wants("leaks", `{}`), leaks)
	require.NoError(t, w.err)
	r := w.result(0)
	assert.Equal(t, `tool "leaks": result withheld by keeper: it has a password`, r.Text())
	assert.Equal(t, agent.ToolExecuted, r.Status, "it did run")
	assert.Equal(t, agent.ReasonWithheld, r.Reason)
	assert.True(t, r.IsError())
	assert.Equal(t, 1, r.Attempts)
	assert.Equal(t, "keeper", r.DecidedBy)
	assert.NotContains(t, fmt.Sprintf("%+v", w.recorder.Events()), secret)
	text, err := w.MarshalJSON()
	require.NoError(t, err)
	assert.NotContains(t, string(text), secret)
	assert.True(t, checked.Or(w.State, false), "what hooks add stays")
	assert.NotContains(t, string(text), "first looked", "what hooks added that were asked earlier goes with it")
	assert.Len(t, w.events(hooks.HookBlocked), 1)
}

// A failed tool's error is replaced with its text.
func TestReplacedFailureIsGoneFromTheErrorToo(t *testing.T) {
	w := workWith(t, []hooks.Hook{after("redact", func(c hooks.ToolResultContext) hooks.Result { return c.Replace("it failed") })},
		wants("broken", `{}`))
	r := w.result(0)
	assert.Equal(t, agent.ToolFailed, r.Status)
	require.Error(t, r.Err)
	require.NotErrorIs(t, r.Err, errPaper)
	assert.NotContains(t, r.Err.Error(), "paper")
}

// Stop after a call ends the run after the step: all calls of it are answered.
func TestStopAfterACall(t *testing.T) {
	w := workWith(t, []hooks.Hook{
		after("enough", func(c hooks.ToolResultContext) hooks.Result { return c.Stop("seen enough") }, hooks.ToolNamed("bash")),
	}, wants("bash", ls, "read_file", file))
	require.NoError(t, w.err)
	assert.Equal(t, []string{"bash " + ls, "read_file " + file}, w.ran)
	assert.Equal(t, []string{"call_1_1 bash executed: ran ls", "call_1_2 read_file executed: content of a.txt"}, w.answers())
	assert.Equal(t, agent.StatusStopped, w.Status())
	assert.Equal(t, agent.Signal{Reason: agent.StopByHook, Message: "seen enough", Source: "enough"}, w.signal())
	assert.Len(t, w.driver.Calls(), 1)

	w = workWith(t, []hooks.Hook{
		after("second", func(c hooks.ToolResultContext) hooks.Result { return c.Stop("two") }),
		after("first", func(c hooks.ToolResultContext) hooks.Result { return c.Stop("one") }),
	}, wants("bash", ls))
	assert.Equal(t, "first", w.signal().Source, "of several, the one who spoke first")
}

// IP-46, LH-61: ToolFailed fires for a tool's error, panic and timeout, before PostToolUse. It does not fire for an
// answer that says "failed", nor for calls that did not run.
func TestToolFailed(t *testing.T) {
	told := func(t *testing.T, call ...string) []string {
		t.Helper()
		var out []string
		w := workWith(t, []hooks.Hook{
			before("fixture", func(c hooks.ToolContext) hooks.Result { return c.MockFailure("mocked") }, hooks.ToolNamed("write_file")),
			before("guard", deny("no"), hooks.ToolNamed("bash")),
			hooks.Observe(hooks.AtToolFailed, "failed", func(_ context.Context, c hooks.ToolFailureContext) error {
				out = append(out, "failed "+string(c.Status()))
				require.Error(t, c.Err())
				return nil
			}),
			hooks.Observe(hooks.AtPostToolUse, "post", func(_ context.Context, c hooks.ToolResultContext) error {
				out = append(out, "post "+string(c.Status()))
				assert.True(t, c.IsError())
				return nil
			}),
		}, wants(call...), capability.UseTools(
			toolexec.Func("grumbles", "Has bad news.", func(context.Context, struct{}) (toolexec.Output, error) {
				return toolexec.Output{Content: agent.TextContent("no hit"), Failed: true}, nil
			}),
			toolexec.WithPolicy(toolexec.Func("hangs", "Hangs.", func(ctx context.Context, _ struct{}) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}), toolexec.Policy{Timeout: time.Minute}),
		))
		require.NoError(t, w.err)
		assert.Equal(t, "done", w.Answer(), "a failing tool is news for the model")
		return out
	}
	assert.Equal(t, []string{"failed failed", "post failed"}, told(t, "broken", `{}`))
	assert.Equal(t, []string{"failed failed", "post failed"}, told(t, "explodes", `{}`))
	synctest.Test(t, func(t *testing.T) { assert.Equal(t, []string{"failed failed", "post failed"}, told(t, "hangs", `{}`)) })
	assert.Equal(t, []string{"post executed"}, told(t, "grumbles", `{}`))
	assert.Equal(t, []string{"post mocked"}, told(t, "write_file", file))
	assert.Equal(t, []string{"post not_executed"}, told(t, "bash", ls))
	assert.Equal(t, []string{"post not_executed"}, told(t, "bash", `{"command":7}`))
	assert.Equal(t, []string{"post not_executed"}, told(t, "no_such_tool", `{}`))
}

// At ToolFailed a hook may put another text in place, stop the run, and add; what it
// leaves is what PostToolUse sees.
func TestControlsAtToolFailed(t *testing.T) {
	failure := func(name string, f func(c hooks.ToolFailureContext) hooks.Result) hooks.Hook {
		return hooks.On(hooks.AtToolFailed, name, func(_ context.Context, c hooks.ToolFailureContext) hooks.Result { return f(c) })
	}
	var seen []string
	see := after("see", func(c hooks.ToolResultContext) hooks.Result {
		seen = append(seen, c.Text()+" "+note.Or(c.State(), ""))
		return c.Allow()
	})
	w := workWith(t, []hooks.Hook{see, failure("helper", func(c hooks.ToolFailureContext) hooks.Result {
		assert.ErrorIs(t, c.Err(), errPaper)
		return c.Replace("add paper and try again", note.Set("helped"))
	})}, wants("broken", `{}`))
	assert.Equal(t, []string{"add paper and try again helped"}, seen)
	assert.Equal(t, "add paper and try again", w.result(0).Text())
	assert.Equal(t, 1, w.RunFailures(), "it failed all the same")
	assert.Equal(t, "helped", note.Or(w.State, ""))

	w = workWith(t, []hooks.Hook{failure("fuse", func(c hooks.ToolFailureContext) hooks.Result { return c.Stop("broken tool") })}, wants("broken", `{}`))
	assert.Equal(t, "fuse", w.signal().Source)
}

// IP-47: what hooks before and after a call add is seen by the hooks behind them, is
// in the state of the next step, and in the final state; for calls that did not run
// as well. Applied once, in call order.
func TestEffectsOfToolHooks(t *testing.T) {
	trail, early := agent.SessionKey[string]("trail"), agent.SessionKey[bool]("early")
	add := func(c hooks.Context, name string) agent.Effect { return trail.Set(trail.Or(c.State(), "") + name) }
	var atStep []string
	w := workWith(t, []hooks.Hook{
		before("first", func(c hooks.ToolContext) hooks.Result {
			return c.Allow(add(c, "1"), early.Set(true), agent.AddContext("context of first"))
		}),
		before("second", func(c hooks.ToolContext) hooks.Result { return c.Deny("no", add(c, "2")) }),
		after("third", func(c hooks.ToolResultContext) hooks.Result {
			first, there := early.From(c.State())
			assert.True(t, there && first, "what hooks before the call added is still seen behind others")
			return c.Allow(add(c, "3"))
		}),
		after("last", func(c hooks.ToolResultContext) hooks.Result {
			return c.Allow(add(c, "-"), agent.AddMessage(agent.UserText("from last")))
		}),
		hooks.Observe(hooks.AtStepStart, "spy", func(_ context.Context, c hooks.StepContext) error {
			atStep = append(atStep, trail.Or(c.State(), ""))
			return nil
		}),
	}, wants("bash", ls))
	require.NoError(t, w.err)
	assert.Equal(t, []string{"", "12-3"}, atStep, "in the next step")
	assert.Equal(t, "12-3", trail.Or(w.State, ""))
	assert.Equal(t, strings.Join([]string{
		"user: hello", "assistant calls bash " + ls, `tool bash (not_executed): tool "bash": denied by second: no`,
		"user: from last", "user: context of first", "assistant: done", "",
	}, "\n"), agenttest.Transcript(w.State))
	assert.Equal(t, "last", w.Message(3).Source())
	assert.Equal(t, "first", w.Message(4).Source())
	assert.Len(t, w.events(hooks.HookConflict), 3, "each of them but the first set what another had set")
}

// All calls of a step see the same state; what their hooks want is applied in call
// order, also when they run at once.
func TestEffectsAreAppliedInCallOrder(t *testing.T) {
	w := workWith(t, []hooks.Hook{
		after("namer", func(c hooks.ToolResultContext) hooks.Result {
			_, there := note.From(c.State())
			assert.False(t, there, "another call's effects are not seen")
			return c.Allow(note.Set(c.Call().ID), agent.AddMessage(agent.UserText(c.Call().ID)))
		}),
	}, wants("bash", ls, "read_file", file, "bash", ls, "read_file", file), parallel(4))
	require.NoError(t, w.err)
	assert.Equal(t, "call_1_4", note.Or(w.State, ""))
	texts := []string{}
	for _, m := range w.Messages() {
		if m.Source() == "namer" {
			texts = append(texts, m.Text())
		}
	}
	assert.Equal(t, []string{"call_1_1", "call_1_2", "call_1_3", "call_1_4"}, texts)
}

// The same value from one hook for several calls is no conflict; from two hooks it
// is, before and after one call as well.
func TestConflicts(t *testing.T) {
	set := func(name string) []hooks.Hook {
		return []hooks.Hook{
			before(name+"-before", func(c hooks.ToolContext) hooks.Result { return c.Allow(note.Set(name)) }),
			after(name+"-after", func(c hooks.ToolResultContext) hooks.Result { return c.Allow(note.Set(name)) }),
		}
	}
	w := workWith(t, set("a"), wants("bash", ls))
	conflicts := w.events(hooks.HookConflict)
	require.Len(t, conflicts, 1)
	assert.Equal(t, "a-after", conflicts[0].Hook)
	assert.Equal(t, hooks.PostToolUse, conflicts[0].Point)
	assert.Equal(t, `session metadata "note" was set by a-before already; the later value stays`, conflicts[0].Reason)

	w = workWith(t, set("a")[:1], wants("bash", ls, "bash", ls))
	assert.Empty(t, w.events(hooks.HookConflict))

	w = workWith(t, append(set("a")[:1], append(set("b")[:1], set("c")[0])...), wants("bash", ls))
	conflicts = w.events(hooks.HookConflict)
	require.Len(t, conflicts, 2)
	assert.Equal(t, `session metadata "note" was set by b-before already; the later value stays`, conflicts[1].Reason, "by the last of them")
}

// Observers receive the decision of the controls; if several decided, the effective
// one.
func TestFrozenAfterACall(t *testing.T) {
	for name, tc := range map[string]struct {
		list []hooks.Hook // asked last to first
		want hooks.Decision
	}{
		"nothing": {nil, hooks.Pass},
		"allow":   {[]hooks.Hook{after("a", func(c hooks.ToolResultContext) hooks.Result { return c.Allow() })}, hooks.Pass},
		"replace": {[]hooks.Hook{after("a", func(c hooks.ToolResultContext) hooks.Result { return c.Replace("x") })}, hooks.Replace},
		"withhold, then a note": {[]hooks.Hook{
			after("b", func(c hooks.ToolResultContext) hooks.Result { return c.Allow(note.Set("x")) }),
			after("a", func(c hooks.ToolResultContext) hooks.Result { return c.Withhold("x") }),
		}, hooks.Withhold},
		"stop, then replace": {[]hooks.Hook{
			after("b", func(c hooks.ToolResultContext) hooks.Result { return c.Replace("x") }),
			after("a", func(c hooks.ToolResultContext) hooks.Result { return c.Stop("x") }),
		}, hooks.StopRun},
	} {
		t.Run(name, func(t *testing.T) {
			var got hooks.Decision
			workWith(t, append(tc.list, hooks.Observe(hooks.AtPostToolUse, "spy", func(_ context.Context, c hooks.ToolResultContext) error {
				got = c.Frozen().Decision()
				return nil
			})), wants("bash", ls))
			assert.Equal(t, tc.want, got)
		})
	}
}

// If a hook after a call fails, the result is withheld from the model.
func TestFailureAfterACallWithholds(t *testing.T) {
	boom := errors.New("boom")
	for name, f := range map[string]func(c hooks.ToolResultContext) hooks.Result{
		"error": func(c hooks.ToolResultContext) hooks.Result { return c.Fail(boom) },
		"panic": func(hooks.ToolResultContext) hooks.Result { panic(boom) },
	} {
		t.Run(name, func(t *testing.T) {
			w := workWith(t, []hooks.Hook{after("guard", f)}, wants("bash", ls))
			require.NoError(t, w.err)
			assert.Equal(t, agent.ReasonWithheld, w.result(0).Reason)
			assert.Contains(t, w.result(0).Text(), `tool "bash": result withheld by guard: the hook could not decide: `)
			assert.NotContains(t, agenttest.Transcript(w.State), "ran ls")

			w = workWith(t, []hooks.Hook{after("guard", f).WithFailure(hooks.Open)}, wants("bash", ls))
			assert.Equal(t, "ran ls", w.result(0).Text())

			w = workWith(t, []hooks.Hook{after("guard", f).WithFailure(hooks.Abort)}, wants("bash", ls))
			failed, ok := errors.AsType[*hooks.HookError](w.err)
			require.True(t, ok, "%v", w.err)
			assert.Equal(t, "guard", failed.Hook)
			assert.Equal(t, hooks.PostToolUse, failed.Point)
			assert.Equal(t, agent.StatusFailed, w.Status())
			assert.NotContains(t, agenttest.Transcript(w.State), "ran ls", "what a guard could not judge is not kept")
		})
	}
}
