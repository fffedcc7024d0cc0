package backtest

import (
	"strings"
	"unicode/utf8"
)

// Clean makes a text of a recording harmless for a terminal and for a page: control characters become visible signs,
// what reorders text or hides in it becomes a replacement character. Line ends stay, tabs become spaces, carriage
// returns go.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\r', r == 0xfeff:
			return -1
		case r < ' ':
			return 0x2400 + r // the sign for the control character: ␛ for escape
		case r == 0x7f:
			return '␡'
		case r >= 0x80 && r < 0xa0, // the second set of control characters
			r == 0x200e, r == 0x200f, r == 0x2028, r == 0x2029,
			r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, // text that runs the other way
			r >= 0xe0000 && r <= 0xe007f: // letters that are not visible
			return utf8.RuneError
		}
		return r
	}, strings.ReplaceAll(text, "\t", "    "))
}

// line returns a text on one line, of so many characters at most, made harmless.
func line(text string, most int) string {
	text = strings.Join(strings.Fields(Clean(text)), " ")
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}
