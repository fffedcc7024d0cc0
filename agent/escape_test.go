package agent_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// thrown returns what f panics with.
func thrown(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// A panic of an executor in any call becomes a panic of Run on the caller's goroutine,
// where it can be recovered. The other calls have ended by then.
func TestPanicInAParallelCall(t *testing.T) {
	for bad := range 4 {
		started := make(chan struct{}, 4)
		ended := make(chan struct{}, 4)
		a := build(t, agent.Config{
			Driver: agenttest.Script(calls("x", "x", "x", "x")), Parallel: 4,
			Executor: executor{execute: func(_ context.Context, _ agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
				started <- struct{}{}
				if p.Call.Index == bad {
					panic(errOutOfPaper)
				}
				defer func() { ended <- struct{}{} }()
				return &agent.ToolResult{}, nil
			}},
		})
		value := thrown(func() { a.Run(context.Background(), agent.NewState(), agent.UserText("go")) })
		err, ok := value.(error)
		require.True(t, ok, "%v", value)
		require.ErrorIs(t, err, errOutOfPaper)
		assert.Len(t, ended, len(started)-1)
	}
}

// A call whose executor ends its goroutine is answered like a call whose executor
// failed.
func TestExecutorThatEndsItsGoroutine(t *testing.T) {
	there := make(chan struct{})
	a := build(t, agent.Config{
		Driver: agenttest.Script(calls("x", "x")), Parallel: 2,
		Executor: executor{execute: func(_ context.Context, _ agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
			stack := make([]byte, 1<<16)
			if !strings.Contains(string(stack[:runtime.Stack(stack, false)]), "testing.tRunner") { // not the run's goroutine
				defer close(there)
				runtime.Goexit()
			}
			<-there // so that each goroutine has a call
			return &agent.ToolResult{Content: agent.TextContent("ran")}, nil
		}},
	})
	failed := runError(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")))
	assert.ErrorContains(t, failed, "ended its goroutine")
	step := lastStep(t, failed.State)
	require.Equal(t, 2, step.ResultCount())
	assert.Equal(t, 1, step.ToolFailures())
}

// After a loop has left the iteration, its body is not called again, even if a
// processor continues.
func TestNobodyIsCalledWhoLeft(t *testing.T) {
	stubborn := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		next(ctx, s)
		return next(context.WithoutCancel(ctx), s)
	})
	a := build(t, agent.Config{
		Driver: agenttest.Script(calls("add"), agenttest.Say("done")), Executor: tools().Executor(), AroundRun: []agent.Processor{stubborn},
	})
	for _, err := range a.Steps(t.Context(), agent.NewState(), agent.UserText("go")) {
		require.NoError(t, err)
		break
	}
	for _, err := range a.Stream(t.Context(), agent.NewState(), agent.UserText("go")) {
		require.NoError(t, err)
		break
	}
}
