package service

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/grapnel-go/grapnel/agent"
)

// UnfitError is returned for a request that cannot be sent.
type UnfitError struct{ Err error }

func (e *UnfitError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnfitError) Unwrap() error { return e.Err }

// BrokenError is returned for a reply that ended early or breaks the protocol.
type BrokenError struct{ Err error }

func (e *BrokenError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Err }

// NotJSON returns the error for a reply that is not JSON. wanted is the expected kind of reply.
func NotJSON(wanted string, text []byte, redact func(string) string) error {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")) {
		return &BrokenError{errors.New("the answer is a web page: check the base URL")}
	}
	return &BrokenError{fmt.Errorf("the reply is not %s: %s", wanted, Excerpt(string(text), redact))}
}

// RefusalError is returned when a service answers with an error instead of a reply. The status is zero if the error is
// inside a reply.
type RefusalError struct {
	Status int
	Header http.Header
	Body   []byte
}

func (e *RefusalError) Error() string { return http.StatusText(e.Status) }

// CheckReply converts an error answer to a RefusalError before the SDK creates its own error. The SDK's error supports
// only bodies in the vendor's format, and contains the request with its key. CheckReply is middleware for an SDK's
// client.
func CheckReply(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(req)
	if err != nil || res.StatusCode >= 200 && res.StatusCode < 300 {
		return res, err
	}
	defer func() { _ = res.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // a partial body is better than none
	return nil, &RefusalError{res.StatusCode, res.Header, body}
}

// KindOf returns the kind of an error that does not come from the service.
func KindOf(err error) agent.ErrorKind {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return agent.KindTimeout
	}
	if _, ok := errors.AsType[*BrokenError](err); ok {
		return agent.KindBrokenStream
	}
	if _, ok := errors.AsType[*TokenError](err); ok {
		return agent.KindAuth
	}
	return agent.KindModel
}
