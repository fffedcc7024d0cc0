package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// contents returns the beginning of a body: the messages as a list of contents. System messages before all other
// messages go into system. The answers to one turn's calls are one content directly after the calls. User messages
// between the answers follow it.
func (d *Driver) contents(model string, s agent.State, system *[]string) ([]byte, error) {
	form := d.newer
	if isEarlyModel(model) {
		form = d.older
	}
	size := 4096 // for the rest of the body
	for i, m := range s.Messages() {
		parts, err := form.Of(m)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		size += len(parts) + len(`{"role":"model","parts":[]},`)
	}
	out := append(make([]byte, 0, size), `{"contents":[`...)
	began := false
	write := func(role string, parts ...string) {
		if began {
			out = append(out, ',')
		}
		began = true
		out = append(append(append(out, `{"role":"`...), role...), `","parts":[`...)
		for i, p := range parts {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, p...)
		}
		out = append(out, "]}"...)
	}
	var answers, users []string
	turn := func() {
		if len(answers) > 0 {
			write("user", answers...)
		}
		for _, said := range users {
			write("user", said)
		}
		answers, users = answers[:0], users[:0]
	}
	leading := true
	for _, m := range s.Messages() {
		if leading = leading && m.Role() == agent.RoleSystem; leading {
			*system = append(*system, m.Text())
			continue
		}
		parts, err := form.Of(m)
		if err != nil {
			return nil, err
		}
		switch {
		case parts == "": // an empty reply
		case m.Role() == agent.RoleAssistant:
			turn()
			write("model", parts)
		case m.Role() == agent.RoleTool:
			answers = append(answers, parts)
		default:
			users = append(users, parts)
		}
	}
	turn()
	return append(out, ']'), nil
}

// writer writes messages in the format for older or newer models.
type writer struct {
	d     *Driver
	older bool
}

// message returns a message's parts, with commas between them.
func (w writer) message(m agent.Message) ([]byte, error) {
	var parts []part
	var err error
	switch m.Role() {
	case agent.RoleSystem:
		parts = []part{textPart("<system>\n" + m.Text() + "\n</system>")}
	case agent.RoleUser:
		parts, err = w.user(m)
	case agent.RoleAssistant:
		parts, err = w.assistant(m)
	case agent.RoleTool:
		parts, err = w.answer(m)
	default:
		err = fmt.Errorf("the unknown role %q", m.Role())
	}
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(parts); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(bytes.TrimPrefix(out.Bytes(), []byte("[")), []byte("]\n")), nil
}

func (w writer) user(m agent.Message) ([]part, error) {
	var parts []part
	for _, p := range m.Content().Parts() {
		switch p.Kind {
		case agent.PartText:
			parts = append(parts, textPart(p.Text))
		case agent.PartImage, agent.PartFile:
			sent, err := w.media(p)
			if err != nil {
				return nil, err
			}
			parts = append(parts, sent)
		}
	}
	if len(parts) == 0 { // a content must have parts
		parts = append(parts, textPart(""))
	}
	return parts, nil
}

// assistant returns a reply: its parts in their order, each with its signature, then its calls. Other services'
// reasoning is not sent.
func (w writer) assistant(m agent.Message) ([]part, error) {
	var parts []part
	signed := map[string]string{} // by call ID
	for _, p := range m.Content().Parts() {
		if id, signature, ok := signedCall(p); ok {
			signed[id] = signature
			continue
		}
		signature, own := signatureOf(p)
		switch {
		case p.Kind == agent.PartText && (p.Text != "" || own):
			parts = append(parts, part{Text: &p.Text, Signature: signature})
		case p.Kind == agent.PartReasoning && own:
			parts = append(parts, part{Text: &p.Text, Thought: true, Signature: signature})
		case p.Kind == agent.PartImage, p.Kind == agent.PartFile:
			sent, err := w.media(p)
			if err != nil {
				return nil, err
			}
			sent.Signature = signature
			parts = append(parts, sent)
		}
	}
	first := len(parts)
	some := w.older
	for _, c := range m.Calls() {
		sent := part{Call: &functionCall{ID: wireID(c.ID), Name: c.Name, Arguments: service.Arguments(c.Arguments)}}
		sent.Signature = signed[c.ID]
		some = some || sent.Signature != ""
		parts = append(parts, sent)
	}
	if !some && m.CallCount() > 0 {
		parts[first].Signature = unsigned
	}
	return parts, nil
}

// answer returns a tool's answer. Images and files are inside the answer if the model can read them there,
// otherwise after it.
func (w writer) answer(m agent.Message) ([]part, error) {
	said := &functionResponse{ID: wireID(m.CallID()), Name: m.Tool()}
	key := "output"
	if m.IsError() {
		key = "error"
	}
	said.Response = map[string]string{key: m.Text()}
	parts := []part{{Answer: said}}
	for _, p := range m.Content().Parts() {
		if p.Kind != agent.PartImage && p.Kind != agent.PartFile {
			continue
		}
		sent, err := w.media(p)
		if err != nil {
			return nil, err
		}
		if sent.Inline != nil && !w.older {
			said.Parts = append(said.Parts, sent)
		} else {
			parts = append(parts, sent)
		}
	}
	return parts, nil
}
