package timeline

import (
	"strings"
	"unicode/utf8"
)

// Clean sanitizes a text for a terminal. It replaces control characters by visible symbols, so that no sequence can
// move the cursor, change a colour, set a title or send input in the reader's name, and characters that reorder or
// hide text by a replacement character. It keeps line ends, expands tabs to spaces and removes carriage returns.
func Clean(text string) string { return strings.Map(cleanRune, strings.ReplaceAll(text, "\t", "    ")) }

func cleanRune(r rune) rune {
	switch {
	case r == '\n':
		return r
	case r == '\r', r == 0xfeff:
		return -1
	case r < ' ':
		return 0x2400 + r // the symbol of the control character, such as ␛ for escape
	case r == 0x7f:
		return '␡'
	case r >= 0x80 && r < 0xa0, // C1 control characters
		r == 0x2028, r == 0x2029, // line and paragraph separators
		r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, // changes of the text direction
		r >= 0xe0000 && r <= 0xe007f: // invisible tag characters
		return utf8.RuneError
	}
	return r
}

// oneLine returns a sanitized text on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(Clean(text)), " ") }
