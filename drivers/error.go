package drivers

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Error is how a call to a model service failed. It is never changed once made.
type Error struct {
	// Provider is the service, as in agent.Features.
	Provider string
	// Model is the model that was asked.
	Model string
	// Kind tells the failures apart that may be dealt with differently.
	Kind agent.ErrorKind
	// Status is the HTTP status; zero when no answer came.
	Status int
	// Code is the service's own word for what is wrong, as it stands in its answer.
	Code string
	// Message is the service's sentence, without anything secret.
	Message string
	// RequestID is how the service's support finds the request.
	RequestID string
	// After is how long the service wants to be left alone; zero when it did not say.
	After time.Duration
	// Advice is what the reader may do, for kinds where that is not plain.
	Advice string
	// Err is the error underneath, which may be nil. Its text is not part of
	// this one's where Message is set.
	Err error
}

// what says a kind in words.
var what = map[agent.ErrorKind]string{
	agent.KindRateLimit:     "too many requests",
	agent.KindOverloaded:    "the service is overloaded",
	agent.KindContextLength: "the messages are too long for the model",
	agent.KindAuth:          "not authorized",
	agent.KindBadRequest:    "the request was not accepted",
	agent.KindBrokenStream:  "the reply broke off",
	agent.KindTimeout:       "the service took too long",
	agent.KindInvalid:       "the reply is not what was asked for",
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "asking %s", e.Provider)
	if e.Model != "" {
		fmt.Fprintf(&b, " model %q", e.Model)
	}
	b.WriteString(": ")
	if words, ok := what[e.Kind]; ok {
		b.WriteString(words)
	} else {
		b.WriteString("the call failed")
	}
	if detail := strings.TrimSpace(strings.Join([]string{formatStatus(e.Status), e.Code}, " ")); detail != "" {
		fmt.Fprintf(&b, " (%s)", detail)
	}
	switch {
	case e.Message != "":
		b.WriteString(": " + e.Message)
	case e.Err != nil:
		b.WriteString(": " + e.Err.Error())
	}
	if e.After > 0 {
		fmt.Fprintf(&b, "; it wants to be left alone for %s", e.After)
	}
	if e.Advice != "" {
		b.WriteString("; " + e.Advice)
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " [request %s]", e.RequestID)
	}
	return b.String()
}

func formatStatus(status int) string {
	if status == 0 {
		return ""
	}
	return strconv.Itoa(status)
}

// Unwrap returns the error underneath.
func (e *Error) Unwrap() error { return e.Err }

// ErrorKind returns the kind of the failure.
func (e *Error) ErrorKind() agent.ErrorKind { return e.Kind }

// RetryAfter returns how long the service wants to be left alone.
func (e *Error) RetryAfter() time.Duration { return e.After }

// Retryable reports whether the same request may succeed at another time.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case agent.KindAuth, agent.KindBadRequest, agent.KindContextLength, agent.KindInvalid:
		return false
	}
	return true
}

// KindOfStatus returns the kind of failure that an HTTP status stands for where a
// service does not say more. A redirection is a bad request: drivers follow none, as
// the key would go along, and asking again leads to the same.
func KindOfStatus(status int) agent.ErrorKind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return agent.KindAuth
	case http.StatusTooManyRequests:
		return agent.KindRateLimit
	case http.StatusServiceUnavailable, 529: // 529 is Anthropic's own
		return agent.KindOverloaded
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return agent.KindTimeout
	}
	if status >= 300 && status < 500 && status != http.StatusConflict {
		return agent.KindBadRequest
	}
	return agent.KindModel
}

// RetryAfter returns how long an answer's headers ask to be left alone: Retry-After of
// RFC 9110, in seconds or as a date, and the more exact retry-after-ms of some
// services. Zero when they do not say, or not in a form that is known.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return clampSeconds(ms / 1e3)
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 {
		return clampSeconds(s)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// clampSeconds returns a number of seconds as a duration, a year at most, so that no header
// overflows one.
func clampSeconds(seconds float64) time.Duration {
	const year = 365 * 24 * 60 * 60
	return time.Duration(min(seconds, year) * float64(time.Second))
}

// Redact takes a secret out of a text: services like to repeat the key that they
// did not know.
func Redact(text, secret string) string {
	if secret == "" {
		return text
	}
	return strings.ReplaceAll(text, secret, "[redacted]")
}
