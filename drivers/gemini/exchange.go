package gemini

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// exchange is what goes past the SDK with one request: the contents on the way there;
// on the way back the answer's head, and the text of what it is decoding.
type exchange struct {
	// contents is the beginning of the body, up to the end of that member.
	contents []byte

	status int
	header http.Header
	// text is the JSON that the SDK decodes: the whole answer, or in a stream the event
	// that it yields.
	text []byte
	// cut is why the answer broke off; nil when it ended as it should.
	cut error
}

type exchangeKey struct{}

// with is a context for a request that the exchange belongs to.
func (x *exchange) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// splice puts the contents into the body that the SDK wrote. They are finished text,
// which the SDK would read and write once more with each request.
func (x *exchange) splice(req *http.Request) error {
	head, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	_ = req.Body.Close() // it is a reader in memory
	body := x.contents
	if head = bytes.TrimPrefix(bytes.TrimSpace(head), []byte("{")); len(head) > 0 {
		body = append(append(body, ','), head...)
	} else { // the SDK writes nothing where there is nothing else
		body = append(body, '}')
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, err = req.GetBody()
	req.ContentLength = int64(len(body))
	return err
}

// transport puts the credentials and the contents on a request, and keeps the
// exchange. The SDK need not know the key then.
type transport struct {
	base   http.RoundTripper // nil means the default
	key    string
	header http.Header
}

const (
	keyHeader = "X-Goog-Api-Key"
	// noKey is what the SDK is given for a key: with none it would take one from the
	// environment.
	noKey = "unset"
	// errorLimit is how many bytes are read of an answer that tells of an error.
	errorLimit = 1 << 20
)

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del(keyHeader)
	if t.key != "" {
		req.Header.Set(keyHeader, t.key)
	}
	for name, values := range t.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errors.New("the SDK made a request of its own") // with the key in it, to who knows where
	}
	if err := x.splice(req); err != nil {
		return nil, err
	}
	resp, err := cmp.Or(t.base, http.DefaultTransport).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	x.status, x.header = resp.StatusCode, resp.Header
	body := service.Reply(resp.Body)
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 300:
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, errorLimit), resp.Body}
	case kind == "text/event-stream":
		resp.Body = &events{x: x, from: bufio.NewReader(body), Closer: body}
	default:
		resp.Body = &whole{x: x, from: body}
	}
	return resp, nil
}

// whole is an answer in one piece.
type whole struct {
	x    *exchange
	from io.ReadCloser
}

func (w *whole) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	w.x.text = append(w.x.text, p[:n]...)
	if err != nil && !errors.Is(err, io.EOF) {
		w.x.cut = err
	}
	return n, err
}

func (w *whole) Close() error { return w.from.Close() }
