package kit_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// withoutIDs drops what differs from run to run.
func withoutIDs(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, "grapnel.run.id", "gen_ai.conversation.id", "duration":
		return slog.Attr{}
	}
	return a
}

// What an agent does, in the terminal.
func ExampleLog() {
	short := func(_ []string, a slog.Attr) slog.Attr { // ids and times differ from run to run
		switch a.Key {
		case slog.LevelKey, slog.MessageKey, "gen_ai.tool.name", "grapnel.tool.outcome", "grapnel.decision.winner", "grapnel.run.status", "grapnel.run.steps":
			return a
		}
		return slog.Attr{}
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: short}))
	model := agenttest.Script(agenttest.Call("push", `{}`), agenttest.Say("I may not push."))
	push := toolOf("push", func() (string, error) { return "pushed", nil })
	noPush := hooks.On(hooks.AtPreToolUse, "no-push", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Deny("not on a Friday") },
		hooks.ToolNamed("push"))
	a := builder.New().WithName("helper").WithDriver(model).
		With(capability.UseTools(push), capability.UseHooks(noPush), kit.Log{Logger: logger}).Build().MustGet()
	a.Run(context.Background(), agent.NewState(), agent.UserText("push it")).MustGet()
	// Output:
	// level=INFO msg=run.started
	// level=INFO msg=inference.completed
	// level=WARN msg=hook.blocked gen_ai.tool.name=push
	// level=WARN msg=tool_call.completed gen_ai.tool.name=push grapnel.tool.outcome=denied grapnel.decision.winner=no-push
	// level=INFO msg=inference.completed
	// level=INFO msg=run.completed grapnel.run.status=done grapnel.run.steps=2
}

// Levels, and nothing of the contents unless they are asked for.
func TestLog(t *testing.T) {
	for _, content := range []bool{false, true} {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutIDs}))
		broken := hooks.On(hooks.AtPreToolUse, "broken", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Fail(errors.New("secret-cause")) },
			hooks.ToolNamed("odd"))
		hides := hooks.On(hooks.AtPostToolUse, "hides", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
			return c.Filter(func(text string) string { return strings.ReplaceAll(text, "filtered-secret", "[hidden]") })
		})
		model := agenttest.Script(agenttest.Call("odd", `{}`), agenttest.Call("fail", `{"in":"secret-argument"}`), agenttest.Call("look", `{}`),
			agenttest.Fail(errors.New("secret-failure")))
		a := builder.New().WithName("helper").WithDriver(model).With(
			capability.UseTools(toolOf("odd", func() (string, error) { return "", nil }), toolOf("fail", func() (string, error) { return "", errors.New("secret-error") }),
				toolOf("look", func() (string, error) { return "secret-result filtered-secret", nil })),
			capability.UseHooks(broken, hides), kit.Log{Logger: logger, Content: content}).Build().MustGet()
		require.Error(t, a.Run(t.Context(), agent.NewState(), agent.UserText("secret-input")).Error())
		log := out.String()
		for _, want := range []string{
			"level=INFO msg=run.started", "level=DEBUG msg=inference.started", "level=ERROR msg=hook.failed",
			"level=WARN msg=tool_call.completed gen_ai.agent.name=helper grapnel.step.index=0 gen_ai.tool.name=odd gen_ai.tool.call.id=call_1_1 " +
				"grapnel.tool.outcome=denied grapnel.decision.reason_code=hook_failed grapnel.decision.winner=broken",
			"grapnel.tool.outcome=failed grapnel.decision.reason_code=error", "level=INFO msg=tool_call.completed",
			"level=WARN msg=inference.completed", "level=ERROR msg=run.completed gen_ai.agent.name=helper grapnel.run.status=failed",
		} {
			assert.Contains(t, log, want)
		}
		assert.NotContains(t, log, "filtered-secret")
		for _, secret := range []string{"secret-argument", "secret-error", "secret-result", "secret-failure", "secret-cause"} {
			if content {
				assert.Contains(t, log, secret)
			} else {
				assert.NotContains(t, log, secret)
			}
		}
	}
}

func TestLogOfTheProgram(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	a := builder.New().WithDriver(agenttest.Script(agenttest.Say("done"))).With(kit.Log{}).Build().MustGet()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
	assert.Contains(t, out.String(), "msg=run.completed")
}

// toolOf returns a tool that does f.
func toolOf(name string, f func() (string, error)) toolexec.Tool {
	type input struct {
		In string `json:"in,omitempty"`
	}
	return toolexec.Func(name, name, func(context.Context, input) (string, error) { return f() })
}
