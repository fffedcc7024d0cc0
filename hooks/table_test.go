package hooks_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// called prepares and runs a call of a tool.
func called(t testing.TB, compiled *hooks.Compiled, tool string) func() {
	t.Helper()
	call := &agent.ToolCall{ID: "call_1", Name: tool, Arguments: `{"command":"ls -la"}`}
	x := compiled.WrapExecutor(instantly(call))
	ctx, s := t.Context(), runningState(t)
	return func() {
		p, _ := x.Prepare(ctx, s, call).Get()
		x.Execute(ctx, s, p)
	}
}

// The second call of a tool that was unknown when the hooks were compiled allocates only the contexts of its hooks
// and its judgement, although many other tools turn up.
func TestAllocationsOfToolsThatTurnUpLate(t *testing.T) {
	for _, known := range [][]string{nil, {"bash"}, strings.Split("a b c d e f g h i j", " ")} {
		compiled, err := hooks.NewSet(pairOf(3, hooks.ToolMatching("mcp_*"))...).Compile(known...)
		require.NoError(t, err)
		for i := range 100 {
			called(t, compiled, fmt.Sprint("mcp_", i))()
		}
		for tool, hooks := range map[string]int{"mcp_search": 7, "mcp_7": 7, "other": 1} {
			again := called(t, compiled, tool)
			again()
			assert.InDelta(t, hooks, testing.AllocsPerRun(100, again), 0, "%s, where %d are known", tool, len(known))
		}
	}
}

// The number and length of cached tool names is limited, even if a model invents many long
// names. Calls of tools that are not cached cost more, and are judged.
func TestOfInventedToolsFewAreKept(t *testing.T) {
	asked := 0
	count := before("counts", func(c hooks.ToolContext) hooks.Result { asked++; return c.Allow() }, hooks.ToolMatching("mcp_*"))
	compiled, err := hooks.NewSet(count).Compile("bash")
	require.NoError(t, err)
	long := called(t, compiled, "mcp_"+strings.Repeat("x", 1000))
	kept := 0
	for i := range 1000 {
		again := called(t, compiled, fmt.Sprint("mcp_", i))
		again()
		if testing.AllocsPerRun(1, again) == 2 { // the context and the judgement
			kept++
		}
	}
	assert.Equal(t, 256, kept)
	assert.Equal(t, 3000, asked, "each is asked about three times, kept or not")
	long()
	assert.Greater(t, testing.AllocsPerRun(1, long), 2.0)
	assert.Equal(t, 3003, asked)
}

// Unknown tools can be called in many runs at the same time. This is for the race detector.
func TestToolsThatTurnUpAtOnce(t *testing.T) {
	var all sync.WaitGroup
	var mu sync.Mutex
	asked := map[string]int{}
	count := before("counts", func(c hooks.ToolContext) hooks.Result {
		mu.Lock()
		defer mu.Unlock()
		asked[c.Tool()]++
		return c.Allow()
	}, hooks.ToolMatching("mcp_*"))
	compiled, err := hooks.NewSet(count).Compile("bash")
	require.NoError(t, err)
	calls := make([]func(), 300)
	for i := range calls {
		calls[i] = called(t, compiled, fmt.Sprint("mcp_", i))
	}
	for range 8 {
		all.Go(func() {
			for _, call := range calls {
				call()
			}
		})
	}
	all.Wait()
	require.Len(t, asked, len(calls))
	for tool, times := range asked {
		assert.Equal(t, 8, times, tool)
	}
}

// BenchmarkLateTool measures what hooks cost a call of a tool that was unknown when they were
// compiled, behind the first.
func BenchmarkLateTool(b *testing.B) {
	compiled, err := hooks.NewSet(pairOf(10, hooks.ToolMatching("mcp_*"))...).Compile("bash")
	require.NoError(b, err)
	again := called(b, compiled, "mcp_search")
	b.ReportAllocs()
	for b.Loop() {
		again()
	}
}
