package agent

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// A model that does not know about changed arguments takes the result for the result of its own call. If a call ran
// with other arguments, its result therefore begins with a note, in a text part of its own.

// rewriteNoteName names the part with the note, so that programs can tell it from the tool's text.
const rewriteNoteName = "changed arguments"

// mostNoted is the maximum number of argument bytes in a note.
const mostNoted = 1000

// NoteRewrite returns r, the result of call p, with a note about changed arguments at its beginning: "ran with changed
// arguments: …". It returns r itself if the arguments did not change, if the call did not run, or if r already has its
// note. Filter, unless nil, is applied to the arguments. A withheld result does not show them.
//
// The loop calls NoteRewrite for every result. An executor that filters results calls it earlier, with its filter.
func (p *Prepared) NoteRewrite(r *ToolResult, filter func(text string) string) *ToolResult {
	if p.Call == p.Original || p.Call == nil || p.Original == nil || r.Content.hasRewriteNote() {
		return r
	}
	verb := "ran"
	switch {
	case r.Status == ToolUnknown:
		verb = "began"
	case !r.Executed():
		return r
	}
	if sameJSON(p.Call.Arguments, p.Original.Arguments) {
		return r
	}
	arguments := p.Call.Arguments
	if arguments == "" {
		arguments = "{}"
	}
	if filter != nil {
		arguments = filter(arguments)
	}
	if arguments == "" || r.Reason == ReasonWithheld {
		arguments = "(not shown)"
	}
	if len(arguments) > mostNoted {
		arguments = strings.ToValidUTF8(arguments[:mostNoted], "") + "…"
	}
	note := Part{Kind: PartText, Name: rewriteNoteName, Text: fmt.Sprintf("%s with changed arguments: %s\n", verb, arguments)}
	n := *r
	parts := []Part{note}
	for _, part := range r.Content.Parts() {
		parts = append(parts, part)
	}
	n.Content = ContentOf(parts...)
	if n.MaxBytes > 0 { // the note does not take the place of the tool's text
		n.MaxBytes += len(note.Text)
	}
	return &n
}

// ToolText returns the text of a tool's answer without the note about changed arguments. For other messages, it returns
// Text.
func (m Message) ToolText() string {
	if r := m.read().result; r != nil && r.Rewritten() && r.Content.hasRewriteNote() {
		return ContentOf(r.Content.list()[1:]...).Text()
	}
	return m.Text()
}

// hasRewriteNote reports whether the content begins with a note about changed arguments.
func (c Content) hasRewriteNote() bool {
	parts := c.list()
	return len(parts) > 0 && parts[0].Kind == PartText && parts[0].Name == rewriteNoteName
}

// sameJSON reports whether both texts hold the same JSON value, whatever their spelling.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	x, okX := valueOf(a)
	y, okY := valueOf(b)
	return okX && okY && reflect.DeepEqual(x, y)
}

// valueOf returns the arguments' value. Numbers keep their digits.
func valueOf(arguments string) (value any, ok bool) {
	if arguments == "" {
		arguments = "{}"
	}
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	return value, d.Decode(&value) == nil && !d.More()
}
