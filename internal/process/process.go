package process

import (
	"io"
	"os"
	"time"
)

// Command is a program that is to run.
type Command struct {
	// Path is the program's file, Args are its arguments, the first of which is its name; Dir is where it runs, and Env
	// all of its environment.
	Path string
	Args []string
	Dir  string
	Env  []string
	// Stdin is what it reads on its standard input; nil is nothing. It need not read it.
	Stdin []byte
	// Stdout and Stderr get what it writes, each from one goroutine at a time, and nothing more once Run has returned.
	// A write that fails ends the reading, so the program's next one fails, too.
	Stdout, Stderr io.Writer
	// Timeout is how long it may take, Grace how long its processes have after SIGTERM before SIGKILL; zero kills them at
	// once.
	Timeout, Grace time.Duration
	// Most is how many processes it may have at once, itself included; zero is any number. One with more is killed whole.
	Most int
	// Gated says that it waits for a line on file descriptor 3 before it does anything. Prepare, if set, is called before
	// that line is written; its error ends the program. Linux only.
	Gated   bool
	Prepare func(pid int) error
}

// Ending says how a program ended.
type Ending string

// How a program may end.
const (
	// Exited: by itself, or by a signal that was not ours.
	Exited Ending = "exited"
	// TimedOut: its time was up.
	TimedOut Ending = "timed_out"
	// Cancelled: the ctx that it ran under was done.
	Cancelled Ending = "cancelled"
	// Overran: it had more processes than Command.Most.
	Overran Ending = "overran"
)

// Result is what came of a program.
type Result struct {
	Ended Ending
	// State is how its first process ended; nil while that hangs in the kernel.
	State *os.ProcessState
	// Signal is the signal that ended it, such as "SIGKILL"; empty for none.
	Signal string
	// Duration is how long it took, the ending included.
	Duration time.Duration
	// Leftover is the number of processes that were still running when it had exited by itself, and were ended; Alive the
	// number of those that could not be.
	Leftover, Alive int
	// Held says that a process which was not found holds on to its output: what that writes is lost.
	Held bool
}

// ExitCode returns its exit code; -1 when a signal ended it.
func (r Result) ExitCode() int {
	if r.State == nil {
		return -1
	}
	return r.State.ExitCode()
}

// Killing is how long processes may take to be gone after SIGKILL.
const Killing = 2 * time.Second
