package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// when reads a time that may be null, which is the zero time, into To.
type when struct{ To *time.Time }

// ScanTimestamptz takes what was read.
func (w when) ScanTimestamptz(v pgtype.Timestamptz) error {
	*w.To = time.Time{}
	if v.Valid {
		*w.To = v.Time.UTC()
	}
	return nil
}

// orNull returns a time as it is written: to the microsecond, the zero time as null.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.Truncate(time.Microsecond)
	return &t
}
