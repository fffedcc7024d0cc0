package process

import (
	"io"
	"os"
	"time"
)

// Command describes a program to run.
type Command struct {
	// Path is the program's file. Args are its arguments, beginning with its name. Dir is its working directory, and
	// Env its complete environment.
	Path string
	Args []string
	Dir  string
	Env  []string
	// Stdin is the program's standard input; nil means none. The program need not read it.
	Stdin []byte
	// Stdout and Stderr receive the program's output, each from one goroutine at a time. Run does not write to them
	// after it has returned. A failed write ends the reading, so the program's next write fails, too.
	Stdout, Stderr io.Writer
	// Timeout is the maximum duration. Grace is the time between SIGTERM and SIGKILL; zero kills the processes
	// immediately.
	Timeout, Grace time.Duration
	// Leave reports whether processes that the program has started may go on when it exits by itself in time.
	Leave bool
	// Most is the maximum number of simultaneous processes, including the program itself; zero means no limit. If it
	// is exceeded, all processes are killed.
	Most int
	// Gated reports whether the program first waits for a line on file descriptor 3. Prepare, if set, is called
	// before that line is written; if it returns an error, the program is ended. Linux only.
	Gated   bool
	Prepare func(pid int) error
}

// Ending says how a program ended.
type Ending string

// The values of Ending.
const (
	// Exited means that the program exited by itself, or by a signal that Run did not send.
	Exited Ending = "exited"
	// TimedOut means that it exceeded its Timeout.
	TimedOut Ending = "timed_out"
	// Cancelled means that its ctx was done.
	Cancelled Ending = "cancelled"
	// Overran means that it had more processes than Command.Most.
	Overran Ending = "overran"
)

// Result is the result of a program.
type Result struct {
	Ended Ending
	// State is the first process's state after it ended; nil if the process hangs in the kernel.
	State *os.ProcessState
	// Signal is the signal that ended the process, such as "SIGKILL", or "".
	Signal string
	// Duration is the total duration, including the time to end the processes.
	Duration time.Duration
	// Leftover is the number of processes that Run had to end after the program exited by itself. Alive is the number
	// of processes that could not be ended.
	Leftover, Alive int
	// Held reports whether an unknown process still holds the output open. That process's output is lost.
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
