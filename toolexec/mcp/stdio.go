package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// lines is the connection to a process: a JSON-RPC message a line. It passes on what the session waits for, and reads
// past everything else, as much of it as is bearable.
type lines struct {
	*process

	news   *news
	most   int // bytes of a message
	reader *bufio.Reader
	queue  chan outgoing

	mu      sync.Mutex
	awaited map[jsonrpc.ID]bool // our requests
	asked   int                 // its requests that have no answer yet
	noise   int                 // bytes that nobody asked for since the last answer
}

type outgoing struct {
	line    []byte
	written chan error
}

// How much a server may say that nobody asked for, in messages of the greatest length, and how many questions it may
// ask without reading the answers.
const (
	maxNoise = 4
	maxAsked = 64
)

func newLines(p *process, s Server, n *news) *lines {
	return &lines{
		process: p, news: n, most: s.MaxMessageBytes, reader: bufio.NewReaderSize(p.out, 64<<10),
		queue: make(chan outgoing), awaited: map[jsonrpc.ID]bool{},
	}
}

// Connect makes the connection a transport of its own.
func (l *lines) Connect(context.Context) (sdk.Connection, error) {
	go l.write()
	return l, nil
}

// SessionID is empty: there is one session.
func (l *lines) SessionID() string { return "" }

// Close begins to end the process.
func (l *lines) Close() error {
	l.stop()
	return nil
}

// Write writes a message, and gives up when ctx is done; the message may be written all the same.
func (l *lines) Write(ctx context.Context, m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	l.note(m)
	o := outgoing{append(line, '\n'), make(chan error, 1)}
	select {
	case l.queue <- o:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.broken:
		return errNotSent
	}
	select {
	case err := <-o.written:
		if err == nil || closesWithin(l.exited, drainTime) {
			return nil // who reads will say how it ended
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

// note keeps account of what is said to the server.
func (l *lines) note(m jsonrpc.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := m.(type) {
	case *jsonrpc.Request:
		if m.IsCall() {
			l.awaited[m.ID] = true
		}
	case *jsonrpc.Response:
		l.asked--
	}
}

// write writes line after line: a server that does not read holds up nobody but this goroutine.
func (l *lines) write() {
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

// Read returns the next message that the session waits for.
func (l *lines) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := l.line()
		if err != nil {
			return nil, l.ends(err)
		}
		m, err := jsonrpc.DecodeMessage(line)
		if err != nil && len(line) > 0 {
			fmt.Fprintf(l.said, "[on stdout] %s\n", line)
		}
		wanted := err == nil && l.wanted(m)
		if err := l.bear(len(line)+1, wanted); err != nil {
			return nil, l.ends(err)
		}
		if wanted {
			return m, nil
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
			return nil, fmt.Errorf("it sent a message of more than %d bytes: ask it for less, or raise MaxMessageBytes", l.most)
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return bytes.TrimSpace(line), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// wanted reports whether the session is to have the message. Progress is told here, in the order in which it comes.
func (l *lines) wanted(m jsonrpc.Message) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := m.(type) {
	case *jsonrpc.Response:
		if !l.awaited[m.ID] {
			fmt.Fprintf(l.said, "[on stdout] an answer with id %v, which no request has\n", m.ID.Raw())
			return false
		}
		delete(l.awaited, m.ID)
		l.noise = 0
		return true
	case *jsonrpc.Request:
		switch {
		case m.IsCall():
			l.asked++
			return true
		case m.Method == "notifications/progress":
			var params sdk.ProgressNotificationParams
			if json.Unmarshal(m.Params, &params) == nil {
				l.news.progressed(&params)
			}
		case m.Method == "notifications/tools/list_changed":
			return l.news.toolsChanged()
		}
	}
	return false
}

// bear counts what nobody asked for, until it is too much.
func (l *lines) bear(n int, wanted bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !wanted {
		l.noise += n
	}
	switch {
	case l.asked > maxAsked:
		return fmt.Errorf("it asked %d things without reading the answers", l.asked)
	case l.noise > maxNoise*l.most:
		return fmt.Errorf("it wrote %d bytes that answer nothing: its stdout is for the protocol, its log belongs on stderr", l.noise)
	}
	return nil
}

// ends begins to end the process, and says why there is nothing more to read.
func (l *lines) ends(err error) error {
	defer l.out.Close()
	select {
	case <-l.broken:
	case <-l.exited:
	case <-time.After(drainTime): // its end and the end of its output come together
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
