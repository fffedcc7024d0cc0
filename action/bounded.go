package action

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/samber/mo"
)

// PanicError is the failure of Go code of the host that panicked.
type PanicError struct {
	Value any
	// Stack is the stack of the panic, as debug.Stack gives it.
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// callWithin calls code of the host, and does not wait for it longer than the limit, or than ctx lasts. What does not end
// then is left behind.
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
			return none, contextError(ctx, kind) // what came after the end does not count
		case err != nil:
			return none, &Error{Type: kind, Fault: FaultExit, Err: err}
		}
		return v, nil
	case <-ctx.Done():
		return none, contextError(ctx, kind)
	}
}

// recoverPanic calls f and makes an error of a panic.
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

// quote returns text between quotes, on one line.
func quote(text string) string { return fmt.Sprintf("%q", strings.TrimSpace(text)) }
