package toolexec

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// limited is content whose text is valid UTF-8 and at most so many bytes: head and tail of what there was, with a note
// between them. A negative limit is none.
func limited(c agent.Content, most int) agent.Content {
	if !c.IsText() {
		return limitedParts(c, most)
	}
	text := strings.ToValidUTF8(c.Text(), invalidBytes)
	if most < 0 || len(text) <= most {
		return agent.TextContent(text)
	}
	return agent.TextContent(newCut(text, most).of(text, 0))
}

// What stands for bytes that are no text.
const invalidBytes = string(utf8.RuneError)

// limitedParts cuts the texts of several parts as if they were one.
func limitedParts(c agent.Content, most int) agent.Content {
	var all strings.Builder
	parts := make([]agent.Part, 0, c.Len())
	for _, p := range c.Parts() {
		p.Text = strings.ToValidUTF8(p.Text, invalidBytes)
		all.WriteString(p.Text)
		parts = append(parts, p)
	}
	if most >= 0 && all.Len() > most {
		cut, at := newCut(all.String(), most), 0
		for i := range parts {
			text := parts[i].Text
			parts[i].Text = cut.of(text, at)
			at += len(text)
		}
		parts = lo.Without(parts, agent.Text(""))
	}
	return agent.ContentOf(parts...)
}

// cut is what stays of a text: the bytes before head, a note, the bytes from tail on.
type cut struct {
	head, tail int
	note       string
}

func newCut(text string, most int) cut {
	room := most - len(cutNote(len(text), len(text)))
	if room <= 0 { // none for words either
		return cut{head: runeStart(text, most, -1), tail: len(text)}
	}
	head := runeStart(text, room/2, -1)
	tail := runeStart(text, len(text)-(room-head), +1)
	return cut{head, tail, cutNote(tail-head, len(text))}
}

func cutNote(missing, total int) string {
	return fmt.Sprintf("\n[… %d of %d bytes left out …]\n", missing, total)
}

// runeStart is the nearest index from i on, in the given direction, that is between two runes.
func runeStart(text string, i, direction int) int {
	for 0 < i && i < len(text) && !utf8.RuneStart(text[i]) {
		i += direction
	}
	return i
}

// of is what stays of the piece of the text that begins at index at.
func (c cut) of(piece string, at int) string {
	head := min(max(0, c.head-at), len(piece))
	tail := min(max(0, c.tail-at), len(piece))
	if at <= c.head && c.head < at+len(piece) {
		return piece[:head] + c.note + piece[tail:]
	}
	return piece[:head] + piece[max(head, tail):]
}
