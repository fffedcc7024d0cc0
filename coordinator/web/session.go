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

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
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

// Identify returns the token of the session that a request belongs to. Its error is errSignedOut if there is none.
func (h *Handler) Identify(r *http.Request) (wire.Token, error) {
	cookie, err := r.Cookie(h.cookieName(r))
	if err != nil {
		return wire.Token{}, errSignedOut
	}
	return h.sessionToken(r.Context(), cookie.Value)
}

// sessionToken returns the token of the session with a cookie.
func (h *Handler) sessionToken(ctx context.Context, cookie string) (wire.Token, error) {
	d, err := h.o.Store.Document(ctx, kindSession, hashOf(cookie), 0)
	if errors.Is(err, durable.ErrNotFound) {
		return wire.Token{}, errSignedOut
	}
	var s session
	if err == nil {
		err = json.Unmarshal(d.Data, &s)
	}
	if err != nil {
		return wire.Token{}, fmt.Errorf("looking a session up: %w", err)
	}
	if !time.Now().Before(s.Until) {
		return wire.Token{}, errSignedOut
	}
	if h.o.Token != "" && subtle.ConstantTimeCompare([]byte(s.Token), []byte(h.ownHash(cookie))) == 1 {
		return ownToken, nil
	}
	return h.tokenOf(ctx, s.Token)
}

// ownToken is what Options.Token stands for.
var ownToken = wire.Token{Name: "local", Role: wire.Admin}

// isOwn reports whether Options.Token has this hash.
func (h *Handler) isOwn(hash string) bool {
	return h.o.Token != "" && subtle.ConstantTimeCompare([]byte(hash), []byte(hashOf(h.o.Token))) == 1
}

// ownHash returns what a session of Options.Token stores. A person may have chosen that token: who reads the store without
// the cookie cannot guess it.
func (h *Handler) ownHash(cookie string) string { return hashOf(cookie + h.o.Token) }

// tokenOf returns the token with a hash.
func (h *Handler) tokenOf(ctx context.Context, hash string) (wire.Token, error) {
	if h.isOwn(hash) {
		return ownToken, nil
	}
	t, err := h.o.Coordinator.TokenByHash(ctx, hash)
	switch {
	case errors.Is(err, durable.ErrNotFound):
		return wire.Token{}, errSignedOut
	case err != nil:
		return wire.Token{}, err
	case t.Role == wire.RunnerRole: // it reads no runs in the API either
		return wire.Token{}, errSignedOut
	}
	return t, nil
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

// setCookie sets the cookie. Without HTTPS, cookies go to every port of the host, so that it is set for our paths alone.
func (h *Handler) setCookie(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	paths := []string{prefix, inboxPath}
	if h.isSecure(r) {
		paths = []string{"/"} // as __Host- wants it
	}
	for _, path := range paths {
		http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure is false only without HTTPS
			Name: h.cookieName(r), Value: value, Path: path, MaxAge: int(life.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
			Secure: h.isSecure(r),
		})
	}
}

// showSignIn serves the form for a code or a token.
func (h *Handler) showSignIn(w http.ResponseWriter, r *http.Request) {
	if _, err := h.Identify(r); err == nil {
		http.Redirect(w, r, prefix, http.StatusSeeOther)
		return
	}
	h.replySignIn(w, http.StatusOK, r.URL.Query().Get("code"), backOf(r.URL.Query()), "")
}

// backOf returns the path to go to after the sign-in: only paths of this server are.
func backOf(values url.Values) string {
	back := values.Get("back")
	at, err := url.Parse(back)
	if err != nil || at.Scheme != "" || at.Host != "" || !strings.HasPrefix(at.Path, prefix) && !strings.HasPrefix(at.Path, inboxPath) {
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
<p class="dim">“grapnel serve” prints a code that works once. “grapnel tokens create” makes tokens for others.</p>
<input type="hidden" name="back" value="%s">
<button class="yes">Sign in</button></form>
`, code, back)
	reply(w, status, v.render())
}

// signIn starts a session.
func (h *Handler) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, formBytes)
	if err := r.ParseForm(); err != nil {
		h.replySignIn(w, http.StatusBadRequest, "", prefix, "The form cannot be read.")
		return
	}
	secret, back := strings.TrimSpace(r.PostForm.Get("secret")), backOf(r.PostForm)
	hash := hashOf(secret)
	if h.o.Token != "" && h.code.use(secret) {
		hash = hashOf(h.o.Token)
	}
	t, err := h.tokenOf(r.Context(), hash)
	var cookie string
	if err == nil {
		cookie, err = h.addSession(r.Context(), hash, t)
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
	old, err := h.o.Store.ListDocuments(ctx, kindSession, "", durable.DefaultLimit)
	if err != nil {
		return "", err
	}
	for _, d := range old {
		var s session
		if json.Unmarshal(d.Data, &s) != nil || now.After(s.Until) {
			if err := h.o.Store.DeleteDocument(ctx, kindSession, d.Name); err != nil && !errors.Is(err, durable.ErrNotFound) {
				return "", err
			}
		}
	}
	value, until := rand.Text()+rand.Text(), now.Add(sessionTime).UTC()
	if !t.Expires.IsZero() && t.Expires.Before(until) {
		until = t.Expires
	}
	if h.isOwn(token) {
		token = h.ownHash(value)
	}
	data, err := json.Marshal(session{token, until})
	if err == nil {
		_, err = h.o.Store.PutDocument(ctx, durable.Document{Kind: kindSession, Name: hashOf(value), By: t.Name, Data: data})
	}
	return value, err
}

// signOut ends the session.
func (h *Handler) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(h.cookieName(r)); err == nil {
		if err := h.o.Store.DeleteDocument(r.Context(), kindSession, hashOf(cookie.Value)); err != nil && !errors.Is(err, durable.ErrNotFound) {
			h.logError(r, "signing out", err)
		}
	}
	h.setCookie(w, r, "", -time.Second)
	http.Redirect(w, r, signInPath, http.StatusSeeOther)
}
