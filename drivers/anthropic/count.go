package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// ofCount lists the request members that the service accepts for counting. It refuses other members, such as a reply's
// limits.
var ofCount = []string{
	"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control", "speed", "context_management",
	"mcp_servers", "anthropic_version",
}

// CountTokens asks the service how many input tokens Next would send for s: messages, instructions and tools, with the
// service's own additions. It sends a separate request, which is free and has separate limits. It returns the same
// errors as Next. Compatible endpoints may not support counting. This method makes the driver a
// capability.TokenCounter.
func (d *Driver) CountTokens(ctx context.Context, s agent.State) (int64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	a := requestInfo{model: d.modelOf(s.Request())}
	n, err := d.count(ctx, s, &a)
	switch {
	case err == nil:
		return n, nil
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	}
	return 0, d.failure(a, err)
}

func (d *Driver) count(ctx context.Context, s agent.State, a *requestInfo) (int64, error) {
	body, headers, err := d.countRequest(s)
	if err != nil {
		return 0, &service.UnfitError{Err: err}
	}
	res, err := d.post(ctx, d.counting, body, headers)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	a.answer, a.requestID = res.Header, requestID(res.Header)
	var said sdk.MessageTokensCount
	if err := json.NewDecoder(res.Body).Decode(&said); err != nil {
		return 0, &service.BrokenError{Err: err}
	}
	if said.InputTokens <= 0 {
		return 0, &service.BrokenError{Err: errors.New("the answer has no token count")}
	}
	return said.InputTokens, nil
}

// countRequest returns the request members that are counted.
func (d *Driver) countRequest(s agent.State) ([]byte, []option.RequestOption, error) {
	body, headers, err := d.request(s, false)
	if err != nil {
		return nil, nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, nil, err
	}
	if d.vertex {
		if members["model"], err = json.Marshal(d.modelOf(s.Request())); err != nil {
			return nil, nil, err
		}
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return !slices.Contains(ofCount, name) })
	body, err = json.Marshal(members)
	return body, headers, err
}
