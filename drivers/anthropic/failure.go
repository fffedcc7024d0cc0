package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
)

// unfit is a request that is not sent.
type unfit struct{ error }

func (e *unfit) Unwrap() error { return e.error }

// broken is a reply that ended early or is not what the protocol says.
type broken struct{ error }

func (e *broken) Unwrap() error { return e.error }

// refusal is an answer of a service that says no: instead of a reply, or, with a
// status of zero, in the middle of one.
type refusal struct {
	status int
	header http.Header
	body   []byte
}

func (e *refusal) Error() string { return http.StatusText(e.status) }

// refused makes an error of an answer that is no reply, before the SDK does: its own
// error only knows bodies in the vendor's form, and holds the request with its key.
func refused(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if err != nil || res.StatusCode >= 200 && res.StatusCode < 300 {
		return res, err
	}
	defer func() { _ = res.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // what came of it is better than nothing
	return nil, &refusal{res.StatusCode, res.Header, body}
}

// failure is an error as callers get it.
func (d *Driver) failure(a asking, err error) *drivers.Error {
	e := &drivers.Error{Provider: d.features.Provider, Model: a.model, RequestID: d.redact(a.requestID)}
	if no, ok := errors.AsType[*refusal](err); ok {
		header := no.header
		if no.status == 0 {
			header = a.answer
		}
		d.explain(e, no, header)
	} else if no, ok := errors.AsType[*sdk.Error](err); ok { // an event "error" in a stream
		d.explain(e, &refusal{body: []byte(no.RawJSON())}, a.answer)
	} else if no, ok := errors.AsType[*unfit](err); ok {
		e.Kind, e.Message = agent.KindBadRequest, d.redact(no.Error())
	} else {
		e.Kind, e.Err = kindOf(err), d.redacted(err)
	}
	return e
}

// explain fills in what the service said of its refusal.
func (d *Driver) explain(e *drivers.Error, no *refusal, header http.Header) {
	var said struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
		RequestID string `json:"request_id"`
	}
	_ = json.Unmarshal(no.body, &said) // what is not in this form has no message, and is shown as it is
	e.Status, e.Code = no.status, d.redact(said.Error.Type)
	e.Message = d.redact(cmp.Or(said.Error.Message, excerpt(no.body), http.StatusText(no.status)))
	e.RequestID = d.redact(cmp.Or(requestID(header), said.RequestID))
	e.After = drivers.RetryAfter(header, time.Now())
	e.Kind, e.Advice = sort(no.status, said.Error.Type, said.Error.Message)
}

// tooLong is how the service says that the messages are more than the model reads.
var tooLong = regexp.MustCompile(`(?i)(prompt|input) is too long|exceeds? (the )?(model's )?(maximum )?context|context (window|length) exceeded`)

// noCredit is how it says that the account has to be paid for. It says so with the
// status of a bad request.
var noCredit = regexp.MustCompile(`(?i)credit balance`)

// What may be done, where that is not plain.
const (
	sayLess    = "say less, or ask a model that reads more"
	seeBilling = "the account has no credit left or has reached its limit: see its billing page"
	seeKey     = "see that the key is that of this service and still valid"
	seeModel   = "see that the model's name is right, and that the base URL is all that stands before /v1/messages"
)

// sort finds the kind of a refusal, and what to do about it.
func sort(status int, code, message string) (kind agent.ErrorKind, advice string) {
	kind = drivers.KindOfStatus(status)
	switch sdk.ErrorType(code) {
	case sdk.ErrorTypeInvalidRequestError:
		kind = agent.KindBadRequest
		switch {
		case tooLong.MatchString(message):
			return agent.KindContextLength, sayLess
		case noCredit.MatchString(message):
			return agent.KindAuth, seeBilling
		}
	case "request_too_large":
		return agent.KindContextLength, "say less, or give images and files by their URL"
	case sdk.ErrorTypeAuthenticationError:
		kind = agent.KindAuth
	case sdk.ErrorTypePermissionError:
		return agent.KindAuth, "see what the key's workspace may do"
	case sdk.ErrorTypeBillingError:
		return agent.KindAuth, seeBilling
	case sdk.ErrorTypeNotFoundError:
		return agent.KindBadRequest, seeModel
	case sdk.ErrorTypeRateLimitError:
		return agent.KindRateLimit, ""
	case sdk.ErrorTypeOverloadedError:
		return agent.KindOverloaded, ""
	case sdk.ErrorTypeTimeoutError:
		return agent.KindTimeout, ""
	case sdk.ErrorTypeAPIError:
		return agent.KindModel, ""
	}
	switch {
	case status >= 300 && status < 400:
		return agent.KindBadRequest, "it is elsewhere, and the key is not sent after it: correct Config.BaseURL"
	case status == http.StatusPaymentRequired:
		return agent.KindAuth, seeBilling
	case status == http.StatusRequestEntityTooLarge:
		return agent.KindContextLength, "say less, or give images and files by their URL"
	case kind == agent.KindAuth:
		return kind, seeKey
	case status == http.StatusNotFound:
		return kind, seeModel
	}
	return kind, ""
}

// kindOf is the kind of an error that is not the service's own.
func kindOf(err error) agent.ErrorKind {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return agent.KindTimeout
	}
	if _, ok := errors.AsType[*broken](err); ok {
		return agent.KindBrokenStream
	}
	return agent.KindModel
}

// excerpt is the beginning of a body that is in no known form, as a proxy's page is.
func excerpt(body []byte) string {
	const most = 300
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(bytes.TrimSpace(body)), "\uFFFD")), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func requestID(h http.Header) string { return cmp.Or(h.Get("Request-Id"), h.Get("X-Request-ID")) }

// redacted is an error whose text shows no secret.
func (d *Driver) redacted(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // the URL is the endpoint, which Features tells
	}
	if text := err.Error(); d.redact(text) != text {
		return errors.New(d.redact(text))
	}
	return err
}
