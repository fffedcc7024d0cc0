package approval

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

// cookieName is the name of the cookie that a sign-in sets. Its value is random; the handler keeps only the hash, in memory.
const cookieName = "grapnel_approvals"

const (
	sessionTime = 12 * time.Hour
	signInBytes = 4 << 10
)

// sessions are the people who have signed in.
type sessions struct {
	mu    sync.Mutex
	known map[[32]byte]session
}

// session is one sign-in: it ends with the token that it was made with.
type session struct {
	token [32]byte // the SHA-256 of the person's token
	until time.Time
}

// add starts a session and returns the value of its cookie.
func (s *sessions) add(token string, now time.Time) string {
	value, sum := NewToken()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[[32]byte]session{}
	}
	for id, old := range s.known {
		if now.After(old.until) {
			delete(s.known, id)
		}
	}
	s.known[sum] = session{durable.TokenHash(token), now.Add(sessionTime)}
	return value
}

// author returns the person of a cookie; nil if the session or the person's token has expired.
func (s *sessions) author(people *People, cookie string) *Principal {
	s.mu.Lock()
	known, ok := s.known[durable.TokenHash(cookie)]
	s.mu.Unlock()
	now := time.Now()
	if !ok || now.After(known.until) {
		return nil
	}
	if p, ok := people.findHash(known.token, now); ok {
		return &p
	}
	return nil
}

func (s *sessions) remove(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, durable.TokenHash(cookie))
}

// signIn shows the form for a token, and accepts a token from the form or the address.
func (h *handler) signIn(w http.ResponseWriter, r *http.Request) {
	if h.options.People == nil {
		h.reply(w, r, reply{Status: http.StatusNotFound, Message: "This server has no sign-in of its own."})
		return
	}
	token := r.URL.Query().Get("token")
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, signInBytes))
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			h.reply(w, r, reply{Status: http.StatusRequestEntityTooLarge, Message: "The form is too large.", SignIn: true})
			return
		}
		form, err := url.ParseQuery(string(body))
		if err != nil {
			h.reply(w, r, reply{Status: http.StatusBadRequest, Message: "The body is not a form.", SignIn: true})
			return
		}
		token = strings.TrimSpace(form.Get("token"))
	} else if token == "" {
		h.reply(w, r, reply{Status: http.StatusOK, SignIn: true})
		return
	}
	p, ok := h.options.People.Find(token)
	if !ok {
		h.reply(w, r, reply{Status: http.StatusUnauthorized, Message: "The token is unknown, or it has expired.", SignIn: true})
		return
	}
	if r.Method != http.MethodHead {
		http.SetCookie(w, h.cookie(r, h.sessions.add(token, time.Now()), sessionTime))
		h.options.Log.InfoContext(r.Context(), "approval: signed in", "identity", p.Name)
	}
	h.reply(w, r, reply{Status: http.StatusOK, Message: "You are signed in as " + p.Name + ".", Forward: "./"})
}

// signOut ends a session.
func (h *handler) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		h.sessions.remove(cookie.Value)
	}
	http.SetCookie(w, h.cookie(r, "", -time.Second))
	h.reply(w, r, reply{Status: http.StatusOK, Message: "You are signed out.", SignIn: h.options.People != nil})
}

// cookie returns a cookie for the pages below the folder of the request.
func (h *handler) cookie(r *http.Request, value string, life time.Duration) *http.Cookie {
	folder := prefix
	if at, err := url.ParseRequestURI(r.RequestURI); err == nil { // the address before http.StripPrefix
		folder = strings.TrimRight(path.Dir(at.Path), "/") + "/"
	}
	return &http.Cookie{
		Name: cookieName, Value: value, Path: folder, MaxAge: int(life.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || h.secure[hostOf(r)],
	}
}
