package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// encodeItems encodes a message as Responses API items, separated by commas. A reply without text, calls and kept items
// has no items.
func (d *Driver) encodeItems(m agent.Message) ([]byte, error) { return d.encodeItemsFor(m, true) }

// encodePlainItems encodes a message for a model that does not reason. For such a model, the service refuses reasoning.
func (d *Driver) encodePlainItems(m agent.Message) ([]byte, error) { return d.encodeItemsFor(m, false) }

func (d *Driver) encodeItemsFor(m agent.Message, reasons bool) ([]byte, error) {
	switch m.Role() {
	case agent.RoleSystem:
		return encodeJSON(inputMessage{Role: "system", Content: m.Text()})
	case agent.RoleUser:
		content, err := d.inputContent(m.Content())
		if err != nil {
			return nil, err
		}
		return encodeJSON(inputMessage{Role: "user", Content: content})
	case agent.RoleAssistant:
		return encodeReply(m, reasons)
	case agent.RoleTool:
		content, err := d.outputContent(m.Content())
		if err != nil {
			return nil, err
		}
		return encodeJSON(callOutput{Type: "function_call_output", CallID: m.CallID(), Output: content})
	}
	return nil, fmt.Errorf("a message has the role %q, which the Responses API does not have", m.Role())
}

// inputMessage is a user or system message, or a model message with nothing but text.
type inputMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"` // text, or []inputPart
}

type inputPart struct {
	Type     string  `json:"type"`
	Text     *string `json:"text,omitempty"`
	ImageURL string  `json:"image_url,omitempty"`
	Filename string  `json:"filename,omitempty"`
	FileData string  `json:"file_data,omitempty"`
	FileURL  string  `json:"file_url,omitempty"`
}

type callOutput struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"` // text, or []inputPart
}

type functionCall struct {
	Type      string `json:"type"`
	ID        string `json:"id,omitempty"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type outputMessage struct {
	Type    string       `json:"type"`
	ID      string       `json:"id,omitempty"`
	Status  string       `json:"status,omitempty"`
	Role    string       `json:"role"`
	Phase   string       `json:"phase,omitempty"`
	Content []outputText `json:"content"`
}

type outputText struct {
	Type        string   `json:"type"`
	Text        string   `json:"text"`
	Annotations []string `json:"annotations"` // always empty
}

type reasoningItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	Summary   []reasoningText `json:"summary"`
	Content   []reasoningText `json:"content,omitempty"`
	Encrypted string          `json:"encrypted_content,omitempty"`
}

type reasoningText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// inputContent returns a user's content, as text or as a list of parts.
func (d *Driver) inputContent(c agent.Content) (any, error) {
	if c.IsText() {
		return c.Text(), nil
	}
	parts := []inputPart{}
	for _, part := range c.Parts() {
		sent, ok, err := d.inputPart(part)
		if err != nil {
			return nil, err
		}
		if ok {
			parts = append(parts, sent)
		}
	}
	return parts, nil
}

// inputPart encodes one part. ok is false for a part that is omitted.
func (d *Driver) inputPart(p agent.Part) (sent inputPart, ok bool, err error) {
	switch p.Kind {
	case agent.PartText:
		return inputPart{Type: "input_text", Text: &p.Text}, true, nil
	case agent.PartImage:
		if err := d.checkImage(p); err != nil {
			return sent, false, err
		}
		return inputPart{Type: "input_image", ImageURL: address(p)}, true, nil
	case agent.PartFile:
		if !d.features.Files {
			return sent, false, fmt.Errorf("a message has the file %q: %s does not accept files", p.Name, d)
		}
		sent = inputPart{Type: "input_file", Filename: p.Name}
		if at := address(p); strings.HasPrefix(at, "data:") {
			sent.FileData, sent.Filename = at, lo.CoalesceOrEmpty(p.Name, "file")
		} else {
			sent.FileURL, sent.Filename = at, "" // the service accepts a name only with data
		}
		return sent, true, nil
	}
	return sent, false, nil
}

// outputContent returns a tool's answer. Images and files that the endpoint accepts are included. A sentence replaces
// others.
func (d *Driver) outputContent(c agent.Content) (any, error) {
	shown := false
	for _, part := range c.Parts() {
		shown = shown || part.Kind == agent.PartImage && d.features.Images || part.Kind == agent.PartFile && d.features.Files
	}
	if !shown {
		return plainText(c), nil
	}
	parts := []inputPart{}
	for _, part := range c.Parts() {
		if part.Kind == agent.PartImage && !d.features.Images || part.Kind == agent.PartFile && !d.features.Files {
			part = agent.Text(describeUnshown(part))
		}
		sent, ok, err := d.inputPart(part)
		if err != nil {
			return nil, err
		}
		if ok {
			parts = append(parts, sent)
		}
	}
	return parts, nil
}

// encodeReply encodes a reply: first the items that the parts contain, in their original order, then the other calls.
func encodeReply(m agent.Message, reasons bool) ([]byte, error) {
	w := replyWriter{message: m, called: make([]bool, m.CallCount()), bare: !reasons, reasons: reasons}
	for _, p := range m.Content().Parts() {
		if k, ok := keptOf(p); ok && k.Type == "reasoning" && !k.More {
			w.ids = w.ids || k.Encrypted != ""
			w.bare = w.bare || k.Encrypted == ""
		}
	}
	w.ids = w.ids && !w.bare
	for i, p := range m.Content().Parts() {
		w.part(i, p)
	}
	for i := range m.Calls() {
		w.call(i, "")
	}
	// The service refuses reasoning without an item after it. A reply that was cut off while the model reasoned ends
	// with such reasoning.
	w.items = w.items[:w.said]
	return bytes.Join(w.items, []byte(",")), w.err
}

// replyWriter writes a reply's items.
type replyWriter struct {
	message agent.Message
	called  []bool // the calls that were written
	// With ids, the items are sent back with their IDs. The service uses them to find the reasoning before each item.
	// With bare, some reasoning cannot or must not be sent back.
	ids, bare bool
	reasons   bool
	items     [][]byte
	said      int // the number of items up to the last that is not reasoning
	err       error
}

func (w *replyWriter) add(item any) {
	raw, err := encodeJSON(item)
	if err != nil {
		w.err = err
		return
	}
	w.items = append(w.items, raw)
	if _, ok := item.(reasoningItem); !ok {
		w.said = len(w.items)
	}
}

func (w *replyWriter) id(id string) string { return lo.Ternary(w.ids, id, "") }

// part writes a part's item. For another service's part, it writes only the text, if there is any.
func (w *replyWriter) part(i int, p agent.Part) {
	k, own := keptOf(p)
	switch {
	case p.Kind == agent.PartText && own:
		message := outputMessage{
			Type: "message", ID: w.id(k.ID), Role: "assistant", Phase: k.Phase, Content: []outputText{{"output_text", p.Text, []string{}}},
		}
		if message.ID != "" { // only messages with an ID have a status
			message.Status = "completed"
		}
		w.add(message)
	case p.Kind == agent.PartText && p.Text != "":
		w.add(inputMessage{Role: "assistant", Content: p.Text})
	case p.Kind != agent.PartReasoning || !own:
	case k.Type == "function_call":
		for n, c := range w.message.Calls() {
			if c.ID == k.CallID {
				w.call(n, w.id(k.ID))
				break
			}
		}
	case k.Type == "reasoning":
		if !k.More && w.reasons {
			w.reasoning(i, k)
		}
	case k.Item != nil:
		w.add(k.Item)
	}
}

// call writes a call, once.
func (w *replyWriter) call(n int, id string) {
	if w.called[n] {
		return
	}
	w.called[n] = true
	c := w.message.Call(n)
	w.add(functionCall{"function_call", id, c.ID, c.Name, string(service.Arguments(c.Arguments))})
}

// reasoning writes the reasoning that begins with a part and continues in the parts after it. If the reasoning is
// encrypted, its plain text is not sent, because the service refuses it. If it is neither encrypted nor plain, it
// cannot be sent back.
func (w *replyWriter) reasoning(first int, k itemData) {
	item := reasoningItem{Type: "reasoning", ID: k.ID, Summary: []reasoningText{}, Encrypted: k.Encrypted}
	for i, p := range w.message.Content().Parts() {
		next, own := keptOf(p)
		if i < first {
			continue
		}
		if !own || next.Type != "reasoning" || i > first && !next.More {
			break
		}
		switch text := strings.TrimPrefix(p.Text, lo.Ternary(next.More, paragraph, "")); {
		case text == "":
		case next.Plain:
			item.Content = append(item.Content, reasoningText{"reasoning_text", text})
		default:
			item.Summary = append(item.Summary, reasoningText{"summary_text", text})
		}
	}
	if item.Encrypted != "" {
		item.Content = nil
	} else if item.Content == nil {
		return
	}
	w.add(item)
}

// paragraph separates a reasoning item's texts.
const paragraph = "\n\n"

// keptPrefix marks the parts that this driver sends back to the service.
const keptPrefix = "openai:"

// itemData is stored in the item's part.
type itemData struct {
	// Type is the item's type: message, reasoning, function_call. For other types, Item is the whole item.
	Type string `json:"type"`
	ID   string `json:"id,omitempty"`
	// CallID is the call at this position.
	CallID string `json:"call_id,omitempty"`
	// Phase is the service's phase for a message that is not the final answer.
	Phase string `json:"phase,omitempty"`
	// Encrypted is the reasoning in the format for sending it back.
	Encrypted string `json:"encrypted_content,omitempty"`
	// Plain reports that the text is the reasoning itself, not a summary. More reports that the text
	// continues the previous part.
	Plain bool `json:"plain,omitempty"`
	More  bool `json:"more,omitempty"`
	// Item is an item without a part of its own, such as an action by one of the service's tools.
	Item json.RawMessage `json:"item,omitempty"`
}

// opaque returns k in a part's storage format.
func (k itemData) opaque() string {
	raw, err := encodeJSON(k)
	if err != nil {
		return "" // impossible: the item was valid JSON when it was received
	}
	return keptPrefix + string(raw)
}

// keptOf returns the data that a part stores. ok is false for other services' parts.
func keptOf(p agent.Part) (k itemData, ok bool) {
	raw, ok := strings.CutPrefix(p.Opaque, keptPrefix)
	if !ok || json.Unmarshal([]byte(raw), &k) != nil {
		return itemData{}, false
	}
	return k, true
}
