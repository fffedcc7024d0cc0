package drivers

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Error describes a failed call to a model service. It is immutable.
type Error struct {
	// Provider is the service's name, as in agent.Features.
	Provider string
	// Model is the requested model.
	Model string
	// Kind is the kind of failure. Callers decide by it.
	Kind agent.ErrorKind
	// Status is the HTTP status. It is zero when no answer came.
	Status int
	// Code is the service's own error code, unchanged.
	Code string
	// Message is the service's explanation, without secrets.
	Message string
	// RequestID identifies the request for the service's support.
	RequestID string
	// After is how long the service asks callers to wait. It is zero when the service does not say.
	After time.Duration
	// Retry is the header x-should-retry: whether the service wants another attempt. It is nil when the header is
	// missing.
	Retry *bool
	// Advice says what the reader can do, for kinds where it is not obvious.
	Advice string
	// Err is the underlying error. It may be nil. If Message is set, the error text does not include Err.
	Err error
}

// what maps each kind to its text.
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
		fmt.Fprintf(&b, "; retry after %s", e.After)
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

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// ErrorKind returns Kind.
func (e *Error) ErrorKind() agent.ErrorKind { return e.Kind }

// RetryAfter returns how long the service asks callers to wait.
func (e *Error) RetryAfter() time.Duration { return e.After }

// Retryable reports whether the same request may succeed later. The service's answer takes precedence over the kind.
func (e *Error) Retryable() bool {
	if e.Retry != nil {
		return *e.Retry
	}
	switch e.Kind {
	case agent.KindAuth, agent.KindBadRequest, agent.KindContextLength, agent.KindInvalid:
		return false
	}
	return true
}

// ConfigError is returned by driver constructors when the configuration is incomplete or wrong: a missing key or model,
// an invalid base URL. Another attempt with the same configuration fails, too.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns the joined mistakes.
func (e *ConfigError) Unwrap() error { return e.Err }

// ErrorKind returns agent.KindBadRequest: no request can be sent.
func (e *ConfigError) ErrorKind() agent.ErrorKind { return agent.KindBadRequest }

// Retryable returns false.
func (e *ConfigError) Retryable() bool { return false }

// KindOfStatus returns the kind of failure for an HTTP status, for services that do not say more. A redirection is a
// bad request. Drivers do not follow redirects, because they would pass the key on, and a retry would be redirected
// again.
func KindOfStatus(status int) agent.ErrorKind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return agent.KindAuth
	case http.StatusTooManyRequests:
		return agent.KindRateLimit
	case http.StatusServiceUnavailable, 529: // 529 is specific to Anthropic
		return agent.KindOverloaded
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return agent.KindTimeout
	}
	if status >= 300 && status < 500 && status != http.StatusConflict {
		return agent.KindBadRequest
	}
	return agent.KindModel
}

// RetryAfter returns the wait that an answer's headers ask for: Retry-After of RFC 9110, in seconds or as a date, or
// some services' more exact retry-after-ms. It returns zero when the headers are missing or in an unknown format.
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

// ShouldRetry returns the value of an answer's header x-should-retry. It returns nil when the header is missing or in
// another format.
func ShouldRetry(h http.Header) *bool {
	switch retry := strings.ToLower(strings.TrimSpace(h.Get("X-Should-Retry"))); retry {
	case "true", "false":
		return new(retry == "true")
	}
	return nil
}

// clampSeconds returns a number of seconds as a duration of a year at most, so that no header overflows the duration.
func clampSeconds(seconds float64) time.Duration {
	const year = 365 * 24 * 60 * 60
	return time.Duration(min(seconds, year) * float64(time.Second))
}

// Redact removes a secret from a text. Services often repeat a key that they rejected.
func Redact(text, secret string) string {
	if secret == "" {
		return text
	}
	return strings.ReplaceAll(text, secret, "[redacted]")
}
