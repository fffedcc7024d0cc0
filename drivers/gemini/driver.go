package gemini

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"google.golang.org/genai"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// Driver asks a model over the Gemini API. It is immutable and safe for concurrent
// use; make it with New.
type Driver struct {
	client   *genai.Client
	features agent.Features
	prices   drivers.Prices
	keyless  bool
	redact   func(string) string // takes everything secret out of a text
	// older and newer are how messages are written for models up to the second
	// generation and for those after it.
	older, newer *agent.WireForm
}

var (
	_ agent.Streamer  = (*Driver)(nil)
	_ agent.Describer = (*Driver)(nil)
)

// New returns a driver, or an error that joins everything that is wrong with c. It
// asks nobody: a wrong key or model shows with the first call.
func New(c Config) (*Driver, error) {
	at, err := c.endpoint()
	if c.Model == "" {
		err = errors.Join(errors.New("there is no model: set Config.Model"), err)
	}
	if err != nil {
		return nil, fmt.Errorf("making a gemini driver: %w", err)
	}
	at.Client.Transport = &transport{base: at.Client.Transport, key: at.Key, header: c.Header.Clone()}
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		Backend:    genai.BackendGeminiAPI, // whatever the environment says
		APIKey:     noKey,
		HTTPClient: at.Client,
		HTTPOptions: genai.HTTPOptions{
			BaseURL:    at.URL.String(),
			APIVersion: "v1beta",
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making a gemini driver: %w", err)
	}
	d := &Driver{
		client: client, features: features(c, at), keyless: at.Key == "", redact: at.Redact,
		prices: c.Prices.OrElse(lo.Ternary(at.Vendor, ListPrices(), drivers.Prices{})),
	}
	d.features.Priced = d.prices.Of(bare(c.Model)).IsPresent()
	d.older = agent.NewWireForm(writer{d, true}.message)
	d.newer = agent.NewWireForm(writer{d, false}.message)
	return d, nil
}

// features is what is usual for a model, and what c has to say to it.
func features(c Config, at service.Endpoint) agent.Features {
	f := agent.Features{
		Provider: "gcp.gemini", Streaming: true, Tools: true, ParallelCalls: true, StructuredOutput: true,
		Images: true, Files: true, Reasoning: true,
	}
	if n := generation(c.Model); n == 2 || n == 3 {
		f.ContextTokens, f.MaxOutputTokens = contextTokens, maxOutputTokens
	}
	if c.Features != nil {
		c.Features(&f)
	}
	f.Model, f.Endpoint = c.Model, at.Shown()
	return f
}

// String names the driver in a printed plan.
func (d *Driver) String() string { return "gemini/" + d.features.Model }

// Features is what the driver may be asked: what is usual for the model, as
// Config.Features corrected it.
func (d *Driver) Features() agent.Features { return d.features }

// Next asks for the whole of the model's next turn. A failed call is a
// *drivers.Error; where ctx ended, the error is the cause of that.
func (d *Driver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return d.ask(ctx, s, func(ctx context.Context, q question, x *exchange) (agent.Step, error) {
		var said *genai.GenerateContentResponse
		err := guarded(func() (err error) {
			said, err = d.client.Models.GenerateContent(ctx, q.model, nil, q.config())
			return err
		})
		if err != nil {
			return agent.Step{}, err
		}
		r := d.reply(q, s)
		r.add(said, x.text, func(agent.Delta) {})
		return r.step(false)
	})
}

// Stream asks for the model's next turn and tells emit of it while it arrives. Its
// errors are those of Next. What was told of a reply that then broke off is not
// taken back: a retry begins anew.
func (d *Driver) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	if !d.features.Streaming {
		result := d.Next(ctx, s)
		if step, err := result.Get(); err == nil {
			agent.EmitWhole(step, emit)
		}
		return result
	}
	return d.ask(ctx, s, func(ctx context.Context, q question, x *exchange) (agent.Step, error) {
		r := d.reply(q, s)
		telling := false // a panic of emit is the caller's own
		err := guardedUnless(&telling, func() error {
			for said, err := range d.client.Models.GenerateContentStream(ctx, q.model, nil, q.config()) {
				if err != nil {
					return err
				}
				telling = true
				r.add(said, x.text, emit)
				telling = false
			}
			return x.cut
		})
		if err != nil && !r.complete() {
			return agent.Step{}, err
		}
		return r.step(true)
	})
}

// ask does what Next and Stream have in common.
func (d *Driver) ask(
	ctx context.Context, s agent.State, call func(context.Context, question, *exchange) (agent.Step, error),
) mo.Result[agent.Step] {
	if ctx.Err() != nil {
		return mo.Err[agent.Step](context.Cause(ctx))
	}
	q := question{model: cmp.Or(s.Request().Model, d.features.Model)}
	x := &exchange{}
	var err error
	if q.body, x.contents, err = d.body(q.model, s); err != nil {
		return mo.Err[agent.Step](d.refusal(q.model, err))
	}
	step, err := call(x.with(ctx), q, x)
	switch {
	case err == nil:
		return mo.Ok(step)
	case ctx.Err() != nil:
		return mo.Err[agent.Step](context.Cause(ctx))
	}
	return mo.Err[agent.Step](d.failure(q.model, x, err))
}

// question is what is asked: a model, and the body of the request without the
// contents.
type question struct {
	model string
	body  map[string]any
}

// config is the question as the SDK takes it. It sends the body as it is: its own
// types would lose what they do not know.
func (q question) config() *genai.GenerateContentConfig {
	return &genai.GenerateContentConfig{
		AutomaticContinuation: new(false), // it would ask again by itself
		HTTPOptions: &genai.HTTPOptions{
			ExtrasRequestProvider: func(map[string]any) map[string]any { return q.body },
		},
	}
}

// guarded makes an error of a panic: the SDK takes much of an answer for granted.
func guarded(call func() error) error {
	never := false
	return guardedUnless(&never, call)
}

func guardedUnless(ours *bool, call func() error) (err error) {
	defer func() {
		if *ours {
			return
		}
		if p := recover(); p != nil {
			err = fmt.Errorf("the SDK cannot read the answer: %v", p)
		}
	}()
	return call()
}
