package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

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
	t = t.Truncate(time.Microsecond)
	return &t
}
