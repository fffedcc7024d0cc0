package hooks

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// filteredError replaces an error that a filter changed or could not fully inspect, or that a hook replaced or
// withheld. It does not contain the original. It keeps the original's kind and whether it is retryable. errors.Is still
// finds context.Canceled, context.DeadlineExceeded and agent.ErrSuspended. A stop as an error remains a stop, with a
// filtered signal.
type filteredError struct {
	text      string
	kind      agent.ErrorKind
	after     time.Duration
	retryable bool
	signal    *agent.SignalError
	sentinels []error
}

func (e *filteredError) Error() string { return e.text }

// ErrorKind returns the original's kind.
func (e *filteredError) ErrorKind() agent.ErrorKind { return e.kind }

// RetryAfter returns how long the original says to wait before a retry. It returns zero when the original does not say.
func (e *filteredError) RetryAfter() time.Duration { return e.after }

// Is reports whether target is one of the errors that errors.Is still finds, and the original was that error.
func (e *filteredError) Is(target error) bool {
	return slices.Contains(e.sentinels, target)
}

// Unwrap returns the filtered stop if the original was a stop, or nil.
func (e *filteredError) Unwrap() error {
	if e.signal == nil {
		return nil
	}
	return e.signal
}

// Retryable reports whether the original is retryable. If the original does not say, its kind decides.
func (e *filteredError) Retryable() bool { return e.retryable }

// standingFor returns a replacement for the original error, with another text. The original may be nil.
func standingFor(original error, text string) *filteredError {
	e := &filteredError{text: text, kind: agent.KindOf(original), retryable: agent.Retryable(original)}
	for _, s := range []error{context.Canceled, context.DeadlineExceeded, agent.ErrSuspended} {
		if errors.Is(original, s) {
			e.sentinels = append(e.sentinels, s)
		}
	}
	var waits interface{ RetryAfter() time.Duration }
	if errors.As(original, &waits) {
		e.after = waits.RetryAfter()
	}
	return e
}

// filterError returns err, or a replacement if the filters change a text in err or cannot inspect all of it.
func (l filters) filterError(err error) error {
	if err == nil || len(l) == 0 {
		return err
	}
	seen := sight{filters: l}
	if seen.lookAtError(err); !seen.changed && !seen.hidden {
		return err
	}
	out := standingFor(err, l.filterEach(fmt.Sprint(err)))
	if stop, ok := errors.AsType[*agent.SignalError](err); ok {
		out.signal = &agent.SignalError{Signal: stop.Signal.MapText(l.filterEach)}
	}
	return out
}

// changes reports whether the filters change a text.
func (l filters) changes(text string) bool { return l.filterEach(text) != text }

// sight inspects everything that an error holds.
type sight struct {
	filters filters
	changed bool // a filter changes a text in it
	hidden  bool // it holds a value that cannot be inspected
	values  int
}

// The limits for an inspection. Anything deeper, or more, counts as hidden.
const (
	sightDepth  = 16
	sightValues = 10_000
)

// lookAtError inspects an error's text, the errors that it wraps, and the values that they hold.
func (v *sight) lookAtError(err error) {
	if err == nil || v.changed || v.hidden {
		return
	}
	v.lookAtText(fmt.Sprintf("%v", err))
	v.lookAtText(fmt.Sprintf("%+v", err))
	v.lookAt(reflect.ValueOf(err), 0)
	switch wraps := err.(type) { //nolint:errorlint // each wrapped error is inspected in turn
	case interface{ Unwrap() error }:
		v.lookAtError(wraps.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range wraps.Unwrap() {
			v.lookAtError(one)
		}
	}
}

func (v *sight) lookAtText(text string) { v.changed = v.changed || v.filters.changes(text) }

var (
	timeType = reflect.TypeFor[time.Time]()
	typeType = reflect.TypeFor[reflect.Type]()
)

// lookAt inspects a value, and the values that it points to. It skips values that can change concurrently: locks,
// structs with a lock, channels and funcs.
func (v *sight) lookAt(x reflect.Value, depth int) {
	if v.values++; v.changed || v.hidden || !x.IsValid() {
		return
	}
	if depth > sightDepth || v.values > sightValues {
		v.hidden = true
		return
	}
	if x.Type() == timeType || x.Type().Implements(typeType) {
		return
	}
	switch x.Kind() {
	case reflect.String:
		v.lookAtText(x.String())
	case reflect.Pointer, reflect.Interface:
		if !x.IsNil() {
			v.lookAt(x.Elem(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		if x.Type().Elem().Kind() == reflect.Uint8 {
			v.bytes(x)
			return
		}
		for i := range x.Len() {
			v.lookAt(x.Index(i), depth+1)
		}
	case reflect.Map:
		for name, value := range x.Seq2() {
			v.lookAt(name, depth+1)
			v.lookAt(value, depth+1)
		}
	case reflect.Struct:
		if path := x.Type().PkgPath(); path == "sync" || path == "sync/atomic" || holdsLock(x.Type()) {
			v.hidden = true
			return
		}
		for _, field := range x.Fields() {
			v.lookAt(field, depth+1)
		}
	case reflect.Chan, reflect.Func, reflect.UnsafePointer:
		v.hidden = v.hidden || !x.IsNil()
	}
}

// bytes inspects bytes as a text.
func (v *sight) bytes(x reflect.Value) {
	text := make([]byte, x.Len())
	for i := range text {
		text[i] = byte(x.Index(i).Uint()) //nolint:gosec // a byte of a number
	}
	v.lookAtText(string(text))
}

// holdsLock reports whether a struct has a lock or an atomic field, so that other goroutines may change it.
func holdsLock(t reflect.Type) bool {
	for field := range t.Fields() {
		if path := field.Type.PkgPath(); path == "sync" || path == "sync/atomic" {
			return true
		}
	}
	return false
}
