package backtest

import (
	"strings"
	"unicode/utf8"
)

// Clean makes a text of a recording safe to show on a terminal or a page. It replaces control characters by visible
// symbols, and characters that reorder or hide text by the replacement character. It keeps line feeds, expands tabs
// to spaces and removes carriage returns.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
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
			r == 0x200e, r == 0x200f, r == 0x2028, r == 0x2029,
			r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, // characters that change the direction of text
			r >= 0xe0000 && r <= 0xe007f: // invisible tag characters
			return utf8.RuneError
		}
		return r
	}, strings.ReplaceAll(text, "\t", "    "))
}

// line returns a text cleaned, on one line and shortened to a number of characters.
func line(text string, most int) string {
	text = strings.Join(strings.Fields(Clean(text)), " ")
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}
