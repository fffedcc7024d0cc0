package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruptible returns a context that the first SIGINT or SIGTERM cancels, with a
// *signalError as its cause; told is called then. The second ends the program at
// once, after last was called. Release gives the signals back.
func interruptible(ctx context.Context, told, last func()) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for first := true; ; first = false {
			select {
			case <-over:
				return
			case s := <-signals:
				by := &signalError{s}
				if !first {
					last()
					os.Exit(by.code())
				}
				cancel(by)
				told()
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(over)
		<-ended
		cancel(nil)
	}
}
