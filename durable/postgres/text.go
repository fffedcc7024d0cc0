package postgres

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

// text is a string of any bytes in a column of type text. PostgreSQL takes no zero
// byte there and nothing but UTF-8, and the id of a call is what a model made up: one
// that cannot be written down would stop its run for good. Such a string, and any that
// could be mistaken for one, is written as \x and hexadecimal digits.
type text string //nolint:recvcheck // a value is written, and read into a pointer

const escaped = `\x`

// TextValue returns what is written.
func (t text) TextValue() (pgtype.Text, error) {
	s := string(t)
	if strings.HasPrefix(s, escaped) || strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		s = escaped + hex.EncodeToString([]byte(s))
	}
	return pgtype.Text{String: s, Valid: true}, nil
}

// ScanText takes what was read.
func (t *text) ScanText(v pgtype.Text) error {
	digits, is := strings.CutPrefix(v.String, escaped)
	if !is {
		*t = text(v.String)
		return nil
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return fmt.Errorf("read %q: after \\x stand hexadecimal digits: %w", v.String, err)
	}
	*t = text(b)
	return nil
}
