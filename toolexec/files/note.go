package files

import (
	"strconv"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
)

// noted returns content with a note in brackets, in a part of its own so that it is not taken for text.
func noted(text string, notes ...string) agent.Content {
	note := agent.Text("[" + strings.Join(notes, "; ") + "]")
	if text == "" {
		return agent.ContentOf(note)
	}
	if !strings.HasSuffix(text, "\n") {
		note.Text = "\n" + note.Text
	}
	return agent.ContentOf(agent.Text(text), note)
}

// count returns a number with its noun.
func count[N int | int64](n N, noun string) string {
	return strconv.FormatInt(int64(n), 10) + " " + noun + map[bool]string{false: "s"}[n == 1]
}
