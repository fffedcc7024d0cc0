package console

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
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitStopped     = 3
	ExitDenied      = 4
	ExitRejected    = 5
	ExitParked      = 6
	ExitSuspended   = 7
	exitHungUp      = 129 // 128 plus the number of the signal, as in shells
	ExitInterrupted = 130
	exitTerminated  = 143
)

// ExitHelp explains the exit codes of commands that run an agent.
const ExitHelp = `Exit codes:
  0    done: the model gave its answer
  1    failed: an error ended the run, its answer is empty, or it could not be written
  2    the command, the agent file or the environment is wrong; no run began
  3    stopped: by a guard (steps, tokens, cost, time), a hook or a criterion
  4    denied: a hook denied the input
  5    a person rejected a call, which ended the run
  6    parked: the run is stored (--durable) and waits for approval
  7    suspended: the run is stored and can be resumed immediately
  130  interrupted with Ctrl-C; 143 for SIGTERM, 129 for SIGHUP`

// UsageError is returned for a mistake of the caller, before any run began.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usage returns an error as a mistake of the caller; nil for nil.
func Usage(err error) error {
	if _, known := errors.AsType[*UsageError](err); known || err == nil {
		return err
	}
	return &UsageError{err}
}

// Usagef returns a mistake of the caller with a text.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// ExitError ends a command that has already reported everything.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return "" }

// Exit returns the error that ends a command with a code; nil for 0.
func Exit(code int) error {
	if code == ExitDone {
		return nil
	}
	return &ExitError{code}
}

// SignalError is the cause of a context that a signal cancelled.
type SignalError struct{ os.Signal }

func (e *SignalError) Error() string {
	switch e.Signal {
	case os.Interrupt:
		return "interrupted by Ctrl-C"
	case syscall.SIGHUP:
		return "ended by SIGHUP: the terminal was closed"
	}
	return "ended by SIGTERM"
}

// Code returns the exit code for the signal.
func (e *SignalError) Code() int {
	switch e.Signal {
	case syscall.SIGTERM:
		return exitTerminated
	case syscall.SIGHUP:
		return exitHungUp
	}
	return ExitInterrupted
}

// ExitCode returns the exit code for a run's end; cause is the cause of its context's end, if any.
func ExitCode(s agent.State, err, cause error) int {
	switch s.Status() {
	case agent.StatusDone:
		if !timeline.HasAnswer(s) {
			return ExitFailed
		}
		return ExitDone
	case agent.StatusStopped:
		return ExitStopped
	case agent.StatusDenied:
		return ExitDenied
	case agent.StatusInterrupted:
		return ExitRejected
	case agent.StatusParked:
		if s.Waiting() {
			return ExitParked
		}
		return ExitSuspended
	case agent.StatusCancelled:
		if by, ok := errors.AsType[*SignalError](cause); ok {
			return by.Code()
		}
		return ExitInterrupted
	}
	if by, ok := errors.AsType[*SignalError](err); ok {
		return by.Code()
	}
	return ExitFailed
}

// ReportError writes an error unless it was reported already, and returns the exit code.
func ReportError(w io.Writer, err error) int {
	if err == nil {
		return ExitDone
	}
	if ended, ok := errors.AsType[*ExitError](err); ok {
		return ended.Code
	}
	if isClosedOutput(err) { // as with | head: the reader needs no more output
		return ExitFailed
	}
	fmt.Fprintln(w, "grapnel: "+timeline.Clean(err.Error()))
	if _, ok := errors.AsType[*UsageError](err); ok {
		return ExitUsage
	}
	return ExitFailed
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
