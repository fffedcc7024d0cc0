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

// exitOnSignal ends the program at SIGINT or SIGTERM, after before was called, until
// it is released: nothing is under way that could be cancelled.
func exitOnSignal(before func()) (release func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-over:
		case s := <-signals:
			before()
			os.Exit((&signalError{s}).code())
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
		<-ended
	}
}
