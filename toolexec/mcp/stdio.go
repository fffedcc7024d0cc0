package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// lines is the connection to a process, with one JSON-RPC message on each line. Other lines are skipped, up to a limit,
// because some programs also write other text to their output.
type lines struct {
	*process

	most    int // maximum length of a message in bytes
	garbage int // bytes after the last message
	reader  *bufio.Reader
	queue   chan outgoing
}

type outgoing struct {
	line    []byte
	written chan error
}

func newLines(p *process, s Server) *lines {
	return &lines{process: p, most: s.MaxMessageBytes, reader: bufio.NewReaderSize(p.out, 64<<10), queue: make(chan outgoing)}
}

// Connect returns l, which is both a transport and a connection.
func (l *lines) Connect(context.Context) (sdk.Connection, error) {
	go l.writeLines()
	return l, nil
}

// SessionID returns an empty ID: there is only one session.
func (l *lines) SessionID() string { return "" }

// Close begins to end the process.
func (l *lines) Close() error {
	l.stop()
	return nil
}

// Write writes a message, and stops waiting when ctx is done. The message may still be written.
func (l *lines) Write(ctx context.Context, m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	o := outgoing{append(line, '\n'), make(chan error, 1)}
	select {
	case l.queue <- o:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.broken:
		if closesWithin(l.exited, drainTime) {
			return fmt.Errorf("the process ended (%s): %w", l.how, errNotSent)
		}
		return errNotSent
	}
	select {
	case err := <-o.written:
		if err == nil || closesWithin(l.exited, drainTime) {
			return nil // Read returns the error with which it ended
		}
		l.stop()
		return errors.New("it closed its input")
	case <-ctx.Done():
		return ctx.Err()
	case <-l.broken:
		return nil // the same
	}
}

var errNotSent = errors.New("it had ended before the message was sent")

// writeLines writes the queued lines. A server that does not read blocks only this goroutine.
func (l *lines) writeLines() {
	for {
		select {
		case o := <-l.queue:
			_, err := l.in.Write(o.line)
			o.written <- err
		case <-l.broken:
			return
		}
	}
}

// Read returns the next message.
func (l *lines) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := l.line()
		if err != nil {
			return nil, l.ends(err)
		}
		m, err := jsonrpc.DecodeMessage(line)
		if err == nil {
			l.garbage = 0
			return m, nil
		}
		if len(line) > 0 {
			fmt.Fprintf(l.said, "[on stdout] %s\n", line)
		}
		if l.garbage += len(line) + 1; l.garbage > maxNoise*l.most {
			return nil, l.ends(fmt.Errorf("it wrote %d bytes that are not messages: its stdout is only for the protocol, "+
				"write its log to stderr", l.garbage))
		}
	}
}

// line reads a line, without its end.
func (l *lines) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := l.reader.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > l.most:
			return nil, fmt.Errorf("it sent a message of more than %d bytes: request less, or raise MaxMessageBytes", l.most)
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return bytes.TrimSpace(line), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// ends begins to end the process, and returns the reason why no more messages can be read.
func (l *lines) ends(err error) error {
	defer l.out.Close()
	select {
	case <-l.broken:
	case <-l.exited:
	case <-time.After(drainTime): // the process and its output usually end together
	}
	switch {
	case isClosed(l.exited):
		err = fmt.Errorf("the process ended (%s)", l.how)
	case isClosed(l.broken):
		err = errors.New("it was ended")
	case errors.Is(err, io.EOF):
		err = errors.New("it closed its output")
	}
	l.stop()
	return err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
