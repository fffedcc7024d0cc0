package action

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// FieldError says what is wrong with one field of a declared action.
type FieldError struct {
	// Field is the name that it has in files, with what is inside of it behind a dot: "url", "headers.Accept".
	Field string
	// Message says what is wrong and what would be right.
	Message string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// Fields returns every FieldError in what Validate or Action returned.
func Fields(err error) []*FieldError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // one level at a time
		var all []*FieldError
		for _, e := range joined.Unwrap() {
			all = append(all, Fields(e)...)
		}
		return all
	}
	if field, ok := errors.AsType[*FieldError](err); ok {
		return []*FieldError{field}
	}
	if inner := errors.Unwrap(err); inner != nil {
		return Fields(inner)
	}
	return nil
}

// Warning is something that is allowed and most likely not meant.
type Warning struct {
	// Field is where, as in FieldError. Line and Column, from one, are where in the text of the field; zero when that
	// says nothing. Columns count bytes.
	Field        string
	Line, Column int
	// Text is the piece that is meant, and Message says what is wrong with it and what would be right.
	Text, Message string
}

func (w Warning) String() string {
	if w.Line == 0 {
		return fmt.Sprintf("%s: %s", w.Field, w.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", w.Field, w.Line, w.Column, w.Text, w.Message)
}

// problems gathers what is wrong with the fields of an action.
type problems []error

func (p *problems) say(field, format string, args ...any) {
	*p = append(*p, &FieldError{field, fmt.Sprintf(format, args...)})
}

func (p *problems) join() error { return errors.Join(*p...) }

// times checks durations and sizes, which must not be negative.
func (p *problems) times(named map[string]time.Duration) {
	for _, name := range slices.Sorted(maps.Keys(named)) {
		switch d := named[name]; {
		case d < 0:
			p.say(name, "%v is negative: leave it out for the default", d)
		case d > maxTimeout:
			p.say(name, "%v is too long: %v is the most", d, maxTimeout)
		}
	}
}

// maxTimeout is the longest that anything may take: a month.
const maxTimeout = 31 * 24 * time.Hour
