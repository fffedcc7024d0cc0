package gemini

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// CountTokens asks the service how many input tokens Next would send for s: messages, instructions and tools.
// It sends a separate request, which is free. It returns the same errors as Next. This method makes the
// driver a capability.TokenCounter.
func (d *Driver) CountTokens(ctx context.Context, s agent.State) (int64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	model, x := cmp.Or(s.Request().Model, d.features.Model), &exchange{}
	body, err := d.countBody(model, s)
	if err != nil {
		return 0, d.refusal(model, err)
	}
	tokens, err := d.count(ctx, x, model, body)
	switch {
	case err == nil:
		return tokens, nil
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	}
	return 0, d.failure(model, x, err)
}

func (d *Driver) count(ctx context.Context, x *exchange, model string, body []byte) (int64, error) {
	res, err := d.post(ctx, x, model, "countTokens", "application/json", body)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	if err := x.readAll(res); err != nil {
		return 0, err
	}
	if err := readError(x.text); err != nil {
		return 0, err
	}
	var said struct {
		Tokens int64 `json:"totalTokens"`
	}
	if err := json.Unmarshal(x.text, &said); err != nil {
		return 0, err
	}
	if said.Tokens <= 0 {
		return 0, &brokenError{"the answer has no token count"}
	}
	return said.Tokens, nil
}

// countBody returns the request for a count. For the Gemini API it contains the whole request, because the service
// would otherwise count only the contents. For Vertex AI it contains the members that Vertex AI counts.
func (d *Driver) countBody(model string, s agent.State) ([]byte, error) {
	rest, contents, err := d.body(model, s)
	if err != nil {
		return nil, err
	}
	if d.vertex {
		return joinBody(contents, lo.PickByKeys(rest, []string{"systemInstruction", "tools", "generationConfig"}))
	}
	rest["model"] = "models/" + bareModel(model)
	whole, err := joinBody(contents, rest)
	if err != nil {
		return nil, err
	}
	return append(append([]byte(`{"generateContentRequest":`), whole...), '}'), nil
}
