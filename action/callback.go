package action

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Callbacks listens on the loopback interface for gates that wait for a callback. It listens as long as at least one
// gate waits. Gates with the same port share a listener. It is safe for concurrent use; the zero Callbacks is ready
// for use.
type Callbacks struct {
	// Base, unless empty, replaces http://127.0.0.1:port in CALLBACK_URL. It is the address of a proxy or tunnel that
	// forwards to this listener, such as "https://desk.example.com/agents".
	Base string

	mu    sync.Mutex
	ports map[int]*desk
}

// desk is a listener with the gates that wait on it.
type desk struct {
	listener net.Listener
	server   *http.Server
	tickets  []*ticket
	open     int
}

// ticket is the right to answer one gate once.
type ticket struct {
	token string
	about about
	// said receives the first answer; used is set from then on.
	said chan said
	used bool
}

// about describes a gate for its page.
type about struct {
	Hook, Agent, Reason string
}

// open starts a listener on the port unless one exists, and returns a ticket with its URL. Close the ticket with
// shut.
func (c *Callbacks) open(port int, what about) (t *ticket, url string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.ports[port]
	if d == nil {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // it outlives who opens it
		if err != nil {
			return nil, "", fmt.Errorf("listening for a callback: %w", err)
		}
		d = &desk{listener: listener, server: &http.Server{
			Handler: handler{c, port}, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
			MaxHeaderBytes: DefaultMaxBytes,
		}}
		go func() { _ = d.server.Serve(listener) }()
		if c.ports == nil {
			c.ports = map[int]*desk{}
		}
		c.ports[port] = d
	}
	t = &ticket{token: rand.Text(), about: what, said: make(chan said, 1)}
	d.tickets = append(d.tickets, t)
	d.open++
	base := "http://" + d.listener.Addr().String()
	if c.Base != "" {
		base = strings.TrimRight(c.Base, "/")
	}
	return t, base + callbackPath + t.token, nil
}

// callbackPath is the part of the path before the token.
const callbackPath = "/callback/"

// shut invalidates a ticket. When the last ticket of a port is shut, the listener is closed.
func (c *Callbacks) shut(port int, t *ticket) {
	c.mu.Lock()
	d := c.ports[port]
	t.used = true
	d.open--
	last := d.open == 0
	if last {
		delete(c.ports, port)
		_ = d.listener.Close() // now, so that another process can use the port
	}
	c.mu.Unlock()
	if !last {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // for requests that are being answered
	defer cancel()
	if d.server.Shutdown(ctx) != nil {
		_ = d.server.Close()
	}
}

// find returns the ticket for a token. It takes the same time for every token, so that its duration reveals nothing.
func (c *Callbacks) find(port int, token string) (found *ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.ports[port]; d != nil {
		for _, t := range d.tickets {
			if subtle.ConstantTimeCompare([]byte(t.token), []byte(token)) == 1 {
				found = t
			}
		}
	}
	return found
}

var errUsed = errors.New("already answered")

// answer stores the answer of a gate, unless it already has one.
func (c *Callbacks) answer(t *ticket, what said) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.used {
		return errUsed
	}
	t.used = true
	t.said <- what
	return nil
}

func (c *Callbacks) isUsed(t *ticket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.used
}
