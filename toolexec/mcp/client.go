package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/toolexec"
)

// Client is an MCP server with its tools, as they were when Connect listed them. A connection that ends is made again
// when the next tool is called. It is safe for concurrent use; close it when the agents that use its tools are done.
type Client struct {
	server       Server
	tools        []*tool
	instructions string
	life         context.Context //nolint:containedctx // of the client, not of a call
	end          context.CancelFunc

	mu        sync.Mutex
	current   *session
	dialling  *dialling
	failures  int // in a row
	notBefore time.Time
	closed    bool
	closing   sync.Once
	closeErr  error
}

// dialling is a connection on its way.
type dialling struct {
	done    chan struct{}
	session *session
	err     error
}

// Connect starts or reaches the server, greets it and lists its tools. ctx is for that alone, within the server's
// ConnectTimeout. The error is an *Error where the server is to blame, and nothing is left running then; otherwise it
// joins everything that is wrong with what was asked for.
func Connect(ctx context.Context, s Server) (*Client, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("connecting to mcp server %q: %w", s.Name, err)
	}
	c := &Client{server: s.withDefaults()}
	first, listed, err := dialServer(ctx, c.server)
	if err != nil {
		return nil, err
	}
	if c.tools, err = c.toolsOf(listed); err != nil {
		_ = first.closeSession()
		return nil, c.server.errorOf("taking the tools of", "", err, "", "")
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.instructions = first.sdk.InitializeResult().Instructions
	c.current = first
	return c, nil
}

// Tools returns the server's tools, in the order that it lists them. They are the client's: they work until it is closed,
// in any number of agents.
func (c *Client) Tools() []toolexec.Tool {
	return lo.Map(c.tools, func(t *tool, _ int) toolexec.Tool { return t })
}

// Instructions returns what the server wants a model to know of it; empty when it says nothing. They are the server's
// word: think before you put them into a system prompt.
func (c *Client) Instructions() string { return c.instructions }

// Annotations returns what the server says of one of its tools, by the name that the model knows it by; false when the
// client has no such tool.
func (c *Client) Annotations(name string) (Annotations, bool) {
	t, ok := lo.Find(c.tools, func(t *tool) bool { return t.spec.Name == name })
	if !ok {
		return Annotations{}, false
	}
	return t.annotations, true
}

// Close ends the connection, and the server's process group with it: its input is closed, then it is asked to end,
// then it is killed. Calls under way fail. It returns when all that has ended; the error says that it could not be.
func (c *Client) Close() error {
	c.closing.Do(func() {
		c.end()
		c.mu.Lock()
		c.closed = true
		last, dialling := c.current, c.dialling
		c.mu.Unlock()
		if dialling != nil {
			<-dialling.done // it closes what it dials
		}
		if last != nil {
			c.closeErr = last.closeSession()
		}
	})
	return c.closeErr
}

var errClosed = errors.New("the client was closed: connect again")

// session returns the connection, made again if it has ended.
func (c *Client) session(ctx context.Context) (*session, error) {
	c.mu.Lock()
	switch {
	case c.closed:
		c.mu.Unlock()
		return nil, errClosed
	case c.current != nil && c.current.alive():
		defer c.mu.Unlock()
		return c.current, nil
	}
	d := c.dialling
	if d == nil {
		if wait := time.Until(c.notBefore); wait > 0 {
			defer c.mu.Unlock()
			return nil, fmt.Errorf("it failed %d times in a row, and is left alone for %v: do something else until then",
				c.failures, wait.Round(10*time.Millisecond))
		}
		d = &dialling{done: make(chan struct{})}
		c.dialling = d
		go c.redial(d, c.current)
	}
	c.mu.Unlock()
	select {
	case <-d.done:
		return d.session, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// redial makes a new connection in the place of the old one. It belongs to no call.
func (c *Client) redial(d *dialling, old *session) {
	defer close(d.done)
	if old != nil {
		_ = old.closeSession()
	}
	c.countFailure()
	d.session, _, d.err = dialServer(c.life, c.server)
	c.mu.Lock()
	closed := c.closed
	c.current, c.dialling = d.session, nil
	c.mu.Unlock()
	if closed && d.session != nil {
		_ = d.session.closeSession()
		d.session, d.err = nil, errClosed
	}
}

// The first reconnect is made at once; then there is a pause, which grows until a call succeeds.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)

// countFailure counts a connection that was lost, or could not be made.
func (c *Client) countFailure() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	if c.failures > 1 {
		c.notBefore = time.Now().Add(min(maxPause, firstPause<<min(c.failures-2, 10)))
	}
}

// resetFailures says that the server did what it should.
func (c *Client) resetFailures() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures, c.notBefore = 0, time.Time{}
}
