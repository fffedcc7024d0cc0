package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// failure converts an error for callers.
func (d *Driver) failure(a requestInfo, err error) *drivers.Error {
	e := &drivers.Error{Provider: d.features.Provider, Model: a.model, RequestID: d.redact(a.requestID)}
	if no, ok := errors.AsType[*service.RefusalError](err); ok {
		header := no.Header
		if no.Status == 0 {
			header = a.answer
		}
		d.explain(e, no, header)
	} else if no, ok := errors.AsType[*service.UnfitError](err); ok {
		e.Kind, e.Message = agent.KindBadRequest, service.Excerpt(no.Error(), d.redact)
	} else {
		e.Kind, e.Err = service.KindOf(err), service.RedactError(err, d.redact)
	}
	return e
}

// explain adds the service's explanation to e.
func (d *Driver) explain(e *drivers.Error, no *service.RefusalError, header http.Header) {
	var said struct {
		Error     json.RawMessage `json:"error"`
		RequestID string          `json:"request_id"`
	}
	var problem struct {
		Type    string          `json:"type"`
		Message string          `json:"message"`
		Code    json.RawMessage `json:"code"` // sent by gateways
	}
	_ = json.Unmarshal(no.Body, &said) // a body in another format has no message, and is shown unchanged
	if json.Unmarshal(said.Error, &problem) != nil {
		_ = json.Unmarshal(said.Error, &problem.Message)
	}
	code := strings.Trim(string(problem.Code), `"`)
	status := cmp.Or(no.Status, service.ErrorStatus(code))
	e.Status, e.Code = no.Status, service.Excerpt(cmp.Or(problem.Type, code), d.redact)
	e.Message = service.Excerpt(cmp.Or(problem.Message, string(no.Body), http.StatusText(no.Status)), d.redact)
	e.RequestID = d.redact(cmp.Or(requestID(header), said.RequestID))
	e.After, e.Retry = drivers.RetryAfter(header, time.Now()), drivers.ShouldRetry(no.Header)
	e.Kind, e.Advice = sort(status, problem.Type, problem.Message)
	if e.Advice == "" {
		e.Advice = service.Advice(e, d.keyless, lo.Ternary(d.vertex, "/v1/projects", "/v1/messages"))
	}
}

// tooLong matches the service's message that the input is longer than the model accepts.
var tooLong = regexp.MustCompile(`(?i)(prompt|input) is too long|exceeds? (the )?(model's )?(maximum )?context|context (window|length) exceeded`)

// noCredit matches the service's message that the account has no credit. It comes with the status of a bad request.
var noCredit = regexp.MustCompile(`(?i)credit balance`)

// sort returns the kind of an error answer, and advice for errors that only the service's message identifies.
func sort(status int, code, message string) (kind agent.ErrorKind, advice string) {
	kind = drivers.KindOfStatus(status)
	switch sdk.ErrorType(code) {
	case sdk.ErrorTypeInvalidRequestError:
		kind = agent.KindBadRequest
		switch {
		case tooLong.MatchString(message):
			return agent.KindContextLength, ""
		case noCredit.MatchString(message):
			return agent.KindAuth, service.SeeBilling
		}
	case "request_too_large":
		return agent.KindContextLength, sendLess
	case sdk.ErrorTypeAuthenticationError, sdk.ErrorTypePermissionError:
		return agent.KindAuth, ""
	case sdk.ErrorTypeBillingError:
		return agent.KindAuth, service.SeeBilling
	case sdk.ErrorTypeNotFoundError:
		return agent.KindBadRequest, ""
	case sdk.ErrorTypeRateLimitError:
		return agent.KindRateLimit, ""
	case sdk.ErrorTypeOverloadedError:
		return agent.KindOverloaded, ""
	case sdk.ErrorTypeTimeoutError:
		return agent.KindTimeout, ""
	case sdk.ErrorTypeAPIError:
		return agent.KindModel, ""
	}
	switch status {
	case http.StatusPaymentRequired:
		return agent.KindAuth, service.SeeBilling
	case http.StatusRequestEntityTooLarge:
		return agent.KindContextLength, sendLess
	case 0: // inside an answer
		return service.KindOfNames(code), ""
	}
	return kind, ""
}

// sendLess is the advice when the request has too many bytes, not too many tokens.
const sendLess = "send less, or give images and files by their URL"

func requestID(h http.Header) string { return cmp.Or(h.Get("Request-Id"), h.Get("X-Request-ID")) }
