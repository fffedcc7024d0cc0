package invisible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// UnsafeTextError is returned for text that is not safe to show to people and to a model.
type UnsafeTextError struct {
	// What names the text, such as "the reason".
	What string
	// Limit is the maximum number of bytes.
	Limit int
}

func (e *UnsafeTextError) Error() string {
	return fmt.Sprintf("%s must be UTF-8 of at most %d bytes, without control characters and other invisible ones", e.What, e.Limit)
}

// Limits for what people write, in bytes.
const (
	MaxName   = 200
	MaxReason = 8 << 10
)

// IsStorable reports whether every store takes a text: some refuse control characters and other encodings than UTF-8.
func IsStorable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// CheckName returns an *UnsafeTextError when a name is not safe to show.
func CheckName(what, name string) error { return check(what, name, MaxName, "") }

// CheckText returns an *UnsafeTextError when text, which may have several lines, is longer than the limit or not safe to show.
func CheckText(what, text string, limit int) error { return check(what, text, limit, "\r\n\t") }

func check(what, text string, limit int, also string) error {
	unsafe := func(r rune) bool {
		hides := unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || IsDeceptive(r)
		return hides && !strings.ContainsRune(also, r)
	}
	if len(text) > limit || !utf8.ValidString(text) || strings.ContainsFunc(text, unsafe) {
		return &UnsafeTextError{what, limit}
	}
	return nil
}
