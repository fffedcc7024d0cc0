package postgres

import (
	"fmt"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// targets returns what columns are scanned into.
func targets(columns []store.Column) []any {
	return column(columns, func(c store.Column) any {
		switch v := c.Value.(type) {
		case *string:
			return (*text)(v)
		case *time.Time:
			return when{v}
		case *store.Moment:
			return when{(*time.Time)(v)}
		case *[32]byte:
			return digestBytes{v}
		case *map[string]string:
			return pairs{v}
		case *[]durable.Answer:
			return partial{v}
		}
		return c.Value
	})
}

// digestBytes reads 32 bytes into To; null is zero.
type digestBytes struct{ To *[32]byte }

// ScanBytes sets To.
func (d digestBytes) ScanBytes(v []byte) error {
	*d.To = [32]byte{}
	copy(d.To[:], v)
	return nil
}

// array is a column of some rows, for unnest.
type array struct {
	kind   string // of the elements
	values any
}

func arrayOf[V, E any](rows [][]store.Column, i int, kind string, element func(v V) E) array {
	return array{kind, column(rows, func(r []store.Column) E {
		v, _ := r[i].Value.(*V) // as in the first row
		return element(*v)
	})}
}

// arrayAt returns column i of rows.
func arrayAt(rows [][]store.Column, i int) array {
	switch rows[0][i].Value.(type) {
	case *string:
		return arrayOf(rows, i, "text", storedText[string])
	case *bool:
		return arrayOf(rows, i, "boolean", func(v bool) bool { return v })
	case *int8:
		return arrayOf(rows, i, "smallint", func(v int8) int16 { return int16(v) })
	case *int:
		return arrayOf(rows, i, "bigint", func(v int) int64 { return int64(v) })
	case *int64:
		return arrayOf(rows, i, "bigint", func(v int64) int64 { return v })
	case *[]byte:
		return arrayOf(rows, i, "bytea", func(v []byte) []byte {
			if len(v) == 0 {
				return nil
			}
			return v
		})
	case *[32]byte:
		return arrayOf(rows, i, "bytea", func(v [32]byte) []byte {
			if v == [32]byte{} {
				return nil
			}
			return v[:]
		})
	case *time.Time:
		return arrayOf(rows, i, "timestamptz", orNull)
	case *store.Moment:
		return arrayOf(rows, i, "timestamptz", func(v store.Moment) time.Time { return time.Time(v).Truncate(time.Microsecond) })
	case *map[string]string:
		return arrayOf(rows, i, "text", pairsText)
	case *[]durable.Answer:
		return arrayOf(rows, i, "text", partialText)
	}
	panic(fmt.Sprintf("the column %s is a %T", rows[0][i].Name, rows[0][i].Value))
}

// arrays returns the columns of rows: the arguments of unnestOf.
func arrays[R any](rows []R, columns func(R) []store.Column) []any {
	all := column(rows, columns)
	values := make([]any, len(all[0]))
	for i := range values {
		values[i] = arrayAt(all, i).values
	}
	return values
}

// unnestOf returns the rows n of the arguments that arrays returns; n.nth counts them.
func unnestOf(columns []store.Column) string {
	parameters := make([]string, len(columns))
	for i := range columns {
		parameters[i] = fmt.Sprintf("$%d::%s[]", i+1, arrayAt([][]store.Column{columns}, i).kind)
	}
	return "unnest(" + strings.Join(parameters, ", ") + ") WITH ORDINALITY n (" + store.Names("", columns) + ", nth)"
}

// assignmentsOf returns assignments of the columns of n.
func assignmentsOf(columns []store.Column) string {
	return strings.Join(column(columns, func(c store.Column) string { return c.Name + " = n." + c.Name }), ", ")
}
