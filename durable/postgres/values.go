package postgres

import (
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// arguments returns the stored forms of arguments.
func arguments(values []any) []any { return columnOf(values, storedForm) }

func storedForm(v any) any {
	switch v := v.(type) {
	case string:
		return storedText(v)
	case *string:
		return storedText(*v)
	case *[]byte:
		return *v
	case store.Fixed:
		value, _ := v.Value()
		data, _ := value.([]byte)
		return data
	case *bool:
		return *v
	case *int8:
		return int16(*v)
	case *int:
		return int64(*v)
	case *int64:
		return *v
	case *time.Time:
		return orNull(*v)
	case *store.Moment:
		return new(time.Time(*v).Truncate(time.Microsecond))
	case driver.Valuer:
		return lo.Must(v.Value()) // of texts; only a year of five digits cannot be written
	}
	return v
}

// arrayOf returns column i of rows.
func arrayOf[V any](rows [][]any, i int) []V {
	return columnOf(rows, func(r []any) V {
		v, _ := r[i].(V) // as in the first row
		return v
	})
}

// toArrays returns the columns of rows of arguments.
func toArrays(rows [][]any) []any {
	all := make([]any, len(rows[0]))
	for i, v := range rows[0] {
		switch v.(type) {
		case string:
			all[i] = arrayOf[string](rows, i)
		case []byte:
			all[i] = arrayOf[[]byte](rows, i)
		case bool:
			all[i] = arrayOf[bool](rows, i)
		case int16:
			all[i] = arrayOf[int16](rows, i)
		case int64:
			all[i] = arrayOf[int64](rows, i)
		case *time.Time:
			all[i] = arrayOf[*time.Time](rows, i)
		}
	}
	return all
}

// arrayType returns the type of an array in the database.
func arrayType(array any) string {
	switch array.(type) {
	case [][]byte:
		return "bytea[]"
	case []bool:
		return "boolean[]"
	case []int16:
		return "smallint[]"
	case []int64:
		return "bigint[]"
	case []*time.Time:
		return "timestamptz[]"
	}
	return "text[]"
}

// insertStatement returns the statement that stores rows of arguments.
func insertStatement(into *store.Insertion, rows [][]any) (sql string, args []any) {
	parameter := func(n int) string { return fmt.Sprintf("$%d", n) }
	if len(rows) == 1 {
		return into.Statement(parameter), rows[0]
	}
	args = toArrays(rows)
	columns := strings.Join(into.Columns, ", ")
	selected := lo.Map(into.Columns, func(c string, _ int) string { return "n." + c })
	if into.Lookup != "" {
		selected[0] = "(" + into.Lookup + selected[0] + ")"
	}
	lists := lo.Map(args, func(array any, i int) string { return parameter(i+1) + "::" + arrayType(array) })
	return `INSERT INTO ` + into.Table + ` (` + columns + `) SELECT ` + strings.Join(selected, ", ") + ` FROM unnest(` + strings.Join(lists, ", ") +
		`) WITH ORDINALITY n (` + columns + `, nth) ORDER BY n.nth` + into.Conflict, args
}

// scanTargets returns what the values of columns are scanned into.
func scanTargets(values []any) []any {
	return columnOf(values, func(v any) any {
		switch v := v.(type) {
		case *string:
			return (*text)(v)
		case *time.Time:
			return when{v}
		case *store.Moment:
			return when{(*time.Time)(v)}
		}
		return v
	})
}

// text is a string of any bytes in a column of type text. PostgreSQL accepts no zero byte and only UTF-8 there, and the
// id of a call comes from a model: one that cannot be stored would block its run for good. Such a string, and any string
// that looks like its stored form, is stored as \x and hexadecimal digits.
type text string

const escaped = `\x`

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

// when reads a time that may be null, which is the zero time, into To.
type when struct{ To *time.Time }

// ScanTimestamptz sets To.
func (w when) ScanTimestamptz(v pgtype.Timestamptz) error {
	*w.To = time.Time{}
	if v.Valid {
		*w.To = v.Time.UTC()
	}
	return nil
}

// orNull returns the stored form of a time: rounded to the microsecond, null for the zero time.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.Truncate(time.Microsecond))
}

// storedTexts returns the stored forms of strings.
func storedTexts[S ~string](all []S) []string { return columnOf(all, storedText[S]) }

// columnOf returns a value of each row, for unnest.
func columnOf[R, V any](rows []R, value func(R) V) []V {
	all := make([]V, len(rows))
	for i, r := range rows {
		all[i] = value(r)
	}
	return all
}
