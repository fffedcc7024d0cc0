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

// Driver asks a model through the Messages API. It is immutable and safe for
// concurrent use; make it with New.
type Driver struct {
	client   sdk.Client
	features agent.Features
	cache    Cache
	prices   drivers.Prices
	keyless  bool
	path     func(model string, stream bool) string
	counting string              // the path for counting
	vertex   bool                // it is Vertex AI that is asked
	redact   func(string) string // takes everything secret out of a text
	messages *agent.WireForm
}

var (
	_ agent.Streamer  = (*Driver)(nil)
	_ agent.Describer = (*Driver)(nil)
)

// New returns a driver, or an error that joins everything that is wrong with c. It
// sends no request: a wrong key or model shows with the first call.
func New(c Config) (*Driver, error) {
	at, err := c.endpoint()
	if c.Model == "" {
		err = errors.Join(errors.New("there is no model: set Config.Model"), err)
	}
	if c.Cache != CacheOff && c.Cache != CacheShort && c.Cache != CacheLong {
		err = errors.Join(err, fmt.Errorf("the cache %q is not known: take CacheShort or CacheLong", c.Cache))
	}
	if err != nil {
		return nil, fmt.Errorf("making an anthropic driver: %w", err)
	}
	d := &Driver{
		// A client made by NewClient would look for credentials by itself.
		client:   sdk.Client{Options: c.options(at)},
		features: modelFeatures(c, at),
		cache:    c.Cache,
		prices:   c.Prices.OrElse(lo.Ternary(at.Vendor && c.Vertex == nil, ListPrices(), drivers.Prices{})),
		keyless:  at.Keyless,
		path:     c.pathOf,
		counting: c.countPath(),
		vertex:   c.Vertex != nil,
		redact:   at.Redact,
	}
	d.messages = agent.NewWireForm(d.blocksOf)
	d.features.Priced = d.prices.Of(c.Model).IsPresent()
	return d, nil
}

// modelFeatures returns the usual features of a model, corrected by c.
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

// String names the driver in a printed plan.
func (d *Driver) String() string { return d.features.Provider + "/" + d.features.Model }

// Features returns what the driver may be asked: what is usual for the model, as
// Config.Features corrected it.
func (d *Driver) Features() agent.Features { return d.features }

// Next asks for the whole of the model's next turn. A failed call is a
// *drivers.Error; where ctx ended, the error is the cause of that. A reply that may
// take more than ten minutes is streamed, as the service wants it, and put together
// here.
func (d *Driver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	if d.features.Streaming && d.maxTokens(s.Request()) > longOutput {
		return d.Stream(ctx, s, func(agent.Delta) {})
	}
	return d.result(ctx, s, false, func(res *http.Response) (*reply, error) { return readReply(res.Body) })
}

// Stream asks for the model's next turn and tells emit of it while it arrives. Its
// errors are those of Next. What was told of a reply that then broke off is not
// taken back: a retry starts again.
func (d *Driver) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	if !d.features.Streaming {
		result := d.Next(ctx, s)
		if step, err := result.Get(); err == nil {
			agent.EmitWhole(step, emit)
		}
		return result
	}
	return d.result(ctx, s, true, func(res *http.Response) (*reply, error) { return readStream(res, emit) })
}

// result sends the request, reads the reply, and converts an error for its reader.
func (d *Driver) result(ctx context.Context, s agent.State, stream bool, read func(*http.Response) (*reply, error)) mo.Result[agent.Step] {
	if ctx.Err() != nil {
		return mo.Err[agent.Step](context.Cause(ctx))
	}
	a := asking{model: d.modelOf(s.Request())}
	res, err := d.send(ctx, s, stream)
	if err == nil {
		defer func() { _ = res.Body.Close() }()
		a.answer, a.requestID = res.Header, requestID(res.Header)
		var r *reply
		if r, err = read(res); err == nil {
			return mo.Ok(r.step(d.prices, a.model))
		}
	}
	if ctx.Err() != nil {
		return mo.Err[agent.Step](context.Cause(ctx))
	}
	return mo.Err[agent.Step](d.failure(a, err))
}

// asking is one call: what its errors name. What is of the answer is there once an
// answer is.
type asking struct {
	model, requestID string
	answer           http.Header
}

// send posts the request and returns the answer of a service that accepted it. The
// body is handed to the SDK ready: its method for messages would encode all of them
// again, and refuses what it thinks takes too long.
func (d *Driver) send(ctx context.Context, s agent.State, stream bool) (*http.Response, error) {
	body, headers, err := d.request(s, stream)
	if err != nil {
		return nil, &service.UnfitError{Err: err}
	}
	return d.post(ctx, d.path(d.modelOf(s.Request()), stream), body, headers)
}

func (d *Driver) post(ctx context.Context, path string, body []byte, headers []option.RequestOption) (*http.Response, error) {
	var res *http.Response
	if err := d.client.Post(ctx, path, body, &res, headers...); err != nil {
		return nil, err
	}
	res.Body = service.Reply(res.Body)
	return res, nil
}

// modelOf returns the model that a request names.
func (d *Driver) modelOf(r agent.Request) string {
	return lo.CoalesceOrEmpty(r.Model, d.features.Model)
}
