package modeltest

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/processor"
)

// TestMock tests a driver against the mock server: the server accepts its key, understands its messages, and fails in
// its own ways. It uses only s.New.
func TestMock(t *testing.T, s Service) {
	t.Helper()
	mock := newMockServer(t, Key, []fixture{})
	for name, part := range map[string]func(t *testing.T, mock *MockServer, streaming bool){
		"what the model is shown": s.mockConversation,
		"wrong key":               s.mockAuth,
		"rate limit and retry":    s.mockRetry,
		"failure":                 s.mockFailure,
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("blocking", func(t *testing.T) { part(t, mock, false) })
			t.Run("streaming", func(t *testing.T) { part(t, mock, true) })
		})
	}
	t.Run("image", func(t *testing.T) { s.mockImage(t, mock) })
	t.Run("stream cut off", func(t *testing.T) { s.mockCut(t, mock) })
	t.Run("slow first byte", func(t *testing.T) { s.mockSlow(t, mock) })
	t.Run("cancelled within a stream", func(t *testing.T) { s.mockCancelled(t, mock) })
}

// textFixture returns a fixture that answers every request with text.
func textFixture(text string) fixture {
	return stepFixture(agent.Step{Message: agent.Assistant(text), FinishReason: agent.FinishStop}, 0)
}

// failureFixture returns a fixture that answers with a failure.
func failureFixture(status int, kind string) fixture {
	var f fixture
	f.Response.Status = status
	f.Response.Error = &apiError{Message: Sentence, Type: kind}
	return f
}

// mockConversation checks that the server understands a run with parallel calls: each message's author, each answer's
// call, and the tools.
func (s Service) mockConversation(t *testing.T, mock *MockServer, streaming bool) {
	t.Helper()
	calling := agent.Step{FinishReason: agent.FinishToolCalls, Message: agent.Assistant("Let me see.",
		agent.ToolCall{ID: "call_a", Name: "look", Arguments: `{"at":"the first"}`},
		agent.ToolCall{ID: "call_b", Name: "look", Arguments: `{"at":"the second"}`})}
	play := mock.Play
	if s.Items {
		play = mock.PlayItems
	}
	d := s.at(t, streaming, play(t, calling, agent.Step{Message: agent.Assistant("Done."), FinishReason: agent.FinishStop}))
	const schema = `{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}`
	a, err := agent.New(agent.Config{
		Driver: d.driver,
		Executor: agenttest.Tools{"look": func(_ context.Context, c agent.ToolCall) (string, error) {
			return "seen " + c.Arguments, nil
		}}.Executor(),
		Request: agent.Request{
			Instructions: "Be brief.",
			Tools:        agent.ToolsOf(agent.ToolSpec{Name: "look", Description: "Looks.", Parameters: schema}),
		},
	}).Get()
	require.NoError(t, err)
	final, err := runWay(t, a, streaming)
	require.NoError(t, err)
	require.Equal(t, "Done.", final.Answer(), "the answer")

	journal := d.Journal(t)
	require.Len(t, journal, 2, "requests in the journal")
	shown := journal[1].Body
	if s.Items {
		require.Len(t, shown.Messages, 7, "messages")
		said := &shown.Messages[2]
		for _, item := range shown.Messages[3:5] {
			require.Equal(t, "assistant", item.Role, "the role of an item of the reply")
			said.ToolCalls = append(said.ToolCalls, item.ToolCalls...)
		}
		shown.Messages = slices.Delete(shown.Messages, 3, 5)
	}
	require.Len(t, shown.Messages, 5, "messages")
	for i, want := range []struct{ role, says string }{
		{"system", "Be brief."}, {"user", "hello"}, {"assistant", "Let me see."}, {"tool", "the first"}, {"tool", "the second"},
	} {
		assert.Equal(t, want.role, shown.Messages[i].Role, "the role of message %d", i)
		assert.Contains(t, string(shown.Messages[i].Content), want.says, "what message %d says", i)
	}
	require.Len(t, shown.Messages[2].ToolCalls, 2, "calls")
	for i, c := range shown.Messages[2].ToolCalls {
		assert.Equal(t, "look", c.Function.Name, "the name in call %d", i)
		assert.JSONEq(t, calling.Message.Call(i).Arguments, c.Function.Arguments, "the arguments of call %d", i)
		assert.Equal(t, c.ID, shown.Messages[3+i].CallID, "the call that answer %d is to", i)
	}
	require.Len(t, shown.Tools, 1, "tools")
	assert.Equal(t, "look", shown.Tools[0].Function.Name, "the tool's name")
	assert.Equal(t, "Looks.", shown.Tools[0].Function.Description, "the tool's description")
}

// mockImage checks that the bytes of an image are sent, if the driver supports images.
func (s Service) mockImage(t *testing.T, mock *MockServer) {
	t.Helper()
	d := s.at(t, false, mock.serveFixtures(t, []fixture{textFixture("nice")}))
	if !agent.FeaturesOf(d.driver).Images {
		t.Skip("the driver does not support images")
	}
	image := []byte("not looked at by a mock: \x00\xff")
	show := agent.NewState(agent.User(agent.Text("what is this?"), agent.Image("image/png", image)))
	step, err := d.driver.Next(t.Context(), show).Get()
	require.NoError(t, err)
	assert.Equal(t, "nice", step.Message.Text(), "the answer")
	body := string(d.Requests()[0].Body)
	assert.Contains(t, body, base64.StdEncoding.EncodeToString(image), "the image")
	assert.Contains(t, body, "image/png", "the media type")
}

func (s Service) mockAuth(t *testing.T, _ *MockServer, streaming bool) {
	t.Helper()
	other := newMockServer(t, "another key", []fixture{})
	s.at(t, streaming, other.serveFixtures(t, []fixture{textFixture("hi")})).fails(t, agent.KindAuth)
}

func (s Service) mockFailure(t *testing.T, mock *MockServer, streaming bool) {
	t.Helper()
	for status, want := range map[int]struct {
		kind agent.ErrorKind
		code string
	}{
		400: {agent.KindBadRequest, "invalid_request_error"}, 429: {agent.KindRateLimit, "rate_limit_error"},
		500: {agent.KindModel, "api_error"}, 503: {agent.KindOverloaded, "overloaded_error"}, 529: {agent.KindOverloaded, "overloaded_error"},
	} {
		f := failureFixture(status, want.code)
		f.Response.RetryAfter = 3600
		failure := s.at(t, streaming, mock.serveFixtures(t, []fixture{f})).fails(t, want.kind)
		assert.Equal(t, status, failure.Status, "the status")
		assert.Contains(t, failure.Error(), Sentence, "what the service said")
		if status == http.StatusTooManyRequests {
			assert.Equal(t, time.Hour, failure.RetryAfter(), "the time before a retry")
		}
	}
}

func (s Service) mockRetry(t *testing.T, mock *MockServer, streaming bool) {
	t.Helper()
	limit := failureFixture(http.StatusTooManyRequests, "rate_limit_error")
	limit.Response.RetryAfter = 0.02
	fixtures := []fixture{limit, limit, textFixture("at last")}
	for i := range fixtures {
		fixtures[i].Match.SequenceIndex = &i
	}
	d := s.at(t, streaming, mock.serveFixtures(t, fixtures))
	a, err := agent.New(agent.Config{
		Driver: d.driver, AroundStep: []agent.Processor{processor.Retry{Delay: time.Nanosecond}},
	}).Get()
	require.NoError(t, err)
	began := time.Now()
	final, err := runWay(t, a, streaming)
	require.NoError(t, err)
	assert.Equal(t, "at last", final.Answer(), "the answer")
	assert.Len(t, d.Requests(), 3, "requests")
	assert.GreaterOrEqual(t, time.Since(began), 40*time.Millisecond, "the time it took")
}

func (s Service) mockCut(t *testing.T, mock *MockServer) {
	t.Helper()
	f := textFixture(strings.Repeat("All work and no play. ", 20))
	f.TruncateAfterChunks = 4
	f.StreamingProfile = &profile{PerSecond: 200} // without a pause, the first chunks would be lost, too
	s.at(t, true, mock.serveFixtures(t, []fixture{f})).fails(t, agent.KindBrokenStream)
}

func (s Service) mockSlow(t *testing.T, mock *MockServer) {
	t.Helper()
	f := textFixture("at last")
	f.StreamingProfile = &profile{FirstByte: 100}
	d := s.at(t, true, mock.serveFixtures(t, []fixture{f}))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := d.soon(ctx, t, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	step, err := d.soon(t.Context(), t, nil)
	require.NoError(t, err)
	assert.Equal(t, "at last", step.Message.Text())
}

func (s Service) mockCancelled(t *testing.T, mock *MockServer) {
	t.Helper()
	f := textFixture(strings.Repeat("All work and no play. ", 2000))
	f.StreamingProfile = &profile{PerSecond: 20} // the whole stream would take a minute
	d := s.at(t, true, mock.serveFixtures(t, []fixture{f}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := d.soon(ctx, t, func(agent.Delta) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	wait(t, d.Requests()[0].ClientGone(), "the connection is still open")
}
