package service

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// client returns the given HTTP client, or the shared one.
func client(given *http.Client) *http.Client {
	if given == nil {
		given = shared()
	}
	own := *given
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// shared is the client of all drivers whose Config has none, so that they share its connections. It does not limit a
// whole call's time, because a model that thinks can be silent for minutes before it answers. The context limits the
// time.
var shared = sync.OnceValue(func() *http.Client {
	usual, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // the program has wrapped it, for example to trace requests
		return &http.Client{Transport: http.DefaultTransport}
	}
	t := usual.Clone() // with the proxy variables and connection timeouts
	t.ResponseHeaderTimeout = 10 * time.Minute
	t.MaxIdleConnsPerHost = 16
	return &http.Client{Transport: t}
})

// maxReply is the maximum length of a reply in bytes, so that an endless reply does not fill the memory. Today's
// longest replies are a tenth of it.
const maxReply = 256 << 20

// byteOrder is the byte order mark at the beginning of some texts. Drivers ignore it.
const byteOrder = "\uFEFF"

// Reply returns a reply's body without a byte order mark, which a stream reader would treat as a part of the first
// line. Reading returns an error if the reply is too long.
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
