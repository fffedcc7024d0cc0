package anthropic

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// Driver calls a model through the Messages API. It is immutable and safe for concurrent use. Create it with New.
type Driver struct {
	options  []option.RequestOption
	features agent.Features
	cache    Cache
	prices   drivers.Prices
	keyless  bool
	path     func(model string, stream bool) string
	counting string              // the path for counting tokens
	vertex   bool                // the endpoint is Vertex AI
	redact   func(string) string // removes secrets from a text
	messages *agent.WireForm
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
	if c.Cache != CacheOff && c.Cache != CacheShort && c.Cache != CacheLong {
		err = errors.Join(err, fmt.Errorf("unknown cache %q: use CacheShort or CacheLong", c.Cache))
	}
	if err != nil {
		return nil, &drivers.ConfigError{Err: fmt.Errorf("making an anthropic driver: %w", err)}
	}
	d := &Driver{
		options:  c.options(at),
		features: modelFeatures(c, at),
		cache:    c.Cache,
		prices:   lo.FromPtrOr(c.Prices, lo.Ternary(at.Vendor && c.Vertex == nil, ListPrices(), drivers.Prices{})),
		keyless:  at.Keyless,
		path:     c.pathOf,
		counting: c.countPath(),
		vertex:   c.Vertex != nil,
		redact:   at.Redact,
	}
	d.messages = agent.NewWireForm(d.blocksOf)
	_, d.features.Priced = d.prices.Of(c.Model)
	return d, nil
}

// modelFeatures returns a model's usual features, corrected by c.
func modelFeatures(c Config, at service.Endpoint) agent.Features {
	known, ok := limitsOf(c.Model)
	f := agent.Features{
		Provider: lo.Ternary(c.Vertex == nil, "anthropic", "gcp.vertex_ai"), Streaming: true, Tools: true, ParallelCalls: true, StructuredOutput: ok,
		Images: true, Files: true, Reasoning: true,
		ContextTokens: known.context, MaxOutputTokens: known.output,
	}
	if c.Features != nil {
		c.Features(&f)
	}
	f.Model, f.Endpoint = c.Model, at.SafeURL()
	return f
}

// String returns the driver's name in a printed plan.
func (d *Driver) String() string { return d.features.Provider + "/" + d.features.Model }

// Features returns the driver's features: the model's usual features, corrected by Config.Features.
func (d *Driver) Features() agent.Features { return d.features }

// Next returns the model's next turn. A failed call is a *drivers.Error. When ctx ends, the error is its cause. If a
// reply may take more than ten minutes, Next streams it, as the service requires, and assembles it.
func (d *Driver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	if d.features.Streaming && d.maxTokens(s.Request()) > longOutput {
		return d.Stream(ctx, s, func(agent.Delta) {})
	}
	return d.result(ctx, s, false, func(agent.Delta) {})
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
	return d.result(ctx, s, true, emit)
}

// result sends the request, reads the reply, calls emit with its pieces, and converts an error for callers. Some
// endpoints answer a stream request with a whole reply, and others the reverse, so the first bytes decide.
func (d *Driver) result(ctx context.Context, s agent.State, stream bool, emit func(agent.Delta)) mo.Result[agent.Step] {
	if ctx.Err() != nil {
		return mo.Err[agent.Step](context.Cause(ctx))
	}
	a := requestInfo{model: d.modelOf(s.Request())}
	res, err := d.send(ctx, s, stream)
	if err == nil {
		defer func() { _ = res.Body.Close() }()
		a.answer, a.requestID = res.Header, requestID(res.Header)
		read := readUnstreamed
		if service.IsStream(res) {
			read = readStream
		}
		var r *reply
		if r, err = read(res, emit); err == nil {
			return mo.Ok(r.step(d.prices, a.model))
		}
	}
	if ctx.Err() != nil {
		return mo.Err[agent.Step](context.Cause(ctx))
	}
	return mo.Err[agent.Step](d.failure(a, err))
}

// requestInfo holds a call's data for its errors. The answer's data is empty until the answer arrives.
type requestInfo struct {
	model, requestID string
	answer           http.Header
}

// send posts the request and returns the answer if the service accepted it. It passes an encoded body to the SDK. The
// SDK's method for messages would encode all messages again, and refuses requests that it expects to take too long.
func (d *Driver) send(ctx context.Context, s agent.State, stream bool) (*http.Response, error) {
	body, headers, err := d.request(s, stream)
	if err != nil {
		return nil, &service.UnfitError{Err: err}
	}
	return d.post(ctx, d.path(d.modelOf(s.Request()), stream), body, headers)
}

func (d *Driver) post(ctx context.Context, path string, body []byte, headers []option.RequestOption) (*http.Response, error) {
	var res *http.Response
	client := sdk.Client{Options: d.options} // NewClient would search for credentials
	if err := client.Post(ctx, path, body, &res, headers...); err != nil {
		return nil, err
	}
	res.Body = service.Reply(res.Body)
	return res, nil
}

// modelOf returns the model that a request names.
func (d *Driver) modelOf(r agent.Request) string {
	return lo.CoalesceOrEmpty(r.Model, d.features.Model)
}
