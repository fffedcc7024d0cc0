package openai

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// readStream reads a reply that arrives in pieces. It is whole when the service said
// that it is done, or gave the reason and then the usage that come last; one that
// just ends is broken.
func (d *Driver) readStream(a *asking, res *http.Response, emit func(agent.Delta)) (agent.Step, error) {
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind {
	case "application/json":
		return d.readWhole(a, res, emit) // from a service that cannot stream
	case "text/html":
		return agent.Step{}, &service.BrokenError{Err: errors.New("the answer is a web page, not a stream: see that the base URL is the service's")}
	}
	events := &events{Decoder: ssestream.NewDecoder(res)}
	stream := ssestream.NewStream[openai.ChatCompletionChunk](events, nil)
	defer stream.Close()
	r := reply{emit: emit}
	for stream.Next() {
		if err := r.add(stream.Current()); err != nil {
			return agent.Step{}, err
		}
	}
	if _, told := errors.AsType[*ssestream.StreamError](stream.Err()); told {
		return agent.Step{}, stream.Err()
	}
	switch {
	case stream.Err() != nil:
		return agent.Step{}, &service.BrokenError{Err: fmt.Errorf("reading the reply: %w", stream.Err())}
	case !events.done && (r.finish == "" || r.usage.IsAbsent() && !d.dialect.NoStreamUsage):
		return agent.Step{}, &service.BrokenError{Err: errors.New("it ended before its end")}
	case r.finish == "" && r.text.String() == "" && len(r.calls) == 0:
		return agent.Step{}, &service.BrokenError{Err: errors.New("there was nothing in it")}
	}
	return d.step(a, &r)
}

// add adds a piece of the stream. One without a choice may still have the usage,
// which services send last, or with every piece.
func (r *reply) add(c openai.ChatCompletionChunk) error {
	r.id = lo.CoalesceOrEmpty(r.id, c.ID)
	r.model = lo.CoalesceOrEmpty(r.model, c.Model)
	r.tier = lo.CoalesceOrEmpty(string(c.ServiceTier), r.tier)
	if c.JSON.Usage.Valid() {
		r.usage = mo.Some(c.Usage)
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		r.finish = lo.CoalesceOrEmpty(choice.FinishReason, r.finish)
		m := choice.Delta
		if err := r.say(m.Content, m.JSON.Content, m.Refusal, m.JSON.ExtraFields); err != nil {
			return err
		}
		for _, call := range m.ToolCalls {
			r.call(call.Index, call.ID, call.Function.Name, call.Function.Arguments)
		}
	}
	return nil
}

// events notes whether the service said that it is done, which the SDK's stream
// keeps to itself.
type events struct {
	ssestream.Decoder
	done bool
}

func (e *events) Event() ssestream.Event {
	event := e.Decoder.Event()
	e.done = e.done || bytes.HasPrefix(event.Data, []byte("[DONE]"))
	return event
}
