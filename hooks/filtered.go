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

// filteredError stands for an error in which a filter changed something, or could not see everything, and for one that
// a hook replaced or withheld. The original is not reachable from it. Its kind stays, so does what it said about
// being tried again, and errors.Is still finds context.Canceled, context.DeadlineExceeded and agent.ErrSuspended; a stop in the form of
// an error is one still, with a filtered signal.
type filteredError struct {
	text      string
	kind      agent.ErrorKind
	after     time.Duration
	retryable bool
	signal    *agent.SignalError
	sentinels []error
}

func (e *filteredError) Error() string { return e.text }

// ErrorKind returns the kind of the original.
func (e *filteredError) ErrorKind() agent.ErrorKind { return e.kind }

// RetryAfter returns how long the original wanted no other try; zero when it did not say.
func (e *filteredError) RetryAfter() time.Duration { return e.after }

// Is reports whether the original was such an end of a context, or such a suspension.
func (e *filteredError) Is(target error) bool {
	return slices.Contains(e.sentinels, target)
}

// Unwrap returns the stop that the original was, filtered, or nil.
func (e *filteredError) Unwrap() error {
	if e.signal == nil {
		return nil
	}
	return e.signal
}

// Retryable reports whether the original said that another try makes sense; where it did not say, its kind does.
func (e *filteredError) Retryable() bool { return e.retryable }

// standingFor returns an error with another text in the place of the original, which may be nil.
func standingFor(original error, text string) *filteredError {
	e := &filteredError{text: text, kind: agent.KindOf(original), retryable: true}
	for _, s := range []error{context.Canceled, context.DeadlineExceeded, agent.ErrSuspended} {
		if errors.Is(original, s) {
			e.sentinels = append(e.sentinels, s)
		}
	}
	var waits interface{ RetryAfter() time.Duration }
	if errors.As(original, &waits) {
		e.after = waits.RetryAfter()
	}
	var knows interface{ Retryable() bool }
	if errors.As(original, &knows) {
		e.retryable = knows.Retryable()
		return e
	}
	switch e.kind {
	case agent.KindInvalid, agent.KindBadRequest, agent.KindContextLength, agent.KindAuth:
		e.retryable = false
	}
	return e
}

// filterError returns err, or what stands for it when the filters change something in it, or cannot see all that is in it.
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

// sight is a look at all that an error holds.
type sight struct {
	filters filters
	changed bool // a filter changes a text in it
	hidden  bool // it holds what cannot be looked at
	values  int
}

// The bounds of a look: what is deeper, or more, is hidden.
const (
	sightDepth  = 16
	sightValues = 10_000
)

// lookAtError looks at an error as it reads, at those that it wraps, and at what they hold.
func (v *sight) lookAtError(err error) {
	if err == nil || v.changed || v.hidden {
		return
	}
	v.lookAtText(fmt.Sprintf("%v", err))
	v.lookAtText(fmt.Sprintf("%+v", err))
	v.lookAt(reflect.ValueOf(err), 0)
	switch wraps := err.(type) { //nolint:errorlint // one at a time
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

// lookAt looks at a value, and at what it points to. It does not touch what may change meanwhile: locks, what they stand
// beside, channels and funcs.
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

// bytes looks at bytes as a text.
func (v *sight) bytes(x reflect.Value) {
	text := make([]byte, x.Len())
	for i := range text {
		text[i] = byte(x.Index(i).Uint()) //nolint:gosec // a byte of a number
	}
	v.lookAtText(string(text))
}

// holdsLock reports whether a struct has a field that says that others may change it meanwhile.
func holdsLock(t reflect.Type) bool {
	for field := range t.Fields() {
		if path := field.Type.PkgPath(); path == "sync" || path == "sync/atomic" {
			return true
		}
	}
	return false
}
