package service

import (
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/grapnel-go/grapnel/agent"
)

// UnfitError is a request that is not sent.
type UnfitError struct{ Err error }

func (e *UnfitError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with it.
func (e *UnfitError) Unwrap() error { return e.Err }

// BrokenError is a reply that ended early or is not what the protocol says.
type BrokenError struct{ Err error }

func (e *BrokenError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with it.
func (e *BrokenError) Unwrap() error { return e.Err }

// RefusalError is an answer of a service that says no: instead of a reply, or, with a
// status of zero, in the middle of one.
type RefusalError struct {
	Status int
	Header http.Header
	Body   []byte
}

func (e *RefusalError) Error() string { return http.StatusText(e.Status) }

// CheckReply returns a middleware of an SDK's client. It makes a RefusalError of an answer that is
// no reply, before the SDK makes an error of its own, which would only know bodies in
// the vendor's form, and hold the request with its key.
func CheckReply(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(req)
	if err != nil || res.StatusCode >= 200 && res.StatusCode < 300 {
		return res, err
	}
	defer func() { _ = res.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // what came of it is better than nothing
	return nil, &RefusalError{res.StatusCode, res.Header, body}
}

// KindOf returns the kind of an error that is not the service's own.
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
