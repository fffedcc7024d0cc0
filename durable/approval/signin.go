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
	token, back := r.URL.Query().Get("token"), waitNameOf(r.URL.Query())
	form := reply{Status: http.StatusOK, SignIn: true, back: back}
	switch {
	case r.Method == http.MethodPost:
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, signInBytes))
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			h.reply(w, r, reply{Status: http.StatusRequestEntityTooLarge, Message: "The form is too large.", SignIn: true})
			return
		}
		values, err := url.ParseQuery(string(body))
		if err != nil {
			h.reply(w, r, reply{Status: http.StatusBadRequest, Message: "The body is not a form.", SignIn: true})
			return
		}
		token, back = strings.TrimSpace(values.Get("token")), waitNameOf(values)
	case token == "":
		h.reply(w, r, form)
		return
	case isFromOtherSite(r): // a link of another site must not sign a person in as another one
		form.Message = "This address came from another site. Enter your own token to sign in."
		h.reply(w, r, form)
		return
	}
	p, ok := h.options.People.Find(token)
	if !ok {
		h.reply(w, r, reply{Status: http.StatusUnauthorized, Message: "The token is unknown, or it has expired.", SignIn: true, back: back})
		return
	}
	if r.Method != http.MethodHead {
		http.SetCookie(w, h.cookie(r, h.sessions.add(token, time.Now()), sessionTime))
		h.options.Log.InfoContext(r.Context(), "approval: signed in", "identity", p.Name)
	}
	next := "./"
	if back != (waitName{}) {
		next = back.address(pathWait)
	}
	h.reply(w, r, reply{Status: http.StatusOK, Message: "You are signed in as " + p.Name + ".", Forward: next})
}

// isFromOtherSite reports whether a browser follows a link of another site.
func isFromOtherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "none" && site != "same-origin"
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
	return &http.Cookie{ //nolint:gosec // Secure is false only without HTTPS
		Name: cookieName, Value: value, Path: folder, MaxAge: int(life.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || h.secure[hostOf(r)],
	}
}
