package condition

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common"

	"github.com/grapnel-go/grapnel/hooks"
)

// Error is one thing that is wrong with the text of a condition.
type Error struct {
	// Point is the hook point that it was compiled for.
	Point hooks.PointName
	// Text is the text of the condition, and Offset the place in it that is wrong, in bytes from 0. Line and Column say the
	// same from 1, the Column in bytes.
	Text                 string
	Offset, Line, Column int
	// Message says what is wrong, and Suggestion what may have been meant: a name, or nothing.
	Message    string
	Suggestion string
}

// Error returns the message with its place and, when there is one, the suggestion.
func (e *Error) Error() string {
	return fmt.Sprintf("condition at %s, %s: %s", e.Point, place(e.Line, e.Column), e.MessageWithHint())
}

// MessageWithHint returns the message with the suggestion and without the place.
func (e *Error) MessageWithHint() string {
	if e.Suggestion == "" {
		return e.Message
	}
	return fmt.Sprintf("%s: did you mean %s?", e.Message, e.Suggestion)
}

// Errors is everything that is wrong with a condition, in the order of the text. There is at least one.
type Errors []*Error

// Error returns all of them, a line each.
func (e Errors) Error() string {
	var b strings.Builder
	for i, one := range e {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(one.Error())
	}
	return b.String()
}

// Unwrap gives each of them to errors.As.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

func place(line, column int) string {
	if line == 1 {
		return fmt.Sprintf("column %d", column)
	}
	return fmt.Sprintf("line %d, column %d", line, column)
}

// wrongAt returns an error at a byte of the text.
func (d *dialect) wrongAt(text string, offset int, format string, args ...any) *Error {
	offset = min(offset, len(text))
	before := text[:offset]
	return &Error{
		Point: d.point, Text: text, Offset: offset, Message: fmt.Sprintf(format, args...),
		Line: 1 + strings.Count(before, "\n"), Column: offset - strings.LastIndexByte(before, '\n'),
	}
}

// offsetOf returns the byte at which a place of CEL is, which counts characters.
func offsetOf(text string, at common.Location) int {
	offset := 0
	for line := 1; line < at.Line(); line++ {
		next := strings.IndexByte(text[offset:], '\n')
		if next < 0 {
			return len(text)
		}
		offset += next + 1
	}
	return offset + skipCharacters(text[offset:], at.Column())
}

// skipCharacters returns how many bytes the first n characters take.
func skipCharacters(text string, n int) int {
	bytes := 0
	for ; n > 0 && bytes < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[bytes:])
		bytes += size
	}
	return bytes
}

// shortenText keeps the beginning of a text that is long.
func shortenText(text string) string {
	const most = 120
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
