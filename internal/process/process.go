package process

import (
	"io"
	"os"
	"time"
)

// Command describes a program to run.
type Command struct {
	// Path is the program's file, Args are its arguments, beginning with its name; Dir is its working
	// directory, and Env its whole environment.
	Path string
	Args []string
	Dir  string
	Env  []string
	// Stdin is the program's standard input; nil means none. The program need not read it.
	Stdin []byte
	// Stdout and Stderr receive the program's output, each from one goroutine at a time, and nothing after
	// Run has returned. A failed write ends the reading, so the program's next write fails, too.
	Stdout, Stderr io.Writer
	// Timeout is the maximum duration, and Grace the time between SIGTERM and SIGKILL; a Grace of zero kills the
	// processes immediately.
	Timeout, Grace time.Duration
	// Most is the maximum number of simultaneous processes, including the program itself; zero means no limit. If
	// there are more, all are killed.
	Most int
	// Gated reports whether the program waits for a line on file descriptor 3 before it does anything. Prepare, if
	// set, is called before that line is written; if it returns an error, the program is ended. Linux only.
	Gated   bool
	Prepare func(pid int) error
}

// Ending is the way in which a program ended.
type Ending string

// The values of Ending.
const (
	// Exited: by itself, or by a signal that Run did not send.
	Exited Ending = "exited"
	// TimedOut: it exceeded its Timeout.
	TimedOut Ending = "timed_out"
	// Cancelled: its ctx was done.
	Cancelled Ending = "cancelled"
	// Overran: it had more processes than Command.Most.
	Overran Ending = "overran"
)

// Result is the result of a program.
type Result struct {
	Ended Ending
	// State is the state of the first process after it ended; nil if that process hangs in the kernel.
	State *os.ProcessState
	// Signal is the signal that ended it, such as "SIGKILL"; empty for none.
	Signal string
	// Duration is the total duration, including the time for ending the processes.
	Duration time.Duration
	// Leftover is the number of processes that were still running when the program had exited by itself, and that Run
	// ended. Alive is the number of processes that could not be ended.
	Leftover, Alive int
	// Held reports whether an unknown process still holds the output open. The output of that process is lost.
	Held bool
}

// ExitCode returns the exit code, or -1 if a signal ended the program.
func (r Result) ExitCode() int {
	if r.State == nil {
		return -1
	}
	return r.State.ExitCode()
}

// Killing is the maximum time that Run waits for processes after SIGKILL.
const Killing = 2 * time.Second
