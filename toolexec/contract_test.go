package toolexec_test

import (
	"context"
	"testing"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/toolexec"
)

func TestExecutorKeepsItsContract(t *testing.T) {
	for name, policy := range map[string]toolexec.Policy{
		"plain":   {},
		"bounded": {Timeout: time.Hour, Retry: toolexec.Retry{Attempts: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			agenttest.TestExecutor(t, func(t *testing.T, tools agenttest.Tools) agent.Executor {
				t.Helper()
				return executor(t, toolexec.Options{Policy: policy}, lo.MapToSlice(tools, asRaw)...)
			})
		})
	}
}

func asRaw(name string, f agenttest.Func) toolexec.Tool {
	spec := agent.ToolSpec{Name: name, Parameters: `{"type":"object"}`}
	return toolexec.Raw(spec, func(ctx context.Context, c toolexec.Call) (string, error) { return f(ctx, c.ToolCall) })
}
