package hooks_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// callWork is the work in a run with so many calls.
type callWork struct {
	// How often the parts were asked, in the whole run.
	matched, judged, rewritten, filtered, watched, ran, told int
	// Allocations and bytes of them, in the whole run.
	mallocs, bytes uint64
}

// workOf runs an agent that makes calls in steps of that many calls each, through hooks of
// every kind. The figures of the memory are the least of several runs, so that what the
// rest of the process allocates does not count.
func workOf(t *testing.T, perStep []int) callWork {
	t.Helper()
	var w callWork
	const arguments, rewritten = `{"text":"hello"}`, `{"text":"hello, you"}`
	echo := toolexec.Func("echo", "Says it again.", func(_ context.Context, in struct {
		Text string `json:"text"`
	},
	) (string, error) {
		w.ran++
		return in.Text, nil
	})
	matching := hooks.When(func(hooks.Context) bool { w.matched++; return true })
	last := agent.RunKey[string]("last")
	list := []hooks.Hook{
		before("judge", func(c hooks.ToolContext) hooks.Result { w.judged++; return c.Allow(last.Set(c.Call().ID)) }, matching),
		before("rewrite", func(c hooks.ToolContext) hooks.Result {
			w.rewritten++
			return c.Rewrite(map[string]string{"text": "hello, you"})
		}, hooks.ArgumentEquals("text", "hello")),
		after("filter", func(c hooks.ToolResultContext) hooks.Result {
			return c.Filter(func(text string) string { w.filtered++; return text })
		}),
		hooks.Observe(hooks.AtPostToolUse, "watch", func(_ context.Context, c hooks.ToolResultContext) error {
			w.watched++
			assert.Equal(t, rewritten, c.Call().Arguments)
			return nil
		}),
	}
	replies := make([]agent.Message, len(perStep))
	for i, n := range perStep {
		calls := make([]agent.ToolCall, n)
		for j := range calls {
			calls[j] = agent.ToolCall{ID: fmt.Sprint("call ", j), Name: "echo", Arguments: arguments}
		}
		replies[i] = agent.Assistant("", calls...)
	}
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		if i := s.RunStepCount(); i < len(replies) {
			return agent.Step{Message: replies[i]}, nil
		}
		return agent.Step{Message: agent.Assistant("done")}, nil
	})
	a, err := builder.New().WithDriver(driver).With(capability.UseTools(echo), capability.UseHooks(list...), capability.UseGuards{Steps: -1}).
		WithObserver(agent.ObserverFunc(func(context.Context, agent.Event) { w.told++ })).Build().Get()
	require.NoError(t, err)
	least := callWork{mallocs: 1 << 62, bytes: 1 << 62}
	for range 4 { // what is made once is made in the first
		w = callWork{}
		var from, to runtime.MemStats
		runtime.ReadMemStats(&from)
		final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		runtime.ReadMemStats(&to)
		require.NoError(t, err)
		require.Equal(t, len(perStep)+1, final.RunStepCount())
		w.mallocs, w.bytes = min(least.mallocs, to.Mallocs-from.Mallocs), min(least.bytes, to.TotalAlloc-from.TotalAlloc)
		least = w
	}
	return least
}

// IP-50: of hundreds of calls each costs the same: hooks are asked equally often about
// each, and what is allocated for one does not grow with their number, whether they are
// made one after the other or in one step. Time is not measured.
func TestHundredsOfCallsStayLinear(t *testing.T) {
	const few, many = 100, 1000
	for name, steps := range map[string]func(calls int) []int{
		"a step for each": func(calls int) []int { return slices.Repeat([]int{1}, calls) },
		"one step":        func(calls int) []int { return []int{calls} },
	} {
		t.Run(name, func(t *testing.T) {
			small, large := workOf(t, steps(few)), workOf(t, steps(many))
			for _, of := range []struct {
				calls int
				work  callWork
			}{{few, small}, {many, large}} {
				assert.Equal(t, of.calls, of.work.ran)
				assert.Equal(t, of.calls, of.work.rewritten, "asked once for each call")
				assert.Equal(t, 2*of.calls, of.work.judged, "and again about what was rewritten")
				assert.Equal(t, 2*of.calls, of.work.matched)
				assert.Equal(t, of.calls, of.work.watched)
			}
			assert.Equal(t, small.filtered*many, large.filtered*few)
			perCall := func(n uint64, calls int) float64 { return float64(n) / float64(calls) }
			// What is copied, or looked at, for each call before is ten times as much in the larger run. The rest differs by some percent.
			assert.LessOrEqual(t, perCall(large.mallocs, many), 1.1*perCall(small.mallocs, few), "allocations of a call")
			assert.LessOrEqual(t, perCall(large.bytes, many), 1.5*perCall(small.bytes, few), "bytes of a call")
			assert.LessOrEqual(t, float64(large.told)/many, 1.1*float64(small.told)/few, "events of a call")
		})
	}
}
