package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// exchange holds a request's answer for error messages.
type exchange struct {
	status int
	header http.Header
	// text is the last decoded JSON: the whole answer, or a stream event.
	text []byte
	// cut is the reason why the answer broke off. It is nil when it ended normally.
	cut error
}

// keyHeader is the header with the key.
const keyHeader = "X-Goog-Api-Key"

// post sends a body to a model's method and records the answer's status and headers.
func (d *Driver) post(ctx context.Context, x *exchange, model, method, accept string, body []byte) (*http.Response, error) {
	res, err := d.send(ctx, d.path(model)+":"+method, accept, body)
	if no, ok := errors.AsType[*service.RefusalError](err); ok {
		x.status, x.header, x.text = no.Status, no.Header, no.Body
		if told := readError(no.Body); told != nil {
			return nil, told
		}
		return nil, &apiError{Code: no.Status, Message: string(no.Body)}
	}
	if err != nil {
		return nil, err
	}
	x.status, x.header = res.StatusCode, res.Header
	return res, nil
}

// readAll reads an answer in one piece.
func (x *exchange) readAll(res *http.Response) (err error) {
	if x.text, err = io.ReadAll(res.Body); err != nil {
		x.cut = err
	}
	return err
}

// readWhole reads an answer in one piece: a reply, or a list with its pieces.
func (x *exchange) readWhole(res *http.Response) ([]*answer, error) {
	if err := x.readAll(res); err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if json.Unmarshal(x.text, &list) != nil || readError(x.text) != nil {
		list = []json.RawMessage{x.text}
	}
	var pieces []*answer
	for _, text := range list {
		piece, err := readAnswer(text)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, piece)
	}
	if len(pieces) == 0 {
		return nil, errShape
	}
	return pieces, nil
}

// joinBody returns a request's body. It joins contents, an object without its closing brace, and the other members. The
// contents are already encoded. An encoder would parse and write them again for each request.
func joinBody(contents []byte, rest map[string]any) ([]byte, error) {
	if len(rest) == 0 {
		return append(contents, '}'), nil
	}
	text, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	return append(append(contents, ','), text[1:]...), nil
}
