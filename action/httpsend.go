package action

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// sender sends an HTTP action's requests.
type sender struct {
	HTTP

	kind    string
	url     wording
	where   string // the host, or the name of the secret that contains it; safe to show
	headers map[string]wording
	secrets Secrets
	names   []string // secret names
	private []netip.Prefix
	most    int
	timeout time.Duration
}

func (h HTTP) sender(kind string, host Host) (*sender, error) {
	s := &sender{
		HTTP: h, kind: kind, url: wordingOf(h.URL), where: hostOf(h.URL),
		headers: lo.MapValues(h.Headers, func(v, _ string) wording { return wordingOf(v) }),
		secrets: host.Secrets.with(h.Env), most: cmp.Or(h.MaxBytes, DefaultMaxBytes), timeout: cmp.Or(h.Timeout, defaultHTTPTimeout),
	}
	var p problems
	host.checkVariables(&p, "env", h.Env)
	use := func(field string, t wording) {
		for _, name := range t.secrets() {
			s.names = append(s.names, name)
			if !s.secrets.names(name) {
				p.say(field, "%s is neither a variable nor a declared secret: add it to the secrets file, or list the environment variable under env", name)
			}
		}
	}
	use("url", s.url)
	for _, name := range slices.Sorted(maps.Keys(s.headers)) {
		use("headers."+name, s.headers[name])
	}
	for _, text := range h.Private {
		prefix, err := prefixOf(text)
		if err == nil {
			s.private = append(s.private, prefix)
		}
	}
	var err error
	if h.Body != nil {
		s.Body, err = plainJSON(h.Body) // a copy that nothing else modifies
	}
	return s, errors.Join(h.Validate(), p.join(), err)
}

// hostOf returns the URL up to and including its host.
func hostOf(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "", text
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return lo.Ternary(ok, scheme+"://", "") + rest
}

// Action returns the action, ready to run with host.
func (h HTTP) Action(host Host) (Action, error) {
	s, err := h.sender(h.Type(), host)
	if err != nil {
		return nil, err
	}
	return actionFunc(func(ctx context.Context, r *Request) (*Answer, error) {
		output, truncated, err := s.send(ctx, r)
		if err != nil {
			return nil, err
		}
		return r.answer(s.kind, output, truncated)
	}), nil
}

// message is an HTTP request to send.
type message struct {
	to      *url.URL
	header  http.Header
	body    []byte
	secrets map[string]string
	// hidden is set when the URL contains a secret.
	hidden bool
}

// message builds the HTTP request for r. Its errors contain no secrets.
func (s *sender) message(r *Request) (*message, error) {
	secrets, err := s.secrets.values(s.names)
	if err != nil {
		return nil, err
	}
	m := &message{secrets: secrets, hidden: len(s.url.secrets()) > 0, header: http.Header{"User-Agent": {"grapnel"}}}
	text, err := s.url.fillText(r, secrets, inURL)
	if err == nil {
		m.to, err = parseTarget(text)
	}
	if err != nil {
		return nil, fmt.Errorf("url %s: %w", s.where, err)
	}
	for name, t := range s.headers {
		value, err := t.fillText(r, secrets, inHeader)
		if err == nil && strings.ContainsFunc(value, isControl) {
			err = errors.New("contains a line break or another control character")
		}
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", name, err)
		}
		m.header.Set(name, value)
	}
	if r.IdempotencyKey != "" && m.header.Get(keyHeader) == "" {
		m.header.Set(keyHeader, r.IdempotencyKey)
	}
	if s.method() == http.MethodGet {
		return m, nil
	}
	m.header.Set("Content-Type", cmp.Or(m.header.Get("Content-Type"), "application/json"))
	if m.body, err = s.body(r); err != nil {
		return nil, err
	}
	return m, nil
}

// body returns the request body: the action's Body, the whole Request, or its selected fields.
func (s *sender) body(r *Request) ([]byte, error) {
	body, err := r.fillJSON(s.Body)
	if err != nil || s.Body != nil || len(s.Fields) == 0 {
		return body, err
	}
	var all map[string]json.RawMessage
	if err := strictjson.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("choosing fields: %w", err)
	}
	text, err := strictjson.Marshal(lo.PickByKeys(all, slices.Concat(s.Fields, []string{"version", "hook", "point"})))
	return []byte(text), err
}

// send sends the request and retries where a retry may succeed. The output contains no secrets.
func (s *sender) send(ctx context.Context, r *Request) (output string, truncated bool, err error) {
	if ctx.Err() != nil {
		return "", false, contextError(ctx, s.kind)
	}
	for try := 0; ; try++ {
		var again bool
		output, truncated, again, err = s.try(ctx, r)
		if err == nil || !again || try >= s.Retries {
			return output, truncated, err
		}
		if !sleepFor(ctx, s.RetryDelay) {
			return "", false, contextError(ctx, s.kind)
		}
	}
}

// sleepFor waits for d and reports whether ctx is still active.
func sleepFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// try sends the request once. Again reports whether a retry may succeed.
func (s *sender) try(ctx context.Context, r *Request) (output string, truncated, again bool, err error) {
	limit, cancel := withLimit(ctx, s.timeout)
	defer cancel()
	if deadline, _ := limit.Deadline(); r.Deadline.IsZero() { // a gate has its own deadline
		r = r.until(deadline)
	}
	m, err := s.message(r)
	if err != nil {
		return "", false, false, &Error{Type: s.kind, Fault: FaultSetup, Err: err}
	}
	if len(m.body) > s.most {
		return "", false, false, newFault(s.kind, FaultTooMuch, "the request body has %d bytes: the limit is %d", len(m.body), s.most)
	}
	request, err := http.NewRequestWithContext(limit, s.method(), m.to.String(), bytes.NewReader(m.body))
	if err != nil {
		return "", false, false, newFault(s.kind, FaultSetup, "url %s: cannot build a request for it", s.where)
	}
	request.Header = m.header
	transport := &http.Transport{
		DialContext: newDialer(m.to, s.private), DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: DefaultMaxBytes,
	}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request) // RoundTrip follows no redirect
	if err != nil {
		if limit.Err() != nil {
			return "", false, ctx.Err() == nil, contextError(limit, s.kind)
		}
		refused, is := errors.AsType[*refusedError](err)
		if is {
			return "", false, false, newFault(s.kind, FaultNetwork, "calling %s: %w", s.where, refused)
		}
		return "", false, true, newFault(s.kind, FaultNetwork, "calling %s: %w", s.where, m.network(err))
	}
	defer response.Body.Close()
	switch code := response.StatusCode; {
	case code >= 300 && code < 400:
		return "", false, false, newFault(s.kind, FaultStatus, "calling %s: status %d: redirects are not followed", s.where, code)
	case code < 200 || code > 299:
		again = code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
		body, _, _, _ := s.read(limit, r, m, response.Body)
		return "", false, again, &Error{
			Type: s.kind, Fault: FaultStatus, Body: strings.ToValidUTF8(body[:min(len(body), maxFailureBody)], ""),
			Err: fmt.Errorf("calling %s: status %d %s", s.where, code, http.StatusText(code)),
		}
	}
	return s.read(limit, r, m, response.Body)
}

// maxFailureBody is the maximum length of Error.Body.
const maxFailureBody = 2 << 10

// read reads a response's body. A truncated body is acceptable where it is not read as a decision.
func (s *sender) read(ctx context.Context, r *Request, m *message, from io.Reader) (output string, truncated, again bool, err error) {
	body, err := io.ReadAll(io.LimitReader(from, int64(s.most)+1))
	if truncated = len(body) > s.most; truncated {
		body = body[:s.most]
	}
	if err != nil && r.Decides {
		if ctx.Err() != nil {
			return "", false, true, contextError(ctx, s.kind)
		}
		return "", false, true, newFault(s.kind, FaultNetwork, "calling %s: the response ended early: %w", s.where, m.network(err))
	}
	return hideSecrets(string(body), m.secrets), truncated || err != nil, false, nil
}

// network describes a connection error. When the URL contains a secret, the error names only the kind of failure.
func (m *message) network(err error) error {
	if !m.hidden {
		return err
	}
	noName, isName := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return syscall.ECONNREFUSED
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection was closed")
	case isName && noName.IsNotFound:
		return errors.New("no such host")
	case isName:
		return errors.New("looking up the host failed")
	case strings.HasPrefix(err.Error(), "tls: "), strings.Contains(err.Error(), "x509: "):
		return errors.New("TLS failed")
	}
	return errors.New("no connection")
}
