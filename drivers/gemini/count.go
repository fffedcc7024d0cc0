package gemini

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/samber/mo"
	"google.golang.org/genai"

	"github.com/grapnel-go/grapnel/agent"
)

// CountTokens asks the service how many input tokens Next would send for s: messages,
// instructions and tools. It is a request of its own, which is not charged. Its errors are
// those of Next. With it the driver is a capability.TokenCounter.
func (d *Driver) CountTokens(ctx context.Context, s agent.State) mo.Result[int64] {
	if ctx.Err() != nil {
		return mo.Err[int64](context.Cause(ctx))
	}
	model, x := cmp.Or(s.Request().Model, d.features.Model), &exchange{}
	var err error
	if x.contents, err = d.countBody(model, s); err != nil {
		return mo.Err[int64](d.refusal(model, err))
	}
	nothing := func(map[string]any) map[string]any { return nil } // the body is that of the exchange
	var said *genai.CountTokensResponse
	err = guarded(func() (err error) {
		said, err = d.client.Models.CountTokens(x.with(ctx), model, nil, &genai.CountTokensConfig{
			HTTPOptions: &genai.HTTPOptions{ExtrasRequestProvider: nothing},
		})
		if err == nil && said.TotalTokens <= 0 {
			err = &brokenError{"the answer does not say how many tokens there are"}
		}
		return err
	})
	switch {
	case err == nil:
		return mo.Ok(int64(said.TotalTokens))
	case ctx.Err() != nil:
		return mo.Err[int64](context.Cause(ctx))
	}
	return mo.Err[int64](d.failure(model, x, err))
}

// countBody is the whole request that is to be counted, and the beginning of the body
// that it stands in: only so does this service count more than the contents.
func (d *Driver) countBody(model string, s agent.State) ([]byte, error) {
	rest, contents, err := d.body(model, s)
	if err != nil {
		return nil, err
	}
	rest["model"] = "models/" + bare(model)
	tail, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	out := append([]byte(`{"generateContentRequest":`), contents...)
	return append(append(out, ','), tail[1:]...), nil
}
