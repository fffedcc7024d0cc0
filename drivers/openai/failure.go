package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// failure converts an error for callers.
func (d *Driver) failure(a *requestInfo, err error) *drivers.Error {
	e := &drivers.Error{Provider: d.features.Provider, Model: a.model, RequestID: a.requestID}
	if no, ok := errors.AsType[*service.RefusalError](err); ok {
		e.Status, e.RequestID, e.After = no.Status, d.redact(requestID(no.Header)), drivers.RetryAfter(no.Header, time.Now())
		e.Retry = drivers.ShouldRetry(no.Header)
		d.explain(e, complaintOf(no.Body), no.Body)
	} else if no, ok := errors.AsType[*eventError](err); ok {
		d.explain(e, complaintOf(no.event), no.event)
	} else if no, ok := errors.AsType[*service.UnfitError](err); ok {
		e.Kind, e.Message = agent.KindBadRequest, service.Excerpt(no.Error(), d.redact)
	} else {
		e.Kind, e.Err = service.KindOf(err), service.RedactError(err, d.redact)
	}
	return e
}

// explain adds the service's explanation to e.
func (d *Driver) explain(e *drivers.Error, c complaint, body []byte) {
	e.Code = service.Excerpt(cmp.Or(c.code, c.kind), d.redact)
	e.Message = service.Excerpt(cmp.Or(c.message, string(body)), d.redact)
	e.Kind, e.Advice = sort(cmp.Or(e.Status, service.ErrorStatus(c.code)), c)
	if e.Advice == "" {
		e.Advice = service.Advice(e, d.keyless, "/"+d.api.path)
	}
}

// noCredit lists the codes for an account without credit. They come with the status of a rate limit, but waiting does
// not help.
var noCredit = []string{"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"}

// tooLong lists messages that the input is longer than the model accepts, for services without a code for this error.
var tooLong = []string{
	"context_length_exceeded", "exceed_context_size", "maximum context length", "context window", "context length",
	"input is too long", "prompt is too long", "request too large for",
}

// refusesLength lists the statuses for such messages. 0 means an error inside a reply.
var refusesLength = []int{0, 400, 413, 422, 429, 500}

// badInput lists the codes for a reply that failed because of the request's content. The Responses API reports them
// after it has accepted the request (ResponseError in OpenAI's API description).
var badInput = []string{
	"invalid_prompt", "data_residency_mismatch", "bio_policy", "misalignment_policy_violation", "invalid_image",
	"invalid_image_format", "invalid_base64_image", "invalid_image_url", "image_too_large", "image_too_small",
	"image_parse_error", "image_content_policy_violation", "invalid_image_mode", "image_file_too_large",
	"unsupported_image_media_type", "empty_image_file", "failed_to_download_image", "image_file_not_found",
}

// sort returns the kind of an error answer, and advice for errors that only the service's message identifies.
func sort(status int, c complaint) (kind agent.ErrorKind, advice string) {
	names := c.code + "\n" + c.kind
	words := strings.ToLower(names + "\n" + c.message)
	has := func(text string, parts []string) bool {
		return lo.SomeBy(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	switch {
	case status == http.StatusPaymentRequired, has(names, noCredit):
		return agent.KindAuth, service.SeeBilling
	case strings.Contains(names, "invalid_encrypted_content"):
		return agent.KindBadRequest, "reasoning in the messages belongs to another account or service, and only that one can read it"
	case slices.Contains(refusesLength, status) && has(words, tooLong):
		return agent.KindContextLength, ""
	case (status == 0 || status == 429 || status >= 500) && strings.Contains(words, "overloaded"):
		return agent.KindOverloaded, ""
	case status == 0 && slices.Contains(badInput, c.code):
		return agent.KindBadRequest, ""
	case status == 0: // inside an answer
		return service.KindOfNames(c.code, c.kind), ""
	}
	return drivers.KindOfStatus(status), ""
}

// complaint is a service's description of an error, in any common format.
type complaint struct {
	message, code, kind string
}

// complaintOf reads an error answer's body: the vendor's {"error":{…}}, {"error":"…"}, or the members at the top, as
// sent by FastAPI and older vLLM.
func complaintOf(body []byte) complaint {
	var top struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Code    json.RawMessage `json:"code"`
		Type    json.RawMessage `json:"type"`
	}
	if json.Unmarshal(body, &top) != nil {
		return complaint{}
	}
	inner := top
	if json.Unmarshal(top.Error, &inner) != nil {
		inner.Message = json.RawMessage(cmp.Or(string(top.Error), string(top.Message), string(top.Detail)))
	}
	return complaint{word(inner.Message), word(inner.Code), word(inner.Type)}
}

// word returns a JSON value as text: a string's content, other values as JSON.
func word(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return strings.Trim(string(raw), `"`)
}

func requestID(h http.Header) string {
	return cmp.Or(h.Get("X-Request-ID"), h.Get("Request-Id"))
}
