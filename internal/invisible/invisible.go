// Package invisible removes characters that do not print, so that a search finds text that they split: soft hyphens,
// zero-width and bidirectional marks, variation selectors, control characters and terminal escape sequences.
//
//	hidden, ok := invisible.Remove("ghp\u00ad_abc")
//	// hidden.Visible is "ghp_abc", and hidden.Span(0, 4) is the place of "ghp\u00ad_" in the original.
//
// Replace searches the visible text, replaces the matches in the original, and changes no other byte.
// Clean makes text safe to show.
package invisible

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/grapnel-go/grapnel/internal/lazy"
)

// Text is text without some of its characters.
type Text struct {
	Visible string
	at      []int // by byte of Visible, its index in the original
}

// Span returns the indexes in the original of a non-empty part of Visible.
func (t Text) Span(from, to int) (start, end int) { return t.at[from], t.at[to-1] + 1 }

// Match is a part of a visible text to replace. Start and End delimit the complete match, such as a name with its
// value.
type Match struct {
	From, To, Start, End int
	With                 func() string
}

// Replace replaces matches that removed characters split, and leaves other matches for a search in the text itself.
// It merges overlapping matches into the first. It calls find for each way to read the text: a terminal also hides
// letters after an escape character, or a string such as a title, other readers hide only the escape character.
func Replace(text string, find func(Text) []Match) string { return replaceSplit(text, false, find) }

// ReplaceOverBreaks works like Replace but also removes line breaks.
func ReplaceOverBreaks(text string, find func(Text) []Match) string {
	return replaceSplit(text, true, find)
}

func replaceSplit(text string, breaks bool, find func(Text) []Match) string {
	var matches []Match // with indexes in the text
	readings := []func() *regexp.Regexp{escapeOnly}
	if strings.ContainsFunc(text, isEscape) {
		readings = append(readings, longSequence, sequence)
	}
	for _, escape := range readings {
		visible, ok := removeFrom(text, breaks, escape)
		if !ok {
			continue
		}
		for _, m := range find(visible) {
			if start, end := visible.Span(m.Start, m.End); end-start > m.End-m.Start {
				m.From, m.To = visible.Span(m.From, m.To)
				matches = append(matches, m)
			}
		}
	}
	slices.SortStableFunc(matches, func(a, b Match) int { return a.From - b.From })
	var b strings.Builder
	done := 0
	for i := 0; i < len(matches); {
		m := matches[i]
		for i++; i < len(matches) && matches[i].From < m.To; i++ {
			m.To = max(m.To, matches[i].To)
		}
		b.WriteString(text[done:m.From] + m.With())
		done = m.To
	}
	return b.String() + text[done:]
}

// Remove returns text without characters that do not print. It returns false if there are none. It keeps line feeds,
// tabs, and carriage returns before a line feed.
func Remove(text string) (Text, bool) { return removeFrom(text, false, sequence) }

// sequence matches a terminal escape sequence. longSequence matches only control sequences and strings, such as titles.
// escapeOnly matches nothing.
var (
	sequence     = lazy.Regexp(`^(?:` + long + `|\x1b(?:[0-Z\\^-~]|[ -/]+[0-~]))`)
	longSequence = lazy.Regexp(`^(?:` + long + `)`)
	escapeOnly   = lazy.Regexp(`^$`)
)

const long = `(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x{9d})[^\x07` + begins + `\x{9c}]{0,999}(?:\x07|\x1b\\|\x{9c})|` +
	`(?:\x1b[PX^_]|[\x{90}\x{98}\x{9e}\x{9f}])[^` + begins + `\x{9c}]{0,999}(?:\x1b\\|\x{9c})`

// begins lists the characters of isEscape. A string ends before another, so that each byte is read once.
const begins = `\x1b\x{90}\x{98}\x{9b}\x{9d}-\x{9f}`

// isEscape reports whether a character begins a terminal escape sequence.
func isEscape(r rune) bool {
	switch r {
	case '\x1b', '\u0090', '\u0098', '\u009b', '\u009d', '\u009e', '\u009f':
		return true
	}
	return false
}

func removeFrom(text string, breaks bool, escape func() *regexp.Regexp) (Text, bool) {
	if !hasAny(text, breaks) {
		return Text{}, false
	}
	visible, at := make([]byte, 0, len(text)), make([]int, 0, len(text))
	removed := false
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch isBreak := IsBreak(r) || r == '\r' && i+1 < len(text) && text[i+1] == '\n'; {
		case r == utf8.RuneError && size == 1:
		case isEscape(r):
			size = max(size, len(escape().FindString(text[i:min(len(text), i+1100)])))
			i, removed = i+size, true
			continue
		case isBreak && breaks, !isBreak && IsInvisible(r):
			i, removed = i+size, true
			continue
		}
		for end := i + size; i < end; i++ {
			visible, at = append(visible, text[i]), append(at, i)
		}
	}
	return Text{string(visible), at}, removed
}

// hasAny reports whether a text may contain a character to remove. It looks at each byte once.
func hasAny(text string, breaks bool) bool {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || c < ' ' && c != '\t' && (c != '\n' || breaks) || c == 0x7f {
			return true
		}
	}
	return false
}

// IsBreak reports whether a character ends a line: a line feed, or a line or paragraph separator.
func IsBreak(r rune) bool { return r == '\n' || r == '\u2028' || r == '\u2029' }

// IsInvisible reports whether a character does not print and is neither a tab nor a line feed: a control or format
// character, a variation selector, a filler, or a code point that is ignored.
func IsInvisible(r rune) bool {
	const brailleBlank = 0x2800
	if r < 0xa0 {
		return r != '\t' && r != '\n' && unicode.IsControl(r)
	}
	return r == brailleBlank || unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
