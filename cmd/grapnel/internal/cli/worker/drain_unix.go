//go:build unix

package worker

import (
	"os"
	"os/signal"
	"syscall"
)

// onDrain calls drain at the first SIGUSR1.
func onDrain(drain func()) (release func()) {
	signals, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		select {
		case <-signals:
			drain()
		case <-over:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
	}
}
