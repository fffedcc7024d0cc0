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
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// sender sends what an HTTP action says.
type sender struct {
	HTTP

	kind    string
	url     wording
	where   string // that can be told: the host, or the name of the secret that says it
	headers map[string]wording
	secrets Secrets
	names   []string // of the secrets
	private []netip.Prefix
	most    int
	timeout time.Duration
}

// sender makes the action ready to be sent.
func (h HTTP) sender(kind string, host Host) (*sender, error) {
	s := &sender{
		HTTP: h, kind: kind, url: wordingOf(h.URL), where: hostOf(h.URL),
		headers: lo.MapValues(h.Headers, func(v, _ string) wording { return wordingOf(v) }),
		secrets: host.Secrets.with(h.Env), most: cmp.Or(h.MaxBytes, DefaultMaxBytes), timeout: cmp.Or(h.Timeout, defaultHTTPTimeout),
	}
	var p problems
	use := func(field string, t wording) {
		for _, name := range t.secrets() {
			s.names = append(s.names, name)
			if !s.secrets.names(name) {
				p.say(field, "%s is no variable, and no secret that may be used: put it into the file of secrets, or list it under env", name)
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
		s.Body, err = plainJSON(h.Body) // a copy, which does not change
	}
	return s, errors.Join(h.Validate(), p.join(), err)
}

// hostOf returns the beginning of a URL, up to its host.
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

// Action makes it ready.
func (h HTTP) Action(host Host) mo.Result[Action] {
	s, err := h.sender(h.Type(), host)
	if err != nil {
		return mo.Err[Action](err)
	}
	return mo.Ok[Action](actionFunc(func(ctx context.Context, r *Request) (*Answer, error) {
		output, truncated, err := s.send(ctx, r)
		if err != nil {
			return nil, err
		}
		return r.answer(s.kind, output, truncated)
	}))
}

// message is what is sent.
type message struct {
	to      *url.URL
	header  http.Header
	body    []byte
	secrets map[string]string
	// hidden: the URL is a secret, at least in part.
	hidden bool
}

// message returns what is sent for a request. Its errors have no secrets in them.
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
			err = errors.New("it has a line break or another control character in it")
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

// body returns what is sent: what the action says, or the request, or parts of it.
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

// send sends, and tries again where that may help. The output has no secrets in it.
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

// sleepFor waits, and reports whether ctx is not done.
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

// try sends once. Again says that it may go better another time.
func (s *sender) try(ctx context.Context, r *Request) (output string, truncated, again bool, err error) {
	limit, cancel := withLimit(ctx, s.timeout)
	defer cancel()
	if deadline, _ := limit.Deadline(); r.Deadline.IsZero() { // a gate has another one
		r = r.until(deadline)
	}
	m, err := s.message(r)
	if err != nil {
		return "", false, false, &Error{s.kind, FaultSetup, err}
	}
	if len(m.body) > s.most {
		return "", false, false, newFault(s.kind, FaultTooMuch, "what is to be sent has %d bytes, more than the %d that are allowed", len(m.body), s.most)
	}
	request, err := http.NewRequestWithContext(limit, s.method(), m.to.String(), bytes.NewReader(m.body))
	if err != nil {
		return "", false, false, newFault(s.kind, FaultSetup, "url %s: it cannot be asked", s.where)
	}
	request.Header = m.header
	transport := &http.Transport{
		DialContext: newDialer(m.to, s.private), DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: DefaultMaxBytes,
	}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request) // which follows no redirect
	if err != nil {
		if limit.Err() != nil {
			return "", false, ctx.Err() == nil, contextError(limit, s.kind)
		}
		refused, is := errors.AsType[*refusedError](err)
		if is {
			return "", false, false, newFault(s.kind, FaultNetwork, "asking %s: %w", s.where, refused)
		}
		return "", false, true, newFault(s.kind, FaultNetwork, "asking %s: %w", s.where, m.network(err))
	}
	defer response.Body.Close()
	switch code := response.StatusCode; {
	case code >= 300 && code < 400:
		return "", false, false, newFault(s.kind, FaultStatus, "asking %s: the answer is %d, a redirect, which is not followed", s.where, code)
	case code < 200 || code > 299:
		again = code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
		return "", false, again, newFault(s.kind, FaultStatus, "asking %s: the answer is %d %s", s.where, code, http.StatusText(code))
	}
	return s.read(limit, r, m, response.Body)
}

// read reads the body of a good answer. Where nothing is decided by it, it is no matter that it is cut off.
func (s *sender) read(ctx context.Context, r *Request, m *message, from io.Reader) (output string, truncated, again bool, err error) {
	body, err := io.ReadAll(io.LimitReader(from, int64(s.most)+1))
	if truncated = len(body) > s.most; truncated {
		body = body[:s.most]
	}
	if err != nil && r.Decides {
		if ctx.Err() != nil {
			return "", false, true, contextError(ctx, s.kind)
		}
		return "", false, true, newFault(s.kind, FaultNetwork, "asking %s: the answer broke off: %w", s.where, m.network(err))
	}
	return hideSecrets(string(body), m.secrets), truncated || err != nil, false, nil
}

// network returns what is wrong with a connection. Where the URL is a secret, the error says no more than what happened.
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
		return errors.New("there is no such host")
	case isName:
		return errors.New("the name of the host cannot be looked up")
	case strings.HasPrefix(err.Error(), "tls: "), strings.Contains(err.Error(), "x509: "):
		return errors.New("there is no trusted encryption")
	}
	return errors.New("no connection")
}
