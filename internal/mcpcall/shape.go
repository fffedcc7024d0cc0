package mcpcall

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
)

// The names of the parts that hold a result's structure and a content's metadata. Other fields have their own name.
const (
	structuredPart = "structuredContent"
	notesPart      = "annotations"
)

// The values of a content's type.
const (
	typeText  = "text"
	typeImage = "image"
	typeAudio = "audio"
)

// NewShape returns the shape of one call's result, whose texts, metadata and unknown fields all pass filters. Bytes of
// images and audio do not.
func NewShape() guard.Shape[json.RawMessage] {
	s := &shape{}
	return guard.Shape[json.RawMessage]{Read: s.read, Write: s.write, Failed: isFailure}
}

func isFailure(raw json.RawMessage) bool {
	o, err := ReadObject(raw)
	return err == nil && string(o.Get("isError")) == "true"
}

// shape remembers where the parts of a result came from.
type shape struct {
	result Object
	items  []Object // of content
	parts  []agent.Part
	places []place // of parts
}

// place is where a part's text stands: in an item of content, or in a member of the result.
type place struct {
	item   int // -1 for a member of the result
	member string
}

func (s *shape) add(p agent.Part, at place) {
	s.parts, s.places = append(s.parts, p), append(s.places, at)
}

func (s *shape) read(raw json.RawMessage) (agent.Content, error) {
	var err error
	if s.result, err = ReadObject(raw); err != nil {
		return agent.Content{}, err
	}
	if variant := s.result.Variant("content", structuredPart, "isError"); variant != "" {
		return agent.Content{}, fmt.Errorf("it has the member %q", variant)
	}
	var list []json.RawMessage
	if content := s.result.Get("content"); content != nil && json.Unmarshal(content, &list) != nil {
		return agent.Content{}, errors.New("its content is not a list")
	}
	for i, text := range list {
		item, err := ReadObject(text)
		if err != nil {
			return agent.Content{}, fmt.Errorf("content %d: %w", i, err)
		}
		s.items = append(s.items, item)
		s.readItem(i, item)
	}
	for _, m := range s.result {
		switch {
		case m.Name == "content", m.Name == "isError" && (string(m.Value) == "true" || string(m.Value) == "false"),
			m.Name == "resultType" && string(m.Value) == `"complete"`:
			continue
		}
		s.add(agent.Part{Kind: agent.PartText, Name: m.Name, Text: string(plainJSON(m.Value))}, place{-1, m.Name})
	}
	return agent.ContentOf(s.parts...), nil
}

// readItem adds the parts of an item.
func (s *shape) readItem(i int, item Object) {
	kind, _ := item.Text("type")
	main := map[string]string{typeText: "text", typeImage: "data", typeAudio: "data"}[kind]
	value, ok := item.Text(main)
	var data []byte
	if ok && main == "data" {
		var err error
		data, err = base64.StdEncoding.DecodeString(value)
		ok = err == nil
	}
	if !ok || item.Variant("type", main) != "" { // links and resources: their JSON has all their fields
		s.add(agent.Text(string(plainJSON(item.JSON()))), place{item: i})
		return
	}
	media, _ := item.Text("mimeType")
	switch kind {
	case typeText:
		s.add(agent.Text(value), place{i, main})
	case typeImage:
		s.add(agent.Image(media, data), place{i, main})
	case typeAudio:
		s.add(agent.File("audio", media, data), place{i, main})
	}
	if notes := notesOf(item, main); len(notes) > 0 {
		s.add(agent.Part{Kind: agent.PartText, Name: notesPart, Text: string(plainJSON(notes.JSON()))}, place{i, notesPart})
	}
}

// notesOf returns the members of an item besides its value.
func notesOf(item Object, main string) Object {
	return lo.Filter(item, func(m Member, _ int) bool { return m.Name != "type" && m.Name != main && m.Name != "mimeType" })
}

// plainJSON returns a JSON value without escapes that hide characters from filters.
func plainJSON(raw json.RawMessage) json.RawMessage {
	if !strings.Contains(string(raw), `\`) {
		return raw
	}
	var v any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return raw
	}
	return JSONOf(v)
}

// write returns a denial or a mock, or the result that was read with the texts that have changed.
func (s *shape) write(r *agent.ToolResult) json.RawMessage {
	var parts []agent.Part
	for _, p := range r.Content.Parts() {
		parts = append(parts, p)
	}
	first := len(parts) - len(s.parts) // 1 with a note about changed arguments
	if len(s.parts) == 0 || first < 0 || first > 1 || !slices.EqualFunc(s.parts, parts[first:], isPlacedAlike) {
		return newResult(parts, r.IsError())
	}
	for i, now := range parts[first:] {
		if was := s.parts[i]; now.Text != was.Text {
			s.put(s.places[i], now.Text)
		}
	}
	var content []json.RawMessage
	for _, p := range parts[:first] {
		content = append(content, textItem(p.Text))
	}
	for _, item := range s.items {
		content = append(content, item.JSON())
	}
	out := s.result
	if content != nil {
		out = out.With("content", listOf(content))
	}
	if r.IsError() != (string(out.Get("isError")) == "true") {
		out = out.With("isError", JSONOf(r.IsError()))
	}
	return out.JSON()
}

// isPlacedAlike reports whether a filter has at most changed the text of a part.
func isPlacedAlike(was, now agent.Part) bool {
	was.Text, now.Text = "", ""
	return was == now
}

// put writes a changed text to its place. Text that is no JSON any more is removed, or becomes a text content.
func (s *shape) put(at place, text string) {
	isJSON := json.Valid([]byte(text))
	if at.item < 0 {
		s.result = s.result.With(at.member, lo.Ternary(isJSON, json.RawMessage(text), nil))
		return
	}
	item := s.items[at.item]
	switch at.member {
	case typeText:
		item = item.With(typeText, JSONOf(text))
	case notesPart:
		kept := Object{}
		for _, name := range []string{"type", "text", "data", "mimeType"} {
			kept = kept.With(name, item.Get(name))
		}
		notes, err := ReadObject([]byte(text))
		if err != nil {
			notes = nil
		}
		for _, m := range notes {
			if kept.Get(m.Name) == nil {
				kept = append(kept, m)
			}
		}
		item = kept
	default:
		changed, err := ReadObject([]byte(text))
		if err != nil {
			changed, _ = ReadObject(textItem(text))
		}
		item = changed
	}
	s.items[at.item] = item
}

// newResult returns a result with the parts.
func newResult(parts []agent.Part, failed bool) json.RawMessage {
	content := []json.RawMessage{}
	var out Object
	for _, p := range parts {
		switch {
		case p.Kind == agent.PartImage:
			content = append(content, dataItem(typeImage, p))
		case p.Kind == agent.PartFile && strings.HasPrefix(p.MediaType, "audio/"):
			content = append(content, dataItem(typeAudio, p))
		case p.Name == notesPart:
		case p.Name == structuredPart || p.Name == "_meta":
			if json.Valid([]byte(p.Text)) {
				out = out.With(p.Name, json.RawMessage(p.Text))
			}
		default:
			content = append(content, textItem(p.Text))
		}
	}
	out = out.With("content", listOf(content))
	if failed {
		out = out.With("isError", JSONOf(true))
	}
	return out.JSON()
}

// listOf returns a list of values, whose bytes stay as they are.
func listOf(values []json.RawMessage) json.RawMessage {
	return append(append([]byte{'['}, bytes.Join(lo.Map(values, func(v json.RawMessage, _ int) []byte { return v }), []byte{','})...), ']')
}

func textItem(text string) json.RawMessage {
	return Object{{"type", JSONOf(typeText)}, {"text", JSONOf(text)}}.JSON()
}

func dataItem(kind string, p agent.Part) json.RawMessage {
	return Object{{"type", JSONOf(kind)}, {"mimeType", JSONOf(p.MediaType)}, {"data", JSONOf([]byte(p.Data))}}.JSON()
}

// Refusal returns a result that says why the call did not run.
func Refusal(text string) json.RawMessage {
	return newResult([]agent.Part{agent.Text(text)}, true)
}
