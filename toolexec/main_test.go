package toolexec_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // tools that panic are logged
	goleak.VerifyTestMain(m)
}

func call(name, args string) agent.ToolCall {
	return agent.ToolCall{ID: "c1", Name: name, Arguments: args}
}

func toolbox(t testing.TB, tools ...toolexec.Tool) toolexec.Toolbox {
	t.Helper()
	box, err := toolexec.NewToolbox(tools...)
	require.NoError(t, err)
	return box
}

func executor(t testing.TB, o toolexec.Options, tools ...toolexec.Tool) *toolexec.Executor {
	t.Helper()
	return toolexec.NewExecutor(toolbox(t, tools...), o)
}

// answer returns the result of preparing and executing a call.
func answer(t testing.TB, ctx context.Context, e agent.Executor, c agent.ToolCall) *agent.ToolResult { //nolint:revive // t is first
	t.Helper()
	p, err := e.Prepare(ctx, agent.State{}, &c).Get()
	require.NoError(t, err)
	r, err := e.Execute(ctx, agent.State{}, p).Get()
	require.NoError(t, err)
	return r.CutToLimit()
}
