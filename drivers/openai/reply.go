package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/tidwall/gjson"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// readWhole reads a reply that is one JSON object, and calls emit with it unless emit is nil.
func (d *Driver) readWhole(a *asking, res *http.Response, emit func(agent.Delta)) (agent.Step, error) {
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return agent.Step{}, &service.BrokenError{Err: fmt.Errorf("reading the reply: %w", err)}
	}
	if !json.Valid(text) {
		return agent.Step{}, &service.BrokenError{Err: fmt.Errorf("the reply is not a chat completion: %s", service.Excerpt(string(text), d.redact))}
	}
	c := gjson.ParseBytes(text)
	if said := errorInside(c); said != nil {
		return agent.Step{}, &eventError{said}
	}
	choices := listOf(c.Get("choices"))
	if len(choices) == 0 {
		return agent.Step{}, &service.BrokenError{Err: fmt.Errorf("the reply has no choices: %s", service.Excerpt(string(text), d.redact))}
	}
	r := reply{emit: emit}
	r.addHead(c)
	r.finish = choices[0].Get("finish_reason").String()
	m := choices[0].Get("message")
	if err := r.say(m); err != nil {
		return agent.Step{}, err
	}
	for i, call := range listOf(m.Get("tool_calls")) {
		r.addCall(int64(i), call)
	}
	return d.step(a, &r)
}

// reply is a reply that is being read, whole or in pieces.
type reply struct {
	id, model, tier, finish string
	text, reasoning         textPieces
	refused                 bool
	calls                   []*callPieces
	at                      map[int64]int // the position in calls by the index in the stream
	usage                   mo.Option[gjson.Result]
	emit                    func(agent.Delta) // nil when the reply is not streamed
}

// callPieces is a tool call that is being read.
type callPieces struct {
	id, name  string
	arguments textPieces
	told      bool // whether its first piece was emitted
}

// addHead adds the members next to the choices of a reply or of a piece of one. Services use different types
// for them, so addHead reads them leniently: gjson converts a number to text, and ignores null.
func (r *reply) addHead(c gjson.Result) {
	r.id = lo.CoalesceOrEmpty(r.id, c.Get("id").String())
	r.model = lo.CoalesceOrEmpty(r.model, c.Get("model").String())
	r.tier = lo.CoalesceOrEmpty(c.Get("service_tier").String(), r.tier)
	if usage := c.Get("usage"); usage.IsObject() {
		r.usage = mo.Some(usage)
	}
}

// say adds a piece of reasoning, text or refusal. Reasoning has two names; a service uses one of them, or
// both for the same text.
func (r *reply) say(m gjson.Result) error {
	content, refusal := m.Get("content"), m.Get("refusal").String()
	if content.Type != gjson.Null && content.Type != gjson.String {
		return &service.BrokenError{Err: errors.New("the reply's content is not text")}
	}
	thought := lo.CoalesceOrEmpty(textOf(m.Get("reasoning_content")), textOf(m.Get("reasoning")))
	r.tell(agent.Delta{Reasoning: r.reasoning.add(thought)})
	r.tell(agent.Delta{Text: r.text.add(content.String())})
	r.tell(agent.Delta{Text: r.text.add(refusal)})
	r.refused = r.refused || refusal != ""
	return nil
}

// listOf returns the members of a list, and nil for other values.
func listOf(v gjson.Result) []gjson.Result {
	if !v.IsArray() {
		return nil
	}
	return v.Array()
}

// textOf returns a value that is text, and "" for other values.
func textOf(v gjson.Result) string {
	if v.Type != gjson.String {
		return ""
	}
	return v.String()
}

func (r *reply) addCall(index int64, call gjson.Result) {
	f := call.Get("function")
	r.call(index, call.Get("id").String(), f.Get("name").String(), f.Get("arguments").String())
}

// call adds a piece of the call at an index. Services that do not number their calls give each call a new id,
// or send each call in one piece.
func (r *reply) call(index int64, id, name, arguments string) {
	place, ok := r.at[index]
	if !ok || id != "" && r.calls[place].id != "" && id != r.calls[place].id ||
		id == "" && name != "" && strings.HasPrefix(arguments, "{") && service.IsObject(r.calls[place].arguments.String()) {
		place = len(r.calls)
		r.calls = append(r.calls, &callPieces{})
		if r.at == nil {
			r.at = map[int64]int{}
		}
		r.at[index] = place
	}
	c := r.calls[place]
	piece := c.arguments.add(arguments)
	switch {
	case c.told:
		if piece != "" {
			r.tell(agent.Delta{Call: agent.ToolCall{Arguments: piece}, CallIndex: place})
		}
		return
	case c.id == "":
		c.id = id
	}
	if c.name = name; name != "" { // the call can be emitted now, with the arguments that came before its name
		c.told = true
		r.tell(agent.Delta{Call: agent.ToolCall{ID: c.id, Name: name, Arguments: c.arguments.String()}, CallIndex: place})
	}
}

func (r *reply) tell(d agent.Delta) {
	if r.emit != nil && d != (agent.Delta{}) {
		r.emit(d)
	}
}

// end emits the pieces that were held back because a character was incomplete.
func (r *reply) end() {
	r.tell(agent.Delta{Reasoning: r.reasoning.end()})
	r.tell(agent.Delta{Text: r.text.end()})
	for i, c := range r.calls {
		if piece := c.arguments.end(); piece != "" {
			r.tell(agent.Delta{Call: agent.ToolCall{Arguments: piece}, CallIndex: i})
		}
	}
}

// step returns the reply as a step.
func (d *Driver) step(a *asking, r *reply) (agent.Step, error) {
	r.end()
	calls := make([]agent.ToolCall, len(r.calls))
	for i, c := range r.calls {
		if c.name == "" {
			return agent.Step{}, &service.BrokenError{Err: fmt.Errorf("tool call %d of the reply has no name", i)}
		}
		calls[i] = agent.ToolCall{ID: c.id, Name: c.name, Arguments: c.arguments.String()}
	}
	content := agent.TextContent(r.text.String())
	if thought := r.reasoning.String(); thought != "" {
		parts := []agent.Part{agent.Reasoning(thought, "")}
		if content.Len() > 0 {
			parts = append(parts, agent.Text(r.text.String()))
		}
		content = agent.ContentOf(parts...)
	}
	return agent.Step{
		Message:      agent.AssistantContent(content, calls...),
		FinishReason: r.finishReason(),
		Usage:        d.used(a, r),
		Model:        r.model,
		ID:           r.id,
	}, nil
}

// finishReason returns the reason why the model stopped. Although there are calls, services send "stop" if a
// tool call was required, and some services always do. Reasons that OpenAI does not have are passed on
// unchanged.
func (r *reply) finishReason() agent.FinishReason {
	switch {
	case r.refused:
		return agent.FinishFilter
	case r.finish == "function_call", r.finish == "stop" && len(r.calls) > 0:
		return agent.FinishToolCalls
	}
	return agent.FinishReason(r.finish) // stop, length, tool_calls, content_filter, error
}

// used returns the usage of the reply. Its cost is unknown when the service did not report the usage, and
// when the driver's own prices do not apply to the service tier.
func (d *Driver) used(a *asking, r *reply) agent.Usage {
	u, ok := r.usage.Get()
	if !ok {
		return agent.Usage{}
	}
	count := func(path string) int64 { return max(u.Get(path).Int(), 0) }
	used := agent.Usage{
		InputTokens: count("prompt_tokens"), OutputTokens: count("completion_tokens"),
		CacheReadTokens:  count("prompt_tokens_details.cached_tokens"),
		CacheWriteTokens: count("prompt_tokens_details.cache_write_tokens"),
		ReasoningTokens:  count("completion_tokens_details.reasoning_tokens"),
	}
	if used.ReasoningTokens > 0 && count("total_tokens") == used.Tokens()+used.ReasoningTokens {
		used.OutputTokens += used.ReasoningTokens // this service counts them separately
	}
	used.Cost = d.cost(a, r.tier, r.model, used)
	return used
}

// cost returns the cost for the model that answered. The driver's own prices apply to the default tier.
func (d *Driver) cost(a *asking, tier, model string, used agent.Usage) mo.Option[float64] {
	if d.listed && tier != "" && tier != "default" {
		return mo.None[float64]()
	}
	return d.prices.Cost(lo.CoalesceOrEmpty(model, a.model), used)
}
