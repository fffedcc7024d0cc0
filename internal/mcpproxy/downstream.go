package mcpproxy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"
)

// Handler serves clients over streamable HTTP in front of a Remote. Each client's session is one of the server's. Close
// ends them.
type Handler struct {
	remote *Remote
	config Config
	life   context.Context //nolint:containedctx // that of all sessions
	cancel context.CancelFunc

	mu       sync.Mutex
	sessions map[string]*served
}

// served is a session of a client over HTTP.
type served struct {
	*link

	used time.Time
}

// NewHandler returns a handler for the loopback. It refuses pages of other origins.
func NewHandler(ctx context.Context, c Config, r *Remote) *Handler {
	h := &Handler{remote: r, config: c, sessions: map[string]*served{}}
	h.life, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return h
}

// Close ends all sessions.
func (h *Handler) Close() {
	h.mu.Lock()
	left := h.sessions
	h.sessions = map[string]*served{}
	h.mu.Unlock()
	h.cancel()
	for _, s := range left {
		s.shut(h.life, ErrServerEnded)
		s.busy.Wait()
	}
}

// ServeHTTP handles a client's request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isLocal(r.Host) || !isLocalOrigin(r.Header.Get("Origin")) {
		http.Error(w, "only for this machine", http.StatusForbidden)
		return
	}
	id := r.Header.Get(headerSession)
	h.mu.Lock()
	s := h.sessions[id]
	if s != nil {
		s.used = time.Now()
	}
	h.mu.Unlock()
	switch {
	case s == nil && id != "":
		http.Error(w, "unknown session", http.StatusNotFound)
	case r.Method == http.MethodPost:
		h.post(w, r, s)
	case s == nil || r.Method != http.MethodGet && r.Method != http.MethodDelete:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	case r.Method == http.MethodDelete:
		h.mu.Lock()
		delete(h.sessions, id)
		h.mu.Unlock()
		s.shut(r.Context(), ErrClientEnded)
		w.WriteHeader(http.StatusNoContent)
	default:
		out := &stream{w: w}
		ctx := out.context(r)
		err := s.listen(ctx, out.send, out.begin)
		if errors.Is(err, errNoStream) {
			out.refuse(http.StatusMethodNotAllowed, nil)
		}
		out.end()
	}
}

func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func isLocalOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return origin == "" || err == nil && isLocal(u.Host)
}

// maxSessions limits sessions. The one that was used least recently gives way.
const maxSessions = 1000

func (h *Handler) add(s *served, id string) {
	var old *served
	h.mu.Lock()
	s.used = time.Now()
	if len(h.sessions) >= maxSessions {
		oldest := ""
		for id, s := range h.sessions {
			if oldest == "" || s.used.Before(h.sessions[oldest].used) {
				oldest = id
			}
		}
		old = h.sessions[oldest]
		delete(h.sessions, oldest)
	}
	h.sessions[id] = s
	h.mu.Unlock()
	if old != nil {
		go old.shut(h.life, errors.New("the session was not used for a long time"))
	}
}

// post handles a message of the client. A nil s is a client without a session.
func (h *Handler) post(w http.ResponseWriter, r *http.Request, s *served) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(h.config.mostBytes())))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	m, err := parse(raw)
	out := &stream{w: w, key: m.key, done: make(chan struct{})}
	if err == nil && (r.Header.Get(headerMethod) != "" && r.Header.Get(headerMethod) != m.method) {
		err = fmt.Errorf("the header %s names another method", headerMethod)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(fault(m.id, codeInvalid, "the message is refused: "+err.Error()))
		return
	}
	ctx := out.context(r)
	if s == nil {
		begins := m.method == methodInitialize
		s = &served{link: h.remote.link(h.life, h.config, lo.Ternary(begins, "", sharedID))}
		if !begins { // each request is a session
			s.s.guarded.MissCalls()
			defer func() {
				s.shut(h.life, ErrClientEnded)
				s.busy.Wait()
			}()
		}
		out.begins = func(header http.Header) {
			s.mu.Lock()
			id := s.id
			s.mu.Unlock()
			if !begins {
				return
			}
			if id == "" { // the server has no sessions, and we have
				id = "grapnel-" + rand.Text()
			}
			header.Set(headerSession, id)
			h.add(s, id)
		}
	}
	err = s.s.fromClient(ctx, raw, out.send)
	if m.key == "" || m.method == "" { // without an answer
		out.accept(err)
		return
	}
	select {
	case <-out.done:
	case <-ctx.Done():
		if o := s.s.take(m.key); o != nil {
			o.release()
		}
	}
	out.end()
}

// stream is the response to a client's request: one message, or a stream of events.
type stream struct {
	w      http.ResponseWriter
	key    string            // of the answer, which ends it
	begins func(http.Header) // called before the first byte
	done   chan struct{}

	mu     sync.Mutex
	begun  bool
	events bool
	over   bool
}

// context returns the context for the messages of the request, with the headers that are for the server.
func (o *stream) context(r *http.Request) context.Context {
	headers := http.Header{}
	for _, name := range []string{"Authorization", headerVersion, headerEvent, "Traceparent", "Tracestate", "Baggage"} {
		if value := r.Header.Get(name); value != "" {
			headers.Set(name, value)
		}
	}
	return context.WithValue(context.WithValue(r.Context(), headersKey{}, headers), refusalKey{}, o.refuse)
}

// refuse ends the response with a status that the server has answered.
func (o *stream) refuse(status int, header http.Header) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun || o.over {
		return
	}
	if value := header.Get("WWW-Authenticate"); value != "" {
		o.w.Header().Set("WWW-Authenticate", value)
	}
	o.begun, o.over = true, true
	o.w.WriteHeader(status)
	if o.done != nil {
		close(o.done)
	}
}

// begin starts a stream of events.
func (o *stream) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beginEvents()
}

func (o *stream) beginEvents() {
	if o.begun {
		return
	}
	o.begun, o.events = true, true
	if o.begins != nil {
		o.begins(o.w.Header())
	}
	o.w.Header().Set("Content-Type", eventStream)
	o.w.Header().Set("Cache-Control", "no-cache, no-transform")
	o.w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(o.w).Flush()
}

// send writes a message. The answer alone is no stream.
func (o *stream) send(raw []byte) error {
	m, err := parse(raw)
	if err != nil {
		return err
	}
	last := o.key != "" && m.method == "" && m.key == o.key
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return ErrClientEnded
	}
	if last {
		o.over = true
		defer close(o.done)
	}
	if last && !o.begun {
		o.begun = true
		if o.begins != nil {
			o.begins(o.w.Header())
		}
		o.w.Header().Set("Content-Type", "application/json")
		_, err = o.w.Write(raw)
	} else {
		o.beginEvents()
		_, err = fmt.Fprintf(o.w, "event: message\ndata: %s\n\n", lineBreaks.Replace(string(raw)))
		if err == nil {
			err = http.NewResponseController(o.w).Flush()
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrClientEnded, err)
	}
	return nil
}

// lineBreaks removes the breaks between a message's members, because an event's data is one line.
var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")

// accept answers a message that has no answer.
func (o *stream) accept(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.begun:
	case err != nil:
		http.Error(o.w, err.Error(), http.StatusBadGateway)
	default:
		o.w.WriteHeader(http.StatusAccepted)
	}
	o.over = true
}

// end makes sure that nothing is written after the handler has returned.
func (o *stream) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
}
