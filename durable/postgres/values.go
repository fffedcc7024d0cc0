package postgres

import (
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"slices"
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

// rowsIn returns a FROM item with rows of arguments, under a name, whose parameters begin with a number: one row, or the arrays of many.
// The last column, nth, counts the rows. A single row takes a quarter less time than arrays.
func rowsIn(name string, columns []string, rows [][]any, first int) string {
	parameters := lo.Map(rows[0], func(v any, i int) string { return fmt.Sprintf("$%d::%s", first+i, typeOf(v)) })
	names := name + " (" + strings.Join(columns, ", ") + ", nth)"
	if len(rows) == 1 {
		return "(VALUES (" + strings.Join(parameters, ", ") + ", 1)) " + names
	}
	return "unnest(" + strings.Join(parameters, "[], ") + "[]) WITH ORDINALITY " + names
}

// typeOf returns the type of an argument in the database.
func typeOf(v any) string {
	switch v.(type) {
	case []byte:
		return "bytea"
	case bool:
		return "boolean"
	case int16:
		return "smallint"
	case int64:
		return "bigint"
	case *time.Time:
		return "timestamptz"
	}
	return "text"
}

// argumentsOf returns the arguments for rowsIn.
func argumentsOf(rows [][]any) []any {
	if len(rows) < 2 {
		return slices.Concat(rows...)
	}
	return lo.Map(rows[0], func(_ any, i int) any { return columnOf(rows, func(r []any) any { return r[i] }) })
}

// insertStatement returns the statement that stores rows of arguments.
func insertStatement(into *store.Insertion, rows [][]any) (sql string, args []any) {
	if len(rows) == 1 {
		return into.Statement(), rows[0]
	}
	selected := lo.Map(into.Columns, func(c string, _ int) string { return "n." + c })
	if into.Lookup != "" {
		selected[0] = "(" + into.Lookup + selected[0] + ")"
	}
	return `INSERT INTO ` + into.Table + ` (` + strings.Join(into.Columns, ", ") + `) SELECT ` + strings.Join(selected, ", ") + ` FROM ` +
		rowsIn("n", into.Columns, rows, 1) + ` ORDER BY n.nth` + into.Conflict, argumentsOf(rows)
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
