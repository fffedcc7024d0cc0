package shell

import (
	"fmt"
	"strings"
	"time"
)

// Ending says how a command ended.
type Ending string

const (
	// Exited: the command exited by itself, or by a signal that this package did not send.
	Exited Ending = "exited"
	// TimedOut: the command exceeded its time limit.
	TimedOut Ending = "timed_out"
	// Cancelled: the command's ctx was done.
	Cancelled Ending = "cancelled"
	// Overran: the command had more processes than Limits.Processes.
	Overran Ending = "overran"
)

// Result is a command's result. It is a plain value.
type Result struct {
	Ended Ending `json:"ended"`
	// ExitCode is the shell's exit code; -1 when a signal ended it.
	ExitCode int `json:"exit_code"`
	// Signal is the signal that ended the shell, such as "SIGKILL". It is empty if there was none.
	Signal string `json:"signal,omitempty"`
	// Stdout and Stderr are the output.
	Stdout Stream `json:"stdout"`
	Stderr Stream `json:"stderr"`
	// Duration is how long the command took, including ending its processes.
	Duration time.Duration `json:"duration"`
	// Timeout is the command's time limit.
	Timeout time.Duration `json:"timeout"`
	// MaxProcesses is the limit for simultaneous processes. Zero means no limit.
	MaxProcesses int `json:"max_processes,omitempty"`
	// Leftover is the number of processes that were still running after the shell had exited by itself. They were then
	// ended.
	Leftover int `json:"leftover,omitempty"`
	// Alive is the number of processes that could not be ended, because they belong to another user or are blocked in
	// the kernel.
	Alive int `json:"alive,omitempty"`
	// Held reports that an unknown process holds the output open. Its further output is lost.
	Held bool `json:"held,omitempty"`
}

// OK reports whether the command exited by itself with code 0.
func (r Result) OK() bool { return r.Ended == Exited && r.ExitCode == 0 }

// String returns the answer for a model: first how the command ended, then notes, then the streams.
func (r Result) String() string {
	var b strings.Builder
	b.WriteString(r.verdict())
	for _, note := range []struct {
		say  bool
		text string
	}{
		{r.Leftover > 0, fmt.Sprintf("%d still running when the command had ended: killed", r.Leftover)},
		{r.Alive > 0, fmt.Sprintf("%d could not be killed", r.Alive)},
		{r.Held, "a process that could not be found holds on to the output"},
	} {
		if note.say {
			b.WriteString("\nbackground processes: " + note.text)
		}
	}
	if r.Stdout.Bytes == 0 && r.Stderr.Bytes == 0 {
		return b.String() + "\nno output"
	}
	r.Stdout.appendTo(&b, "stdout")
	r.Stderr.appendTo(&b, "stderr")
	return b.String()
}

// verdict says how the command ended.
func (r Result) verdict() string {
	switch {
	case r.Ended == TimedOut:
		return fmt.Sprintf("timed out after %v and was killed", r.Timeout)
	case r.Ended == Cancelled:
		return "cancelled and killed"
	case r.Ended == Overran:
		return fmt.Sprintf("killed: it had more than %d processes at once", r.MaxProcesses)
	case r.Signal != "":
		return "killed by " + r.Signal
	}
	return fmt.Sprintf("exit code %d", r.ExitCode)
}

// Stream is the output on one of a command's streams.
type Stream struct {
	// Text is the part that is shown. For a long stream, it is the head and the tail, with a note between them that
	// says how much is missing. For a binary stream, it is a few bytes in hexadecimal digits.
	Text string `json:"text"`
	// Bytes is the total output. Omitted is how much of it is not in Text.
	Bytes   int64 `json:"bytes"`
	Omitted int64 `json:"omitted,omitempty"`
	// Binary reports that the output is not text. Replaced is the number of bytes and control characters that were
	// replaced.
	Binary   bool `json:"binary,omitempty"`
	Replaced int  `json:"replaced,omitempty"`
}

func (s Stream) appendTo(b *strings.Builder, name string) {
	if s.Bytes == 0 {
		return
	}
	b.WriteString("\n" + name)
	switch {
	case s.Binary:
		fmt.Fprintf(b, " (binary, %d bytes)", s.Bytes)
	case s.Replaced > 0:
		fmt.Fprintf(b, " (unprintable characters replaced: %d)", s.Replaced)
	}
	b.WriteString(":\n" + strings.TrimSuffix(s.Text, "\n"))
}

// Error is returned for a command that was ended before it exited by itself.
type Error struct {
	Result Result
	// Cause is the cancellation's cause.
	Cause error
}

// Error returns the Result as text.
func (e *Error) Error() string { return e.Result.String() }

// Unwrap returns the cause; nil if there is none.
func (e *Error) Unwrap() error { return e.Cause }
