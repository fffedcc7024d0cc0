package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// reply is the service's reply, streamed or not.
type reply struct {
	id, model string
	stop      sdk.StopReason
	usage     sdk.Usage
	blocks    []*block
}

// block is a piece of a reply's content.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	// raw is the block as it arrived. In a stream, it is the block's beginning.
	raw json.RawMessage
	// more is the rest of a streamed block: text, thinking or arguments.
	more   []byte
	pieces service.ArgumentPieces
	// call is the index of the block's call, if it has one. ended reports whether a stream has closed the block.
	call  int
	ended bool
	// again reports whether an earlier call has the same ID. Such a call is emitted when it is complete and differs.
	again bool
}

// validUTF8 returns text as valid UTF-8, because the SDK does not check the encoding of received text.
func validUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// blockOf reads a block.
func blockOf(raw string) (*block, error) {
	b := &block{raw: json.RawMessage(validUTF8(raw))}
	if err := json.Unmarshal(b.raw, b); err != nil {
		return nil, &service.BrokenError{Err: fmt.Errorf("a content block of the reply cannot be read: %w", err)}
	}
	if b.Type == "tool_use" && b.Name == "" { // the service would refuse every later request with it
		return nil, &service.BrokenError{Err: errors.New("a tool call of the reply has no name")}
	}
	return b, nil
}

// arguments returns a call's arguments as the model wrote them. Some endpoints send them as text.
func (b *block) arguments() string {
	if len(b.more) > 0 {
		return string(b.more)
	}
	if text := ""; len(b.Input) > 0 && json.Unmarshal(b.Input, &text) == nil {
		return text // empty for null
	}
	return string(b.Input)
}

// readReply reads a reply that is not streamed.
func readReply(body io.Reader) (*reply, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, &service.BrokenError{Err: fmt.Errorf("reading the reply: %w", err)}
	}
	if typeOf(raw) == errorType {
		return nil, &service.RefusalError{Body: raw}
	}
	var m sdk.Message
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, &service.BrokenError{Err: fmt.Errorf("the reply is not JSON: %w", err)}
	}
	if m.Type != "message" {
		return nil, &service.BrokenError{Err: errors.New("the reply is not a message of the Messages API")}
	}
	r := &reply{id: m.ID, model: m.Model, stop: m.StopReason, usage: m.Usage}
	for _, content := range m.Content {
		b, err := blockOf(content.RawJSON())
		if err != nil {
			return nil, err
		}
		if !r.repeats(b) {
			r.blocks = append(r.blocks, b)
		}
	}
	return r, nil
}

// repeats reports whether a block is a call that another block has made, with the same ID and arguments.
func (r *reply) repeats(b *block) bool {
	return slices.ContainsFunc(r.blocks, func(o *block) bool {
		return o != b && o.calls(b.ID) && o.Name == b.Name && o.arguments() == b.arguments()
	})
}

// calls reports whether the block is a call with an ID.
func (b *block) calls(id string) bool { return b.Type == "tool_use" && b.ID == id && id != "" }

// step returns the reply as a step. asked is the model name in the request.
func (r *reply) step(prices drivers.Prices, asked string) agent.Step {
	var parts []agent.Part
	var calls []agent.ToolCall
	for _, b := range r.blocks {
		switch b.Type {
		case "text":
			if text := b.Text + string(b.more); text != "" {
				parts = append(parts, agent.Text(text))
			}
		case "tool_use":
			calls = append(calls, agent.ToolCall{ID: b.ID, Name: b.Name, Arguments: b.arguments()})
		case "thinking":
			parts = append(parts, keep(b.Thinking+string(b.more), len(calls), b.rawBlock()))
		default: // redacted thinking, results of the service's tools, unknown blocks
			parts = append(parts, keep("", len(calls), b.rawBlock()))
		}
	}
	if r.model == "" {
		r.model = asked
	}
	return agent.Step{
		Message:      agent.AssistantContent(agent.ContentOf(parts...), calls...),
		FinishReason: agent.FinishReasonOf(string(r.stop)), Usage: r.used(prices, asked), Model: r.model, ID: r.id,
	}
}

// rawBlock returns a block in the format for sending it back. It is the received block with the signature or the input
// from the stream, without the thinking text, which is in the part.
func (b *block) rawBlock() json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(b.raw, &fields) != nil || fields == nil {
		return b.raw
	}
	switch signature, err := json.Marshal(b.Signature); {
	case err == nil && b.Type == "thinking":
		delete(fields, "thinking")
		fields["signature"] = signature
	case json.Valid(b.more):
		fields["input"] = b.more
	default:
		return b.raw
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return b.raw
	}
	return raw
}

// used returns the reply's usage. The service reports input that it read from or wrote to a cache separately from other
// input.
func (r *reply) used(prices drivers.Prices, asked string) agent.Usage {
	u := r.usage
	used := agent.Usage{
		InputTokens:      u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens,
		OutputTokens:     u.OutputTokens,
		CacheReadTokens:  u.CacheReadInputTokens,
		CacheWriteTokens: u.CacheCreationInputTokens,
		ReasoningTokens:  u.OutputTokensDetails.ThinkingTokens,
	}
	used.Cost = replyCost(prices, r.model, used, u)
	if used.Cost.IsAbsent() {
		used.Cost = replyCost(prices, asked, used, u)
	}
	return used
}

// replyCost returns a reply's cost at a model's list price. It returns None when the service charges another price, or
// the cost is unknown.
func replyCost(prices drivers.Prices, model string, used agent.Usage, u sdk.Usage) mo.Option[float64] {
	price, known := prices.Of(model)
	sum, priced := prices.Cost(model, used).Get()
	switch {
	case !known || !priced, used.Tokens() == 0, u.Speed == sdk.UsageSpeedFast, u.ServerToolUse.WebSearchRequests > 0:
		return mo.None[float64]()
	case price.Over != nil && used.InputTokens > price.OverTokens:
		price = *price.Over
	}
	if write, ok := price.CacheWrite.Get(); ok { // for five minutes; an hour costs twice the input
		sum += float64(u.CacheCreation.Ephemeral1hInputTokens) * (2*price.Input - write) / 1e6
	}
	if u.InferenceGeo == "us" {
		sum *= 1.1
	}
	return mo.Some(sum)
}
