package postgres

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/samber/lo"
)

// text is a string of any bytes in a column of type text. PostgreSQL accepts no zero byte and only UTF-8 there, and the
// id of a call comes from a model: one that cannot be stored would block its run for good. Such a string, and any string
// that looks like its stored form, is stored as \x and hexadecimal digits.
type text string //nolint:recvcheck // a value is written, and read into a pointer

const escaped = `\x`

// TextValue returns the stored form.
func (t text) TextValue() (pgtype.Text, error) {
	s := string(t)
	if strings.HasPrefix(s, escaped) || strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		s = escaped + hex.EncodeToString([]byte(s))
	}
	return pgtype.Text{String: s, Valid: true}, nil
}

// ScanText decodes the stored form.
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

// texts returns the stored forms of strings.
func texts[S ~string](all []S) []text {
	return lo.Map(all, func(s S, _ int) text { return text(s) })
}
