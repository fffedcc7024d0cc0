package agents

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/registry"
)

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
		fmt.Errorf("x: %w", &OfflineError{errors.New("whatever")}): false,
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

// The shipped recording plays to its end with its hooks at work.
func TestShipped(t *testing.T) {
	m, err := NewShippedAgent(t.Context(), Watchers{})
	require.NoError(t, err)
	final, err := m.Turn(t.Context(), &View{}, "", agent.RunSettings{}, nil)
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
