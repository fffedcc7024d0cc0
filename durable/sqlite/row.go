package sqlite

import (
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// The types below store what a pointer points to, and scan into it.

// micros is a time as microseconds since 1970; NULL is the zero time.
type micros struct{ *time.Time }

// Value implements driver.Valuer.
func (m micros) Value() (driver.Value, error) {
	if m.IsZero() {
		return nil, nil
	}
	return m.UnixMicro(), nil
}

// Scan implements sql.Scanner.
func (m micros) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*m.Time = time.Time{}
	case int64:
		*m.Time = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time is stored as %T", v)
	}
	return nil
}

// moment is a time that is never NULL, so that its order is simple.
type moment struct{ micros }

// Value implements driver.Valuer.
func (m moment) Value() (driver.Value, error) { return m.UnixMicro(), nil }

// toFields returns what stores values of columns, and scans into them.
func toFields(values []any) []any {
	all := make([]any, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case *time.Time:
			all[i] = micros{v}
		case *store.Moment:
			all[i] = moment{micros{(*time.Time)(v)}}
		default:
			all[i] = v
		}
	}
	return all
}

// listKeys returns keys as a JSON list, in hexadecimal.
func listKeys(keys []durable.Key) any {
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = `"` + hex.EncodeToString(k[:]) + `"`
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// changedColumns returns the columns in which a run differs from the old one, and their new values.
func changedColumns(old, r store.Run) (columns []string, values []any, err error) {
	state := runs.StateColumns(&r)
	before, after := toFields(store.Values(runs.StateColumns(&old))), toFields(store.Values(state))
	for i, c := range state {
		was, err := driver.DefaultParameterConverter.ConvertValue(before[i])
		if err != nil {
			return nil, nil, err
		}
		is, err := driver.DefaultParameterConverter.ConvertValue(after[i])
		if err != nil {
			return nil, nil, err
		}
		if !reflect.DeepEqual(was, is) {
			columns, values = append(columns, c.Name), append(values, is)
		}
	}
	return columns, values, nil
}
