package condition

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common"

	"github.com/grapnel-go/grapnel/hooks"
)

// Error is one error in the text of a condition.
type Error struct {
	// Point is the hook point for which the condition was compiled.
	Point hooks.PointName
	// Text is the condition's text. Offset is the error's byte offset, from 0; Line and Column give the same place
	// from 1, Column in bytes.
	Text                 string
	Offset, Line, Column int
	// Message describes the error. Suggestion is the name that was probably meant, or empty.
	Message    string
	Suggestion string
}

// Error returns the message with its place and its suggestion, if any.
func (e *Error) Error() string {
	return fmt.Sprintf("condition at %s, %s: %s", e.Point, place(e.Line, e.Column), e.MessageWithHint())
}

// MessageWithHint returns the message with its suggestion, if any, without the place.
func (e *Error) MessageWithHint() string {
	if e.Suggestion == "" {
		return e.Message
	}
	return fmt.Sprintf("%s: did you mean %s?", e.Message, e.Suggestion)
}

// Errors holds all of a condition's errors in text order. It is never empty.
type Errors []*Error

// Error returns all errors, one per line.
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

// Unwrap returns the errors, for errors.As.
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

// offsetOf converts a CEL location, which counts characters, to a byte offset.
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

// skipCharacters returns the length in bytes of the first n characters.
func skipCharacters(text string, n int) int {
	bytes := 0
	for ; n > 0 && bytes < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[bytes:])
		bytes += size
	}
	return bytes
}

// shortenText cuts long text to its beginning.
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
