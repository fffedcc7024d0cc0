package openai

import (
	"strings"
	"unicode/utf8"
)

// textPieces is text that arrives in pieces, which may end inside a character. The text is always valid
// UTF-8.
type textPieces struct {
	whole strings.Builder
	rest  string // an incomplete character
}

// add adds a piece and returns the text that is complete, including earlier text that was held back.
func (t *textPieces) add(piece string) string {
	piece = t.rest + piece
	cut := len(piece)
	for i := len(piece) - 1; i >= max(0, len(piece)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(piece[i]) {
			if !utf8.FullRuneInString(piece[i:]) {
				cut = i
			}
			break
		}
	}
	t.rest = piece[cut:]
	return t.write(piece[:cut])
}

// end returns the replacement for a character that was never completed.
func (t *textPieces) end() string {
	rest := t.rest
	t.rest = ""
	return t.write(rest)
}

// fill completes the text with the missing end of whole, and returns that end. If whole does not begin with the pieces,
// they stay unchanged.
func (t *textPieces) fill(whole string) string {
	whole = strings.ToValidUTF8(whole, "\uFFFD")
	rest, ok := strings.CutPrefix(whole, t.whole.String())
	if !ok {
		return t.end()
	}
	t.rest = ""
	return t.write(rest)
}

func (t *textPieces) write(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	t.whole.WriteString(text)
	return text
}

func (t *textPieces) String() string { return t.whole.String() }
