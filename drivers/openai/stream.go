package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/samber/lo"
	"github.com/tidwall/gjson"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// readStream reads a reply that arrives in pieces. The reply is complete when the service sends [DONE], or the finish
// reason and then the usage. A stream that ends without these is broken.
func (d *Driver) readStream(a *requestInfo, res *http.Response, emit func(agent.Delta)) (agent.Step, error) {
	r := reply{tools: a.tools, emit: emit}
	done, err := r.readEvents(&events{from: bufio.NewReader(res.Body)})
	if err != nil {
		return agent.Step{}, err
	}
	switch {
	case !done && (r.finish == "" || !r.usage.Exists() && !d.dialect.NoStreamUsage):
		return agent.Step{}, &service.BrokenError{Err: errors.New("the stream ended before the reply was complete")}
	case r.finish == "" && r.text.String() == "" && len(r.calls) == 0:
		return agent.Step{}, &service.BrokenError{Err: errors.New("the stream was empty")}
	}
	return d.step(a, &r)
}

// readEvents adds a stream's pieces, and reports whether the service sent [DONE].
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

// add adds a piece from the stream. A piece without a choice may still contain the usage, which services send at the
// end or with every piece.
func (r *reply) add(c gjson.Result) error {
	r.addHead(c)
	for _, choice := range listOf(c.Get("choices")) {
		if choice.Get("index").Int() != 0 {
			continue
		}
		r.finish = lo.CoalesceOrEmpty(choice.Get("finish_reason").String(), r.finish)
		m := choice.Get("delta")
		if !m.IsObject() {
			m = choice.Get("message") // the whole reply in one piece
		}
		if err := r.say(m); err != nil {
			return err
		}
		r.addCalls(m)
	}
	return nil
}

// events reads the data of a stream of server-sent events.
type events struct {
	from *bufio.Reader
	next []byte // the next event's data, if already read
}

// readEvent returns the next event's data: its lines, each with a line break. Some services leave out the empty line
// after an event, so a line after a whole value begins another event. It drops an event that the stream's end cuts off.
// The error is io.EOF at the end.
func (e *events) readEvent() ([]byte, error) {
	data := e.next
	e.next = nil
	for {
		line, err := e.from.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if name, value, _ := bytes.Cut(line, []byte(":")); string(name) == "data" {
			value = append(bytes.TrimPrefix(value, []byte(" ")), '\n')
			if len(data) > 0 && json.Valid(data) {
				e.next = value
				return data, nil
			}
			data = append(data, value...)
		}
		if len(data) > 0 && len(line) == 0 {
			return data, nil
		}
	}
}
