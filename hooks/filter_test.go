package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
)

func hide(text string) string { return strings.ReplaceAll(text, "4711", "[pin]") }

func filterWith(f func(string) string) func(hooks.ToolResultContext) hooks.Result {
	return func(c hooks.ToolResultContext) hooks.Result { return c.Filter(f) }
}

// A filter applies to what controls add that are asked before it and after it, and a control that is asked later sees
// what it left.
func TestAFilterAppliesToWhatOthersAdd(t *testing.T) {
	var seen string
	w := workWith(t, []hooks.Hook{ // asked last to first
		after("later", func(c hooks.ToolResultContext) hooks.Result {
			seen = c.Text()
			return c.Stop("the pin is 4711", agent.AddContext("later: 4711"))
		}),
		after("filter", filterWith(hide)),
		after("earlier", func(c hooks.ToolResultContext) hooks.Result {
			return c.Allow(agent.AddContext("earlier: 4711"), note.Set("4711"))
		}),
	}, wants("bash", `{"command":"echo 4711"}`))
	require.NoError(t, w.err)
	assert.Equal(t, "ran echo [pin]", seen)
	assert.Equal(t, "ran echo [pin]", w.result(0).Text())
	assert.Equal(t, "filter", w.result(0).DecidedBy)
	assert.Equal(t, "[pin]", note.Or(w.State, ""))
	assert.Equal(t, "the pin is [pin]", w.StopSignal().Message)
	assert.Contains(t, agenttest.Transcript(w.State), "earlier: [pin]\n\nlater: [pin]")
	var reasons []string
	for _, e := range w.events(hooks.HookBlocked) {
		reasons = append(reasons, e.Reason)
	}
	assert.Equal(t, []string{"the pin is [pin]"}, reasons)
}

// Each text passes each filter once, in the order in which they were given.
func TestEachTextPassesEachFilterOnce(t *testing.T) {
	mark := func(m string) func(string) string { return func(text string) string { return text + m } }
	w := workWith(t, []hooks.Hook{
		after("replaces", func(c hooks.ToolResultContext) hooks.Result { return c.Replace("new") }),
		after("b", filterWith(mark("b"))),
		after("adds", func(c hooks.ToolResultContext) hooks.Result { return c.Allow(agent.AddContext("context")) }),
		after("a", filterWith(mark("a"))),
	}, wants("bash", ls))
	assert.Equal(t, "newab", w.result(0).Text())
	assert.Contains(t, agenttest.Transcript(w.State), "contextab")
}

// A filter that changed nothing has passed; one that did has replaced. In shadow it does not.
func TestWhatIsToldOfAFilter(t *testing.T) {
	for text, want := range map[string]hooks.Decision{"echo 4711": hooks.Replace, "ls": hooks.Pass} {
		for _, shadow := range []bool{false, true} {
			filter := after("filter", filterWith(hide))
			if shadow {
				filter = filter.InShadow()
			}
			var frozen hooks.Decision
			w := workWith(t, []hooks.Hook{filter, hooks.Observe(hooks.AtPostToolUse, "spy", func(_ context.Context, c hooks.ToolResultContext) error {
				frozen = c.Frozen().Decision()
				return nil
			})}, wants("bash", fmt.Sprintf(`{"command":%q}`, text)))
			told := w.events(hooks.HookComplete)
			require.NotEmpty(t, told)
			assert.Equal(t, want, told[0].Decision, "%s %v", text, shadow)
			if shadow {
				assert.Equal(t, "ran "+text, w.result(0).Text())
				assert.Equal(t, hooks.Pass, frozen)
				continue
			}
			assert.Equal(t, want, frozen)
		}
	}
}

// A filter that panics, or says that a text must not leave, withholds everything.
func TestAFilterThatFailsWithholds(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(c hooks.ToolResultContext) hooks.Result
		why    string
	}{
		"panic": {filterWith(func(string) string { panic("4711") }), "its filter panicked"},
		"error": {func(c hooks.ToolResultContext) hooks.Result {
			return c.FilterOrWithhold(func(string) (string, error) { return "4711", errors.New("it has a pin") })
		}, "it has a pin"},
		"nil": {func(c hooks.ToolResultContext) hooks.Result { return c.Filter(nil) }, "the hook could not decide: the filter is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			w := workWith(t, []hooks.Hook{
				after("later", func(c hooks.ToolResultContext) hooks.Result { return c.Allow(agent.AddContext("later pin")) }),
				after("filter", tc.answer),
				after("earlier", func(c hooks.ToolResultContext) hooks.Result {
					return c.Allow(agent.AddContext("earlier pin"), note.Set("pin"))
				}),
			}, wants("bash", ls))
			require.NoError(t, w.err)
			r := w.result(0)
			assert.Equal(t, `tool "bash": result withheld by filter: `+tc.why, r.Text())
			assert.Equal(t, agent.ReasonWithheld, r.Reason)
			assert.Empty(t, note.Or(w.State, ""), "what earlier hooks added goes with it")
			assert.NotContains(t, agenttest.Transcript(w.State), "earlier pin")
			failed := w.events(hooks.HookFailed)
			require.Len(t, failed, 1)
			assert.Equal(t, "filter", failed[0].Hook)
			if name != "nil" {
				assert.NotContains(t, agenttest.Transcript(w.State), "later pin", "no text leaves a point whose filter failed")
				require.EqualError(t, failed[0].Err, tc.why)
			}
		})
	}
}

// limitError is an error with a kind, a word about another try, and a field.
type limitError struct{ body string }

func (*limitError) Error() string              { return "too many requests" }
func (*limitError) ErrorKind() agent.ErrorKind { return agent.KindRateLimit }
func (*limitError) RetryAfter() time.Duration  { return time.Minute }
func (*limitError) Retryable() bool            { return true }

// The error of a driver passes PostInference. If a filter changed something in it, the original cannot be reached, and
// what it said of itself stays.
func TestTheErrorOfADriverPassesTheFilters(t *testing.T) {
	for body, reachable := range map[string]bool{"4711": false, "fine": true} {
		original := &limitError{body}
		var seen error
		end := play(t, agenttest.Script(agenttest.Fail(fmt.Errorf("asking: %w", original))), []hooks.Hook{
			afterModel("filter", func(c hooks.ReplyContext) hooks.Result { seen = c.Err(); return c.Filter(hide) }),
		})
		require.ErrorIs(t, seen, original)
		require.Error(t, end.err)
		_, ok := errors.AsType[*limitError](end.err)
		assert.Equal(t, reachable, ok)
		assert.Equal(t, agent.KindRateLimit, agent.KindOf(end.err))
		var waits interface{ RetryAfter() time.Duration }
		require.ErrorAs(t, end.err, &waits)
		assert.Equal(t, time.Minute, waits.RetryAfter())
		var knows interface{ Retryable() bool }
		require.ErrorAs(t, end.err, &knows)
		assert.True(t, knows.Retryable())
		assert.Contains(t, end.err.Error(), "too many requests")
	}
}

// What ended a context is found behind a filter.
func TestSentinelsStayBehindAFilter(t *testing.T) {
	for _, sentinel := range []error{context.Canceled, context.DeadlineExceeded} {
		end := play(t, agenttest.Script(agenttest.Fail(fmt.Errorf("4711: %w", sentinel))), []hooks.Hook{
			afterModel("filter", func(c hooks.ReplyContext) hooks.Result { return c.Filter(hide) }),
		})
		require.ErrorIs(t, end.err, sentinel)
		assert.NotContains(t, end.err.Error(), "4711")
	}
}

// A model call that failed stays failed, whatever a hook makes of it.
func TestAFailedModelCallStaysFailed(t *testing.T) {
	for name, answer := range map[string]func(c hooks.ReplyContext) hooks.Result{
		"replace": func(c hooks.ReplyContext) hooks.Result {
			return c.Replace(agent.Step{Message: agent.Assistant("fine")})
		},
		"text":     func(c hooks.ReplyContext) hooks.Result { return c.ReplaceText("fine") },
		"withhold": func(c hooks.ReplyContext) hooks.Result { return c.Fail(errors.New("no idea")) },
	} {
		t.Run(name, func(t *testing.T) {
			end := play(t, agenttest.Script(agenttest.Fail(errors.New("4711"))), []hooks.Hook{afterModel("guard", answer)})
			assert.Equal(t, agent.StatusFailed, end.Status())
			require.Error(t, end.err)
			assert.NotContains(t, end.err.Error(), "4711")
			assert.Contains(t, end.err.Error(), "guard")
		})
	}
}

// A filter at PostInference applies to what the model thinks and calls. The tool gets what is left, and a thought that
// has changed has no signature.
func TestAFilterAppliesToThoughtsAndCalls(t *testing.T) {
	end := play(t, agenttest.Script(
		agenttest.Reply(agent.Step{Message: agent.AssistantContent(
			agent.ContentOf(agent.Reasoning("think 4711", "sig"), agent.Reasoning("more", "sig 2"), agent.Text("use 4711")),
			agent.ToolCall{ID: "1", Name: "echo", Arguments: `{"text":"\u0034711"}`})}),
		agenttest.Say("done"),
	), []hooks.Hook{afterModel("filter", func(c hooks.ReplyContext) hooks.Result { return c.Filter(hide) })})
	require.NoError(t, end.err)
	for _, step := range end.Steps() {
		if step.Index() > 0 {
			continue
		}
		var got []agent.Part
		for _, p := range step.Message().Content().Parts() {
			got = append(got, p)
		}
		assert.Equal(t, []agent.Part{agent.Reasoning("think [pin]", ""), agent.Reasoning("more", "sig 2"), agent.Text("use [pin]")}, got)
		assert.JSONEq(t, `{"text":"[pin]"}`, step.Message().Call(0).Arguments)
	}
	assert.NotContains(t, agenttest.Transcript(end.State), "4711")
}

// Filters apply to the note about changed arguments, which the model reads before the result.
func TestFiltersOfChangedArguments(t *testing.T) {
	rewrites := before("rewrites", func(c hooks.ToolContext) hooks.Result {
		return c.Rewrite(map[string]any{"command": "cat hunter2"})
	})
	for name, tc := range map[string]struct {
		hooks []hooks.Hook
		want  string
	}{
		"none": {nil, "ran with changed arguments: {\"command\":\"cat hunter2\"}\n"},
		"a filter": {[]hooks.Hook{after("redacts", func(c hooks.ToolResultContext) hooks.Result {
			return c.Filter(func(text string) string { return strings.ReplaceAll(text, "hunter2", "[secret]") })
		})}, "ran with changed arguments: {\"command\":\"cat [secret]\"}\n"},
		"a filter that fails": {[]hooks.Hook{after("redacts", func(c hooks.ToolResultContext) hooks.Result {
			return c.Filter(func(string) string { panic("broken") })
		})}, "ran with changed arguments: (not shown)\n"},
		"withheld": {[]hooks.Hook{after("withholds", func(c hooks.ToolResultContext) hooks.Result {
			assert.NotContains(t, c.Text(), "changed arguments", "hooks judge what the tool said")
			return c.Withhold("no")
		})}, "ran with changed arguments: (not shown)\n"},
		"replaced": {[]hooks.Hook{after("replaces", func(c hooks.ToolResultContext) hooks.Result {
			return c.Replace("instead")
		})}, "ran with changed arguments: {\"command\":\"cat hunter2\"}\ninstead"},
	} {
		t.Run(name, func(t *testing.T) {
			w := workWith(t, append(tc.hooks, rewrites), wants("bash", ls))
			require.NoError(t, w.err)
			assert.Equal(t, 1, strings.Count(w.result(0).Text(), "changed arguments"))
			assert.True(t, strings.HasPrefix(w.result(0).Text(), tc.want), w.result(0).Text())
		})
	}
}
