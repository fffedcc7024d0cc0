package files

import (
	"strconv"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
)

// withNotes returns the text, and the notes in brackets as a separate part, so that they cannot be mistaken for file
// text.
func withNotes(text string, notes ...string) agent.Content {
	note := agent.Text("[" + strings.Join(notes, "; ") + "]")
	if text == "" {
		return agent.ContentOf(note)
	}
	if !strings.HasSuffix(text, "\n") {
		note.Text = "\n" + note.Text
	}
	return agent.ContentOf(agent.Text(text), note)
}

// countNoun returns a number with its noun.
func countNoun[N int | int64](n N, noun string) string {
	return strconv.FormatInt(int64(n), 10) + " " + noun + map[bool]string{false: "s"}[n == 1]
}
