package postgres

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

// text is a string of any bytes in a column of type text. PostgreSQL accepts no zero byte and only UTF-8 there, and the
// id of a call comes from a model: one that cannot be stored would block its run for good. Such a string, and any string
// that looks like its stored form, is stored as \x and hexadecimal digits.
type text string //nolint:recvcheck // a value is written, and read into a pointer

const escaped = `\x`

// TextValue returns the stored form.
func (t text) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: storedText(t), Valid: true}, nil
}

// storedText returns the stored form of a string.
func storedText[S ~string](of S) string {
	s := string(of)
	if strings.HasPrefix(s, escaped) || strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		s = escaped + hex.EncodeToString([]byte(s))
	}
	return s
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
func texts[S ~string](all []S) []string { return column(all, storedText[S]) }

// column returns a value of each row, for unnest.
func column[R, V any](rows []R, value func(R) V) []V {
	all := make([]V, len(rows))
	for i, r := range rows {
		all[i] = value(r)
	}
	return all
}

// textsOf returns the stored form of a string of each row.
func textsOf[R any, S ~string](rows []R, value func(R) S) []string {
	return column(rows, func(r R) string { return storedText(value(r)) })
}

// timesOf returns the stored form of a time of each row.
func timesOf[R any](rows []R, value func(R) time.Time) []*time.Time {
	return column(rows, func(r R) *time.Time { return orNull(value(r)) })
}
