//go:build unix

package mcp_test

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

// everything starts npm's server-everything over stdio.
func everything(t testing.TB) mcp.Server {
	t.Helper()
	return mcp.Server{Name: "every", Command: []string{parts.NPM(t, "mcp-server-everything"), "stdio"}}
}

// everythingOverHTTP starts npm's server-everything as a service on a free port; restart starts it again there.
func everythingOverHTTP(t testing.TB) (s mcp.Server, restart func()) {
	t.Helper()
	program := parts.NPM(t, "mcp-server-everything")
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
	require.NoError(t, free.Close())
	stop := func() {}
	restart = func() {
		stop()
		cmd := exec.CommandContext(t.Context(), program, "streamableHttp")
		cmd.Env = append(os.Environ(), "PORT="+port)
		stderr, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		said := make([]byte, 1)
		_, err = io.ReadFull(stderr, said) // that it listens
		require.NoError(t, err)
		stop = func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(func() { stop() })
	restart()
	return mcp.Server{Name: "every", URL: "http://127.0.0.1:" + port + "/mcp"}, restart
}

func TestEverythingThroughAnAgentOverStdio(t *testing.T) {
	t.Parallel()
	s := everything(t)
	s.Env = map[string]string{"PLANTED": "sk-planted-4711"}
	driveEverything(t, s)
}

func TestEverythingThroughAnAgentOverHTTP(t *testing.T) {
	t.Parallel()
	s, _ := everythingOverHTTP(t)
	driveEverything(t, s)
}

// driveEverything has an agent call the tools of server-everything, with hooks that deny, rewrite, mock and redact.
func driveEverything(t *testing.T, s mcp.Server) {
	t.Helper()
	c := connect(t, s)
	deny := hooks.On(hooks.AtPreToolUse, "no-gzip", func(_ context.Context, h hooks.ToolContext) hooks.Result {
		return h.Deny("nothing is fetched here")
	}, hooks.ToolMatching("mcp__every__gzip*"))
	onlyReading := hooks.On(hooks.AtPreToolUse, "only-reading", func(_ context.Context, h hooks.ToolContext) hooks.Result {
		if said, ok := c.Annotations(h.Call().Name); ok && !said.ReadOnly {
			return h.Deny("it does not even say that it only reads")
		}
		return h.Allow()
	})
	rewrite := hooks.On(hooks.AtPreToolUse, "polite", func(_ context.Context, h hooks.ToolContext) hooks.Result {
		var in struct {
			Message string `json:"message"`
		}
		if err := h.Call().Decode(&in); err != nil {
			return h.Fail(err)
		}
		in.Message += ", please; the key is sk-planted-4711"
		return h.Rewrite(in)
	}, hooks.ToolNamed("mcp__every__echo"))
	mock := hooks.On(hooks.AtPreToolUse, "no-env", func(_ context.Context, h hooks.ToolContext) hooks.Result {
		return h.Mock("HOME=/nowhere")
	}, hooks.ToolNamed("mcp__every__get-env"))
	redact := hooks.On(hooks.AtPostToolUse, "redact", func(_ context.Context, h hooks.ToolResultContext) hooks.Result {
		if clean := strings.ReplaceAll(h.Text(), "sk-planted-4711", "[redacted]"); clean != h.Text() {
			return h.Replace(clean)
		}
		return h.Pass()
	})
	recorder := agenttest.Record()
	script := agenttest.Script(
		agenttest.Call("mcp__every__echo", `{"message":"say hi"}`).
			Call("mcp__every__get-sum", `{"a":2,"b":40}`).
			Call("mcp__every__get-sum", `{"a":"two"}`).
			Call("mcp__every__gzip-file-as-resource", `{}`).
			Call("mcp__every__get-env", `{}`).
			Call("mcp__every__toggle-simulated-logging", `{}`),
		agenttest.Call("mcp__every__get-tiny-image", `{}`).
			Call("mcp__every__get-structured-content", `{"location":"Chicago"}`).
			Call("mcp__every__get-annotated-message", `{"messageType":"error"}`).
			Call("mcp__every__get-resource-links", `{"count":2}`).
			Call("mcp__every__get-resource-reference", `{"resourceType":"Text","resourceId":1}`).
			Call("mcp__every__trigger-long-running-operation", `{"duration":0.2,"steps":4}`),
		agenttest.Say("done"),
	)
	a, err := builder.New().WithDriver(script).WithObserver(recorder).WithParallel(6).
		With(capability.UseTools(c.Tools()...), capability.UseHooks(deny, onlyReading, rewrite, mock, redact)).Build().Get()
	require.NoError(t, err)
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.Equal(t, "done", final.Answer())

	var results []agent.ToolResult
	for _, step := range final.Steps() {
		for _, r := range step.Results() {
			results = append(results, r)
		}
	}
	require.Len(t, results, 12)
	assert.Equal(t, "Echo: say hi, please; the key is [redacted]", agent.ToolAnswer(&results[0]).ToolText())
	assert.True(t, results[0].Rewritten())
	assert.Contains(t, results[1].Text(), "42")
	assert.Equal(t, agent.ReasonInvalid, results[2].Reason, "found out before the server was asked")
	assert.True(t, results[3].Denied())
	assert.Equal(t, "HOME=/nowhere", results[4].Text())
	assert.True(t, results[4].Mocked())
	assert.True(t, results[5].Denied(), results[5].Text())
	assert.Contains(t, kinds(results[6]), agent.PartImage)
	assert.JSONEq(t, `{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}`, results[7].Text())
	assert.Equal(t, "Error: Operation failed", results[8].Text())
	assert.Equal(t, 2, strings.Count(results[9].Text(), "[resource link]"), results[9].Text())
	assert.Contains(t, results[10].Text(), "[resource] demo://resource/dynamic/text/1")
	assert.Contains(t, results[11].Text(), "Long running operation completed")
	progress := agenttest.Of[mcp.ProgressReported](recorder)
	require.NotEmpty(t, progress)
	assert.Equal(t, "every", progress[0].Server)
	assert.Equal(t, "trigger-long-running-operation", progress[0].Tool)
	assert.Equal(t, "mcp__every__trigger-long-running-operation", progress[0].Call.Name)
	assert.Equal(t, final.Run().ID, progress[0].Run.ID)
	assert.InDelta(t, 1, progress[0].Progress, 0)
	assert.InDelta(t, 4, progress[0].Total, 0)
	assert.NotEmpty(t, c.Instructions())
}

func kinds(r agent.ToolResult) []agent.PartKind {
	var all []agent.PartKind
	for _, p := range r.Content.Parts() {
		all = append(all, p.Kind)
	}
	return lo.Uniq(all)
}

// Server-everything gets the variables that are named, and no other.
func TestAServerSeesOnlyTheVariablesThatAreNamed(t *testing.T) {
	t.Setenv("UNNAMED", "unnamed-value")
	t.Setenv("NAMED", "named-value")
	s := everything(t)
	s.Inherit = []string{"PATH", "NAMED"}
	s.Env = map[string]string{"OWN": "own-value"}
	s.Dir = t.TempDir()
	text := answer(t, t.Context(), connect(t, s), "mcp__every__get-env", `{}`).Text()
	assert.Contains(t, text, "own-value")
	assert.Contains(t, text, "named-value")
	assert.NotContains(t, text, "unnamed-value")
	assert.NotContains(t, text, `"HOME"`)
}

// A service that was restarted knows no session; server-everything says so with status 400.
func TestAServiceThatWasRestarted(t *testing.T) {
	t.Parallel()
	s, restart := everythingOverHTTP(t)
	c := connect(t, s)
	require.Equal(t, "Echo: a", answer(t, t.Context(), c, "mcp__every__echo", `{"message":"a"}`).Text())
	restart()
	r := answer(t, t.Context(), c, "mcp__every__echo", `{"message":"b"}`)
	assert.Equal(t, "Echo: b", r.Text())
}

// A long call is cancelled over HTTP and over stdio; the connection is good for more.
func TestCancellingALongCall(t *testing.T) {
	t.Parallel()
	web, _ := everythingOverHTTP(t)
	for _, s := range []mcp.Server{everything(t), web} {
		c := connect(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		started := time.Now()
		r := answer(t, ctx, c, "mcp__every__trigger-long-running-operation", `{"duration":60,"steps":600}`)
		cancel()
		assert.Equal(t, agent.ReasonCancelled, r.Reason, r.Text())
		assert.Less(t, time.Since(started), 50*time.Second, "the operation takes a minute")
		assert.Equal(t, "Echo: c", answer(t, t.Context(), c, "mcp__every__echo", `{"message":"c"}`).Text())
	}
}
