package service

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/grapnel-go/grapnel/drivers"
)

// TokenError is returned when a request was not sent because no token was available.
type TokenError struct{ Err error }

func (e *TokenError) Error() string { return "getting a token: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *TokenError) Unwrap() error { return e.Err }

// bearer is a transport that adds a token to each request.
type bearer struct {
	base  http.RoundTripper
	token drivers.TokenFunc
	known *secrets
}

// RoundTrip sends a copy of a request with the current token.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := b.fresh(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, &TokenError{err}
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return b.base.RoundTrip(r)
}

func (b bearer) fresh(r *http.Request) (string, error) {
	token, err := b.token(r.Context())
	token = strings.TrimSpace(token)
	switch {
	case err != nil:
		return "", err
	case token == "":
		return "", errors.New("the token is empty")
	case hasControl(token):
		return "", errors.New("the token contains a line break or a control character")
	}
	b.known.add(token)
	return token, nil
}

// withToken returns a client that adds a token to each request.
func withToken(client *http.Client, token drivers.TokenFunc, known *secrets) *http.Client {
	own := *client
	if own.Transport == nil {
		own.Transport = http.DefaultTransport
	}
	own.Transport = bearer{own.Transport, token, known}
	return &own
}

// secrets stores the last few tokens, which errors must not show. It is safe for concurrent use.
type secrets struct {
	mu   sync.Mutex
	last []string // the newest comes first
}

// keptTokens is how many tokens are stored. Requests that run while the token changes use the previous one.
const keptTokens = 8

func (s *secrets) add(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.last, token) {
		return
	}
	s.last = slices.Insert(s.last, 0, token)
	s.last = s.last[:min(len(s.last), keptTokens)]
}

func (s *secrets) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.last)
}
