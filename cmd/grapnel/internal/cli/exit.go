package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitStopped     = 3
	exitDenied      = 4
	exitRejected    = 5
	exitParked      = 6
	exitSuspended   = 7
	exitHungUp      = 129 // 128 plus the number of the signal, as in shells
	exitInterrupted = 130
	exitTerminated  = 143
)

const exitHelp = `Exit codes:
  0    done: the model gave its answer
  1    failed: an error ended the run, its answer is empty, or it could not be written
  2    the command, the agent file or the environment is wrong; no run began
  3    stopped: by a guard (steps, tokens, cost, time), a hook or a criterion
  4    denied: a hook denied the input
  5    a person rejected a call, which ended the run
  6    parked: the run is stored (--durable) and waits for approval
  7    suspended: the run is stored and can be resumed immediately
  130  interrupted with Ctrl-C; 143 for SIGTERM, 129 for SIGHUP`

// usageError is returned for a mistake of the caller, before any run began.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// exitError ends a command that has already reported everything.
type exitError struct{ code int }

func (e *exitError) Error() string { return "" }

// signalError is the cause of a context that a signal cancelled.
type signalError struct{ os.Signal }

func (e *signalError) Error() string {
	switch e.Signal {
	case os.Interrupt:
		return "interrupted by Ctrl-C"
	case syscall.SIGHUP:
		return "ended by SIGHUP: the terminal was closed"
	}
	return "ended by SIGTERM"
}

func (e *signalError) code() int {
	switch e.Signal {
	case syscall.SIGTERM:
		return exitTerminated
	case syscall.SIGHUP:
		return exitHungUp
	}
	return exitInterrupted
}

// exitCode returns the exit code for a run's end; cause is the cause of its context's end, if any.
func exitCode(s agent.State, err, cause error) int {
	switch s.Status() {
	case agent.StatusDone:
		if !timeline.HasAnswer(s) {
			return exitFailed
		}
		return exitDone
	case agent.StatusStopped:
		return exitStopped
	case agent.StatusDenied:
		return exitDenied
	case agent.StatusInterrupted:
		return exitRejected
	case agent.StatusParked:
		if s.Waiting() {
			return exitParked
		}
		return exitSuspended
	case agent.StatusCancelled:
		if by, ok := errors.AsType[*signalError](cause); ok {
			return by.code()
		}
		return exitInterrupted
	}
	if by, ok := errors.AsType[*signalError](err); ok {
		return by.code()
	}
	return exitFailed
}

// reportError writes an error unless it was reported already, and returns the exit code.
func reportError(w io.Writer, err error) int {
	if err == nil {
		return exitDone
	}
	if ended, ok := errors.AsType[*exitError](err); ok {
		return ended.code
	}
	if isClosedOutput(err) { // as with | head: the reader needs no more output
		return exitFailed
	}
	fmt.Fprintln(w, "grapnel: "+timeline.Clean(err.Error()))
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// isClosedOutput reports whether the only error is that the reader of standard output closed it.
func isClosedOutput(err error) bool {
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		return len(joined.Unwrap()) > 0 && lo.EveryBy(joined.Unwrap(), isClosedOutput)
	}
	path, ok := errors.AsType[*fs.PathError](err)
	return ok && path.Path == os.Stdout.Name() && errors.Is(path.Err, syscall.EPIPE)
}
