package gemini

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"path"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// part is one part of a content as it is sent. The SDK's own type would write a
// call's arguments anew, and cannot say an empty text.
type part struct {
	Text      *string           `json:"text,omitempty"`
	Inline    *blob             `json:"inlineData,omitempty"`
	File      *fileData         `json:"fileData,omitempty"`
	Call      *functionCall     `json:"functionCall,omitempty"`
	Answer    *functionResponse `json:"functionResponse,omitempty"`
	Thought   bool              `json:"thought,omitempty"`
	Signature string            `json:"thoughtSignature,omitempty"`
}

type blob struct {
	MediaType string `json:"mimeType"`
	Data      string `json:"data"`
}

type fileData struct {
	MediaType string `json:"mimeType,omitempty"`
	URL       string `json:"fileUri"`
}

type functionCall struct {
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"args"`
}

type functionResponse struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
	Parts    []part            `json:"parts,omitempty"`
}

// contents is the beginning of a body: the messages as a list of contents. What
// stands before all others as a system message goes into system. The answers to the
// calls of one turn are one content, which comes right behind the calls: what a user
// says in between them follows.
func (d *Driver) contents(model string, s agent.State, system *[]string) ([]byte, error) {
	form := d.newer
	if early(model) {
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
		case parts == "": // a reply that says nothing
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

// writer writes messages for the older models, or for the newer ones.
type writer struct {
	d     *Driver
	older bool
}

// message is the parts of a message, with commas between them.
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
		err = fmt.Errorf("the role %q is not known", m.Role())
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

func textPart(text string) part { return part{Text: &text} }

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
	if len(parts) == 0 { // a content has parts
		parts = append(parts, textPart(""))
	}
	return parts, nil
}

// assistant is a reply: its parts as they came, each with its signature, then its
// calls. What another service's model thought is not sent.
func (w writer) assistant(m agent.Message) ([]part, error) {
	var parts []part
	signed := map[string]string{} // the signatures of calls, by the ids of these
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
		sent := part{Call: &functionCall{ID: wireID(c.ID), Name: c.Name, Arguments: arguments(c.Arguments)}}
		sent.Signature = signed[c.ID]
		some = some || sent.Signature != ""
		parts = append(parts, sent)
	}
	if !some && m.CallCount() > 0 {
		parts[first].Signature = unsigned
	}
	return parts, nil
}

// answer is what a tool said. Images and files stand in the answer where a model
// can read them there, and behind it otherwise.
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

// media is an image or a file, by its bytes or by its address.
func (w writer) media(p agent.Part) (part, error) {
	switch {
	case p.Kind == agent.PartImage && !w.d.features.Images:
		return part{}, fmt.Errorf("there is an image, and %s takes none", w.d)
	case p.Kind == agent.PartFile && !w.d.features.Files:
		return part{}, fmt.Errorf("there is the file %q, and %s takes none", p.Name, w.d)
	}
	if mediaType, data, ok := dataURL(p.URL); ok {
		p.URL, p.MediaType, p.Data = "", mediaType, data
	}
	switch {
	case p.URL != "":
		mediaType := p.MediaType
		if mediaType == "" {
			mediaType = mediaTypes[strings.ToLower(path.Ext(strings.SplitN(p.URL, "?", 2)[0]))]
		}
		return part{File: &fileData{mediaType, p.URL}}, nil
	case p.Data == "":
		return part{}, fmt.Errorf("the %s %q has neither bytes nor an address", p.Kind, p.Name)
	}
	mediaType, _, err := mime.ParseMediaType(p.MediaType)
	if err != nil {
		return part{}, fmt.Errorf("the %s %q has the media type %q: set one such as image/png", p.Kind, p.Name, p.MediaType)
	}
	return part{Inline: &blob{mediaType, base64.StdEncoding.EncodeToString([]byte(p.Data))}}, nil
}

// mediaTypes are what is usually behind an address that ends so.
var mediaTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif",
	".heic": "image/heic", ".heif": "image/heif", ".pdf": "application/pdf", ".txt": "text/plain", ".md": "text/markdown",
	".html": "text/html", ".csv": "text/csv", ".json": "application/json", ".mp4": "video/mp4", ".mov": "video/quicktime",
	".webm": "video/webm", ".mp3": "audio/mp3", ".wav": "audio/wav", ".flac": "audio/flac", ".ogg": "audio/ogg",
}

// dataURL reads an address that holds the data itself, in base64.
func dataURL(url string) (mediaType string, data agent.Bytes, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", "", false
	}
	mediaType, text, ok := strings.Cut(rest, ";base64,")
	if !ok {
		return "", "", false
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	return mediaType, agent.Bytes(raw), err == nil
}

// malformed is the one member of the object that stands for arguments that are not
// one: its value is their text.
const malformed = "_malformed"

// arguments is a call's arguments as the object that the service wants.
func arguments(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("{}")
	}
	if strictjson.CheckObject(text) == nil {
		return json.RawMessage(text)
	}
	raw, err := json.Marshal(map[string]string{malformed: text})
	if err != nil {
		return json.RawMessage("{}") // a string is always written
	}
	return raw
}
