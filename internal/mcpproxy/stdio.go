package mcpproxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	groups "github.com/grapnel-go/grapnel/internal/process"
)

// Stdio is the client's side of a connection over standard input and output, with one message in each line.
type Stdio struct {
	In  io.Reader
	Out io.Writer

	writing sync.Mutex
}

// send writes a message for the client. Only messages over HTTP have line breaks, between their members.
func (c *Stdio) send(raw []byte) error {
	line := append(bytes.ReplaceAll(raw, []byte{'\n'}, []byte{' '}), '\n')
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.Out.Write(line); err != nil {
		return fmt.Errorf("%w: %w", ErrClientEnded, err)
	}
	return nil
}

// Grace is how long a server may take to end after its input has ended, and again after SIGTERM.
const Grace = 2 * time.Second

// ErrServerEnded is returned when the server has ended before the client, and ErrClientEnded when the client does not read any
// more.
var (
	ErrServerEnded = errors.New("the server has ended")
	ErrClientEnded = errors.New("the client has closed its connection")
)

// Serve starts the command and passes messages on until the client closes its input, the server ends or ctx is done. The
// command's stderr is stderr. Its whole process group has ended when Serve returns.
func Serve(ctx context.Context, c Config, client *Stdio, command []string, stderr *os.File) error {
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx,gosec // it is ended in steps, and running it is the point
	groups.OwnGroup(cmd)
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	ours, theirs, err := os.Pipe() // which Wait does not close
	if err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	defer ours.Close()
	cmd.Stdout = theirs
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return fmt.Errorf("starting the server %q: %w", command[0], err)
	}
	var writing sync.Mutex
	s := newSession(ctx, c, sharedID, func(_ context.Context, raw []byte, _ sink) error {
		writing.Lock()
		defer writing.Unlock()
		_, err := in.Write(append(bytes.Clone(raw), '\n'))
		return err
	})
	most := c.mostBytes()

	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		groups.KillGroup(cmd) // what it has left behind
		_ = ours.SetReadDeadline(time.Now().Add(drainTime))
		close(exited)
	}()
	var answering error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		answering = readLines(ours, most, func(line []byte) error { return s.fromServer(line, client.send) })
	}()
	requests := make(chan error, 1)
	go func() {
		requests <- readLines(client.In, most, func(line []byte) error { return s.fromClient(ctx, line, client.send) })
	}()

	serverEnded := func() error {
		switch {
		case errors.Is(answering, ErrClientEnded):
			return answering
		case closesWithin(exited, drainTime):
			return fmt.Errorf("%w (%s)", ErrServerEnded, cmd.ProcessState)
		case errors.Is(answering, io.EOF):
			return fmt.Errorf("%w: it has closed its output", ErrServerEnded)
		}
		return fmt.Errorf("the server is ended: %w", answering)
	}
	select {
	case <-answered:
		err = serverEnded()
	case err = <-requests:
		if errors.Is(err, io.EOF) {
			if err = nil; !s.settle(ctx, answered) {
				err = serverEnded()
			}
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = in.Close()
	for _, harder := range []func(*exec.Cmd){groups.EndGroup, groups.KillGroup} {
		if ctx.Err() == nil && closesWithin(exited, Grace) {
			break
		}
		harder(cmd)
		if closesWithin(exited, Grace) {
			break
		}
	}
	<-exited
	<-answered
	why := err
	if why == nil {
		why = ErrServerEnded
	}
	s.end(ctx, why)
	return err
}

// drainTime is how long the output of a server is read that has ended, because its children may hold it open.
const drainTime = 250 * time.Millisecond

func closesWithin(c <-chan struct{}, d time.Duration) bool {
	select {
	case <-c:
		return true
	case <-time.After(d):
		return false
	}
}

func (c Config) mostBytes() int {
	if c.MaxMessage > 0 {
		return c.MaxMessage
	}
	return DefaultMaxMessage
}

// settleTime is how long requests may take after the client has closed its output.
const settleTime = time.Minute

// settle waits until all requests of a client that sends no more have their answers. Questions get none. It returns false if
// the server answers no more.
func (s *session) settle(ctx context.Context, answered <-chan struct{}) bool {
	s.mu.Lock()
	for key, c := range s.asked {
		close(c)
		delete(s.asked, key)
	}
	s.deaf = true
	s.mu.Unlock()
	tick, most := time.NewTicker(10*time.Millisecond), time.NewTimer(settleTime)
	defer tick.Stop()
	defer most.Stop()
	for {
		s.mu.Lock()
		left := len(s.open)
		s.mu.Unlock()
		if left == 0 {
			return true
		}
		select {
		case <-tick.C:
		case <-answered:
			return false
		case <-most.C:
			return true
		case <-ctx.Done():
			return true
		}
	}
}

// readLines calls f with each line that is not empty, until reading or f fails.
func readLines(r io.Reader, most int, f func(line []byte) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		var line []byte
		for {
			piece, err := in.ReadSlice('\n')
			if line = append(line, piece...); len(line) > most {
				return fmt.Errorf("a message has more than %d bytes", most)
			}
			if err == nil || errors.Is(err, io.EOF) && len(line) > 0 {
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return err
			}
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := f(bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
			return err
		}
	}
}
