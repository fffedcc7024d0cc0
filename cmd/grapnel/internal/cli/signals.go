package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// onSignal calls heed at each SIGINT, SIGTERM or SIGHUP (unless nohup keeps that away),
// with the number of signals that were there before. Where it returns false the program
// ends at once, after last was called. Heed must not wait for anything, or the next one
// is not heard. Release gives the signals back.
func onSignal(heed func(before int, by *signalError) bool, last func()) (release func()) {
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
				by := &signalError{s}
				if !heed(before, by) {
					last()
					os.Exit(by.code())
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

// withInterrupt returns a context that the first signal cancels, with a *signalError
// as its cause; told is called then. The second ends the program at once, after last
// was called.
func withInterrupt(ctx context.Context, told, last func()) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := onSignal(func(before int, by *signalError) bool {
		if before > 0 {
			return false
		}
		cancel(by)
		go told() // which waits for a reader that has stopped reading
		return true
	}, last)
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// exitOnSignal ends the program at the first signal, after before was called, or at
// the second, if that takes too long: nothing is under way that could be cancelled.
func exitOnSignal(before, last func()) (release func()) {
	var leaving sync.Mutex
	stop := onSignal(func(n int, by *signalError) bool {
		if n > 0 {
			return false
		}
		leaving.Lock()
		go func() {
			before()
			os.Exit(by.code())
		}()
		return true
	}, last)
	return func() {
		stop()
		leaving.Lock() // waits for ever where the program is about to end
	}
}

// surviveBrokenPipes makes a reader of standard output or error that goes away end
// writing, not the program in the middle of a run with all its tools. The programs it
// starts do not inherit that, as they would inherit an ignored signal.
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
