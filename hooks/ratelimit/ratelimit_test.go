package ratelimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/hooks/ratelimit"
	"github.com/grapnel-go/grapnel/toolexec"
)

// agentOf plays a script with two tools, look, which takes no time, and nap, which takes a second.
func agentOf(t testing.TB, list []hooks.Hook, turns ...agenttest.Turn) *agent.Agent {
	t.Helper()
	look := toolexec.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	nap := toolexec.Func("nap", "Naps.", func(context.Context, struct{}) (string, error) {
		time.Sleep(time.Second)
		return "rested", nil
	})
	a, err := builder.New().WithDriver(agenttest.Script(append(turns, agenttest.Say("done"))...)).
		With(capability.UseTools(look, nap), capability.UseHooks(list...)).Build().Get()
	require.NoError(t, err)
	return a
}

// answers returns the text of all tool results in a run.
func answers(s agent.State) []string {
	var texts []string
	for _, m := range s.Messages() {
		if m.Role() == agent.RoleTool {
			texts = append(texts, m.Text())
		}
	}
	return texts
}

func calls(tool string, n int) []agenttest.Turn {
	return lo.Times(n, func(int) agenttest.Turn { return agenttest.Call(tool, `{}`) })
}

func TestTooManyAreDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := ratelimit.Hook("few", ratelimit.Limit{Calls: 2, Per: 10 * time.Second})
		// Two in hand; the third comes back after five seconds. Naps take one second each.
		turns := append(calls("look", 3), calls("nap", 7)...)
		a := agentOf(t, []hooks.Hook{hook}, append(turns, agenttest.Call("look", `{}`))...)
		final := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
		got := answers(final)
		denied := func(tool, wait string) string {
			return fmt.Sprintf("tool %q: denied by few: %s may be called 2 times in 10s: try again in %s", tool, tool, wait)
		}
		assert.Equal(t, []string{
			"seen", "seen", denied("look", "5s"),
			"rested", "rested", denied("nap", "3s"), denied("nap", "3s"), denied("nap", "3s"), denied("nap", "3s"), denied("nap", "3s"),
			denied("look", "3s"),
		}, got)
	})
}

func TestTheyAreHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := ratelimit.Hook("few", ratelimit.Limit{Calls: 2, Per: 10 * time.Second, Wait: time.Minute})
		began := time.Now()
		final := agentOf(t, []hooks.Hook{hook}, calls("look", 5)...).Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
		assert.Equal(t, lo.Times(5, func(int) string { return "seen" }), answers(final))
		assert.Equal(t, 15*time.Second, time.Since(began))
	})
}

func TestTooLongAWaitIsDeniedAndCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := ratelimit.Hook("few", ratelimit.Limit{Calls: 1, Per: time.Minute, Wait: time.Second})
		turns := append(calls("look", 20), agenttest.Play(func(context.Context, agent.State) (agent.Step, error) {
			time.Sleep(59 * time.Second)
			return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "late", Name: "look", Arguments: "{}"})}, nil
		}))
		got := answers(agentOf(t, []hooks.Hook{hook}, turns...).Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet())
		assert.Equal(t, "seen", got[0])
		assert.Contains(t, got[19], "try again in 1m0s")
		assert.Equal(t, "seen", got[20])
	})
}

func TestWaitIsCancelledWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := ratelimit.Hook("few", ratelimit.Limit{Calls: 1, Per: time.Hour, Wait: 2 * time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := agentOf(t, []hooks.Hook{hook}, calls("look", 2)...).Run(ctx, agent.NewState(), agent.UserText("go")).Error()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(began))
	})
}

// A run that is cancelled while it waits holds up no other: its turn goes to the next.
func TestACancelledWaitCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := agentOf(t, []hooks.Hook{ratelimit.Hook("few", ratelimit.Limit{Calls: 1, Per: 10 * time.Second, Wait: time.Minute, Shared: true})}, calls("look", 1)...)
		began := time.Now()
		a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			require.ErrorIs(t, a.Run(ctx, agent.NewState(), agent.UserText("go")).Error(), context.DeadlineExceeded)
			cancel()
			synctest.Wait() // the hook notices by itself
		}
		a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
		assert.Equal(t, 10*time.Second, time.Since(began))
	})
}

func TestNoMoreInAll(t *testing.T) {
	hook := ratelimit.Hook("few", ratelimit.Limit{Calls: 2})
	got := answers(agentOf(t, []hooks.Hook{hook}, calls("look", 3)...).Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet())
	assert.Equal(t, "tool \"look\": denied by few: look may be called only 2 times in all: continue without it", got[2])

	none := ratelimit.Hook("none", ratelimit.Limit{Calls: -1, Per: time.Second})
	hookstest.Cases{
		"none":         {At: hookstest.ToolCall("look", `{}`), Want: hooks.Deny, Saying: "look may be called only 0 times in 1s: continue without it"},
		"invalid ones": {At: hookstest.ToolCall("look", `{}`).Invalid(errors.New("no such tool"))},
	}.Test(t, none)
}

func TestMatchersSayWhatIsLimited(t *testing.T) {
	hook := ratelimit.Hook("few", ratelimit.Limit{}, hooks.ToolNamed("bash"))
	hookstest.Cases{
		"this":    {At: hookstest.ToolCall("bash", `{}`), Want: hooks.Deny},
		"another": {At: hookstest.ToolCall("look", `{}`)},
	}.Test(t, hook)
}

func TestWhatAGuardDeniesDoesNotCount(t *testing.T) {
	denied := 0
	guard := hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		if denied++; denied <= 3 {
			return c.Deny("not yet")
		}
		return c.Allow()
	})
	limit := ratelimit.Hook("few", ratelimit.Limit{Calls: 1})
	got := answers(agentOf(t, []hooks.Hook{limit, guard}, calls("look", 5)...).Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet())
	assert.Equal(t, "seen", got[3])
	assert.Contains(t, got[4], "denied by few")
}

// Any number of runs at once spend what they share, or what each has of its own.
func TestRunsAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		shared bool
		want   int
	}{"shared": {true, 7}, "each": {false, 10 * 5}} {
		t.Run(name, func(t *testing.T) {
			a := agentOf(t, []hooks.Hook{ratelimit.Hook("few", ratelimit.Limit{Calls: 7, Shared: tc.shared})}, calls("look", 5)...)
			var all sync.WaitGroup
			seen := make([]int, 10)
			for i := range seen {
				all.Go(func() {
					final := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
					seen[i] = lo.Count(answers(final), "seen")
				})
			}
			all.Wait()
			assert.Equal(t, tc.want, lo.Sum(seen))
		})
	}
}

func Example() {
	search := toolexec.Func("search", "Searches.", func(context.Context, struct{ Query string }) (string, error) {
		return "found", nil
	})
	limit := ratelimit.Hook("few-searches", ratelimit.Limit{Calls: 2, Per: time.Hour}, hooks.ToolNamed("search"))
	model := agenttest.Script(
		agenttest.Call("search", `{"Query":"a"}`).Call("search", `{"Query":"b"}`).Call("search", `{"Query":"c"}`),
		agenttest.Say("done"),
	)
	a := builder.New().WithDriver(model).With(capability.UseTools(search), capability.UseHooks(limit)).Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("Search.")).MustGet()
	for _, text := range answers(final) {
		fmt.Println(strings.ReplaceAll(text, "29m59s", "30m0s")) // of which a moment has passed
	}
	// Output:
	// found
	// found
	// tool "search": denied by few-searches: search may be called 2 times in 1h0m0s: try again in 30m0s
}

// Waiting as long as it takes is no waiting for what never comes.
func TestTheLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := time.Duration(math.MaxInt64)
		final := agentOf(t, []hooks.Hook{ratelimit.Hook("few", ratelimit.Limit{Calls: 1, Per: time.Hour, Wait: forever})}, calls("look", 2)...).
			Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
		assert.Equal(t, []string{"seen", "seen"}, answers(final))
		final = agentOf(t, []hooks.Hook{ratelimit.Hook("few", ratelimit.Limit{Calls: 1, Wait: forever})}, calls("look", 2)...).
			Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
		assert.Contains(t, answers(final)[1], ": continue without it")
	})
}

// If the hook is asked about a call again, the call counts once.
func TestRewrittenCallsCountOnce(t *testing.T) {
	limit := ratelimit.Hook("few", ratelimit.Limit{Calls: 2}, hooks.ToolNamed("say"))
	list := []hooks.Hook{
		limit,
		hooks.On(hooks.AtPreToolUse, "rewrite", func(_ context.Context, c hooks.ToolContext) hooks.Result {
			return c.Rewrite(map[string]any{"What": "rewritten"})
		}).WithPriority(2 * hooks.PriorityAfterwork),
	}
	say := toolexec.Func("say", "", func(_ context.Context, in struct{ What string }) (string, error) { return in.What, nil })
	a, err := builder.New().With(capability.UseTools(say), capability.UseHooks(list...)).WithDriver(agenttest.Script(
		agenttest.Call("say", `{"What":"a"}`), agenttest.Call("say", `{"What":"b"}`), agenttest.Call("say", `{"What":"c"}`), agenttest.Say("done"),
	)).Build().Get()
	require.NoError(t, err)
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	texts := answers(final)
	for _, text := range texts[:2] {
		assert.Equal(t, "rewritten", text[strings.LastIndex(text, "\n")+1:])
	}
	assert.Contains(t, texts[2], "may be called only 2 times in all")
}

// After a wait for a person, a call has had its turn, however the limit is counted.
func TestCallsThatWaitedCountOnce(t *testing.T) {
	for _, shared := range []bool{false, true} {
		limit := ratelimit.Hook("few", ratelimit.Limit{Calls: 1, Shared: shared})
		ask := hooks.On(hooks.AtPreToolUse, "ask", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("sure?") })
		look := toolexec.Func("look", "", func(context.Context, struct{}) (string, error) { return "seen", nil })
		a, err := builder.New().With(capability.UseTools(look), capability.UseHooks(limit, ask), capability.UseApproval(agent.ParkApprover)).
			WithDriver(agenttest.Script(agenttest.Call("look", `{}`), agenttest.Call("look", `{}`), agenttest.Say("done"))).Build().Get()
		require.NoError(t, err)
		s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		require.True(t, s.Waiting())
		stored, err := json.Marshal(s)
		require.NoError(t, err)
		var loaded agent.State
		require.NoError(t, json.Unmarshal(stored, &loaded))
		id := loaded.Interventions()[0].Call.ID
		s, err = a.Resume(t.Context(), agenttest.WithApproval(loaded, id, agent.Approval{Verdict: agent.Approve, By: "ann"})).Get()
		require.NoError(t, err)
		require.Equal(t, agent.StatusDone, s.Status())
		texts := answers(s)
		assert.Equal(t, "seen", texts[0], "shared: %v", shared)
		assert.Contains(t, texts[1], "may be called only 1 times in all", "shared: %v", shared)
	}
}

// A limit for the whole run holds behind a question that the run waited for, also when calls were rewritten after it had
// counted them.
func TestTheLimitOfARunThatWaited(t *testing.T) {
	rewrite := hooks.On(hooks.AtPreToolUse, "rewrite", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Rewrite(map[string]any{"What": "rewritten"})
	}, hooks.ToolNamed("say")).WithPriority(2 * hooks.PriorityAfterwork)
	ask := hooks.On(hooks.AtPreToolUse, "ask", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("sure?") }, hooks.ToolNamed("look"))
	for name, more := range map[string][]hooks.Hook{"as it was": nil, "rewritten": {rewrite}} {
		turns := []agenttest.Turn{agenttest.Call("say", `{"What":"a"}`), agenttest.Call("look", `{}`), agenttest.Call("say", `{"What":"b"}`), agenttest.Say("done")}
		build := func() *agent.Agent {
			say := toolexec.Func("say", "", func(_ context.Context, in struct{ What string }) (string, error) { return in.What, nil })
			look := toolexec.Func("look", "", func(context.Context, struct{}) (string, error) { return "seen", nil })
			limit := ratelimit.Hook("few", ratelimit.Limit{Calls: 1}, hooks.ToolNamed("say"))
			a, err := builder.New().With(capability.UseTools(say, look), capability.UseHooks(append([]hooks.Hook{limit, ask}, more...)...),
				capability.UseApproval(agent.ParkApprover)).WithDriver(agenttest.Script(turns...)).Build().Get()
			require.NoError(t, err)
			return a
		}
		s, err := build().Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		require.True(t, s.Waiting(), name)
		s = agenttest.WithApproval(s, s.Interventions()[0].CallID(), agent.Approval{Verdict: agent.Approve, By: "ann"})
		s, err = build().Resume(t.Context(), s).Get() // another process
		require.NoError(t, err)
		assert.Contains(t, answers(s)[2], "may be called only 1 times in all", name)
	}
}
