package modeltest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// Sentence stands in the error bodies of a Service where the service says in words
// what is wrong. The driver's error must repeat it. The tests put Key behind it, as
// services do that repeat the key which they do not know.
const Sentence = "modeltest says why"

// Service is a model service: the bytes that it answers with, out of which
// TestFaults makes everything that may go wrong.
type Service struct {
	// New gives a driver with Key for the service at a base URL, which has neither
	// a path nor a slash at its end. It must send its requests with client. Required.
	New func(t *testing.T, baseURL string, client *http.Client) agent.Driver
	// Whole is a good reply of plain text, without calls. Required.
	Whole Exchange
	// Text is what Whole says. It stands in Body once, and once in one of Frames.
	Text string
	// Call is a reply with one call whose arguments are Arguments, which are not JSON.
	// Empty where the service's protocol cannot carry such a call.
	Call      Exchange
	Arguments string
	// Errors is what the service answers with when it fails, by kind. Rate limit,
	// overloaded, auth, context length and bad request are required. Each body has the
	// Sentence.
	Errors map[agent.ErrorKind][]Reply
	// Items: the mock server takes each item of a transcript for a message of its own,
	// as it does of the Responses API. The turns of a mock server that is asked so are
	// given to PlayItems.
	Items bool
	// StreamErrors is frames that tell of a failure in a stream that began well.
	StreamErrors map[agent.ErrorKind][]string
}

// Exchange is one reply in its two forms.
type Exchange struct {
	// Body answers when no stream is asked for. It is JSON.
	Body string
	// Frames is the stream: server-sent events. Any of them missing at the end, the
	// reply is not whole: a mark at the end that may be missing shares a frame with
	// what stands before it.
	Frames []string
}

// reply returns the exchange in the form that is asked for.
func (x Exchange) reply(streaming bool) Reply {
	if streaming {
		return SSE(x.Frames...)
	}
	return Body(http.StatusOK, "application/json", x.Body)
}

// saying works like Whole with another text, which needs no escapes in JSON.
func (s Service) saying(text string) Exchange {
	x := Exchange{Body: strings.Replace(s.Whole.Body, s.Text, text, 1)}
	for _, frame := range s.Whole.Frames {
		x.Frames = append(x.Frames, strings.Replace(frame, s.Text, text, 1))
	}
	return x
}

// check says what a service lacks.
func (s Service) check(t *testing.T) {
	t.Helper()
	require.NotNil(t, s.New, "Service.New")
	require.NotEmpty(t, s.Text, "Service.Text")
	require.Equal(t, 1, strings.Count(s.Whole.Body, s.Text), "how often Service.Text stands in Whole.Body")
	require.Equal(t, 1, strings.Count(strings.Join(s.Whole.Frames, "\x00"), s.Text), "how often Service.Text stands in Whole.Frames, in one frame")
	require.Greater(t, len(s.Whole.Frames), 1, "a stream has several frames")
	for _, kind := range []agent.ErrorKind{
		agent.KindRateLimit, agent.KindOverloaded, agent.KindAuth, agent.KindContextLength, agent.KindBadRequest,
	} {
		require.NotEmpty(t, s.Errors[kind], "Service.Errors of kind %s", kind)
	}
	for kind, replies := range s.Errors {
		for _, reply := range replies {
			require.Contains(t, strings.Join(reply.Frames, ""), Sentence, "the body of an error of kind %s", kind)
		}
	}
}
