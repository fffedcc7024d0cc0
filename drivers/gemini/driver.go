package gemini

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// Driver calls a model over the Gemini API. It is immutable and safe for concurrent use. Create it with New.
type Driver struct {
	send     service.PostFunc
	path     func(model string) string // the path for a model, without the method
	vertex   bool                      // the endpoint is Vertex AI
	features agent.Features
	prices   drivers.Prices
	keyless  bool
	redact   func(string) string // removes secrets from a text
	// older encodes messages for models up to the second generation, newer for later ones.
	older, newer *agent.WireForm
}

var (
	_ agent.Streamer  = (*Driver)(nil)
	_ agent.Describer = (*Driver)(nil)
)

// New returns a driver, or an error that joins all mistakes in c. It sends no request, so a wrong key or model causes
// an error at the first call.
func New(c Config) (*Driver, error) {
	at, err := c.endpoint()
	if c.Model == "" {
		err = errors.Join(errors.New("no model: set Config.Model"), err)
	}
	if err != nil {
		return nil, &drivers.ConfigError{Err: fmt.Errorf("making a gemini driver: %w", err)}
	}
	own := http.Header{}
	if at.Key != "" {
		own.Set(keyHeader, at.Key)
	}
	d := &Driver{
		send: at.Poster(own, c.Header), features: modelFeatures(c, at), keyless: at.Keyless, redact: at.Redact,
		path: c.pathOf, vertex: c.Vertex != nil,
		prices: lo.FromPtrOr(c.Prices, lo.Ternary(at.Vendor && c.Vertex == nil, ListPrices(), drivers.Prices{})),
	}
	_, d.features.Priced = d.prices.Of(bareModel(c.Model))
	d.older = agent.NewWireForm(writer{d, true}.message)
	d.newer = agent.NewWireForm(writer{d, false}.message)
	return d, nil
}

// modelFeatures returns a model's usual features, corrected by c.
func modelFeatures(c Config, at service.Endpoint) agent.Features {
	f := agent.Features{
		Provider: lo.Ternary(c.Vertex == nil, "gcp.gemini", "gcp.vertex_ai"), Streaming: true, Tools: true, ParallelCalls: true, StructuredOutput: true,
		Images: true, Files: true, Reasoning: true,
	}
	if n := modelGeneration(c.Model); n == 2 || n == 3 {
		f.ContextTokens, f.MaxOutputTokens = contextTokens, maxOutputTokens
	}
	if c.Features != nil {
		c.Features(&f)
	}
	f.Model, f.Endpoint = c.Model, at.SafeURL()
	return f
}

// String returns the driver's name in a printed plan.
func (d *Driver) String() string { return "gemini/" + d.features.Model }

// Features returns the driver's features: the model's usual features, corrected by Config.Features.
func (d *Driver) Features() agent.Features { return d.features }

// Next returns the model's next turn. A failed call is a *drivers.Error. When ctx ends, the error is its cause.
func (d *Driver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return d.ask(ctx, s, "generateContent", "application/json", func(agent.Delta) {})
}

// Stream returns the model's next turn and passes its pieces to emit while they arrive. It returns the same errors as
// Next. Pieces of a reply that breaks off are not taken back, and a retry starts from the beginning.
func (d *Driver) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	if !d.features.Streaming {
		result := d.Next(ctx, s)
		if step, err := result.Get(); err == nil {
			agent.EmitWhole(step, emit)
		}
		return result
	}
	return d.ask(ctx, s, "streamGenerateContent?alt=sse", "text/event-stream", emit)
}

// read posts the request to a method and reads the reply. Some endpoints answer a stream request with a list of pieces
// or a whole reply, and others stream without a request, so the first bytes decide.
func (d *Driver) read(ctx context.Context, s agent.State, q question, x *exchange, method, accept string, emit func(agent.Delta)) (agent.Step, error) {
	res, err := d.post(ctx, x, q.model, method, accept, q.body)
	if err != nil {
		return agent.Step{}, err
	}
	defer func() { _ = res.Body.Close() }()
	r := d.reply(q, s)
	add := func(said *answer) { r.add(said, emit) }
	if !service.IsStream(res) {
		pieces, err := x.readWhole(res)
		if err != nil {
			return agent.Step{}, err
		}
		for _, piece := range pieces {
			add(piece)
		}
		return r.step(len(pieces) > 1)
	}
	if err := x.readStream(res, add); err != nil && !r.complete() {
		return agent.Step{}, err
	}
	return r.step(true)
}

// readStream calls add with each piece of a streamed reply.
func (x *exchange) readStream(res *http.Response, add func(*answer)) error {
	for stream := (events{bufio.NewReader(res.Body)}); ; {
		data, other, err := stream.readEvent()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			x.cut = err
			return err
		case data == nil:
			x.text = other
			return cmp.Or(readError(other), errShape)
		}
		x.text = data
		said, err := readAnswer(data)
		if err != nil {
			return err
		}
		add(said)
	}
}

// ask prepares a request for Next or Stream, posts it to a method, reads the reply and converts the error.
func (d *Driver) ask(ctx context.Context, s agent.State, method, accept string, emit func(agent.Delta)) mo.Result[agent.Step] {
	if ctx.Err() != nil {
		return mo.Err[agent.Step](context.Cause(ctx))
	}
	q := question{model: cmp.Or(s.Request().Model, d.features.Model)}
	rest, contents, err := d.body(q.model, s)
	if err == nil {
		q.body, err = joinBody(contents, rest)
	}
	if err != nil {
		return mo.Err[agent.Step](d.refusal(q.model, err))
	}
	x := &exchange{}
	step, err := d.read(ctx, s, q, x, method, accept, emit)
	switch {
	case err == nil:
		return mo.Ok(step)
	case ctx.Err() != nil:
		return mo.Err[agent.Step](context.Cause(ctx))
	}
	return mo.Err[agent.Step](d.failure(q.model, x, err))
}

// question is a request's model and body.
type question struct {
	model string
	body  []byte
}
