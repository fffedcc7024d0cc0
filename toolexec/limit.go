package toolexec

import (
	"strings"
	"unicode/utf8"

	"github.com/grapnel-go/grapnel/agent"
)

// invalidBytes replaces bytes that are not valid UTF-8.
const invalidBytes = string(utf8.RuneError)

// validText returns content with valid UTF-8 text.
func validText(c agent.Content) agent.Content {
	if c.IsText() {
		if utf8.ValidString(c.Text()) {
			return c
		}
		return agent.TextContent(strings.ToValidUTF8(c.Text(), invalidBytes))
	}
	parts := make([]agent.Part, 0, c.Len())
	for _, p := range c.Parts() {
		p.Text = strings.ToValidUTF8(p.Text, invalidBytes)
		parts = append(parts, p)
	}
	return agent.ContentOf(parts...)
}
