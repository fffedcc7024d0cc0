package action

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// FieldError describes one invalid field of a declared action.
type FieldError struct {
	// Field is the field's name in files, with nested names after a dot: "url", "headers.Accept".
	Field string
	// Message says what is wrong and what is expected.
	Message string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// Fields returns the FieldErrors in err, in order. It is empty if there are none.
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

// Warning describes a setting that is valid but probably a mistake.
type Warning struct {
	// Field is as in FieldError. Line and Column give the position in the field's text, counted from one; zero when
	// they do not apply. Columns count bytes.
	Field        string
	Line, Column int
	// Text is the affected part of the text. Message says what is wrong with it and what is expected.
	Text, Message string
}

func (w Warning) String() string {
	if w.Line == 0 {
		return fmt.Sprintf("%s: %s", w.Field, w.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", w.Field, w.Line, w.Column, w.Text, w.Message)
}

// problems collects the errors in an action's fields.
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
			p.say(name, "%v is negative: omit it to use the default", d)
		case d > maxTimeout:
			p.say(name, "%v is too long: the maximum is %v", d, maxTimeout)
		}
	}
}

// maxTimeout is an action's longest time limit: 31 days.
const maxTimeout = 31 * 24 * time.Hour
