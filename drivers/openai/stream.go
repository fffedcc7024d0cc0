package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/samber/lo"
	"github.com/tidwall/gjson"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// readStream reads a reply that arrives in pieces. The reply is complete when the service sends [DONE], or
// the finish reason and then the usage; a stream that ends without these is broken.
func (d *Driver) readStream(a *asking, res *http.Response, emit func(agent.Delta)) (agent.Step, error) {
	if isStream, err := isStream(res); !isStream || err != nil {
		if err != nil {
			return agent.Step{}, err
		}
		return d.readWhole(a, res, emit)
	}
	r := reply{emit: emit}
	done, err := r.readEvents(&events{from: bufio.NewReader(res.Body)})
	if err != nil {
		return agent.Step{}, err
	}
	switch {
	case !done && (r.finish == "" || r.usage.IsAbsent() && !d.dialect.NoStreamUsage):
		return agent.Step{}, &service.BrokenError{Err: errors.New("the stream ended before the reply was complete")}
	case r.finish == "" && r.text.String() == "" && len(r.calls) == 0:
		return agent.Step{}, &service.BrokenError{Err: errors.New("the stream was empty")}
	}
	return d.step(a, &r)
}

// isStream reports whether an answer is a stream. A service that cannot stream answers with the whole reply; a web page is an error.
func isStream(res *http.Response) (bool, error) {
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind {
	case "application/json":
		return false, nil
	case "text/html":
		return false, &service.BrokenError{Err: errors.New("the answer is a web page, not a stream: check the base URL")}
	}
	return !service.IsJSON(res), nil
}

// readEvents adds the pieces of a stream, and reports whether the service sent [DONE].
func (r *reply) readEvents(stream *events) (done bool, err error) {
	for {
		event, err := stream.readEvent()
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, &service.BrokenError{Err: fmt.Errorf("reading the reply: %w", err)}
		case bytes.HasPrefix(event, []byte("[DONE]")):
			return true, nil
		case !json.Valid(event):
			return false, &service.BrokenError{Err: errors.New("reading the reply: a piece of it is not JSON")}
		}
		piece := gjson.ParseBytes(event)
		if said := errorInside(piece); said != nil {
			return false, &eventError{said}
		}
		if err := r.add(piece); err != nil {
			return false, err
		}
	}
}

// eventError is an error that the service reports inside an answer or a stream.
type eventError struct{ event []byte }

func (e *eventError) Error() string { return "the service sent an error: " + string(e.event) }

// add adds a piece of the stream. A piece without a choice may still contain the usage, which services send
// at the end or with every piece.
func (r *reply) add(c gjson.Result) error {
	r.addHead(c)
	for _, choice := range listOf(c.Get("choices")) {
		if choice.Get("index").Int() != 0 {
			continue
		}
		r.finish = lo.CoalesceOrEmpty(choice.Get("finish_reason").String(), r.finish)
		m := choice.Get("delta")
		if err := r.say(m); err != nil {
			return err
		}
		for _, call := range listOf(m.Get("tool_calls")) {
			r.addCall(call.Get("index").Int(), call)
		}
	}
	return nil
}

// events reads the data of a stream of server-sent events.
type events struct{ from *bufio.Reader }

// readEvent returns the data of the next event: its lines, each with a line break. It drops an event that the
// end of the stream cuts off. The error is io.EOF at the end.
func (e *events) readEvent() ([]byte, error) {
	var data []byte
	for {
		line, err := e.from.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			if len(data) > 0 {
				return data, nil
			}
			continue
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); string(name) == "data" {
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		}
	}
}
