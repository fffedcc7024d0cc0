package hooks_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// instant is the cheapest possible executor. The rest of a benchmark's cost comes from the hooks.
type instant struct {
	p *agent.Prepared
	r *agent.ToolResult
}

func (x *instant) Prepare(context.Context, agent.State, *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(x.p)
}

func (x *instant) Execute(context.Context, agent.State, *agent.Prepared) mo.Result[*agent.ToolResult] {
	return mo.Ok(x.r)
}

func instantly(call *agent.ToolCall) *instant {
	x := &instant{}
	x.p = &agent.Prepared{Original: call, Call: call, Strict: true}
	x.r = agent.NewResult(x.p)
	x.r.Status, x.r.Content = agent.ToolExecuted, agent.TextContent("ok")
	return x
}

// runningState returns the state during a run, as hooks see it.
func runningState(b testing.TB) agent.State {
	b.Helper()
	var running agent.State
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		running = s
		return agent.Step{Message: agent.Assistant("done")}, nil
	})
	a, err := agent.New(agent.Config{Driver: driver}).Get()
	require.NoError(b, err)
	_, err = a.Run(b.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(b, err)
	return running
}

// pairOf returns n controls before and n after a call of bash, which all allow it.
func pairOf(n int, matching ...hooks.Matcher) []hooks.Hook {
	var list []hooks.Hook
	for i := range n {
		list = append(list,
			hooks.On(hooks.AtPreToolUse, fmt.Sprint("pre", i), func(_ context.Context, c hooks.ToolContext) hooks.Result {
				return c.Allow()
			}, matching...),
			hooks.On(hooks.AtPostToolUse, fmt.Sprint("post", i), func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
				return c.Allow()
			}, matching...))
	}
	return list
}

// A judged call costs one allocation. A hook that allows it costs one, its context; a hook that does not match costs none.
func TestAllocationsOfToolHooks(t *testing.T) {
	names := []string{"bash", "a1b1c", "a2b2c", "a3b3c", "a4b4c"}
	for name, test := range map[string]struct {
		list []hooks.Hook
		want int
	}{
		"matched":            {pairOf(3), 7},
		"unmatched":          {pairOf(1, hooks.ToolNamed("other")), 1},
		"matched argument":   {pairOf(1, hooks.ArgumentMatching("command", "ls*")), 3},
		"unmatched argument": {pairOf(1, hooks.ArgumentMatching("command", "rm*"), hooks.AtDepth(0, 0)), 1},
	} {
		compiled, err := hooks.NewSet(test.list...).Compile(names...)
		require.NoError(t, err)
		for _, tool := range names {
			call := &agent.ToolCall{ID: "call_1", Name: tool, Arguments: `{"command":"ls -la"}`}
			x := compiled.WrapExecutor(instantly(call))
			ctx, s := t.Context(), runningState(t)
			require.InDelta(t, test.want, testing.AllocsPerRun(100, func() {
				p, _ := x.Prepare(ctx, s, call).Get()
				x.Execute(ctx, s, p)
			}), 0, "%s, tool %s", name, tool)
		}
	}
}

// BenchmarkToolHooks measures what hooks cost a tool call: Prepare and Execute of the
// wrapper around an executor that does nothing. Subtract "no hooks".
func BenchmarkToolHooks(b *testing.B) {
	call := &agent.ToolCall{ID: "call_1", Name: "bash", Arguments: `{"command":"ls -la"}`}
	for _, bench := range []struct {
		name string
		list []hooks.Hook
	}{
		{"no hooks", nil},
		{"unmatched", pairOf(1, hooks.ToolNamed("write"))},
		{"unmatched argument", pairOf(1, hooks.ToolNamed("bash"), hooks.ArgumentMatching("command", "rm *"))},
		{"pair", pairOf(1, hooks.ToolNamed("bash"))},
		{"10 pairs", pairOf(10, hooks.ToolNamed("bash"))},
	} {
		b.Run(bench.name, func(b *testing.B) {
			compiled, err := hooks.NewSet(bench.list...).Compile("read", "write", "bash")
			require.NoError(b, err)
			x := compiled.WrapExecutor(instantly(call))
			ctx, s := b.Context(), runningState(b)
			b.ReportAllocs()
			for b.Loop() {
				p, _ := x.Prepare(ctx, s, call).Get()
				x.Execute(ctx, s, p)
			}
		})
	}
}

// BenchmarkHookedTool measures the same around a real tool, which reads and checks its
// arguments.
func BenchmarkHookedTool(b *testing.B) {
	add := toolexec.Func("add", "Adds.", func(_ context.Context, in struct{ A, B int }) (string, error) {
		return strconv.Itoa(in.A + in.B), nil
	})
	box, err := toolexec.NewToolbox(add)
	require.NoError(b, err)
	call := &agent.ToolCall{ID: "call_1", Name: "add", Arguments: `{"A":2,"B":3}`}
	for name, list := range map[string][]hooks.Hook{"no hooks": nil, "pair": pairOf(1)} {
		b.Run(name, func(b *testing.B) {
			compiled, err := hooks.NewSet(list...).Compile("add")
			require.NoError(b, err)
			x := compiled.WrapExecutor(toolexec.NewExecutor(box, toolexec.Options{}))
			ctx, s := b.Context(), runningState(b)
			b.ReportAllocs()
			for b.Loop() {
				p, _ := x.Prepare(ctx, s, call).Get()
				x.Execute(ctx, s, p)
			}
		})
	}
}
