package mcpproxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/internal/mcpcall"
)

// Remote is a server over streamable HTTP.
type Remote struct {
	URL string
	// Headers are sent with each request.
	Headers http.Header
	// Client sends the requests. Redirects to other origins are refused.
	Client *http.Client
}

// NewRemote returns the server at an address.
func NewRemote(address string, headers http.Header) *Remote {
	origin, _ := url.Parse(address)
	return &Remote{URL: address, Headers: headers, Client: &http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if origin == nil || r.URL.Scheme != origin.Scheme || r.URL.Host != origin.Host || len(via) > 5 {
			return fmt.Errorf("it redirects to %s: set that as the address if this is intended", r.URL.Redacted())
		}
		return nil
	}}}
}

// Headers of the protocol.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
	headerEvent   = "Last-Event-ID"
	eventStream   = "text/event-stream"
)

// link is a session's connection to a Remote.
type link struct {
	*Remote

	s    *session
	most int
	busy sync.WaitGroup

	mu sync.Mutex
	id string // of the server's session
}

// link connects a session.
func (r *Remote) link(ctx context.Context, c Config, id string) *link {
	l := &link{Remote: r, most: c.mostBytes()}
	l.s = newSession(ctx, c, id, l.send)
	return l
}

// refusalKey finds, in a context, the func that takes an HTTP status which the client must see.
type refusalKey struct{}

// headersKey finds, in a context, the headers that the client has sent for the server.
type headersKey struct{}

// do sends an HTTP request.
func (l *link) do(ctx context.Context, method string, body []byte, set func(http.Header)) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, l.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if given, ok := ctx.Value(headersKey{}).(http.Header); ok {
		req.Header = given.Clone()
	}
	maps.Copy(req.Header, l.Headers)
	l.mu.Lock()
	if l.id != "" {
		req.Header.Set(headerSession, l.id)
	}
	l.mu.Unlock()
	l.s.mu.Lock()
	if l.s.agreed != "" {
		req.Header.Set(headerVersion, l.s.agreed)
	}
	l.s.mu.Unlock()
	set(req.Header)
	resp, err := l.Client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the server cannot be reached: %w", withoutURL(err))
	}
	return resp, nil
}

// withoutURL removes the address from an error, because it may have secrets.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// notifyTime is how long the server may take for a message that has no answer.
const notifyTime = 30 * time.Second

// send posts a message. It waits for messages that have no answer, so that they stay in order.
func (l *link) send(ctx context.Context, raw []byte, to sink) error {
	m, err := parse(raw)
	if err != nil {
		return err
	}
	if m.method != "" && m.key != "" {
		l.busy.Go(func() { l.exchange(ctx, m, to) })
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	resp, err := l.post(ctx, m)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		l.refuse(ctx, resp)
		l.s.Log("the server answered HTTP %s to %s", resp.Status, m.method)
	}
	return nil
}

func (l *link) post(ctx context.Context, m message) (*http.Response, error) {
	return l.do(ctx, http.MethodPost, m.raw, func(h http.Header) {
		h.Set("Content-Type", "application/json")
		h.Set("Accept", "application/json, "+eventStream)
		l.setStandard(h, m)
	})
}

// setStandard sets the headers that repeat what the message says, since protocol 2026-07-28.
func (l *link) setStandard(h http.Header, m message) {
	params, _ := mcpcall.ReadObject(m.params)
	meta, _ := mcpcall.ReadObject(params.Get("_meta"))
	if version, ok := meta.Text(metaVersion); ok {
		h.Set(headerVersion, version)
	}
	for name := range h {
		if name == headerMethod || name == headerName || strings.HasPrefix(name, headerParam) {
			h.Del(name)
		}
	}
	if m.method == "" || h.Get(headerVersion) < versionOfInput {
		return
	}
	h.Set(headerMethod, m.method)
	switch m.method {
	case methodCall:
		name, _ := params.Text("name")
		h.Set(headerName, name)
		arguments, _ := mcpcall.ReadObject(params.Get("arguments"))
		setParams(h, l.s.Pins.schemaOf(name), arguments)
	case "prompts/get":
		name, _ := params.Text("name")
		h.Set(headerName, name)
	case "resources/read":
		uri, _ := params.Text("uri")
		h.Set(headerName, uri)
	}
}

// setParams sets the headers of arguments that a schema marks with x-mcp-header.
func setParams(h http.Header, schema json.RawMessage, arguments mcpcall.Object) {
	s, _ := mcpcall.ReadObject(schema)
	properties, _ := mcpcall.ReadObject(s.Get("properties"))
	for _, p := range properties {
		about, _ := mcpcall.ReadObject(p.Value)
		value := arguments.Get(p.Name)
		if inner, err := mcpcall.ReadObject(value); err == nil {
			setParams(h, p.Value, inner)
		}
		name, ok := about.Text("x-mcp-header")
		text, isText := arguments.Text(p.Name)
		if !isText {
			text = string(value)
			_, err := strconv.ParseInt(text, 10, 64)
			isText = text == "true" || text == "false" || err == nil
		}
		if ok && isText && name != "" {
			h.Set(headerParam+name, encodeHeader(text))
		}
	}
}

// encodeHeader returns a text as the value of a header.
func encodeHeader(text string) string {
	isPlain := strings.TrimSpace(text) == text && !strings.HasPrefix(text, "=?base64?") &&
		!strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
	if isPlain {
		return text
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}

// exchange posts a request and reads the answer, which may come in several streams.
func (l *link) exchange(ctx context.Context, m message, to sink) {
	resp, err := l.post(ctx, m)
	if err != nil {
		l.fail(m, to, err)
		return
	}
	if id := resp.Header.Get(headerSession); id != "" && m.method == methodInitialize {
		l.mu.Lock()
		l.id = id
		l.mu.Unlock()
	}
	last, err := l.read(ctx, resp, m, to)
	for try := 0; l.s.isOpen(m.key) && last.id != "" && ctx.Err() == nil && try < 10; try++ {
		select { // a server may close the stream, and answer in another one
		case <-time.After(last.retry):
		case <-ctx.Done():
			return
		}
		if resp, err = l.do(ctx, http.MethodGet, nil, func(h http.Header) {
			h.Set("Accept", eventStream)
			h.Set(headerEvent, last.id)
		}); err == nil {
			var next event
			if next, err = l.read(ctx, resp, m, to); next.id != "" {
				last, try = next, 0
			}
		}
	}
	if err == nil {
		err = errors.New("the server has ended the stream without an answer")
	}
	l.fail(m, to, err)
}

// fail answers a request that is still open.
func (l *link) fail(m message, to sink, err error) {
	if l.s.isOpen(m.key) {
		_ = l.s.fromServer(fault(m.id, codeInternal, err.Error()), to)
	}
}

// event is the last event of a stream: its ID, and after which time to ask for more.
type event struct {
	id    string
	retry time.Duration
}

// refuse passes the status on to a client over HTTP that can act on it.
func (l *link) refuse(ctx context.Context, resp *http.Response) {
	if f, ok := ctx.Value(refusalKey{}).(func(int, http.Header)); ok {
		switch resp.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
			f(resp.StatusCode, resp.Header)
		}
	}
}

// read handles the messages of a response.
func (l *link) read(ctx context.Context, resp *http.Response, m message, to sink) (event, error) {
	defer resp.Body.Close()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == eventStream && resp.StatusCode < http.StatusMultipleChoices {
		return readEvents(resp.Body, l.most, func(data []byte) error { return l.s.fromServer(data, to) })
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(l.most)+1))
	switch {
	case err != nil:
		return event{}, err
	case len(body) > l.most:
		return event{}, fmt.Errorf("a message has more than %d bytes", l.most)
	}
	if answer, err := parse(body); err == nil && answer.method == "" && answer.key == m.key {
		return event{}, l.s.fromServer(body, to)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		l.refuse(ctx, resp)
	}
	return event{}, fmt.Errorf("the server answered HTTP %s: %.300q", resp.Status, body)
}

// readEvents calls f with the data of each event.
func readEvents(r io.Reader, most int, f func(data []byte) error) (event, error) {
	last := event{retry: time.Second}
	in := bufio.NewScanner(r)
	in.Buffer(nil, most+64)
	var data []byte
	for in.Scan() {
		name, value, _ := strings.Cut(in.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "":
			if in.Text() == "" && len(bytes.TrimSpace(data)) > 0 {
				if err := f(bytes.TrimSuffix(data, []byte{'\n'})); err != nil {
					return last, err
				}
			}
			if in.Text() == "" {
				data = nil
			}
		case "data":
			if data = append(append(data, value...), '\n'); len(data) > most {
				return last, fmt.Errorf("a message has more than %d bytes", most)
			}
		case "id":
			last.id = value
		case "retry":
			if ms, err := strconv.Atoi(value); err == nil && ms >= 0 && ms <= 60_000 {
				last.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
	return last, in.Err()
}

// errNoStream is returned by listen when the server has no stream for unsolicited messages.
var errNoStream = errors.New("the server has no such stream")

// listen reads the server's unsolicited messages until ctx is done. Begin is called once the server has agreed.
func (l *link) listen(ctx context.Context, to sink, begin func()) error {
	last := event{retry: time.Second}
	for try := 0; ; try++ {
		resp, err := l.do(ctx, http.MethodGet, nil, func(h http.Header) {
			h.Set("Accept", eventStream)
			if last.id != "" {
				h.Set(headerEvent, last.id)
			}
		})
		if err == nil && resp.StatusCode != http.StatusOK {
			resp.Body.Close()
			if resp.StatusCode < http.StatusInternalServerError {
				l.refuse(ctx, resp)
				return errNoStream
			}
			err = fmt.Errorf("the server answered HTTP %s", resp.Status)
		}
		if err == nil {
			begin()
			begin, try = func() {}, 0
			next, reading := readEvents(resp.Body, l.most, func(data []byte) error { return l.s.fromServer(data, to) })
			resp.Body.Close()
			if next.id != "" {
				last = next
			}
			if err = reading; errors.Is(err, ErrClientEnded) {
				return err
			}
		}
		select {
		case <-time.After(last.retry * time.Duration(1<<min(try, 5))):
		case <-ctx.Done():
			return ctx.Err()
		case <-l.s.ended:
			return nil
		}
	}
}

// deleteTime is how long the server may take to end its session.
const deleteTime = 2 * time.Second

// shut ends the server's session and ours.
func (l *link) shut(ctx context.Context, why error) {
	l.s.end(ctx, why)
	l.mu.Lock()
	id := l.id
	l.mu.Unlock()
	if id != "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTime)
		defer cancel()
		if resp, err := l.do(ctx, http.MethodDelete, nil, func(http.Header) {}); err == nil {
			resp.Body.Close()
		}
	}
}

// ServeRemote passes messages on between a client over standard input and output and a server over HTTP, until the client
// closes its input or ctx is done.
func ServeRemote(ctx context.Context, c Config, client *Stdio, r *Remote) error {
	ctx, cancel := context.WithCancel(ctx)
	l := r.link(ctx, c, sharedID)
	gone := make(chan error, 1)
	to := func(raw []byte) error {
		err := client.send(raw)
		if err != nil {
			select {
			case gone <- err:
			default:
			}
		}
		return err
	}
	requests := make(chan error, 1)
	var listening sync.Once
	go func() {
		requests <- readLines(client.In, l.most, func(line []byte) error {
			err := l.s.fromClient(ctx, line, to)
			if m, _ := parse(line); m.method == methodReady {
				listening.Do(func() {
					l.busy.Go(func() { _ = l.listen(ctx, to, func() {}) })
				})
			}
			return err
		})
	}()
	var err error
	select {
	case err = <-requests:
		if errors.Is(err, io.EOF) {
			err = nil
			_ = l.s.settle(ctx, nil)
		}
	case err = <-gone:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	l.shut(ctx, ErrClientEnded)
	cancel()
	l.busy.Wait()
	return err
}
