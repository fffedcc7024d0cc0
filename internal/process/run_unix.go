//go:build unix

package process

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// settling is how long processes may take to end by themselves after the first one has exited.
	settling = 100 * time.Millisecond
	// counting is the interval for counting processes if their number is limited.
	counting = 10 * time.Millisecond
)

// CheckSupport returns the reason why programs cannot run here; nil if they can.
func CheckSupport() error { return nil }

// Run starts a program and waits until it ends or must be ended. It returns when all processes that can be ended have
// ended. It returns an error only if the program could not be started.
func Run(ctx context.Context, c Command) (r Result, err error) {
	started := time.Now()
	var outputs [2]*output
	for i, to := range [2]io.Writer{c.Stdout, c.Stderr} {
		if outputs[i], err = newOutput(to); err != nil {
			return Result{}, err
		}
		defer outputs[i].close()
	}
	cmd := &exec.Cmd{
		Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, Stdout: outputs[0].writer, Stderr: outputs[1].writer,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // also creates a process group
	}
	in, err := newInput(cmd, c.Stdin)
	if err != nil {
		return Result{}, err
	}
	defer in.close()
	family, err := startProgram(cmd, c)
	if err != nil {
		return Result{}, err
	}
	for _, o := range outputs {
		_ = o.writer.Close()
		go o.read()
	}
	in.begin()

	r = Result{Ended: family.await(ctx, c.Timeout, c.Leave)}
	grace := c.Grace
	switch r.Ended {
	case Exited:
		r.Leftover = len(family.members())
	case Overran:
		grace = 0
	}
	if r.Ended != Exited || !c.Leave {
		r.Alive = family.end(grace)
	}
	if r.Ended == Exited && family.bred {
		r.Ended = Overran // its remaining processes exceeded the limit
	}
	for _, o := range outputs {
		r.Held = o.finish(time.Now().Add(settling)) || r.Held
	}
	if r.State = family.reap(); r.State != nil {
		if status, ok := r.State.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			r.Signal = unix.SignalName(status.Signal())
		}
	}
	r.Duration = time.Since(started)
	return r, nil
}

// await waits for the program's end, or for a reason to end it. Remaining processes have a moment to end by
// themselves, unless they may stay: bash does not wait for a process in >(…).
func (f *family) await(ctx context.Context, limit time.Duration, leave bool) Ending {
	timer, ticker := time.NewTimer(limit), time.NewTicker(counting)
	defer timer.Stop()
	defer ticker.Stop()
	exited := f.exited
	var settled time.Time
	for {
		select {
		case <-exited:
			exited, settled = nil, time.Now().Add(settling)
			timer.Stop() // the processes ended in time
		case <-ctx.Done():
			return Cancelled
		case <-timer.C:
			return TimedOut
		case <-ticker.C:
		}
		switch {
		case f.overran():
			return Overran
		case exited == nil && (leave || time.Now().After(settled) || len(f.members()) == 0):
			return Exited
		}
	}
}

// overran reports whether the family has more processes than allowed.
func (f *family) overran() bool {
	f.bred = f.bred || f.most > 0 && len(f.members()) > f.most
	return f.bred
}

// end ends the family's processes, and returns how many could not be ended.
func (f *family) end(grace time.Duration) (alive int) {
	if grace > 0 && len(f.members()) > 0 {
		f.signal(unix.SIGTERM)
		f.signal(unix.SIGCONT) // stopped processes cannot end
		f.goneBy(time.Now().Add(grace))
	}
	for deadline := time.Now().Add(Killing); ; {
		f.signal(unix.SIGKILL)
		f.goneBy(time.Now().Add(counting))
		if alive = len(f.members()); alive == 0 || time.Now().After(deadline) {
			return alive
		}
	}
}

// goneBy waits until all processes have ended, their number exceeds the limit, or the deadline has passed.
func (f *family) goneBy(deadline time.Time) {
	for pause := time.Millisecond; len(f.members()) > 0 && !f.overran() && time.Now().Before(deadline); pause = min(2*pause, counting) {
		time.Sleep(pause)
	}
}

// reap returns the exit status, or nil if the process hangs in the kernel.
func (f *family) reap() *os.ProcessState {
	select {
	case <-f.exited:
		return f.wait()
	case <-time.After(settling):
		go func() { <-f.exited; f.wait() }() // it cannot be killed now, but will end later
		return nil
	}
}

// output is one output stream of a program.
type output struct {
	reader, writer *os.File
	to             io.Writer
	done           chan struct{}
	held           bool
}

func newOutput(to io.Writer) (*output, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if to == nil {
		to = io.Discard
	}
	return &output{reader: reader, writer: writer, to: to, done: make(chan struct{})}, nil
}

// read reads until all writers are gone or finish stops it, and then what the pipe still has.
func (o *output) read() {
	defer close(o.done)
	_, err := io.Copy(o.to, o.reader)
	o.held = errors.Is(err, os.ErrDeadlineExceeded) && o.drain()
}

// drain copies what the pipe has without waiting, and reports whether a process could still write. On a busy machine, read may not have
// had its turn since the program wrote, and an expired deadline lets it read nothing.
func (o *output) drain() (held bool) {
	_ = o.reader.SetReadDeadline(time.Time{})
	raw, err := o.reader.SyscallConn()
	buffer := make([]byte, 64<<10)
	for i := 0; err == nil && i < 16; i++ { // a process that could still write may never stop
		n, failed := 0, error(nil)
		err = raw.Read(func(fd uintptr) bool { n, failed = unix.Read(int(fd), buffer); return true })
		switch {
		case err != nil, failed != nil && !errors.Is(failed, unix.EINTR):
			return true
		case failed == nil && n == 0:
			return false
		}
		_, _ = o.to.Write(buffer[:max(n, 0)])
	}
	return true
}

// finish stops the reading at the deadline, and reports whether a process could still write then.
func (o *output) finish(deadline time.Time) (held bool) {
	_ = o.reader.SetReadDeadline(deadline)
	<-o.done
	return o.held
}

func (o *output) close() {
	_ = o.writer.Close()
	_ = o.reader.Close()
}

// input is the standard input of a program; nil for none.
type input struct {
	text           []byte
	reader, writer *os.File
	done           chan struct{}
}

func newInput(cmd *exec.Cmd, text []byte) (*input, error) {
	if text == nil {
		return nil, nil
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdin = reader
	return &input{text: text, reader: reader, writer: writer}, nil
}

// begin starts to write the text, until all is written or the reader is gone.
func (i *input) begin() {
	if i == nil {
		return
	}
	_ = i.reader.Close()
	i.done = make(chan struct{})
	go func() {
		defer close(i.done)
		_, _ = i.writer.Write(i.text) // the program need not read it
		_ = i.writer.Close()
	}()
}

func (i *input) close() {
	if i == nil {
		return
	}
	_ = i.reader.Close()
	_ = i.writer.SetWriteDeadline(time.Now())
	if i.done != nil {
		<-i.done
	}
	_ = i.writer.Close()
}
