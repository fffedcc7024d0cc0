package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/internal/version"
	"github.com/grapnel-go/grapnel/registry"
)

func TestExitCodes(t *testing.T) {
	ctrlC, term := &signalError{os.Interrupt}, &signalError{syscall.SIGTERM}
	for _, tc := range []struct {
		status agent.Status
		err    error
		cause  error
		want   int
	}{
		{agent.StatusDone, nil, nil, 0},
		{agent.StatusFailed, errors.New("x"), nil, 1},
		{agent.StatusStopped, nil, nil, 3},
		{agent.StatusDenied, nil, nil, 4},
		{agent.StatusInterrupted, nil, nil, 5},
		{agent.StatusParked, nil, nil, 7}, // nothing is waited for
		{agent.StatusCancelled, ctrlC, ctrlC, 130},
		{agent.StatusCancelled, term, term, 143},
		{agent.StatusCancelled, nil, nil, 130},
		{agent.StatusNew, fmt.Errorf("connecting: %w", term), nil, 143},
		{agent.StatusDone, nil, ctrlC, 0}, // it was done before the signal counted
	} {
		assert.Equal(t, tc.want, exitCode(agent.Checkpoint(agent.NewState()).WithStatus(tc.status), tc.err, tc.cause), "%+v", tc)
	}
	empty := agent.NewState().WithStop(agent.Signal{Reason: agent.StopFinishReason, Details: map[string]any{"emptyReply": true}})
	assert.Equal(t, 1, exitCode(agent.Checkpoint(empty).WithStatus(agent.StatusDone), nil, nil), "an empty answer")
}

func TestReport(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code int
		text string
	}{
		{nil, 0, ""},
		{&exitError{3}, 3, ""},
		{errors.Join(&exitError{4}), 4, ""},
		{&usageError{errors.New("no\x1b[2J")}, 2, "grapnel: no␛[2J\n"},
		{fmt.Errorf("a: %w", &usageError{errors.New("b")}), 2, "grapnel: a: b\n"},
		{errors.New("broken"), 1, "grapnel: broken\n"},
	} {
		var out strings.Builder
		assert.Equal(t, tc.code, reportError(&out, tc.err))
		assert.Equal(t, tc.text, out.String())
	}
}

// Only what never got to the service counts as out of reach.
func TestUnreachable(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for err, want := range map[error]bool{
		fmt.Errorf("asking: %w", dial):                             true,
		&net.DNSError{Name: "nowhere"}:                             true,
		fmt.Errorf("x: %w", syscall.ENETUNREACH):                   true,
		&net.OpError{Op: "read", Err: syscall.ECONNRESET}:          false,
		context.DeadlineExceeded:                                   false,
		errors.New("connection refused"):                           false,
		&http.MaxBytesError{}:                                      false,
		fmt.Errorf("x: %w", &net.OpError{Op: "read", Err: nil}):    false,
		fmt.Errorf("x: %w", &offlineError{errors.New("whatever")}): false,
	} {
		assert.Equal(t, want, unreachable(err), "%v", err)
	}
}

func TestApprovals(t *testing.T) {
	for text, want := range map[string]agent.ApprovalVerdict{
		"y": agent.Approve, " YES ": agent.Approve, "n": agent.RejectAndEnd, "": agent.RejectAndEnd, "No": agent.RejectAndEnd,
		"yes but": agent.RejectAndContinue, "use printf": agent.RejectAndContinue,
	} {
		assert.Equal(t, want, readApproval(text).Verdict, "%q", text)
	}
}

func TestRepetitions(t *testing.T) {
	for text, want := range map[string]agent.ApprovalVerdict{
		"y": agent.Approve, " YES ": agent.Approve, "n": agent.RejectAndContinue, "": agent.RejectAndContinue,
		"it was paid": agent.RejectAndContinue, "e": agent.RejectAndEnd, "End": agent.RejectAndEnd,
	} {
		assert.Equal(t, want, repetition(text).Verdict, "%q", text)
	}
}

func TestUnfenced(t *testing.T) {
	for in, want := range map[string]string{
		"{}": "{}", "\n{}\n": "{}", "```json\n{}\n```": "{}", "```\n{}\n```": "{}", "```json\n{}": "```json\n{}",
	} {
		assert.Equal(t, want, registry.TrimFence(in), "%q", in)
	}
}

func TestPrompts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	from := func(text string) *os.File {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		f, err := os.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	for _, tc := range []struct {
		args  []string
		stdin string
		want  string
	}{
		{[]string{"mend", "it"}, "not read", "mend it"},
		{nil, "from a pipe\n", "from a pipe"},
		{[]string{"-"}, "  indented\n", "indented"},
		{[]string{"Review:", "-"}, "a\nb\n\n", "Review:\n\na\nb"},
		{[]string{"a", "-", "b"}, "not read", "a - b"},
		{nil, "", ""},
	} {
		got, err := promptOf(tc.args, from(tc.stdin))
		require.NoError(t, err)
		assert.Equal(t, tc.want, got)
	}
	_, err := promptOf(nil, from("\xff"))
	require.ErrorContains(t, err, "not UTF-8")
	_, err = promptOf(nil, from(strings.Repeat("x", mostInput+1)))
	require.ErrorContains(t, err, "longer than 10 MiB")
}

// A key is only looked for where the vendor itself is asked.
func TestNeedsKey(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY"} {
		t.Setenv(name, "")
	}
	m := agentfile.Model{Provider: "openai", Name: "x"}
	require.ErrorContains(t, needsKey(m, registry.Definition{}), "asking openai/x needs a key: set OPENAI_API_KEY")
	require.NoError(t, needsKey(m, registry.Definition{BaseURL: "http://localhost/v1"}))
	t.Setenv("OPENAI_API_KEY", "k")
	require.NoError(t, needsKey(m, registry.Definition{}))
	_, err := variable("api_key_env", "GRAPNEL_TEST_UNSET")
	require.EqualError(t, err, "api_key_env is GRAPNEL_TEST_UNSET: this environment variable is not set")
}

// The name of a provider says which API is asked.
func TestProviders(t *testing.T) {
	setCloud(t, map[string]string{"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "global", "TEST_TOKEN": "t"})
	for _, provider := range agentfile.Providers {
		t.Run(provider, func(t *testing.T) {
			var m agentfile.Model
			name, definition := "x", registry.Definition{}
			if provider == "vertex" {
				name, definition.APIKeyEnv = "gemini-x", "TEST_TOKEN"
			}
			require.NoError(t, m.Set(provider+"/"+name))
			asked := make(chan string, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- r.URL.Path
				w.WriteHeader(http.StatusTeapot)
			}))
			defer server.Close()
			definition.BaseURL = registry.URL(server.URL)
			d, err := newDriver(m, definition)
			require.NoError(t, err)
			require.Error(t, d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Error())
			assert.Equal(t, map[string]string{
				"openai": "/chat/completions", "openai-responses": "/responses", "anthropic": "/v1/messages", "gemini": "/v1beta/models/x:generateContent",
				"azure": "/openai/v1/chat/completions", "azure-responses": "/openai/v1/responses",
				"vertex": "/v1/projects/p/locations/global/publishers/google/models/gemini-x:generateContent",
			}[provider], <-asked)
		})
	}
}

func TestVersion(t *testing.T) {
	b := buildOf(&debug.BuildInfo{GoVersion: "go1.26.8", Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}, {Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "amd64"},
	}})
	assert.Equal(t, "grapnel "+version.Read()+", commit abc with changes, go1.26.8, linux/amd64", b.String())
}

// The shipped recording plays to its end with its hooks at work.
func TestShipped(t *testing.T) {
	m, err := newShippedAgent(watchers{})
	require.NoError(t, err)
	final, err := m.turn(t.Context(), &view{}, "", agent.RunSettings{}, nil)
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, final.Status())
	var denied []string
	for _, step := range final.RunSteps() {
		for _, r := range step.Results() {
			if r.Denied() {
				denied = append(denied, r.DecidedBy)
			}
			assert.NotContains(t, r.Text(), "correct-horse")
		}
	}
	assert.Equal(t, []string{"no-wipe", "inside-only"}, denied)
}
