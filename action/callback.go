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

// Callbacks listens for gates that wait for a callback: on the loopback, from the first gate that waits to the last. Gates
// on one port share a listener. It is safe for concurrent use; the zero Callbacks is ready.
type Callbacks struct {
	// Base, unless empty, is what stands in CALLBACK_URL in the place of http://127.0.0.1:port: the address of a proxy or
	// a tunnel that leads here, such as "https://desk.example.com/agents".
	Base string

	mu    sync.Mutex
	ports map[int]*desk
}

// desk is one listener, and the gates that wait at it.
type desk struct {
	listener net.Listener
	server   *http.Server
	tickets  []*ticket
	open     int
}

// ticket is the right to answer for one gate, once.
type ticket struct {
	token string
	about about
	// said is what the first who answered has said; used is set from then on.
	said chan said
	used bool
}

// about is what a page says of a gate.
type about struct {
	Hook, Agent, Reason string
}

// open listens, if nothing does yet, and gives a ticket with the URL that answers it. Close it with shut.
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

// callbackPath is what stands before the token.
const callbackPath = "/callback/"

// shut ends waiting for an answer. The last one stops listening.
func (c *Callbacks) shut(port int, t *ticket) {
	c.mu.Lock()
	d := c.ports[port]
	t.used = true
	d.open--
	last := d.open == 0
	if last {
		delete(c.ports, port)
		_ = d.listener.Close() // before another one wants the port
	}
	c.mu.Unlock()
	if !last {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // for who is being answered
	defer cancel()
	if d.server.Shutdown(ctx) != nil {
		_ = d.server.Close()
	}
}

// find finds the ticket of a token. How long that takes says nothing of it.
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

// answer answers for a gate, if it has no answer yet.
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
