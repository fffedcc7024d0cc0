package service

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// client returns the HTTP client: the given one, or the shared one.
func client(given *http.Client) *http.Client {
	if given == nil {
		given = shared()
	}
	own := *given
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// shared is the client of all drivers that were given none, so that they share its connections. It has no
// limit on a whole call, which is the task of the context: a model that thinks may be silent for minutes
// before it answers.
var shared = sync.OnceValue(func() *http.Client {
	usual, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // the caller wrapped it, to trace it for example
		return &http.Client{Transport: http.DefaultTransport}
	}
	t := usual.Clone() // with the proxy variables and connection timeouts
	t.ResponseHeaderTimeout = 10 * time.Minute
	t.MaxIdleConnsPerHost = 16
	return &http.Client{Transport: t}
})

// maxReply is the maximum length of a reply in bytes, so that a service that never ends does not fill the
// memory. The longest replies of today are a tenth of it.
const maxReply = 256 << 20

// byteOrder is the byte order mark at the beginning of some texts, which drivers ignore.
const byteOrder = "\uFEFF"

// Reply returns the body of a reply for a driver: without a byte order mark, which readers of streams would
// take for a part of the first line and so lose that line, and with an error if it is too long.
func Reply(body io.ReadCloser) io.ReadCloser {
	return &reply{text: bufio.NewReader(body), Closer: body, left: maxReply}
}

type reply struct {
	text *bufio.Reader
	io.Closer
	begun bool
	left  int64
}

func (r *reply) Read(p []byte) (int, error) {
	if !r.begun {
		r.begun = true
		if mark, err := r.text.Peek(len(byteOrder)); err == nil && string(mark) == byteOrder {
			_, _ = r.text.Discard(len(byteOrder))
		}
	}
	if r.left <= 0 {
		return 0, fmt.Errorf("the reply is longer than %d MB", maxReply>>20)
	}
	n, err := r.text.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}
