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

// A Client is a connection to an MCP server, with the tools that the server listed at Connect. If the connection has
// ended, the next tool call reconnects. A Client is safe for concurrent use. Close it when the agents that use its
// tools are done.
type Client struct {
	server       Server
	serial       *serial
	tools        []*tool
	instructions string
	life         context.Context //nolint:containedctx // lives as long as the client
	end          context.CancelFunc

	mu        sync.Mutex
	current   *session
	dialling  *dialling
	failures  int // consecutive
	notBefore time.Time
	closed    bool
	closing   sync.Once
	closeErr  error
}

// dialling is a connection attempt.
type dialling struct {
	done    chan struct{}
	session *session
	err     error
}

// Connect starts or reaches the server, initializes it and lists its tools. ctx applies only to these steps, within the
// server's ConnectTimeout. If the server fails, the error is an *Error, and no process keeps running. Otherwise the
// error joins all configuration problems.
func Connect(ctx context.Context, s Server) (*Client, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("connecting to mcp server %q: %w", s.Name, err)
	}
	c := &Client{server: s.withDefaults(), serial: newSerial()}
	first, listed, err := dialServer(ctx, c.server, c.serial)
	if err != nil {
		return nil, err
	}
	if c.tools, err = c.toolsOf(listed); err != nil {
		_ = first.closeSession()
		return nil, c.server.errorOf("listing the tools of", "", err, "", "")
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.instructions = first.sdk.InitializeResult().Instructions
	c.current = first
	return c, nil
}

// Tools returns the server's tools, in list order. They work until the client is closed, in any number of agents.
func (c *Client) Tools() []toolexec.Tool {
	return lo.Map(c.tools, func(t *tool, _ int) toolexec.Tool { return t })
}

// Instructions returns the server's instructions for a model. It returns an empty string if there are none. They come
// from the server: review them before you put them into a system prompt.
func (c *Client) Instructions() string { return c.instructions }

// Annotations returns the server's annotations for the tool that the model knows by this name. ok is false when the
// client has no such tool.
func (c *Client) Annotations(name string) (Annotations, bool) {
	t, ok := lo.Find(c.tools, func(t *tool) bool { return t.spec.Name == name })
	if !ok {
		return Annotations{}, false
	}
	return t.annotations, true
}

// Close ends the connection and the server's process group. It closes the server's input, then asks the group to end,
// then kills it. Calls in progress fail. Close returns when all processes have ended. Its error reports processes that
// did not end.
func (c *Client) Close() error {
	c.closing.Do(func() {
		c.end()
		c.mu.Lock()
		c.closed = true
		last, dialling := c.current, c.dialling
		c.mu.Unlock()
		if dialling != nil {
			<-dialling.done // redial closes a session that it has opened
		}
		if last != nil {
			c.closeErr = last.closeSession()
		}
	})
	return c.closeErr
}

var errClosed = errors.New("the client was closed: connect again")

// session returns the connection, and reconnects if it has ended.
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
			return nil, fmt.Errorf("it failed %d times in a row and is not called for %v: do something else until then",
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

// redial replaces the old connection with a new one. It is independent of any call.
func (c *Client) redial(d *dialling, old *session) {
	defer close(d.done)
	if old != nil {
		_ = old.closeSession()
	}
	c.countFailure()
	d.session, _, d.err = dialServer(c.life, c.server, c.serial)
	c.mu.Lock()
	closed := c.closed
	c.current, c.dialling = d.session, nil
	c.mu.Unlock()
	if closed && d.session != nil {
		_ = d.session.closeSession()
		d.session, d.err = nil, errClosed
	}
}

// The first reconnect is immediate. Later ones wait for a pause that grows until a call succeeds.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)

// countFailure counts a connection that was lost or could not be opened.
func (c *Client) countFailure() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	if c.failures > 1 {
		c.notBefore = time.Now().Add(min(maxPause, firstPause<<min(c.failures-2, 10)))
	}
}

func (c *Client) resetFailures() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures, c.notBefore = 0, time.Time{}
}
