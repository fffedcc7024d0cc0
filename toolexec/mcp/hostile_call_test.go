//go:build unix

package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/toolexec"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

// A server may do these things during a tool call, and the model learns about them in these words. After each of them a
// good call works again.
func TestCallsOfAHostileServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status agent.ToolStatus
		reason agent.ReasonCode
		within time.Duration
		want   []string
	}{
		"garbage": {agent.ToolExecuted, "", 0, []string{"done"}},
		"nasty":   {agent.ToolExecuted, "", 0, []string{"done"}},
		"null":    {agent.ToolExecuted, "", 0, []string{""}},
		"hang":    {agent.ToolFailed, agent.ReasonTimeout, 2 * time.Second, []string{"no answer within 2s"}},
		"wrongid": {agent.ToolFailed, agent.ReasonTimeout, 2 * time.Second, []string{"no answer within 2s"}},
		"flood":   {agent.ToolFailed, agent.ReasonError, 0, []string{"bytes that do not answer a request"}},
		"deaf":    {agent.ToolFailed, agent.ReasonTimeout, 2 * time.Second, []string{"no answer within 2s"}},
		"die": {agent.ToolFailed, agent.ReasonError, 0, []string{`calling tool "die" of mcp server "bad": the process ended (exit status 3)`,
			`it said: "boom: [secret]"`, "it is unknown whether the call took effect"}},
		"close":      {agent.ToolFailed, agent.ReasonError, 0, []string{"it closed its output", "it is unknown"}},
		"huge":       {agent.ToolFailed, agent.ReasonError, 0, []string{"it sent a message of more than 262144 bytes"}},
		"noise":      {agent.ToolFailed, agent.ReasonError, 0, []string{"bytes that are not messages"}},
		"pings":      {agent.ToolFailed, agent.ReasonError, 0, []string{"requests without reading the answers"}},
		"badcontent": {agent.ToolFailed, agent.ReasonError, 0, []string{`calling tool "badcontent" of mcp server "bad"`, "nil content; no answer came that can be read"}},
		"refuse":     {agent.ToolFailed, agent.ReasonError, 0, []string{"the server refused the call: no such thing, [secret] (code -32602)"}},
		"closing":    {agent.ToolFailed, agent.ReasonError, 0, []string{"the server refused the call: closed on Sundays (it says code -32004)"}},
		"lie": {agent.ToolExecuted, agent.ReasonError, 0, []string{
			`tool "lie" of mcp server "bad": the result does not match the server's output schema (/n: `, "n is many"}},
		"error": {agent.ToolExecuted, agent.ReasonError, 0, []string{`tool "error" of mcp server "bad" failed and does not say why`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := hostile(t, "")
			s.Env["TOKEN"] = "hunter2-hunter2"
			if tc.within > 0 {
				s.Policy.Timeout = tc.within
			}
			c := connect(t, s)
			r := answer(t, t.Context(), c, "mcp__bad__"+name, "{}")
			assert.Equal(t, tc.status, r.Status, r.Text())
			assert.Equal(t, tc.reason, r.Reason)
			for _, want := range tc.want {
				assert.Contains(t, r.Text(), want)
			}
			assert.NotContains(t, r.Text(), "hunter2")
			if name == "deaf" {
				return // it is still there, but unusable
			}
			again := answer(t, t.Context(), c, "mcp__bad__echo", `{"b":2}`)
			assert.Equal(t, agent.ToolExecuted, again.Status, again.Text())
			assert.Contains(t, again.Text(), `{"b":2}`)
		})
	}
}

func TestResultsOfEveryKind(t *testing.T) {
	r := answer(t, t.Context(), connect(t, hostile(t, "")), "mcp__bad__everything", "{}")
	require.Equal(t, agent.ToolExecuted, r.Status, r.Text())
	var parts []agent.Part
	for _, p := range r.Content.Parts() {
		parts = append(parts, p)
	}
	assert.Equal(t, []agent.Part{
		agent.Text("one\n"), agent.Text("two"),
		agent.Image("image/png", []byte("img")), agent.File("audio", "audio/mpeg", []byte("aud")),
		agent.Text("[resource link] a file:///a text/plain\n"), agent.Text("[resource] file:///b\nbee"),
		agent.File("c.bin", "application/octet-stream", []byte("bin")), agent.Image("image/gif", []byte("gif")),
		agent.Text("[resource without contents]"),
	}, parts)
	assert.Equal(t, `{"n":1}`, answer(t, t.Context(), connect(t, hostile(t, "")), "mcp__bad__structured", "{}").Text())
}

func TestTheIdempotencyKeyIsSent(t *testing.T) {
	c := connect(t, hostile(t, ""))
	state := agent.NewState()
	call := agent.ToolCall{ID: "call-9", Name: "mcp__bad__echo", Arguments: `{}`}
	e := executor(t, c)
	p := e.Prepare(t.Context(), state, &call).MustGet()
	want := toolexec.Call{ToolCall: call, State: state}.IdempotencyKey()
	assert.Equal(t, "{} "+want, e.Execute(t.Context(), state, p).MustGet().Text())
}

func TestTheServerIsToldOfTheSpan(t *testing.T) {
	c := connect(t, hostile(t, ""))
	call := agent.ToolCall{ID: "call-9", Name: "mcp__bad__echo", Arguments: `{}`}
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	}))
	e := executor(t, c)
	text := e.Execute(ctx, agent.NewState(), e.Prepare(ctx, agent.NewState(), &call).MustGet()).MustGet().Text()
	assert.Contains(t, text, " 00-01000000000000000000000000000000-0200000000000000-01")
}

func TestACancelledCallReturnsAtOnceAndTheServerIsTold(t *testing.T) {
	c := connect(t, hostile(t, ""))
	mark := filepath.Join(t.TempDir(), "mark")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan *agent.ToolResult)
	ask := asking(t, c, "mcp__bad__patient", `{"mark":`+strconv.Quote(mark)+`}`)
	go func() { done <- ask(ctx) }()
	require.Eventually(t, func() bool { return exists(mark + ".asked") }, time.Minute, 5*time.Millisecond)
	cancel()
	r := <-done
	assert.Equal(t, agent.ReasonCancelled, r.Reason, r.Text())
	require.Eventually(t, func() bool {
		told, err := os.ReadFile(mark)
		return err == nil && strings.Contains(string(told), `"requestId":`)
	}, time.Minute, 5*time.Millisecond)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestToolsThatChangeAreNotCalled(t *testing.T) {
	for how, want := range map[string]string{
		"change": "the arguments of the tool have changed since the agent was built",
		"drop":   "the server no longer has this tool",
	} {
		c := connect(t, hostile(t, ""))
		require.Equal(t, "done", answer(t, t.Context(), c, "mcp__bad__"+how, "{}").Text())
		r := answer(t, t.Context(), c, "mcp__bad__echo", "{}")
		assert.Equal(t, agent.ToolFailed, r.Status)
		assert.Contains(t, r.Text(), want)
		assert.Equal(t, agent.KindInvalid, agent.KindOf(r.Err))
		assert.Equal(t, "done", answer(t, t.Context(), c, "mcp__bad__garbage", "{}").Text(), "the others can be called")
	}
}

func TestACallThatIsLostIsRepeatedWhereTheToolSaysItMay(t *testing.T) {
	c := connect(t, hostile(t, ""))
	r := answer(t, t.Context(), c, "mcp__bad__die-softly", `{"mark":`+strconv.Quote(filepath.Join(t.TempDir(), "mark"))+`}`)
	assert.Equal(t, "done", r.Text())
	assert.Equal(t, 2, r.Attempts)
	said, ok := c.Annotations("mcp__bad__die-softly")
	assert.True(t, ok)
	assert.Equal(t, mcp.Annotations{ReadOnly: true, Destructive: true, OpenWorld: true}, said)
	_, ok = c.Annotations("die-softly")
	assert.False(t, ok)
}

func TestAServerThatKeepsDyingIsLeftAlone(t *testing.T) {
	c := connect(t, hostile(t, ""))
	var said []string
	for leftAlone := false; !leftAlone; { // the pause grows until a start takes less, however slow the machine is
		r := answer(t, t.Context(), c, "mcp__bad__die", "{}")
		require.Equal(t, agent.ToolFailed, r.Status)
		said = append(said, r.Text())
		require.Less(t, len(said), 20, said)
		leftAlone = strings.Contains(r.Text(), "times in a row and is not called for")
	}
	require.Greater(t, len(said), 2)
	assert.Contains(t, said[1], "exit status 3", "it is started again at once, the first time")
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	for _, mode := range []string{"", "stubborn"} {
		c, err := mcp.Connect(t.Context(), hostile(t, mode))
		require.NoError(t, err)
		child, err := strconv.Atoi(answer(t, t.Context(), c, "mcp__bad__fork", "{}").Text())
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(child, 0))
		require.NoError(t, c.Close())
		require.Eventually(t, func() bool { return isGone(child) }, time.Minute, 5*time.Millisecond)
		r := answer(t, t.Context(), c, "mcp__bad__echo", "{}")
		assert.Contains(t, r.Text(), "the client was closed: connect again")
		assert.NoError(t, c.Close())
		_, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		assert.ErrorIs(t, err, syscall.ECHILD, "a child is left, alive or a zombie")
	}
}

func TestProgressWithoutEnd(t *testing.T) {
	t.Parallel()
	s := hostile(t, "")
	s.Policy.Timeout = time.Second
	c := connect(t, s)
	recorder := agenttest.Record()
	a := builder.New().WithDriver(agenttest.Script(agenttest.Call("mcp__bad__flood", "{}"), agenttest.Say("done"))).
		WithObserver(recorder).With(capability.UseTools(c.Tools()...)).Build().MustGet()
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	assert.Equal(t, "done", final.Answer())
	reports := agenttest.Of[mcp.ProgressReported](recorder)
	assert.NotEmpty(t, reports)
	assert.LessOrEqual(t, len(reports), 1000)
	assert.Equal(t, "on it", reports[0].Message)
}

// What has left the process group is not ours to end; that it holds the pipes open holds up nothing.
func TestADaemonHoldsUpNothing(t *testing.T) {
	t.Parallel()
	c, err := mcp.Connect(t.Context(), hostile(t, ""))
	require.NoError(t, err)
	child, err := strconv.Atoi(answer(t, t.Context(), c, "mcp__bad__daemon", "{}").Text())
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
	started := time.Now()
	assert.Contains(t, answer(t, t.Context(), c, "mcp__bad__die", "{}").Text(), "exit status 3")
	require.NoError(t, c.Close())
	assert.Less(t, time.Since(started), time.Minute)
	assert.False(t, isGone(child))
}

func TestAServerThatComesBackWithOtherToolsIsNotTrusted(t *testing.T) {
	s := hostile(t, "moody")
	s.Env["MOOD"] = filepath.Join(t.TempDir(), "mood")
	c := connect(t, s)
	require.NoError(t, os.WriteFile(s.Env["MOOD"], nil, 0o600))
	answer(t, t.Context(), c, "mcp__bad__die", "{}")
	assert.Contains(t, answer(t, t.Context(), c, "mcp__bad__echo", "{}").Text(), "the arguments of the tool have changed since the agent was built")
	assert.Equal(t, "done", answer(t, t.Context(), c, "mcp__bad__garbage", "{}").Text())
}

func TestAServerThatCannotBeStartedAgain(t *testing.T) {
	s := hostile(t, "tired")
	s.Env["MOOD"] = filepath.Join(t.TempDir(), "mood")
	c := connect(t, s)
	require.NoError(t, os.WriteFile(s.Env["MOOD"], nil, 0o600))
	answer(t, t.Context(), c, "mcp__bad__die", "{}")
	r := answer(t, t.Context(), c, "mcp__bad__echo", "{}")
	assert.Contains(t, r.Text(), `calling tool "echo" of mcp server "bad": connecting to it again: the process ended (exit status 9)`)
	require.NoError(t, os.Remove(s.Env["MOOD"]))
	assert.Equal(t, agent.ToolExecuted, answer(t, t.Context(), c, "mcp__bad__echo", "{}").Status, "it works again")
}

// isGone reports whether a process has ended; a zombie counts.
func isGone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}

func TestCloseEndsCallsUnderWay(t *testing.T) {
	c, err := mcp.Connect(t.Context(), hostile(t, ""))
	require.NoError(t, err)
	mark := filepath.Join(t.TempDir(), "mark")
	done := make(chan *agent.ToolResult)
	ask := asking(t, c, "mcp__bad__patient", `{"mark":`+strconv.Quote(mark)+`}`)
	go func() { done <- ask(t.Context()) }()
	require.Eventually(t, func() bool { return exists(mark + ".asked") }, time.Minute, 5*time.Millisecond)
	require.NoError(t, c.Close())
	assert.Contains(t, (<-done).Text(), "the client was closed")
}

func TestCallsInParallel(t *testing.T) {
	c := connect(t, hostile(t, ""))
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			args := `{"n":` + strconv.Itoa(i) + `}`
			assert.Contains(t, answer(t, t.Context(), c, "mcp__bad__echo", args).Text(), args)
		})
	}
	wait.Wait()
}

// Fifty calls wait when the server dies: each of them is told.
func TestManyCallsAtTheDeath(t *testing.T) {
	c := connect(t, hostile(t, ""))
	dir := t.TempDir()
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			r := answer(t, t.Context(), c, "mcp__bad__hang", `{"mark":`+strconv.Quote(filepath.Join(dir, strconv.Itoa(i)))+`}`)
			assert.Contains(t, r.Text(), "exit status 3")
		})
	}
	require.Eventually(t, func() bool {
		asked, err := os.ReadDir(dir)
		return err == nil && len(asked) == 50
	}, time.Minute, 5*time.Millisecond)
	assert.Contains(t, answer(t, t.Context(), c, "mcp__bad__die", "{}").Text(), "exit status 3")
	wait.Wait()
}

func TestAServerThatDoesNotReadHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := hostile(t, "")
	s.Policy.Timeout = 300 * time.Millisecond
	c := connect(t, s)
	answer(t, t.Context(), c, "mcp__bad__deaf", "{}")
	big := `{"x":"` + strings.Repeat("x", 200<<10) + `"}` // more than a pipe holds
	r := answer(t, t.Context(), c, "mcp__bad__echo", big)
	assert.Equal(t, agent.ReasonTimeout, r.Reason)
}
