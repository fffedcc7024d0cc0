//go:build unix

package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// settling is how long processes may take to end by themselves when their shell has exited.
	settling = 100 * time.Millisecond
	// killing is how long processes may take to be gone after SIGKILL.
	killing = 2 * time.Second
	// counting is how often the processes of a command are counted that has a limit.
	counting = 10 * time.Millisecond
)

func supported() error { return nil }

// run starts a command, waits until it ends or has to be ended, and clears up.
func (s *Shell) run(ctx context.Context, c Command) (r Result, err error) {
	started := time.Now()
	var outputs [2]*output
	for i := range outputs {
		if outputs[i], err = newOutput(s.config.MaxOutputBytes); err != nil {
			return Result{}, err
		}
		defer outputs[i].close()
	}
	cmd := &exec.Cmd{
		Path: s.config.Shell, Dir: s.config.Dir, Env: s.environ(ctx, c),
		Stdout: outputs[0].writer, Stderr: outputs[1].writer,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // which is a process group, too
	}
	family, err := s.start(cmd, c.Text)
	if err != nil {
		return Result{}, fmt.Errorf("starting %s: %w", s.config.Shell, err)
	}
	for _, o := range outputs {
		_ = o.writer.Close()
		go o.read()
	}

	r = Result{Ended: s.await(ctx, family, c.Timeout), Timeout: c.Timeout, MaxProcesses: family.most}
	grace := s.config.Grace
	switch r.Ended {
	case Exited:
		r.Leftover = len(family.members())
	case Overran:
		grace = 0
	}
	r.Alive = family.end(grace)
	if r.Ended == Exited && family.bred {
		r.Ended = Overran // what it left behind did
	}
	for i, stream := range []*Stream{&r.Stdout, &r.Stderr} {
		r.Held = outputs[i].finish(time.Now().Add(settling)) || r.Held
		*stream = outputs[i].kept.stream()
	}
	r.ExitCode = -1
	if state := family.reap(); state != nil {
		r.ExitCode = state.ExitCode()
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			r.Signal = unix.SignalName(status.Signal())
		}
	}
	r.Duration = time.Since(started)
	return r, nil
}

// await waits for the end of a command, or for a reason to end it. What a shell leaves behind has a moment to end by
// itself: bash does not wait for a process in >(…).
func (s *Shell) await(ctx context.Context, f *family, limit time.Duration) Ending {
	timer, ticker := time.NewTimer(limit), time.NewTicker(counting)
	defer timer.Stop()
	defer ticker.Stop()
	exited := f.exited
	var settled time.Time
	for {
		select {
		case <-exited:
			exited, settled = nil, time.Now().Add(settling)
			timer.Stop() // it was in time
		case <-ctx.Done():
			return Cancelled
		case <-timer.C:
			return TimedOut
		case <-ticker.C:
		}
		switch {
		case f.overran():
			return Overran
		case exited == nil && (time.Now().After(settled) || len(f.members()) == 0):
			return Exited
		}
	}
}

// overran reports whether there are more processes than there may be.
func (f *family) overran() bool {
	f.bred = f.bred || f.most > 0 && len(f.members()) > f.most
	return f.bred
}

// end ends what is there of a family, and says how many processes could not be ended.
func (f *family) end(grace time.Duration) (alive int) {
	if grace > 0 && len(f.members()) > 0 {
		f.signal(unix.SIGTERM)
		f.signal(unix.SIGCONT) // what is stopped cannot end
		f.goneBy(time.Now().Add(grace))
	}
	for deadline := time.Now().Add(killing); ; {
		f.signal(unix.SIGKILL)
		f.goneBy(time.Now().Add(counting))
		if alive = len(f.members()); alive == 0 || time.Now().After(deadline) {
			return alive
		}
	}
}

// goneBy waits until no process is left, there are too many, or the deadline has passed.
func (f *family) goneBy(deadline time.Time) {
	for pause := time.Millisecond; len(f.members()) > 0 && !f.overran() && time.Now().Before(deadline); pause = min(2*pause, counting) {
		time.Sleep(pause)
	}
}

// reap takes the shell's exit status from the kernel; nil while it hangs there.
func (f *family) reap() *os.ProcessState {
	select {
	case <-f.exited:
		return f.wait()
	case <-time.After(settling):
		go func() { <-f.exited; f.wait() }() // it cannot be killed now; it will end some day
		return nil
	}
}

// output is one stream of a command on its way here.
type output struct {
	reader, writer *os.File
	kept           capture
	done           chan struct{}
	held           bool
}

func newOutput(most int) (*output, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &output{reader: reader, writer: writer, kept: capture{most: most}, done: make(chan struct{})}, nil
}

// read reads until all who could write are gone, or until finish has enough.
func (o *output) read() {
	defer close(o.done)
	_, err := io.Copy(&o.kept, o.reader)
	o.held = errors.Is(err, os.ErrDeadlineExceeded)
}

// finish ends the reading at the deadline, and reports whether somebody could still write then.
func (o *output) finish(deadline time.Time) (held bool) {
	_ = o.reader.SetReadDeadline(deadline)
	<-o.done
	return o.held
}

// close closes what is open.
func (o *output) close() {
	_ = o.writer.Close()
	_ = o.reader.Close()
}
