package agent

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/samber/lo"
)

// CutToLimit returns the result with at most MaxBytes bytes of text in its content. It keeps the head and the tail of
// longer text, with a note between them that says how much is missing. It splits no rune, and the note counts towards
// the limit. Images and files stay whole and do not count. A result within the limit is returned unchanged.
func (r *ToolResult) CutToLimit() *ToolResult {
	if r.MaxBytes <= 0 || r.Content.textBytes() <= r.MaxBytes {
		return r
	}
	n := *r
	n.Content = r.Content.cutTo(r.MaxBytes)
	return &n
}

// textBytes returns the total text size of all parts.
func (c Content) textBytes() int {
	if c.parts == nil {
		return len(c.text)
	}
	total := 0
	for _, p := range *c.parts {
		total += len(p.Text)
	}
	return total
}

// cutTo cuts the parts' texts as if they were one.
func (c Content) cutTo(most int) Content {
	if c.parts == nil {
		return TextContent(newExcerpt(c.text, most).applyTo(c.text, 0))
	}
	var all strings.Builder
	for _, p := range *c.parts {
		all.WriteString(p.Text)
	}
	cut, at := newExcerpt(all.String(), most), 0
	parts := make([]Part, 0, len(*c.parts))
	for _, p := range *c.parts {
		text := p.Text
		p.Text = cut.applyTo(text, at)
		at += len(text)
		parts = append(parts, p)
	}
	return ContentOf(lo.Without(parts, Text(""))...)
}

// excerpt is the remaining part of a text: the bytes before head, a note, and the bytes from tail on.
type excerpt struct {
	head, tail int
	note       string
}

func newExcerpt(text string, most int) excerpt {
	room := most - len(cutNote(len(text), len(text)))
	if room <= 0 { // no room for a note
		return excerpt{head: runeStart(text, most, -1), tail: len(text)}
	}
	head := runeStart(text, room/2, -1)
	tail := runeStart(text, len(text)-(room-head), +1)
	return excerpt{head, tail, cutNote(tail-head, len(text))}
}

func cutNote(missing, total int) string {
	return fmt.Sprintf("\n[… %d of %d bytes left out …]\n", missing, total)
}

// runeStart returns the index nearest to i, in the given direction, at which a rune starts.
func runeStart(text string, i, direction int) int {
	for 0 < i && i < len(text) && !utf8.RuneStart(text[i]) {
		i += direction
	}
	return i
}

// applyTo returns the remaining part of a piece that begins at index at of the whole text.
func (c excerpt) applyTo(piece string, at int) string {
	head := min(max(0, c.head-at), len(piece))
	tail := min(max(0, c.tail-at), len(piece))
	if at <= c.head && c.head < at+len(piece) {
		return piece[:head] + c.note + piece[tail:]
	}
	return piece[:head] + piece[max(head, tail):]
}
