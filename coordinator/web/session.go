package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/internal/rates"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

const (
	// kindSession is the kind of the documents with sessions; their names are the hashes of cookies.
	kindSession = "session"
	sessionTime = 12 * time.Hour
	// codeTime is how long the code that the service prints works.
	codeTime  = time.Hour
	formBytes = 8 << 10
)

// session is one sign-in. It has the rights of its token, and ends with it.
type session struct {
	// Token is the hash of the token; of Options.Token, it is ownHash.
	Token string    `json:"token"`
	Until time.Time `json:"until"`
}

// hashOf returns the hash under which a secret with at least 128 random bits is stored and compared.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// code is a code that signs in once. The zero value is none.
type code struct {
	mu    sync.Mutex
	hash  string
	until time.Time
}

// NewCode returns a code that signs in once within an hour, with the rights of Options.Token. It replaces the code before.
func (h *Handler) NewCode() string {
	text := rand.Text()
	h.code.mu.Lock()
	defer h.code.mu.Unlock()
	h.code.hash, h.code.until = hashOf(text), time.Now().Add(codeTime)
	return text
}

// SignInPath returns the path of the page that signs in with a code. Opening it does not use the code up.
func SignInPath(code string) string { return signInPath + "?" + url.Values{"code": {code}}.Encode() }

// SignInToRun works like SignInPath, and leads to the page of a run.
func SignInToRun(code string, id agent.RunID) string {
	return signInPath + "?" + url.Values{"code": {code}, "back": {runPath(id)}}.Encode()
}

// use reports whether a code is valid, and ends it.
func (c *code) use(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hash == "" || time.Now().After(c.until) || subtle.ConstantTimeCompare([]byte(c.hash), []byte(hashOf(text))) != 1 {
		return false
	}
	c.hash = ""
	return true
}

// errSignedOut is returned for a request without a valid session.
var errSignedOut = errors.New("not signed in")

// identify returns who has the session that a request belongs to. Its error is errSignedOut if there is none.
func (h *Handler) identify(r *http.Request) (person, error) {
	cookie, err := r.Cookie(h.cookieName(r))
	if err != nil {
		return person{}, errSignedOut
	}
	return h.sessionPerson(r.Context(), cookie.Value)
}

// sessionPerson returns who has the session with a cookie.
func (h *Handler) sessionPerson(ctx context.Context, cookie string) (person, error) {
	d, err := h.sessions.Document(ctx, kindSession, hashOf(cookie), 0)
	if errors.Is(err, durable.ErrNotFound) {
		return person{}, errSignedOut
	}
	var s session
	if err == nil {
		err = json.Unmarshal(d.Data, &s)
	}
	if err != nil {
		return person{}, fmt.Errorf("looking a session up: %w", err)
	}
	if !time.Now().Before(s.Until) {
		return person{}, errSignedOut
	}
	if p, ok := h.findOwn(func(hash string) bool { return isEqual(s.Token, ownHash(cookie, hash)) }); ok {
		return p, nil
	}
	return h.tokenOf(ctx, s.Token)
}

func isEqual(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// findOwn returns whose token has a hash that a function accepts: Options.Token, or one of Options.People.
func (h *Handler) findOwn(accept func(hash string) bool) (found person, ok bool) {
	if h.o.Token != "" && accept(hashOf(h.o.Token)) {
		found, ok = person{Token: wire.Token{Name: "local", Role: lo.Ternary(h.o.ReadOnly, wire.Viewer, wire.Admin)}}, true
	}
	if p, listed := h.o.People.FindSum(func(s approval.TokenSum) bool { return accept(hex.EncodeToString(s[:])) }); listed {
		found, ok = person{Token: wire.Token{Name: p.Name, Role: approver}, roles: p.Roles}, true
	}
	return found, ok
}

// ownHash returns what a session of a token outside of the coordinator stores. A person may have chosen the token: who
// reads the store without the cookie cannot guess it.
func ownHash(cookie, hash string) string { return hashOf(cookie + hash) }

// tokenOf returns whose token has a hash.
func (h *Handler) tokenOf(ctx context.Context, hash string) (person, error) {
	if p, ok := h.findOwn(func(own string) bool { return isEqual(own, hash) }); ok {
		return p, nil
	}
	if h.o.Coordinator == nil || h.o.ReadOnly {
		return person{}, errSignedOut
	}
	t, err := h.o.Coordinator.TokenByHash(ctx, hash)
	switch {
	case errors.Is(err, durable.ErrNotFound):
		return person{}, errSignedOut
	case err != nil:
		return person{}, err
	case t.Role == wire.RunnerRole: // it reads no runs in the API either
		return person{}, errSignedOut
	}
	return person{Token: t}, nil
}

// cookieName returns the name of the cookie. With HTTPS, browsers keep it to this host.
func (h *Handler) cookieName(r *http.Request) string {
	if h.isSecure(r) {
		return "__Host-grapnel"
	}
	return "grapnel"
}

// isSecure reports whether the browser uses HTTPS, perhaps to a proxy.
func (h *Handler) isSecure(r *http.Request) bool {
	return r.TLS != nil || h.secure[strings.ToLower(r.Host)]
}

// setCookie sets the cookie. Without HTTPS, cookies go to every port of the host, so that it is set for our pages alone.
func (h *Handler) setCookie(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	path := prefix
	if h.isSecure(r) {
		path = "/" // as __Host- wants it
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure is false only without HTTPS
		Name: h.cookieName(r), Value: value, Path: path, MaxAge: int(life.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: h.isSecure(r),
	})
}

// canSignIn reports whether people can sign in at all.
func (h *Handler) canSignIn() bool {
	return h.o.Coordinator != nil || h.o.Token != "" || h.o.People != nil
}

// signInBack returns the path of the sign-in that leads to a page.
func signInBack(path string) string { return signInPath + "?" + url.Values{"back": {path}}.Encode() }

// showSignIn serves the form for a code or a token.
func (h *Handler) showSignIn(w http.ResponseWriter, r *http.Request) {
	if _, err := h.identify(r); err == nil {
		http.Redirect(w, r, backOf(r.URL.Query()), http.StatusSeeOther) //nolint:gosec // backOf returns paths below /ui/ only
		return
	}
	h.replySignIn(w, http.StatusOK, r.URL.Query().Get("code"), backOf(r.URL.Query()), "")
}

// backOf returns the path to go to after the sign-in: only paths of this server are.
func backOf(values url.Values) string {
	back := values.Get("back")
	at, err := url.Parse(back)
	if err != nil || at.Scheme != "" || at.Host != "" || !strings.HasPrefix(at.Path, prefix) {
		return prefix
	}
	return back
}

func (h *Handler) replySignIn(w http.ResponseWriter, status int, code, back, message string) {
	v := &view{title: "Sign in"}
	v.Put(`<form method="post" action="%s" class="card signin" autocomplete="off">
<h1>Sign in</h1>
`, signInPath)
	v.PutIf(message != "", "<p class=\"text bad\" role=\"alert\">%s</p>\n", message)
	v.Put(`<p><label for="secret">Code or token</label>
<input id="secret" name="secret" type="password" required autofocus value="%s" autocomplete="off"></p>
<p class="dim">The program that serves this page prints a code that works once. “grapnel tokens create” and “grapnel approvals token” make tokens.</p>
<input type="hidden" name="back" value="%s">
<button class="yes">Sign in</button></form>
`, code, back)
	reply(w, status, v.render())
}

// allSignIns is the client for the limit of all sign-ins.
const allSignIns = "all sign-ins"

// signIn starts a session.
func (h *Handler) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, formBytes)
	if err := r.ParseForm(); err != nil {
		h.replySignIn(w, http.StatusBadRequest, "", prefix, "The form cannot be read.")
		return
	}
	secret, back := strings.TrimSpace(r.PostForm.Get("secret")), backOf(r.PostForm)
	if !h.signIns.Allow(rates.AddressOf(r)) || !h.rates.Allow(allSignIns) {
		w.Header().Set("Retry-After", "1")
		h.replySignIn(w, http.StatusTooManyRequests, "", back, "There were too many sign-ins: wait a few seconds, and try again.")
		return
	}
	hash := hashOf(secret)
	if h.o.Token != "" && h.code.use(secret) {
		hash = hashOf(h.o.Token)
	}
	t, err := h.tokenOf(r.Context(), hash)
	var cookie string
	if err == nil {
		cookie, err = h.addSession(r.Context(), hash, t.Token)
	}
	switch {
	case errors.Is(err, errSignedOut):
		h.replySignIn(w, http.StatusUnauthorized, "", back, "This code or token is unknown, was used or revoked, or has expired.")
		return
	case err != nil:
		h.logError(r, "signing in", err)
		h.replySignIn(w, http.StatusServiceUnavailable, "", back, "The store of runs does not answer. Try again in a moment.")
		return
	}
	h.setCookie(w, r, cookie, sessionTime)
	h.o.Log.InfoContext(r.Context(), "control room: signed in", "name", t.Name, "role", t.Role)
	http.Redirect(w, r, back, http.StatusSeeOther) //nolint:gosec // backOf returns paths below /ui/ only
}

// addSession stores a session and returns the value of its cookie. It deletes sessions that have ended.
func (h *Handler) addSession(ctx context.Context, token string, t wire.Token) (string, error) {
	now := time.Now()
	old, err := h.sessions.ListDocuments(ctx, kindSession, "", durable.DefaultLimit)
	if err != nil {
		return "", err
	}
	for _, d := range old {
		var s session
		if json.Unmarshal(d.Data, &s) != nil || now.After(s.Until) {
			if err := h.sessions.DeleteDocument(ctx, kindSession, d.Name, 0); err != nil && !errors.Is(err, durable.ErrNotFound) {
				return "", err
			}
		}
	}
	value, until := rand.Text()+rand.Text(), now.Add(sessionTime).UTC()
	if !t.Expires.IsZero() && t.Expires.Before(until) {
		until = t.Expires
	}
	if _, ok := h.findOwn(func(own string) bool { return isEqual(own, token) }); ok {
		token = ownHash(value, token)
	}
	data, err := json.Marshal(session{token, until})
	if err == nil {
		_, err = h.sessions.PutDocument(ctx, durable.Document{Kind: kindSession, Name: hashOf(value), By: t.Name, Data: data})
	}
	return value, err
}

// signOut ends the session.
func (h *Handler) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(h.cookieName(r)); err == nil {
		if err := h.sessions.DeleteDocument(r.Context(), kindSession, hashOf(cookie.Value), 0); err != nil && !errors.Is(err, durable.ErrNotFound) {
			h.logError(r, "signing out", err)
		}
	}
	h.setCookie(w, r, "", -time.Second)
	http.Redirect(w, r, signInPath, http.StatusSeeOther)
}
