package agent

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// The MapText methods return a copy of a value with f applied to every text in it. A filter hook applies them to a
// result or a reply. They do not call f for an empty text, and may call it again for its own result. Reason codes of
// this module, run IDs and numbers are not texts. A new field that can hold text must be added here.

// MapText returns the content with f applied to its texts. Texts are the text of text and reasoning parts, names,
// addresses, media types, and data that is text, also as base64 in a data URL. Adjacent texts that are shown as one are
// also mapped as one: if f changes the joined text, they become one part. A part loses its opaque data when its text
// changed, or when f changes the data.
func (c Content) MapText(f func(text string) string) Content {
	if c.parts == nil {
		return TextContent(mapJSONText(c.text, f))
	}
	parts := make([]Part, 0, len(*c.parts))
	for _, p := range *c.parts {
		parts = append(parts, p.mapPart(f))
	}
	for _, kind := range []PartKind{PartText, PartReasoning} {
		parts = mapTogether(parts, kind, f)
	}
	return ContentOf(parts...)
}

// mapJSONText returns f(text), or an empty text unchanged.
func mapJSONText(text string, f func(string) string) string {
	if text == "" {
		return ""
	}
	return f(text)
}

var partKinds = []PartKind{PartText, PartImage, PartFile, PartReasoning}

func (p Part) mapPart(f func(string) string) Part {
	before := p
	if !slices.Contains(partKinds, p.Kind) {
		p.Kind = PartKind(mapJSONText(string(p.Kind), f))
	}
	p.Text, p.Name, p.MediaType = mapJSONText(p.Text, f), mapJSONText(p.Name, f), mapJSONText(p.MediaType, f)
	p.URL = mapURL(p.URL, f)
	if utf8.ValidString(string(p.Data)) || isTextType(before.MediaType) {
		p.Data = Bytes(mapJSONText(string(p.Data), f))
	}
	if p.Text != before.Text || p.Opaque != "" && f(p.Opaque) != p.Opaque {
		p.Opaque = ""
	}
	return p
}

// isTextType reports whether a media type is text. Such data is text even if some bytes are not UTF-8.
func isTextType(mediaType string) bool {
	mediaType = strings.ToLower(mediaType)
	return strings.HasPrefix(mediaType, "text/") || strings.Contains(mediaType, "json") || strings.Contains(mediaType, "xml")
}

// mapURL applies f to a URL, and also to the decoded text in a data: URL.
func mapURL(url string, f func(string) string) string {
	head, data, ok := strings.Cut(url, ";base64,")
	if plain, err := base64.StdEncoding.DecodeString(data); ok && err == nil && strings.HasPrefix(head, "data:") && utf8.Valid(plain) {
		return mapJSONText(head, f) + ";base64," + base64.StdEncoding.EncodeToString([]byte(mapJSONText(string(plain), f)))
	}
	return mapJSONText(url, f)
}

// mapTogether applies f to the joined texts of all parts of one kind. If f changes the text, the first part receives
// the whole result.
func mapTogether(parts []Part, kind PartKind, f func(string) string) []Part {
	var all strings.Builder
	count := 0
	for _, p := range parts {
		if p.Kind == kind {
			all.WriteString(p.Text)
			count++
		}
	}
	if count < 2 {
		return parts
	}
	after := mapJSONText(all.String(), f)
	if after == all.String() {
		return parts
	}
	var out []Part
	for _, p := range parts {
		if p.Kind != kind {
			out = append(out, p)
			continue
		}
		if count > 0 {
			out, count = append(out, Part{Kind: kind, Text: after}), 0
		}
	}
	return out
}

// MapText returns the message with f applied to its content, its source, and the names and arguments of its calls. If f
// changes a call ID, the ID is dropped and the loop assigns a new one. In a message that answers a call, the result's
// error and effects are dropped, because they are not part of the transcript.
func (m Message) MapText(f func(text string) string) Message {
	b := m.read()
	if b.result != nil {
		r := *b.result
		r.Content, r.DecidedBy, r.Reason = r.Content.MapText(f), mapJSONText(r.DecidedBy, f), r.Reason.mapReason(f)
		r.Err, r.Effects = nil, Effects{}
		if r.Stop != nil {
			stop := r.Stop.MapText(f)
			r.Stop = &stop
		}
		for _, c := range []**ToolCall{&r.call, &r.original} {
			if *c != nil {
				call := (*c).mapCall(f)
				*c = &call
			}
		}
		return Message{&messageBody{result: &r}}
	}
	if m.body == nil {
		return m
	}
	out := m.WithContent(m.Content().MapText(f))
	if source := m.Source(); source != "" {
		out = out.WithSource(f(source))
	}
	if calls := m.list(); len(calls) > 0 {
		fresh := make([]ToolCall, len(calls))
		for i := range calls {
			fresh[i] = calls[i].mapCall(f)
		}
		out = out.WithCalls(fresh...)
	}
	return out
}

func (c ToolCall) mapCall(f func(string) string) ToolCall {
	c.Name, c.Arguments = mapJSONText(c.Name, f), mapJSONText(c.Arguments, f)
	if id := mapJSONText(c.ID, f); id != c.ID {
		c.ID = ""
	}
	return c
}

// mapReason applies f to a code that this module does not define. This module's codes stay unchanged.
func (r ReasonCode) mapReason(f func(string) string) ReasonCode {
	if r.Known() {
		return r
	}
	return ReasonCode(f(string(r)))
}

// Known reports whether the code is empty or defined by this module.
func (r ReasonCode) Known() bool {
	switch r {
	case "", ReasonDenied, ReasonHookFailed, ReasonRejected, ReasonNobodyToAsk, ReasonMalformed, ReasonInvalid, ReasonUnknownTool,
		ReasonRunStopped, ReasonCancelled, ReasonError, ReasonPanic, ReasonTimeout, ReasonWithheld:
		return true
	}
	return false
}

// MapText returns the signal with f applied to its message, source and details. F is also applied to a reason that this
// module does not define.
func (s Signal) MapText(f func(text string) string) Signal {
	if _, known := stopRank[s.Reason]; !known && s.Reason != StopByHook {
		s.Reason = StopReason(mapJSONText(string(s.Reason), f))
	}
	s.Message, s.Source = mapJSONText(s.Message, f), mapJSONText(s.Source, f)
	if len(s.Details) == 0 {
		return s
	}
	details := make(map[string]any, len(s.Details))
	for name, value := range s.Details {
		after, ok := mapValue(value, f)
		if raw, changed := after.(undecoded); changed {
			ok = strictjson.Unmarshal(string(raw), &after) == nil
		}
		if ok {
			details[mapJSONText(name, f)] = after
		}
	}
	s.Details = details
	return s
}

// MapText returns the effects with f applied to messages, added context, sources, and metadata names and values. A
// value that is not a string is passed to f as JSON. If f changes the JSON, the result becomes the value. An effect is
// dropped if JSON cannot hold its value.
func (e Effects) MapText(f func(text string) string) Effects {
	if e.Len() == 0 {
		return e
	}
	out := make([]Effect, 0, e.Len())
	for _, effect := range e.slice() {
		effect.source = mapJSONText(effect.source, f)
		switch effect.kind {
		case effectMessage:
			effect.message = effect.message.MapText(f)
		case effectContext:
			effect.context = mapJSONText(effect.context, f)
		case effectMetadata:
			after, ok := mapValue(effect.entry.value, f)
			if !ok {
				continue
			}
			effect.entry.name, effect.entry.value = mapJSONText(effect.entry.name, f), after
		}
		out = append(out, effect)
	}
	return effectsOfSlice(out)
}

// encodedText matches JSON strings that may be base64.
var encodedText = regexp.MustCompile(`"[A-Za-z0-9+/]{6,}={0,2}"`)

// mapEncoded applies f to base64 strings in JSON whose bytes are text.
func mapEncoded(text string, f func(string) string) string {
	return encodedText.ReplaceAllStringFunc(text, func(quoted string) string {
		plain, err := base64.StdEncoding.DecodeString(strings.Trim(quoted, `"`))
		if err != nil || !utf8.Valid(plain) {
			return quoted
		}
		after := f(string(plain))
		if after == string(plain) {
			return quoted
		}
		return `"` + base64.StdEncoding.EncodeToString([]byte(after)) + `"`
	})
}

// mapValue applies f to a string directly, and to any other value as JSON. A value that f changes becomes a value as
// read from JSON. Ok is false if JSON cannot hold the value.
func mapValue(value any, f func(string) string) (after any, ok bool) {
	if text, plain := value.(string); plain {
		return mapJSONText(text, f), true
	}
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false) // f receives <, > and & as they are
	if err := encoder.Encode(value); err != nil {
		return nil, false
	}
	before := strings.TrimSuffix(raw.String(), "\n")
	text := mapEncoded(f(before), f)
	if text == before {
		return value, true
	}
	if !json.Valid([]byte(text)) {
		quoted, err := strictjson.Marshal(strings.ToValidUTF8(text, "\uFFFD"))
		if err != nil {
			return nil, false
		}
		text = quoted
	}
	return undecoded(text), true
}
