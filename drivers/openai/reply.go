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
func (d *Driver) readWhole(a *requestInfo, res *http.Response, emit func(agent.Delta)) (agent.Step, error) {
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return agent.Step{}, &service.BrokenError{Err: fmt.Errorf("reading the reply: %w", err)}
	}
	if !json.Valid(text) {
		return agent.Step{}, service.NotJSON("a chat completion", text, d.redact)
	}
	c := gjson.ParseBytes(text)
	if said := errorInside(c); said != nil {
		return agent.Step{}, &eventError{said}
	}
	choices := listOf(c.Get("choices"))
	if len(choices) == 0 {
		return agent.Step{}, &service.BrokenError{Err: fmt.Errorf("the reply has no choices: %s", service.Excerpt(string(text), d.redact))}
	}
	r := reply{tools: a.tools, emit: emit}
	r.addHead(c)
	r.finish = choices[0].Get("finish_reason").String()
	m := choices[0].Get("message")
	if err := r.say(m); err != nil {
		return agent.Step{}, err
	}
	r.addCalls(m)
	return d.step(a, &r)
}

// reply is a reply that is being read, whole or in pieces.
type reply struct {
	id, model, tier, finish string
	text, reasoning         textPieces
	refused                 bool
	tools                   agent.Tools // the request's tools
	calls                   []*callPieces
	nextID                  string            // a call's ID that arrived before its other data
	at                      map[int64]int     // positions in calls by the stream's index
	withID                  map[string]int    // the newest call's position by ID
	usage                   gjson.Result      // an object, or nothing
	emit                    func(agent.Delta) // nil when the reply is not streamed
}

// addHead adds the members next to the choices in a reply or in a piece. Services use different types for them, so
// addHead reads them leniently: gjson converts a number to text, and ignores null.
func (r *reply) addHead(c gjson.Result) {
	r.id = lo.CoalesceOrEmpty(r.id, c.Get("id").String())
	r.model = lo.CoalesceOrEmpty(r.model, c.Get("model").String())
	r.tier = lo.CoalesceOrEmpty(c.Get("service_tier").String(), r.tier)
	if usage := c.Get("usage"); usage.IsObject() {
		r.usage = usage
	}
}

// say adds a piece of reasoning, text or refusal. Reasoning has several names. A service uses one of them, or two for
// the same text. Content is text, or a list of parts, which can be reasoning, too.
func (r *reply) say(m gjson.Result) error {
	content := m.Get("content")
	if content.Type != gjson.Null && content.Type != gjson.String && content.Type != gjson.JSON {
		return &service.BrokenError{Err: errors.New("the reply's content is not text")}
	}
	r.sayReasoning(lo.CoalesceOrEmpty(textIn(m.Get("reasoning_content")), textIn(m.Get("reasoning")), textIn(m.Get("thinking"))))
	r.sayPart(content)
	r.sayRefusal(textOf(m.Get("refusal")))
	return nil
}

// sayPart adds a content part. Other kinds of parts, such as references, have no text.
func (r *reply) sayPart(part gjson.Result) {
	if part.IsArray() {
		part.ForEach(func(_, inner gjson.Result) bool {
			r.sayPart(inner)
			return true
		})
		return
	}
	if !part.IsObject() {
		r.sayText(textOf(part))
		return
	}
	switch kind := textOf(part.Get("type")); kind {
	case "", "text", "output_text":
		r.sayText(textIn(part))
	case "thinking", "reasoning", "reasoning_text", "reasoning_content", "summary_text":
		r.sayReasoning(textIn(part))
	case "refusal":
		r.sayRefusal(textIn(part))
	}
}

func (r *reply) sayText(text string) { r.tell(agent.Delta{Text: r.text.add(text)}) }

func (r *reply) sayReasoning(thought string) {
	r.tell(agent.Delta{Reasoning: r.reasoning.add(thought)})
}

func (r *reply) sayRefusal(refusal string) {
	r.refused = r.refused || refusal != ""
	r.sayText(refusal)
}

// partTexts lists the members of a part that hold its text, in any common format.
var partTexts = []string{"text", "thinking", "reasoning", "reasoning_content", "refusal", "content", "summary", "value"}

// textIn returns the text in a string, in a part, or in a list of them.
func textIn(v gjson.Result) string {
	switch {
	case v.IsArray():
		return strings.Join(lo.Map(v.Array(), func(part gjson.Result, _ int) string { return textIn(part) }), "")
	case v.IsObject():
		for _, name := range partTexts {
			if text := textIn(v.Get(name)); text != "" {
				return text
			}
		}
	}
	return textOf(v)
}

// listOf returns a list's members, and nil for other values.
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
		piece := c.arguments.add(c.pieces.End()) + c.arguments.end()
		if c.told && piece != "" {
			r.tell(agent.Delta{Call: agent.ToolCall{Arguments: piece}, CallIndex: i})
		}
		r.tellCall(i, true)
	}
}

// step returns the reply as a step.
func (d *Driver) step(a *requestInfo, r *reply) (agent.Step, error) {
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

// finishReason returns the reason why the model stopped. Some services send "stop" despite calls, either always or when
// a tool call was required.
func (r *reply) finishReason() agent.FinishReason {
	reason := agent.FinishReasonOf(r.finish)
	switch {
	case r.refused:
		return agent.FinishFilter
	case reason == agent.FinishStop && len(r.calls) > 0:
		return agent.FinishToolCalls
	}
	return reason
}

// used returns the reply's usage. The cost is unknown when the service did not report the usage, and when the driver's
// own prices do not apply to the service tier.
func (d *Driver) used(a *requestInfo, r *reply) agent.Usage {
	u := r.usage
	if !u.Exists() {
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

// cost returns the cost for the answering model. The driver's own prices apply to the default tier.
func (d *Driver) cost(a *requestInfo, tier, model string, used agent.Usage) mo.Option[float64] {
	if d.listed && tier != "" && tier != "default" {
		return mo.None[float64]()
	}
	return d.prices.Cost(lo.CoalesceOrEmpty(model, a.model), used)
}
