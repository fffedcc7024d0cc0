package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/tidwall/gjson"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// readResponse reads a response that is one JSON object, and calls emit with it unless emit is nil.
func (d *Driver) readResponse(a *requestInfo, res *http.Response, emit func(agent.Delta)) (agent.Step, error) {
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return agent.Step{}, &service.BrokenError{Err: fmt.Errorf("reading the reply: %w", err)}
	}
	if !json.Valid(text) {
		return agent.Step{}, service.NotJSON("a response", text, d.redact)
	}
	r := response{emit: emit}
	if err := r.end(gjson.ParseBytes(text), ""); err != nil {
		return agent.Step{}, err
	}
	return d.responseStep(a, &r)
}

// response is a Responses API response that is being read, whole or in pieces.
type response struct {
	id, model, tier string
	finish          agent.FinishReason
	usage           gjson.Result  // an object, or nothing
	items           []*outputItem // in the order in which they began
	at              map[int64]*outputItem
	last            int64 // the newest item's index
	calls           int
	emit            func(agent.Delta) // nil when the reply is not streamed
}

// outputItem is an output item that is being read.
type outputItem struct {
	kind, id, phase, callID, name, encrypted string
	// text is a message's text, or a call's arguments.
	text     textPieces
	pieces   service.ArgumentPieces
	refused  bool
	call     int  // the call's index among the calls
	began    bool // the call's first piece was emitted
	again    bool // an earlier call has the same ID; it is emitted when it is complete and differs
	thoughts []*thought
	raw      string // the item's newest version
	done     bool
}

// thought is one text of a reasoning item.
type thought struct {
	plain bool // the reasoning itself, not a summary
	index int64
	text  textPieces
}

// addHead reads the members next to the output. Services use different types for them, so addHead reads them leniently.
func (r *response) addHead(c gjson.Result) {
	r.id = lo.CoalesceOrEmpty(r.id, c.Get("id").String())
	r.model = lo.CoalesceOrEmpty(c.Get("model").String(), r.model)
	r.tier = lo.CoalesceOrEmpty(c.Get("service_tier").String(), r.tier)
	if usage := c.Get("usage"); usage.IsObject() {
		r.usage = usage
	}
}

// end reads a complete response. If it has no status, end uses the given status.
func (r *response) end(c gjson.Result, status string) error {
	r.addHead(c)
	status = lo.CoalesceOrEmpty(c.Get("status").String(), status)
	if said := errorInside(c); said != nil {
		return &eventError{said}
	}
	switch status {
	case "completed", "incomplete":
	case "failed":
		return &eventError{[]byte(`{"error":{"message":"the reply failed, and the service does not say why"}}`)}
	case "":
		return &service.BrokenError{Err: errors.New("the reply is not a response: it has no status")}
	default: // cancelled, queued, in_progress
		return &service.BrokenError{Err: fmt.Errorf("the reply is not complete: its status is %q", service.Excerpt(status, noSecrets))}
	}
	if err := r.readOutput(listOf(c.Get("output"))); err != nil {
		return err
	}
	r.finish = agent.FinishStop
	if status == "incomplete" {
		switch reason := c.Get("incomplete_details.reason").String(); reason {
		case "", "max_output_tokens":
			r.finish = agent.FinishLength
		default:
			r.finish = agent.FinishReasonOf(reason) // such as content_filter
		}
	}
	for _, item := range slices.Clone(r.items) { // items that the service did not close
		r.close(item)
	}
	return nil
}

// readOutput reads a complete response's output. If items arrived in pieces, it only updates the items that are still
// open. Item numbers in the stream can have gaps, which the list does not have, so an item could count twice.
func (r *response) readOutput(output []gjson.Result) error {
	streamed := len(r.items) > 0
	for i, raw := range output {
		if item, ok := r.at[int64(i)]; streamed && (!ok || item.done || item.kind != raw.Get("type").String()) {
			continue
		}
		if err := r.complete(int64(i), raw); err != nil {
			return err
		}
	}
	return nil
}

func noSecrets(text string) string { return text }

// item returns the item at an index, which begins with raw if it is new.
func (r *response) item(index int64, raw gjson.Result) *outputItem {
	if item, ok := r.at[index]; ok {
		return item
	}
	item := &outputItem{kind: raw.Get("type").String()}
	if r.at == nil {
		r.at = map[int64]*outputItem{}
	}
	r.at[index], r.last = item, index
	r.items = append(r.items, item)
	return item
}

// begin reads an item that is new, or that is complete.
func (r *response) begin(index int64, raw gjson.Result) (*outputItem, error) {
	kind := raw.Get("type").String()
	if kind == "" {
		return nil, &service.BrokenError{Err: errors.New("an item of the reply has no type")}
	}
	if err := checkAnswerable(kind); err != nil {
		return nil, err
	}
	item := r.item(index, raw)
	if item.kind != kind {
		return nil, &service.BrokenError{Err: fmt.Errorf("item %d of the reply has two types", index)}
	}
	item.id = lo.CoalesceOrEmpty(validText(raw.Get("id")), item.id)
	item.phase = lo.CoalesceOrEmpty(validText(raw.Get("phase")), item.phase)
	item.encrypted = lo.CoalesceOrEmpty(validText(raw.Get("encrypted_content")), item.encrypted)
	item.raw = strings.ToValidUTF8(raw.Raw, "\uFFFD")
	if item.kind == "function_call" && !item.began {
		item.callID = lo.CoalesceOrEmpty(validText(raw.Get("call_id")), item.callID, item.id)
		item.name = validText(raw.Get("name"))
		item.again = r.findCall(item, func(*outputItem) bool { return true })
		if !item.again {
			r.beginCall(item)
		}
	}
	return item, nil
}

// findCall reports whether an earlier call has the same ID and matches is.
func (r *response) findCall(item *outputItem, is func(earlier *outputItem) bool) bool {
	return item.callID != "" && slices.ContainsFunc(r.items, func(o *outputItem) bool {
		return o != item && o.kind == "function_call" && o.callID == item.callID && is(o)
	})
}

// endRepeated drops a call if an earlier one has the same ID, name and arguments. Otherwise it emits the call.
func (r *response) endRepeated(item *outputItem) {
	if !r.findCall(item, func(o *outputItem) bool { return o.name == item.name && o.text.String() == item.text.String() }) {
		r.beginCall(item)
		return
	}
	r.items = slices.DeleteFunc(r.items, func(o *outputItem) bool { return o == item })
}

// beginCall emits a call's first piece, once its name is known. Calls are in the order in which they begin.
func (r *response) beginCall(item *outputItem) {
	if item.began = item.name != ""; item.began {
		item.call = r.calls
		r.calls++
		r.items = append(slices.DeleteFunc(r.items, func(o *outputItem) bool { return o == item }), item)
		r.tell(agent.Delta{
			Call: agent.ToolCall{ID: item.callID, Name: item.name, Arguments: item.text.String()}, CallIndex: item.call,
		})
	}
}

func validText(v gjson.Result) string { return strings.ToValidUTF8(textOf(v), "\uFFFD") }

// complete reads an item that is complete. Pieces that were already emitted do not change.
func (r *response) complete(index int64, raw gjson.Result) error {
	if item, ok := r.at[index]; ok && item.done {
		return nil
	}
	item, err := r.begin(index, raw)
	if err != nil {
		return err
	}
	switch item.kind {
	case "message":
		var whole strings.Builder
		for _, part := range listOf(raw.Get("content")) {
			refusal := textOf(part.Get("refusal"))
			item.refused = item.refused || refusal != ""
			whole.WriteString(textOf(part.Get("text")))
			whole.WriteString(refusal)
		}
		r.tell(agent.Delta{Text: item.text.fill(whole.String())})
	case "function_call":
		if item.name == "" {
			return &service.BrokenError{Err: fmt.Errorf("tool call %d of the reply has no name", r.calls)}
		}
		r.fillArguments(item, argumentsOf(raw.Get("arguments")))
	case "reasoning":
		for i, text := range listOf(raw.Get("summary")) {
			r.think(item, false, int64(i), func(t *textPieces) string { return t.fill(textOf(text.Get("text"))) })
		}
		for i, text := range listOf(raw.Get("content")) {
			r.think(item, true, int64(i), func(t *textPieces) string { return t.fill(textOf(text.Get("text"))) })
		}
	}
	r.close(item)
	return nil
}

// argumentsOf returns a call's arguments as text. Some services send an object, whose JSON is used. Any other value
// stays unchanged, and is malformed.
func argumentsOf(v gjson.Result) string {
	if v.Type == gjson.String || v.Type == gjson.Null {
		return textOf(v)
	}
	return v.Raw
}

// close emits an item's text that was held back.
func (r *response) close(item *outputItem) {
	if item.done {
		return
	}
	item.done = true
	switch item.kind {
	case "message":
		r.tell(agent.Delta{Text: item.text.end()})
	case "function_call":
		r.tellArguments(item, item.text.add(item.pieces.End())+item.text.end())
		if item.text.String() == "" { // perhaps the item came with its arguments
			r.tellArguments(item, item.text.fill(argumentsOf(gjson.Get(item.raw, "arguments"))))
		}
		if item.again {
			r.endRepeated(item)
		}
	}
	for _, t := range item.thoughts {
		r.tell(agent.Delta{Reasoning: t.text.end()})
	}
}

// fillArguments completes a call's arguments, which have arrived as a whole.
func (r *response) fillArguments(item *outputItem, whole string) {
	if whole == "" {
		return
	}
	if strings.HasPrefix(whole, item.text.String()) {
		item.pieces = service.ArgumentPieces{} // whole contains the text that was held back
	}
	r.tellArguments(item, item.text.add(item.pieces.End())+item.text.fill(whole))
}

// think uses add to extend one text of a reasoning item. add returns the text that can be emitted.
func (r *response) think(item *outputItem, plain bool, index int64, add func(*textPieces) string) {
	t, ok := lo.Find(item.thoughts, func(t *thought) bool { return t.plain == plain && t.index == index })
	if !ok {
		t = &thought{plain: plain, index: index}
	}
	piece := add(&t.text)
	if !ok && (piece != "" || t.text.rest != "") {
		if len(item.thoughts) > 0 {
			piece = paragraph + piece
		}
		item.thoughts = append(item.thoughts, t)
	}
	r.tell(agent.Delta{Reasoning: piece})
}

func (r *response) tellArguments(item *outputItem, piece string) {
	if piece != "" && item.began {
		r.tell(agent.Delta{Call: agent.ToolCall{Arguments: piece}, CallIndex: item.call})
	}
}

func (r *response) tell(d agent.Delta) {
	if r.emit != nil && d.Text+d.Reasoning+d.Call.ID+d.Call.Name+d.Call.Arguments != "" {
		r.emit(d)
	}
}

// responseStep returns the response as a step.
func (d *Driver) responseStep(a *requestInfo, r *response) (agent.Step, error) {
	refused := false
	for _, item := range r.items {
		refused = refused || item.refused
		if item.kind == "function_call" && !item.began {
			return agent.Step{}, &service.BrokenError{Err: fmt.Errorf("tool call %d of the reply has no name", r.calls)}
		}
	}
	content, calls := r.content()
	switch {
	case refused:
		r.finish = agent.FinishFilter
	case r.finish == agent.FinishStop && len(calls) > 0:
		r.finish = agent.FinishToolCalls
	}
	return agent.Step{
		Message:      agent.AssistantContent(content, calls...),
		FinishReason: r.finish,
		Usage:        d.responseUsage(a, r),
		Model:        r.model,
		ID:           r.id,
	}, nil
}

// content returns a response's parts and calls. A response with its text first and then its calls needs no item data to
// be sent back, so content does not store any.
func (r *response) content() (agent.Content, []agent.ToolCall) {
	keep := false
	for i, item := range r.items {
		keep = keep || item.phase != "" || item.kind != "message" && item.kind != "function_call" ||
			item.kind == "message" && slices.ContainsFunc(r.items[:i], func(before *outputItem) bool { return before.kind == "function_call" })
	}
	var parts []agent.Part
	var calls []agent.ToolCall
	var text strings.Builder
	for _, item := range r.items {
		switch item.kind {
		case "message":
			text.WriteString(item.text.String())
			part := agent.Text(item.text.String())
			part.Opaque = itemData{Type: "message", ID: item.id, Phase: item.phase}.opaque()
			parts = append(parts, part)
		case "function_call":
			calls = append(calls, agent.ToolCall{ID: item.callID, Name: item.name, Arguments: item.text.String()})
			parts = append(parts, agent.Reasoning("", itemData{Type: "function_call", ID: item.id, CallID: item.callID}.opaque()))
		case "reasoning":
			parts = append(parts, item.reasoningParts()...)
		default:
			parts = append(parts, agent.Reasoning("", itemData{Type: item.kind, Item: json.RawMessage(item.raw)}.opaque()))
		}
	}
	if !keep {
		return agent.TextContent(text.String()), calls
	}
	return agent.ContentOf(parts...), calls
}

// reasoningParts returns a reasoning item's parts: one for each text, at least one.
func (item *outputItem) reasoningParts() []agent.Part {
	first := itemData{Type: "reasoning", ID: item.id, Encrypted: item.encrypted}
	if len(item.thoughts) == 0 {
		return []agent.Part{agent.Reasoning("", first.opaque())}
	}
	var parts []agent.Part
	for i, t := range item.thoughts {
		k, text := first, t.text.String()
		if i > 0 {
			k, text = itemData{Type: "reasoning", More: true}, paragraph+text
		}
		k.Plain = t.plain
		parts = append(parts, agent.Reasoning(text, k.opaque()))
	}
	return parts
}

// responseUsage returns the response's usage. The cost is unknown when the service did not report the usage, and when
// one of its tools ran, because these have separate prices.
func (d *Driver) responseUsage(a *requestInfo, r *response) agent.Usage {
	u := r.usage
	if !u.Exists() {
		return agent.Usage{}
	}
	count := func(path string) int64 { return max(u.Get(path).Int(), 0) }
	used := agent.Usage{
		InputTokens: count("input_tokens"), OutputTokens: count("output_tokens"),
		CacheReadTokens:  count("input_tokens_details.cached_tokens"),
		CacheWriteTokens: count("input_tokens_details.cache_write_tokens"),
		ReasoningTokens:  count("output_tokens_details.reasoning_tokens"),
	}
	if !slices.ContainsFunc(r.items, func(item *outputItem) bool { return !slices.Contains(free, item.kind) }) {
		used.Cost = d.cost(a, r.tier, r.model, used)
	}
	return used
}

// free lists the kinds of items that cost only their tokens.
var free = []string{"message", "function_call", "reasoning", "compaction", "mcp_list_tools", "mcp_call", "tool_search_call", "tool_search_output"}
