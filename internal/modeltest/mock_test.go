package modeltest_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/internal/modeltest"
	"github.com/grapnel-go/grapnel/internal/parts"
)

func TestModelOverTheMockServer(t *testing.T) {
	mock := modeltest.StartMock(t)
	agenttest.TestModel(t, agenttest.Model{New: func(t *testing.T, turns ...agent.Step) agent.Driver {
		t.Helper()
		return chat{url: mock.Play(t, turns...).URL + "/v1", key: key, client: http.DefaultClient}
	}})
}

func TestMockKeepsWhatWasAsked(t *testing.T) {
	mock := modeltest.Mock(t, agent.Step{Message: agent.Assistant("hi"), FinishReason: agent.FinishStop})
	d := chat{url: mock.URL + "/v1", key: key, client: http.DefaultClient}
	step, err := d.Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, "hi", step.Message.Text())

	<-mock.Arrivals()
	require.Len(t, mock.Requests(), 1)
	r := mock.Requests()[0]
	assert.Equal(t, "POST /v1/chat/completions", r.Method+" "+r.Path)
	assert.Equal(t, "Bearer "+modeltest.Key, r.Header.Get("Authorization"))
	assert.Equal(t, "small", r.JSON(t)["model"])
	<-r.ClientGone()
}

func TestMockAnswersByThePositionInTheConversation(t *testing.T) {
	mock := modeltest.StartMock(t)
	turns := func(texts ...string) chat {
		var steps []agent.Step
		for _, text := range texts {
			steps = append(steps, agent.Step{Message: agent.Assistant(text), FinishReason: agent.FinishStop})
		}
		return chat{url: mock.Play(t, steps...).URL + "/v1", key: key, client: http.DefaultClient}
	}
	one, other := turns("first", "second"), turns("another first")
	opened := agent.NewState(agent.UserText("hello"))
	gone := opened.With(agent.Assistant("whatever"), agent.UserText("go on"))
	for range 2 {
		assert.Equal(t, "second", one.Next(t.Context(), gone).MustGet().Message.Text())
		assert.Equal(t, "first", one.Next(t.Context(), opened).MustGet().Message.Text())
		assert.Equal(t, "another first", other.Next(t.Context(), opened).MustGet().Message.Text())
	}
	_, err := other.Next(t.Context(), gone).Get()
	assert.ErrorContains(t, err, "no_fixture_match", "there is no second turn")
}

// The server must not outlive a test binary, even if the binary is killed, panics or times out and cannot clean up.
const orphanTest = "MODELTEST_ORPHAN"

func TestServerEndsWithTheProcess(t *testing.T) {
	parts.NPM(t, "llmock")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOrphan$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), orphanTest+"=1", "TMPDIR="+t.TempDir()) // it leaves its files behind, too
	out, err := cmd.Output()
	require.Error(t, err, "it gives up: %s", out)
	address, _, _ := strings.Cut(string(out), "\n")
	require.Contains(t, address, "127.0.0.1:", "the address of the server")
	require.Eventually(t, func() bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, 30*time.Second, 10*time.Millisecond, "the server still listens on %s", address)
}

func TestOrphan(t *testing.T) {
	if os.Getenv(orphanTest) == "" {
		t.Skip("this is run by TestServerEndsWithTheProcess")
	}
	_, _ = os.Stdout.WriteString(modeltest.StartMock(t).Address() + "\n")
	os.Exit(3)
}
