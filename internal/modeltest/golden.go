package modeltest

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Reply is one answer of a Golden endpoint. The zero Reply is status 200 without a body.
type Reply struct {
	// Status is the HTTP status; zero means 200.
	Status int
	Header http.Header
	// Frames is the body; each frame is sent before the next one begins.
	Frames []string
	// Wait, when set, delays the reply, including the status, until the channel is closed.
	Wait <-chan struct{}
	// Then says what follows the last frame.
	Then End
}

// End says how a reply ends.
type End uint8

const (
	// Ends ends the reply normally.
	Ends End = iota
	// Cut closes the connection in the middle of the body.
	Cut
	// Dropped closes the connection instead of answering.
	Dropped
	// Hangs sends no more data until the driver closes the connection.
	Hangs
)

// Body returns a reply with a body in one frame.
func Body(status int, contentType, body string) Reply {
	return Reply{Status: status, Header: http.Header{"Content-Type": {contentType}}, Frames: []string{body}}
}

// SSE returns a reply that streams server-sent events. A frame is one or more events, each with its empty line.
func SSE(frames ...string) Reply {
	return Reply{Header: http.Header{"Content-Type": {"text/event-stream"}}, Frames: frames}
}

// ReadReply returns a reply from a file with a recorded HTTP answer: the status line, the headers, an empty line, the
// body. Each server-sent event becomes a frame. Headers that describe the transfer are omitted.
func ReadReply(t testing.TB, path string) Reply {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	require.NoError(t, err, "%s is not an HTTP answer", path)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err, "the body in %s", path)
	answer.Header.Del("Content-Length")
	answer.Header.Del("Content-Encoding")
	reply := Reply{Status: answer.StatusCode, Header: answer.Header, Frames: []string{string(body)}}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		text := strings.ReplaceAll(string(body), "\r\n", "\n")
		reply.Frames = strings.SplitAfter(strings.TrimSuffix(text, "\n\n"), "\n\n")
		reply.Frames[len(reply.Frames)-1] += "\n\n"
	}
	return reply
}

// With returns the reply with a header set.
func (r Reply) With(header, value string) Reply {
	r.Header = r.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(header, value)
	return r
}

// Golden returns an endpoint that answers request n with reply n, and all later requests with the last reply.
func Golden(t testing.TB, replies ...Reply) *Endpoint {
	t.Helper()
	require.NotEmpty(t, replies, "replies")
	return newEndpoint(t, func(w http.ResponseWriter, r *http.Request, n int) {
		replies[min(n, len(replies)-1)].send(w, r)
	})
}

func (r Reply) send(w http.ResponseWriter, asked *http.Request) {
	if r.Wait != nil {
		select {
		case <-r.Wait:
		case <-asked.Context().Done():
			return
		}
	}
	if r.Then == Dropped {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), r.Header)
	w.WriteHeader(max(r.Status, http.StatusOK))
	flush := http.NewResponseController(w).Flush
	_ = flush() // here and below: some tests need a client that has disconnected
	for _, frame := range r.Frames {
		_, _ = io.WriteString(w, frame)
		_ = flush()
	}
	switch r.Then {
	case Cut:
		panic(http.ErrAbortHandler)
	case Hangs:
		<-asked.Context().Done()
	}
}
