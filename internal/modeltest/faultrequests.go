package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// testRedirect checks that the driver does not follow a redirect, which would pass the key on, and that the error is
// not retryable.
func (s Service) testRedirect(t *testing.T, streaming bool) {
	t.Helper()
	for _, status := range []int{301, 302, 303, 307, 308} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			elsewhere := Golden(t, s.Whole.reply(streaming))
			for _, to := range []string{elsewhere.URL, strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1), "/elsewhere"} {
				a := s.ask(t, streaming, Reply{Status: status}.With("Location", to))
				failure := a.fails(t, agent.KindBadRequest)
				assert.Equal(t, status, failure.Status, "the status")
				assert.Contains(t, failure.Advice, "redirects are not followed", "the advice")
			}
			assert.Empty(t, elsewhere.Requests(), "requests elsewhere")
		})
	}
}

// testSecretsInErrors checks that errors do not show the key when an answer repeats it, not even in part, and that no
// error contains a whole page.
func (s Service) testSecretsInErrors(t *testing.T, streaming bool) {
	t.Helper()
	bad := s.Errors[agent.KindBadRequest][0]
	for _, long := range []int{0, 280, 480, 490, 980, 985, 990, 100_000} {
		words := strings.Repeat("x", long) + " " + Key
		in := bad
		in.Frames = []string{strings.ReplaceAll(strings.Join(bad.Frames, ""), Sentence, words)}
		for _, reply := range []Reply{in, Body(http.StatusBadGateway, "text/html", "<p>"+words)} {
			a := s.ask(t, streaming, reply.With("X-Request-Id", Key).With("Request-Id", Key))
			_, err := a.soon(t.Context(), t, nil)
			a.checkFailure(t, err, agent.KindOf(err))
			assert.NotContains(t, err.Error(), Key[:len(Key)/3], "a part of the key, after %d bytes", long)
		}
	}
	t.Run("printed driver", func(t *testing.T) {
		d := s.ask(t, streaming, bad).driver
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			assert.NotContains(t, fmt.Sprintf(verb, d), Key, verb)
			assert.NotContains(t, fmt.Sprintf(verb, agent.FeaturesOf(d)), Key, verb)
		}
	})
}

// testUnfit checks that the driver refuses to send requests that no service supports.
func (s Service) testUnfit(t *testing.T, streaming bool) {
	t.Helper()
	for name, state := range map[string]agent.State{
		"call without tools":       hello.WithRequest(agent.Request{ToolChoice: agent.ToolsRequired}),
		"call of an unknown tool":  hello.WithRequest(agent.Request{ToolChoice: "missing"}),
		"broken parameters":        hello.WithRequest(agent.Request{Tools: agent.ToolsOf(agent.ToolSpec{Name: "a", Parameters: `{"type":`})}),
		"parameters are no object": hello.WithRequest(agent.Request{Tools: agent.ToolsOf(agent.ToolSpec{Name: "a", Parameters: `[1]`})}),
		"broken output":            hello.WithRequest(agent.Request{Output: &agent.Output{Schema: `{`}}),
		"option without JSON":      hello.WithRequest(agent.Request{Options: agent.Options{}.With("x", func() {})}),
		"option for temperature":   hello.WithRequest(agent.Request{Options: agent.Options{}.With("temperature", 1)}),
		"option for the model":     hello.WithRequest(agent.Request{Options: agent.Options{}.With("model", "other")}),
		"option for the tools":     hello.WithRequest(agent.Request{Options: agent.Options{}.With("tools", []string{})}),
		"image without bytes":      agent.NewState(agent.User(agent.Image("image/png", nil))),
		"image without a type":     agent.NewState(agent.User(agent.Image("", []byte("x")))),
		"message without a role":   agent.NewState(agent.Message{}),
	} {
		t.Run(name, func(t *testing.T) {
			a := s.ask(t, streaming, s.Whole.reply(streaming))
			a.state = state
			_, err := a.soon(t.Context(), t, nil)
			failure := a.checkFailure(t, err, agent.KindBadRequest)
			assert.Zero(t, failure.Status, "the status")
			assert.Empty(t, a.Requests(), "requests")
		})
	}
}

// testOddTranscripts checks that for any transcript the driver sends JSON in valid UTF-8 with all texts, and no data
// that another service added for itself.
func (s Service) testOddTranscripts(t *testing.T, streaming bool) {
	t.Helper()
	const foreign = "kept-for-another-service"
	call := agent.ToolCall{ID: "call_1", Name: "look", Arguments: `{"text": "it br`}
	answer := agent.ToolAnswer(agent.NotExecuted(&call, agent.ReasonCode("denied"), "", "not today"))
	thinking := func(parts ...agent.Part) []agent.Message {
		return []agent.Message{agent.UserText("first"), agent.AssistantContent(agent.ContentOf(parts...))}
	}
	for name, c := range map[string]struct {
		messages []agent.Message
		says     []string
	}{
		"said nothing":             {[]agent.Message{agent.UserText("first"), agent.Assistant(""), agent.UserText("then")}, []string{"first", "then"}},
		"user says nothing":        {[]agent.Message{agent.UserText("")}, nil},
		"assistant is last":        {[]agent.Message{agent.UserText("first"), agent.Assistant("then")}, []string{"first", "then"}},
		"system in between":        {[]agent.Message{agent.UserText("first"), agent.System("by the way"), agent.Assistant("then")}, []string{"by the way"}},
		"NUL and no UTF-8":         {[]agent.Message{agent.UserText("a\x00b\xffc"), agent.Assistant("d\xfe"), agent.UserText("e\xed\xa0\x80")}, nil},
		"malformed and not run":    {[]agent.Message{agent.UserText("first"), agent.Assistant("", call), answer}, []string{`_malformed_arguments`, "it br"}},
		"reasoning of another":     {thinking(agent.Reasoning("hm", foreign), agent.Text("then")), []string{"then"}},
		"something kept of a text": {thinking(agent.Part{Kind: agent.PartText, Text: "then", Opaque: foreign}), []string{"then"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.ask(t, streaming, s.Whole.reply(streaming))
			a.state = agent.NewState(c.messages...).WithRequest(agent.Request{Instructions: "be \x00 \xff brief"})
			_, err := a.soon(t.Context(), t, nil)
			require.NoError(t, err)
			body := a.Requests()[0].Body
			assert.True(t, json.Valid(body), "JSON: %s", body)
			assert.True(t, utf8.Valid(body), "UTF-8: %q", body)
			assert.NotContains(t, string(body), foreign)
			for _, text := range c.says {
				assert.Contains(t, string(body), text)
			}
		})
	}
}
