package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// Driver calls an endpoint that supports chat completions or the Responses API. It is immutable and safe for concurrent
// use. Create it with New or NewResponses.
type Driver struct {
	api      *api
	post     service.PostFunc
	path     func(model string) string
	features agent.Features
	dialect  Dialect
	vendor   bool
	keyless  bool
	redact   func(string) string // removes secrets from a text
	prices   drivers.Prices
	listed   bool // prices is ListPrices
	messages *agent.WireForm
	bare     *agent.WireForm // messages without reasoning, for the Responses API
	tools    toolForms
}

var (
	_ agent.Streamer  = (*Driver)(nil)
	_ agent.Describer = (*Driver)(nil)
)

// New returns a driver, or an error that joins all mistakes in c. It sends no request, so a wrong key or model causes
// an error at the first call.
func New(c Config) (*Driver, error) { return newDriver(c, chatAPI()) }

// NewResponses returns a driver that uses the Responses API instead of chat completions. It returns the same
// errors as New. The package documentation describes the differences.
func NewResponses(c Config) (*Driver, error) { return newDriver(c, responsesAPI()) }

func newDriver(c Config, api *api) (*Driver, error) {
	at, err := c.endpoint()
	if c.Model == "" {
		err = errors.Join(errors.New("no model: set Config.Model"), err)
	}
	if err != nil {
		return nil, &drivers.ConfigError{Err: fmt.Errorf("making an openai driver: %w", err)}
	}
	official := at.Vendor || c.asksAzure(at) // the endpoint uses the vendor's own format
	d := &Driver{
		api:      api,
		path:     c.pathOf(at, api),
		post:     at.Poster(c.ownHeader(at), c.Header),
		features: modelFeatures(c, at, api, official),
		dialect: Dialect{
			Instructions:  lo.CoalesceOrEmpty(c.Dialect.Instructions, "system"),
			MaxTokens:     lo.CoalesceOrEmpty(c.Dialect.MaxTokens, lo.Ternary(official, "max_completion_tokens", "max_tokens")),
			Reasoning:     c.Dialect.Reasoning,
			NoStreamUsage: c.Dialect.NoStreamUsage,
		},
		vendor:  official,
		keyless: at.Keyless,
		redact:  at.Redact,
	}
	d.listed = c.Prices == nil && globally(at.URL)
	d.prices = lo.FromPtrOr(c.Prices, lo.Ternary(d.listed, ListPrices(), drivers.Prices{}))
	_, listed := d.prices.Of(c.Model)
	d.features.Priced = listed && !c.Dialect.NoStreamUsage
	d.bare = agent.NewWireForm(d.encodePlainItems)
	d.messages = agent.NewWireForm(func(m agent.Message) ([]byte, error) { return api.message(d, m) })
	return d, nil
}

// modelFeatures returns an endpoint's usual features, corrected by c.
func modelFeatures(c Config, at service.Endpoint, api *api, official bool) agent.Features {
	f := agent.Features{
		Provider: "openai", Streaming: true, Tools: true, ParallelCalls: true, StructuredOutput: true, Images: true,
		Files:     official,
		Reasoning: !official || api.path == "responses", // the vendor's chat completions do not return reasoning
	}
	if c.Features != nil {
		c.Features(&f)
	}
	f.Model, f.Endpoint = c.Model, at.SafeURL()
	return f
}

// String returns the driver's name in a printed plan.
func (d *Driver) String() string { return d.features.Provider + "/" + d.features.Model }

// Features returns the driver's features: the endpoint's usual features, corrected by Config.Features.
func (d *Driver) Features() agent.Features { return d.features }

// Next returns the model's next turn. A failed call is a *drivers.Error. When ctx ends, the error is its cause.
func (d *Driver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return d.result(ctx, s, func(a *requestInfo) (agent.Step, error) {
		res, err := d.send(ctx, a, s, false)
		if err != nil {
			return agent.Step{}, err
		}
		defer res.Body.Close()
		return d.read(a, res, nil)
	})
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
	return d.result(ctx, s, func(a *requestInfo) (agent.Step, error) {
		res, err := d.send(ctx, a, s, true)
		if err != nil {
			return agent.Step{}, err
		}
		defer res.Body.Close()
		return d.read(a, res, emit)
	})
}

// read reads a reply, and calls emit with its pieces unless emit is nil. Some services answer a stream request with a
// whole reply, and others the reverse, so the first bytes decide.
func (d *Driver) read(a *requestInfo, res *http.Response, emit func(agent.Delta)) (agent.Step, error) {
	if service.IsStream(res) {
		return d.api.readStream(d, a, res, emit)
	}
	return d.api.readWhole(d, a, res, emit)
}

// requestInfo holds one call's data: the model and the request ID for its errors, and the request's tools. The request ID is
// empty until the answer arrives.
type requestInfo struct {
	model     string
	requestID string
	tools     agent.Tools
}

// result converts a call's error for callers.
func (d *Driver) result(ctx context.Context, s agent.State, call func(*requestInfo) (agent.Step, error)) mo.Result[agent.Step] {
	if ctx.Err() != nil {
		return mo.Err[agent.Step](context.Cause(ctx))
	}
	a := &requestInfo{model: lo.CoalesceOrEmpty(s.Request().Model, d.features.Model), tools: s.Request().Tools}
	step, err := call(a)
	switch {
	case err == nil:
		return mo.Ok(step)
	case ctx.Err() != nil:
		return mo.Err[agent.Step](context.Cause(ctx))
	}
	return mo.Err[agent.Step](d.failure(a, err))
}

// send posts the request and returns the answer of a service that accepted it.
func (d *Driver) send(ctx context.Context, a *requestInfo, s agent.State, stream bool) (*http.Response, error) {
	body, err := d.api.request(d, a.model, s, stream)
	if err != nil {
		return nil, &service.UnfitError{Err: err}
	}
	res, err := d.post(ctx, d.path(a.model), lo.Ternary(stream, "text/event-stream", "application/json"), body)
	if err != nil {
		return nil, err
	}
	a.requestID = d.redact(requestID(res.Header))
	return res, nil
}
