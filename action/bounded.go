package action

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/samber/mo"
)

// PanicError is returned when the host's Go code panics.
type PanicError struct {
	Value any
	// Stack is the stack trace from debug.Stack.
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// callWithin calls a host function. It abandons the call at the limit, or when ctx is done.
func callWithin[T any](ctx context.Context, kind string, limit time.Duration, f func(ctx context.Context) (T, error)) (T, error) {
	var none T
	ctx, cancel := withLimit(ctx, limit)
	defer cancel()
	if ctx.Err() != nil {
		return none, contextError(ctx, kind)
	}
	done := make(chan mo.Result[T], 1)
	go func() { done <- recoverPanic(func() (T, error) { return f(ctx) }) }()
	select {
	case result := <-done:
		v, err := result.Get()
		switch {
		case ctx.Err() != nil:
			return none, contextError(ctx, kind) // a result after the time limit is ignored
		case err != nil:
			if own, ok := errors.AsType[*Error](err); ok { // such as a waiting run's time limit
				return none, own
			}
			return none, &Error{Type: kind, Fault: FaultExit, Err: err}
		}
		return v, nil
	case <-ctx.Done():
		return none, contextError(ctx, kind)
	}
}

func recoverPanic[T any](f func() (T, error)) (result mo.Result[T]) {
	defer func() {
		if v := recover(); v != nil {
			result = mo.Err[T](&PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	v, err := f()
	if err != nil {
		return mo.Err[T](err)
	}
	return mo.Ok(v)
}

func quote(text string) string { return fmt.Sprintf("%q", strings.TrimSpace(text)) }
