package invisible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// IsShown reports whether people can see a character.
func IsShown(r rune) bool { return unicode.IsPrint(r) && !IsInvisible(r) }

// IsDeceptive reports whether a character makes text look different from its content: it changes the direction of
// text, or models can read it but people cannot see it.
func IsDeceptive(r rune) bool {
	return 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 || 0xe0000 <= r && r <= 0xe007f
}

// Clean makes text safe to show on a terminal or a page. It replaces control characters by visible symbols, so that
// no sequence can move the cursor, change a colour, set a title or send input on the reader's behalf. It replaces
// characters that reorder or hide text by the replacement character. It keeps line feeds, expands tabs to spaces and
// removes carriage returns.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\r', r == 0xfeff:
			return -1
		case r < ' ':
			return 0x2400 + r // the symbol for the control character, such as ␛ for escape
		case r == 0x7f:
			return '␡'
		case IsDeceptive(r), unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp):
			return utf8.RuneError
		}
		return r
	}, strings.ReplaceAll(text, "\t", "    "))
}

// Escape writes invisible characters, and characters that change the direction of text, as JSON escapes. It keeps line
// feeds and tabs.
func Escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t' || IsShown(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
