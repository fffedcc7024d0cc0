package modeltest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// Sentence is the explanation in the error bodies of a Service. The driver's error must contain it. The tests append
// Key, because some services repeat an unknown key.
const Sentence = "modeltest says why"

// Service describes a model service by its answers, from which TestFaults derives all faults.
type Service struct {
	// New returns a driver with Key for the service at a base URL, which has no path and no trailing slash. The
	// driver must send its requests with client. Required.
	New func(t *testing.T, baseURL string, client *http.Client) agent.Driver
	// Whole is a good reply with text only. Required.
	Whole Exchange
	// Text is the text of Whole. It occurs once in Body, and once in one of Frames.
	Text string
	// Call is a reply with one call whose arguments are Arguments, which are not JSON. It is empty if the service's
	// protocol cannot carry such a call.
	Call      Exchange
	Arguments string
	// Errors lists the service's error answers by kind. Rate limit, overloaded, auth, context length and bad request
	// are required. Each body contains the Sentence.
	Errors map[agent.ErrorKind][]Reply
	// Items reports that the mock server counts each item of a transcript as a message, as for the Responses API. The
	// tests then use PlayItems.
	Items bool
	// StreamErrors lists frames that report a failure in a stream that began normally.
	StreamErrors map[agent.ErrorKind][]string

	// The following are for TestShapes.

	// Shapes lists good replies in the shapes of other implementations of the protocol, by the shape's name.
	Shapes map[string]Shape
	// Unfinished lists replies with a call of the tool "echo" that the service withheld or ended with an error.
	Unfinished map[string]Exchange
}

// Exchange is one reply in both formats.
type Exchange struct {
	// Body is the JSON answer to a request without streaming.
	Body string
	// Frames is the stream of server-sent events. A reply without the last frame must be incomplete: an optional end
	// mark is in the same frame as the event before it.
	Frames []string
}

// reply returns the exchange in the requested format.
func (x Exchange) reply(streaming bool) Reply {
	if streaming {
		return SSE(x.Frames...)
	}
	return Body(http.StatusOK, "application/json", x.Body)
}

// saying returns Whole with another text, which must not need JSON escapes.
func (s Service) saying(text string) Exchange {
	x := Exchange{Body: strings.Replace(s.Whole.Body, s.Text, text, 1)}
	for _, frame := range s.Whole.Frames {
		x.Frames = append(x.Frames, strings.Replace(frame, s.Text, text, 1))
	}
	return x
}

// check fails the test if a required field of the service is missing.
func (s Service) check(t *testing.T) {
	t.Helper()
	require.NotNil(t, s.New, "Service.New")
	require.NotEmpty(t, s.Text, "Service.Text")
	require.Equal(t, 1, strings.Count(s.Whole.Body, s.Text), "occurrences of Service.Text in Whole.Body")
	require.Equal(t, 1, strings.Count(strings.Join(s.Whole.Frames, "\x00"), s.Text), "occurrences of Service.Text in Whole.Frames, in one frame")
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
