package otelsetup_test

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/telemetry/otelsetup"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Sentences that a program shows its user do not go where the environment sends the
// rest, unless it says so.
func TestBare(t *testing.T) {
	for name, bare := range map[string]bool{"bare": true, "whole": false} {
		t.Run(name, func(t *testing.T) {
			environment(t, "OTEL_TRACES_EXPORTER=console", "OTEL_LOGS_EXPORTER=console")
			tree, out := &otelsetup.Tree{}, &bytes.Buffer{}
			stop := start(t, otelsetup.Config{Console: out, Spans: []sdktrace.SpanProcessor{tree}, Bare: bare})
			fail := toolexec.Func("fail", "A tool.", func(context.Context, struct{}) (string, error) { return "", errors.New("out of paper") })
			deny := hooks.On(hooks.AtPreToolUse, "no-push", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				return c.Deny("not on a Friday")
			}, hooks.ToolNamed("push"))
			push := toolexec.Func("push", "A tool.", func(context.Context, struct{}) (string, error) { return "", nil })
			a, err := builder.New().WithName("helper").WithModel("small").
				WithDriver(agenttest.Script(agenttest.Call("push", `{}`).Call("fail", `{}`), agenttest.Fail(errors.New("no connection")))).
				With(capability.UseTools(push, fail), capability.UseHooks(deny), capability.UseTelemetry{Reasons: true}).Build().Get()
			require.NoError(t, err)
			require.Error(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error())
			stop()
			var shown strings.Builder
			_, err = tree.WriteTo(&shown)
			require.NoError(t, err)
			for _, sentence := range []string{"not on a Friday", "out of paper", "no connection"} {
				assert.Contains(t, shown.String(), sentence)
				assert.Equal(t, !bare, strings.Contains(out.String(), sentence), sentence)
			}
			for _, fact := range []string{"execute_tool fail", "grapnel.denied", "no-push"} {
				assert.Contains(t, out.String(), fact)
			}
			if bare {
				assert.Contains(t, out.String(), `"Status":{"Code":"Error","Description":"error"}`)
			}
		})
	}
}

// Two processes of a service do not measure into one series.
func TestEachProcessHasItsID(t *testing.T) {
	id := regexp.MustCompile(`"service\.instance\.id","Value":\{"Type":"STRING","Value":"([^"]+)"`)
	sent := func(pairs ...string) string {
		environment(t, append(pairs, "OTEL_TRACES_EXPORTER=console")...)
		out := &bytes.Buffer{}
		stop := start(t, otelsetup.Config{Console: out})
		say(t)
		stop()
		m := id.FindStringSubmatch(out.String())
		require.Len(t, m, 2, out.String())
		return m[1]
	}
	first := sent()
	assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, first)
	assert.NotEqual(t, first, sent())
	assert.Equal(t, "mine", sent("OTEL_RESOURCE_ATTRIBUTES=service.instance.id=mine"))
}
