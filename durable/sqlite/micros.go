package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// micros is a time in its stored form: microseconds since 1970, NULL for the zero time.
type micros struct{ time.Time } //nolint:recvcheck // a Valuer is a value, a Scanner is scanned into

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// wholeMicros returns a time as it is after it was stored.
func wholeMicros(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return fromMicros(t.UnixMicro())
}

// Value implements driver.Valuer.
func (m micros) Value() (driver.Value, error) {
	if m.IsZero() {
		return nil, nil
	}
	return m.UnixMicro(), nil
}

// Scan implements sql.Scanner.
func (m *micros) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		m.Time = time.Time{}
	case int64:
		m.Time = fromMicros(v)
	default:
		return fmt.Errorf("a time is stored as %T", v)
	}
	return nil
}
