package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/samber/lo"
	"github.com/tidwall/gjson"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// readResponseStream reads a response that arrives as events. It is complete with response.completed or
// response.incomplete. A stream that ends without them is broken.
func (d *Driver) readResponseStream(a *requestInfo, res *http.Response, emit func(agent.Delta)) (agent.Step, error) {
	r := response{emit: emit}
	stream := &events{from: bufio.NewReader(res.Body)}
	for {
		data, err := stream.readEvent()
		switch {
		case errors.Is(err, io.EOF), bytes.HasPrefix(data, []byte("[DONE]")):
			return agent.Step{}, &service.BrokenError{Err: errors.New("the stream ended before the reply was complete")}
		case err != nil:
			return agent.Step{}, &service.BrokenError{Err: fmt.Errorf("reading the reply: %w", err)}
		case !json.Valid(data):
			return agent.Step{}, &service.BrokenError{Err: errors.New("reading the reply: a piece of it is not JSON")}
		}
		whole, err := r.event(gjson.ParseBytes(data))
		if err != nil {
			return agent.Step{}, err
		}
		if whole {
			return d.responseStep(a, &r)
		}
	}
}

// event reads one event, and reports whether the response is complete. Unknown kinds of events are ignored.
func (r *response) event(e gjson.Result) (whole bool, err error) {
	index, delta := r.indexOf(e), e.Get("delta").String()
	switch kind := textOf(e.Get("type")); kind {
	case "error":
		return false, &eventError{[]byte(e.Raw)}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		err := r.end(e.Get("response"), strings.TrimPrefix(kind, "response."))
		return err == nil, err
	case "response.created", "response.in_progress", "response.queued":
		r.addHead(e.Get("response"))
	case "response.output_item.added":
		_, err := r.begin(index, e.Get("item"))
		return false, err
	case "response.output_item.done":
		return false, r.complete(index, e.Get("item"))
	case "response.output_text.delta", "response.refusal.delta":
		return false, r.piece(index, "message", func(item *outputItem) {
			item.refused = item.refused || kind == "response.refusal.delta"
			r.tell(agent.Delta{Text: item.text.add(delta)})
		})
	case "response.function_call_arguments.delta":
		return false, r.piece(index, "function_call", func(item *outputItem) { r.tellArguments(item, item.text.add(item.pieces.Append(delta))) })
	case "response.function_call_arguments.done":
		if item, ok := r.at[index]; ok && item.kind == "function_call" && !item.done {
			r.fillArguments(item, argumentsOf(e.Get("arguments")))
		}
	case "response.reasoning_summary_text.delta":
		return false, r.piece(index, "reasoning", func(item *outputItem) {
			r.think(item, false, e.Get("summary_index").Int(), func(t *textPieces) string { return t.add(delta) })
		})
	case "response.reasoning_text.delta":
		return false, r.piece(index, "reasoning", func(item *outputItem) {
			r.think(item, true, e.Get("content_index").Int(), func(t *textPieces) string { return t.add(delta) })
		})
	case "":
		if said := errorInside(e); said != nil { // from a proxy in front of the service
			return false, &eventError{said}
		}
	}
	return false, nil
}

// indexOf returns the index of an event's item. Without an index, it is the item with the event's ID, or the newest one,
// or the next one if the event begins an item.
func (r *response) indexOf(e gjson.Result) int64 {
	if index := e.Get("output_index"); index.Type == gjson.Number {
		return index.Int()
	}
	id := lo.CoalesceOrEmpty(validText(e.Get("item_id")), validText(e.Get("item.id")))
	for index, item := range r.at {
		if id != "" && item.id == id {
			return index
		}
	}
	if newest, ok := r.at[r.last]; ok && e.Get("item").Exists() && (e.Get("type").String() == "response.output_item.added" || newest.done) {
		return r.last + 1
	}
	return r.last
}

// piece adds a piece to an item, which must be open.
func (r *response) piece(index int64, kind string, add func(*outputItem)) error {
	item, ok := r.at[index]
	if !ok || item.kind != kind || item.done {
		return &service.BrokenError{Err: fmt.Errorf("received a piece of a %s for item %d of the reply, which is not open", kind, index)}
	}
	add(item)
	return nil
}
