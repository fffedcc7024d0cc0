//go:build unix

package mcp_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

// hostileEnv makes of the test binary a hostile MCP server; its value is the server's mode.
const hostileEnv = "GRAPNEL_HOSTILE_MCP"

func TestMain(m *testing.M) {
	if mode, ok := os.LookupEnv(hostileEnv); ok {
		newHostile(mode).serve()
		return
	}
	goleak.VerifyTestMain(m)
}

// hostile returns the test binary as a server.
func hostile(t testing.TB, mode string) mcp.Server {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	return mcp.Server{
		Name: "bad", Command: []string{program}, Env: map[string]string{hostileEnv: mode},
		ConnectTimeout: 20 * time.Second, CloseGrace: 100 * time.Millisecond, MaxMessageBytes: 256 << 10,
		Policy: toolexec.Policy{Timeout: 20 * time.Second},
	}
}

func connect(t testing.TB, s mcp.Server) *mcp.Client {
	t.Helper()
	c, err := mcp.Connect(t.Context(), s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func executor(t testing.TB, c *mcp.Client) *toolexec.Executor {
	t.Helper()
	box, err := toolexec.NewToolbox(c.Tools()...)
	require.NoError(t, err)
	return toolexec.NewExecutor(box, toolexec.Options{})
}

// answer returns a call's result, after both phases of an executor.
func answer(t testing.TB, ctx context.Context, c *mcp.Client, tool, args string) *agent.ToolResult { //nolint:revive // t is first
	t.Helper()
	return asking(t, c, tool, args)(ctx)
}

// asking works like answer, for another goroutine.
func asking(t testing.TB, c *mcp.Client, tool, args string) func(context.Context) *agent.ToolResult {
	t.Helper()
	e := executor(t, c)
	call := agent.ToolCall{ID: "c1", Name: tool, Arguments: args}
	return func(ctx context.Context) *agent.ToolResult {
		p := e.Prepare(ctx, agent.NewState(), &call).MustGet()
		return e.Execute(ctx, agent.NewState(), p).MustGet()
	}
}
