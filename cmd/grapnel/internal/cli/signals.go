package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// onSignal calls first at the first SIGINT, SIGTERM or SIGHUP (unless nohup keeps that
// away); the second ends the program at once, after last was called. First must not
// wait for anything, or the second is not heard. Release gives the signals back.
func onSignal(first func(*signalError), last func()) (release func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for again := false; ; again = true {
			select {
			case <-over:
				return
			case s := <-signals:
				by := &signalError{s}
				if again {
					last()
					os.Exit(by.code())
				}
				first(by)
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
		<-ended
	}
}

// interruptible returns a context that the first signal cancels, with a *signalError
// as its cause; told is called then. The second ends the program at once, after last
// was called.
func interruptible(ctx context.Context, told, last func()) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := onSignal(func(by *signalError) {
		cancel(by)
		go told() // which waits for a reader that has stopped reading
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
	stop := onSignal(func(by *signalError) {
		leaving.Lock()
		go func() {
			before()
			os.Exit(by.code())
		}()
	}, last)
	return func() {
		stop()
		leaving.Lock() // waits for ever where the program is about to end
	}
}

// surviveBrokenPipes has a reader of standard output or error that goes away end
// writing, not the program in the middle of a run with all its tools. The programs it
// starts do not inherit that, as they would inherit an ignored signal.
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
