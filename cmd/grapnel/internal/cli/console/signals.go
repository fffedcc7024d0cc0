package console

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// OnSignal calls heed at each SIGINT, SIGTERM or SIGHUP (unless nohup ignores it), with the number of earlier
// signals. If heed returns false, the program ends immediately, after calling last. Heed must not block, because it
// would miss the next signal. Release stops the handling of signals.
func OnSignal(heed func(before int, by *SignalError) bool, last func()) (release func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for before := 0; ; before++ {
			select {
			case <-over:
				return
			case s := <-signals:
				by := &SignalError{s}
				if !heed(before, by) {
					last()
					os.Exit(by.Code())
				}
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
		<-ended
	}
}

// WithInterrupt returns a context that the first signal cancels, with a *signalError as its cause. It then calls
// told. The second signal ends the program immediately, after calling last. Release waits for told, so that what is written
// next is behind its text.
func WithInterrupt(ctx context.Context, told, last func()) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var telling sync.Mutex
	released := false
	stop := OnSignal(func(before int, by *SignalError) bool {
		if before > 0 {
			return false
		}
		cancel(by)
		telling.Lock()
		go func() { // because writing may block
			defer telling.Unlock()
			if !released {
				told()
			}
		}()
		return true
	}, last)
	return ctx, func() {
		telling.Lock()
		released = true
		telling.Unlock()
		stop()
		cancel(nil)
	}
}

// ExitOnSignal ends the program at the first signal, after calling before, or at the second if that takes too
// long. It is for times when no run can be cancelled.
func ExitOnSignal(before, last func()) (release func()) {
	var leaving sync.Mutex
	stop := OnSignal(func(n int, by *SignalError) bool {
		if n > 0 {
			return false
		}
		leaving.Lock()
		go func() {
			before()
			os.Exit(by.Code())
		}()
		return true
	}, last)
	return func() {
		stop()
		leaving.Lock() // blocks forever while the program ends
	}
}

// SurviveBrokenPipes makes writes fail if the reader of standard output or error has gone, instead of ending the
// program in the middle of a run. Programs that it starts do not inherit this setting, as they would inherit an
// ignored signal.
func SurviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// InterruptedOr returns the exit of a signal if a signal caused the error, otherwise err.
func InterruptedOr(ctx context.Context, err error) error {
	if by, ok := errors.AsType[*SignalError](context.Cause(ctx)); ok {
		return &ExitError{by.Code()}
	}
	return err
}
