package otelsetup_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/telemetry/otelsetup"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Bytes that are no text, in the name of a tool, its error or its result, do not keep a
// trace from being sent.
func TestBrokenTextsAreSent(t *testing.T) {
	environment(t)
	var mu sync.Mutex
	sent := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		sent[r.URL.Path] += string(body)
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	shutdown, err := otelsetup.Start(t.Context(), otelsetup.Config{})
	require.NoError(t, err)
	says := func(name, text string, err error) toolexec.Tool {
		return toolexec.Func(name, "A tool.", func(context.Context, struct{}) (string, error) { return text, err })
	}
	deny := hooks.On(hooks.AtPreToolUse, "no\xff", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Deny("because \xff")
	}, hooks.ToolNamed("shut"))
	a, err := builder.New().WithName("helper").WithModel("small").
		WithDriver(agenttest.Script(agenttest.Call("no\xff\xfe", `{}`).Call("fail", `{}`).Call("binary", `{}`).Call("shut", `{}`), agenttest.Say("done"))).
		With(capability.UseTelemetry{Content: true}, capability.UseTools(says("fail", "", errors.New("at \xff")), says("binary", "\x9b\xff", nil), says("shut", "", nil)),
			capability.UseHooks(deny)).
		Build().Get()
	require.NoError(t, err)
	require.NoError(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go \xff")).Error())
	require.NoError(t, shutdown(context.Background()))
	mu.Lock()
	defer mu.Unlock()
	assert.Contains(t, sent["/v1/traces"], "execute_tool fail")
	assert.Contains(t, sent["/v1/traces"], "execute_tool binary")
	assert.Contains(t, sent["/v1/logs"], "grapnel.run.ended")
	assert.Contains(t, sent["/v1/logs"], "because \uFFFD")
	assert.Contains(t, sent["/v1/metrics"], "gen_ai.execute_tool.duration")
}
