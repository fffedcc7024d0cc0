package action

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/internal/callback"
)

// Callbacks listens on the loopback interface for gates that wait for a callback. It listens while at least one gate
// waits. Gates with the same port share a listener. It is safe for concurrent use. The zero Callbacks is ready for use.
type Callbacks struct {
	// Base, unless empty, replaces http://127.0.0.1:port in CALLBACK_URL. It is the address of a proxy or tunnel that
	// forwards to this listener, such as "https://desk.example.com/agents".
	Base string

	mu    sync.Mutex
	ports map[int]*callbackListener
}

// callbackListener is a listener with the gates that wait on it.
type callbackListener struct {
	listener net.Listener
	server   *http.Server
	pending  []*pendingCallback
	open     int
}

// pendingCallback is the right to answer one gate once.
type pendingCallback struct {
	token string
	about callback.About
	// said receives the first answer; used is set from then on.
	said chan callback.Answer
	used bool
}

// open starts a listener on the port unless one exists, and returns a pending callback with its URL. Close it with
// shut.
func (c *Callbacks) open(port int, what callback.About) (t *pendingCallback, url string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.ports[port]
	if d == nil {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // it outlives who opens it
		if err != nil {
			return nil, "", fmt.Errorf("listening for a callback: %w", err)
		}
		d = &callbackListener{listener: listener, server: &http.Server{
			Handler: handler{c, port}, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
			MaxHeaderBytes: DefaultMaxBytes,
		}}
		go func() { _ = d.server.Serve(listener) }()
		if c.ports == nil {
			c.ports = map[int]*callbackListener{}
		}
		c.ports[port] = d
	}
	t = &pendingCallback{token: rand.Text(), about: what, said: make(chan callback.Answer, 1)}
	d.pending = append(d.pending, t)
	d.open++
	base := "http://" + d.listener.Addr().String()
	if c.Base != "" {
		base = strings.TrimRight(c.Base, "/")
	}
	return t, base + callback.Path + t.token, nil
}

// shut invalidates a pending callback. It closes the listener with the port's last one.
func (c *Callbacks) shut(port int, t *pendingCallback) {
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

// find returns the pending callback for a token. It takes the same time for every token, so that the duration reveals nothing.
func (c *Callbacks) find(port int, token string) (found *pendingCallback) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.ports[port]; d != nil {
		for _, t := range d.pending {
			if subtle.ConstantTimeCompare([]byte(t.token), []byte(token)) == 1 {
				found = t
			}
		}
	}
	return found
}

// answer stores a gate's answer, unless the gate already has one.
func (c *Callbacks) answer(t *pendingCallback, what callback.Answer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.used {
		return callback.ErrUsed
	}
	t.used = true
	t.said <- what
	return nil
}

func (c *Callbacks) isUsed(t *pendingCallback) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.used
}

// handler handles the HTTP requests to callback URLs.
type handler struct {
	callbacks *Callbacks
	port      int
}

// ServeHTTP shows the question for GET, and accepts the answer for POST.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.URL.Path, callback.Path)
	t := h.callbacks.find(h.port, token)
	if t == nil {
		callback.Serve(w, r, nil)
		return
	}
	callback.Serve(w, r, &callback.Gate{
		About: t.about, Used: h.callbacks.isUsed(t),
		Answer: func(_ *http.Request, what callback.Answer) error { return h.callbacks.answer(t, what) },
	})
}
