package gemini

import (
	"cmp"
	"errors"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// brokenError is returned for a reply that ended early or breaks the protocol.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

// finishError is returned for an unusable reply that the service ended for its own reason.
type finishError struct {
	reason finishReason
	note   string
}

func (e *finishError) Error() string {
	return cmp.Or(e.note, "the reply ended with the reason "+string(e.reason))
}

// refusal returns the error for an unsent request.
func (d *Driver) refusal(model string, err error) *drivers.Error {
	return &drivers.Error{
		Provider: d.features.Provider, Model: model, Kind: agent.KindBadRequest, Message: service.Excerpt(err.Error(), d.redact),
	}
}

// failure converts a request's error for callers.
func (d *Driver) failure(model string, x *exchange, err error) *drivers.Error {
	e := &drivers.Error{Provider: d.features.Provider, Model: model, RequestID: d.redact(x.header.Get("X-Request-ID"))}
	if said, ok := errors.AsType[*apiError](err); ok {
		d.explain(e, x, said)
		return e
	}
	if finish, ok := errors.AsType[*finishError](err); ok {
		e.Code, e.Message = service.Excerpt(string(finish.reason), d.redact), service.Excerpt(finish.Error(), d.redact)
		e.Kind = lo.Ternary(slices.Contains(spoiled, finish.reason), agent.KindBrokenStream, agent.KindModel)
		if finish.reason == unsignedCalls {
			e.Kind, e.Advice = agent.KindBadRequest, "a call in the messages has lost its signature: leave replies with calls as they are"
		}
		return e
	}
	e.Kind = agent.KindBrokenStream
	switch broken, ok := errors.AsType[*brokenError](err); {
	case ok:
		e.Message = broken.text
	case x.status == 0 && service.KindOf(err) == agent.KindAuth: // no token
		e.Kind, e.Err = agent.KindAuth, service.RedactError(err, d.redact)
	case x.status == 0: // no answer
		e.Kind, e.Err = agent.KindModel, service.RedactError(err, d.redact)
	case x.cut != nil:
		e.Err = service.RedactError(x.cut, d.redact)
	default:
		e.Message = "the answer does not have the form of the Gemini API: " + service.Excerpt(string(x.text), d.redact)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		e.Kind = agent.KindTimeout
	}
	return e
}

// explain adds the service's explanation for its refusal.
func (d *Driver) explain(e *drivers.Error, x *exchange, said *apiError) {
	e.Status = cmp.Or(said.Code, x.status)
	if e.Status < 300 { // inside a stream, without a code
		e.Status = 0
	}
	var reason string
	for _, detail := range said.Details {
		kind, _ := detail["@type"].(string)
		switch {
		case strings.HasSuffix(kind, ".ErrorInfo"):
			reason, _ = detail["reason"].(string)
		case strings.HasSuffix(kind, ".RetryInfo"):
			if text, ok := detail["retryDelay"].(string); ok {
				if delay, err := time.ParseDuration(text); err == nil {
					e.After = max(delay, 0)
				}
			}
		}
	}
	e.After = max(e.After, drivers.RetryAfter(x.header, time.Now()))
	if x.status >= 300 { // otherwise the headers belong to the reply that contains the error
		e.Retry = drivers.ShouldRetry(x.header)
	}
	if reason == "" {
		reason = said.Status
	}
	e.Code = service.Excerpt(reason, d.redact)
	e.Message = service.Excerpt(said.Message, d.redact)
	e.Kind = sort(e.Status, said.Status, reason, said.Message)
	e.Advice = service.Advice(e, d.keyless, lo.Ternary(d.vertex, "/v1/projects", "/v1beta"))
}

// tooLong matches the service's message that the input is longer than the model accepts. The service has no
// code for this error.
var tooLong = regexp.MustCompile(`(?i)token count.*exceeds|exceeds the maximum number of (input )?tokens`)

// badKey matches the service's message that the key is invalid. It comes with the status of a bad request.
var badKey = regexp.MustCompile(`(?i)api[ _]key (not valid|not found|expired|invalid)|API_KEY_(INVALID|SERVICE_BLOCKED)`)

// sort returns an error answer's kind.
func sort(status int, state, reason, message string) agent.ErrorKind {
	switch {
	case tooLong.MatchString(message):
		return agent.KindContextLength
	case badKey.MatchString(reason), badKey.MatchString(message):
		return agent.KindAuth
	case status != 0:
		return drivers.KindOfStatus(status)
	}
	return service.KindOfNames(state)
}
