package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
)

// Error says why a file operation failed, in words that a model can act on.
type Error struct {
	// Op is the operation: read, write, edit, list, glob, grep.
	Op string
	// Path is the file's path in the request.
	Path string
	// Problem says what is wrong and what to do about it.
	Problem string
	// Err is the system's error, or nil. errors.Is finds fs.ErrNotExist and the like in it.
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %s", e.Op, quoteText(e.Path), e.Problem) }

// Unwrap returns the system's error.
func (e *Error) Unwrap() error { return e.Err }

// ErrorKind returns KindInvalid: the same call will fail again.
func (e *Error) ErrorKind() agent.ErrorKind { return agent.KindInvalid }

func problem(op, path, format string, args ...any) *Error {
	return &Error{Op: op, Path: path, Problem: fmt.Sprintf(format, args...)}
}

// systemError describes a system error in this package's words.
func systemError(op, path string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{Op: op, Path: path, Problem: e.Problem, Err: e.Err}
	}
	e := &Error{Op: op, Path: path, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Problem = "there is no such file or directory"
	case errors.Is(err, fs.ErrExist):
		e.Problem = "a part of the path is a file, not a directory"
	case errors.Is(err, fs.ErrPermission):
		e.Problem = "the system does not permit it"
	case errors.Is(err, fs.ErrClosed):
		e.Problem = "the files were closed"
	case strings.Contains(err.Error(), "escapes from parent"): // os has no error value for it
		e.Problem = "it leads out of the root: only files below the root can be reached"
	default:
		e.Problem = systemCause(err).Error()
	}
	return e
}

// quoteText quotes a text, or the beginning of a long one.
func quoteText(text string) string {
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return strconv.Quote(text)
}

// systemCause returns the system's error, without the names that os puts before it.
func systemCause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}
