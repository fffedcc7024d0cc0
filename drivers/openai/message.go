package openai

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// encodeMessage encodes a message in the chat format.
func (d *Driver) encodeMessage(m agent.Message) ([]byte, error) {
	switch m.Role() {
	case agent.RoleSystem:
		return encodeJSON(wireMessage{Role: "system", Content: m.Text()})
	case agent.RoleUser:
		return d.encodeUser(m)
	case agent.RoleAssistant:
		return d.encodeAssistant(m)
	case agent.RoleTool:
		return encodeJSON(wireMessage{Role: "tool", Content: plainText(m.Content()), CallID: m.CallID()})
	}
	return nil, fmt.Errorf("a message has the role %q, which the chat format does not have", m.Role())
}

func (d *Driver) encodeUser(m agent.Message) ([]byte, error) {
	if m.Content().IsText() {
		return encodeJSON(wireMessage{Role: "user", Content: m.Text()})
	}
	var parts []wirePart
	for _, part := range m.Content().Parts() {
		switch part.Kind {
		case agent.PartText:
			parts = append(parts, wirePart{Type: "text", Text: &part.Text})
		case agent.PartImage:
			if err := d.checkImage(part); err != nil {
				return nil, err
			}
			parts = append(parts, wirePart{Type: "image_url", Image: &wireImage{address(part)}})
		case agent.PartFile:
			if !d.features.Files {
				return nil, fmt.Errorf("a message has the file %q: %s does not accept files", part.Name, d)
			}
			data := address(part)
			if !strings.HasPrefix(data, "data:") {
				return nil, fmt.Errorf("a message has the file %q by its URL: chat completions accept files only as bytes", part.Name)
			}
			parts = append(parts, wirePart{Type: "file", File: &wireFile{Data: data, Name: lo.CoalesceOrEmpty(part.Name, "file")}})
		}
	}
	return encodeJSON(wireMessage{Role: "user", Content: parts})
}

// checkImage returns an error for an image that cannot be sent.
func (d *Driver) checkImage(p agent.Part) error {
	if !d.features.Images {
		return fmt.Errorf("a message has an image: %s does not accept images", d)
	}
	if p.URL == "" && (p.Data == "" || !strings.HasPrefix(p.MediaType, "image/")) {
		return fmt.Errorf("a message has an image of %d bytes and the media type %q: set the data and a media type such as image/png, or a URL",
			len(p.Data), p.MediaType)
	}
	return nil
}

// address returns an image's or a file's address: its URL, or a data URL with its bytes.
func address(p agent.Part) string {
	if p.URL != "" {
		return p.URL
	}
	return "data:" + lo.CoalesceOrEmpty(p.MediaType, "application/octet-stream") + ";base64," +
		base64.StdEncoding.EncodeToString([]byte(p.Data))
}

func (d *Driver) encodeAssistant(m agent.Message) ([]byte, error) {
	w := wireMessage{Role: "assistant"}
	if text := m.Text(); text != "" || m.CallCount() == 0 {
		w.Content = text
	}
	for _, c := range m.Calls() {
		w.Calls = append(w.Calls, wireCall{ID: c.ID, Function: wireFunction{string(service.Arguments(c.Arguments)), c.Name}, Type: "function"})
	}
	text, err := encodeJSON(w)
	if thought := reasoning(m); err == nil && thought != "" && d.dialect.Reasoning != "" {
		o := object{buf: text[:len(text)-1]} // without the closing brace
		o.set(d.dialect.Reasoning, thought)
		o.buf = append(o.buf, '}')
		text, err = o.buf, o.err
	}
	return text, err
}

// wireMessage is a message in the chat format.
type wireMessage struct {
	Content any        `json:"content,omitempty"` // text, or []wirePart
	Calls   []wireCall `json:"tool_calls,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
	Role    string     `json:"role"`
}

type wirePart struct {
	Text  *string    `json:"text,omitempty"`
	Image *wireImage `json:"image_url,omitempty"`
	File  *wireFile  `json:"file,omitempty"`
	Type  string     `json:"type"`
}

type wireImage struct {
	URL string `json:"url"`
}

type wireFile struct {
	Data string `json:"file_data"`
	Name string `json:"filename"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Function wireFunction `json:"function"`
	Type     string       `json:"type"`
}

type wireFunction struct {
	Arguments string `json:"arguments"`
	Name      string `json:"name"`
}

// reasoning returns the model's reasoning. Another service's reasoning, which is more than text, is not sent.
func reasoning(m agent.Message) string {
	var b strings.Builder
	for _, part := range m.Content().Parts() {
		if part.Kind == agent.PartReasoning && part.Opaque == "" {
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

// plainText returns content as text, the only possible format for a tool's answer. It replaces images and files with a
// description.
func plainText(c agent.Content) string {
	if c.IsText() {
		return c.Text()
	}
	var lines []string
	for _, part := range c.Parts() {
		switch part.Kind {
		case agent.PartText:
			lines = append(lines, part.Text)
		case agent.PartImage, agent.PartFile:
			lines = append(lines, describeUnshown(part))
		}
	}
	return strings.Join(lines, "\n")
}

// describeUnshown returns the sentence that replaces an image or a file in a tool's answer.
func describeUnshown(p agent.Part) string {
	what := []string{string(p.Kind)}
	if p.Name != "" {
		what = append(what, fmt.Sprintf("%q", p.Name))
	}
	if p.MediaType != "" {
		what = append(what, p.MediaType)
	}
	switch {
	case p.URL != "" && !strings.HasPrefix(p.URL, "data:"):
		what = append(what, "at "+p.URL)
	case p.Data != "":
		what = append(what, fmt.Sprintf("of %d bytes", len(p.Data)))
	}
	return "[" + strings.Join(what, " ") + ": not shown, tool results can only be text here]"
}
