package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// Coordinator is what the pages read. An api.Reader is one.
type Coordinator interface {
	// ListRuns returns a page of runs, newest first.
	ListRuns(ctx context.Context, f wire.RunFilter) (wire.RunList, error)
	// Run returns everything about a run; durable.ErrNotFound for an unknown one.
	Run(ctx context.Context, id agent.RunID) (wire.RunDetail, error)
	// ListEvents returns at most limit events of a run after the one with a number: its own, its end, and later hooks' events.
	ListEvents(ctx context.Context, id agent.RunID, after int64, limit int) ([]wire.EventView, error)
	// TokenByHash returns the valid token with a hash; durable.ErrNotFound for an unknown one.
	TokenByHash(ctx context.Context, hash string) (wire.Token, error)
}

// Options configures the pages.
type Options struct {
	// Coordinator and Store are what the pages read. Sessions are documents in the store. Both are required.
	Coordinator Coordinator
	Store       durable.Store
	// Token is the token of api.Options: people may sign in with it, as admins. Empty means none.
	Token string
	// Origins are the origins of api.Options: their cookies need HTTPS if they do.
	Origins []string
	// Log receives failures, and who signs in. Nil disables logging.
	Log *slog.Logger
}

// Handler serves the control room. New returns one.
type Handler struct {
	o      Options
	mux    *http.ServeMux
	code   code
	secure map[string]bool // hosts of Options.Origins with HTTPS
}

// prefix is the path of all pages.
const (
	prefix     = "/ui/"
	signInPath = prefix + "sign-in"
)

// New returns the pages, to be served at /ui/. The handler around them must refuse requests from other sites and for
// other hosts, as api.Handler does.
func New(o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{o: o, mux: http.NewServeMux(), secure: map[string]bool{}}
	for _, origin := range o.Origins {
		if at, err := url.Parse(origin); err == nil && at.Scheme == "https" {
			h.secure[strings.ToLower(at.Host)] = true
		}
	}
	h.mux.HandleFunc("GET "+prefix+"asset/{name}", serveAsset)
	h.mux.HandleFunc("GET "+signInPath, h.showSignIn)
	h.mux.HandleFunc("POST "+signInPath, h.signIn)
	h.mux.HandleFunc("POST "+prefix+"sign-out", h.signOut)
	for path, page := range map[string]func(http.ResponseWriter, *http.Request, *view){
		"{$}": h.showOverview, "live": h.streamOverview,
		"runs": h.showRuns, "runs/live": h.streamRuns,
		"runs/{id}": h.showRun, "runs/{id}/live": h.streamRun,
		"": h.showNothing,
	} {
		h.mux.Handle("GET "+prefix+path, h.signedIn(page))
	}
	return h
}

// headers are the headers of every response. Pages run one script from this server, which makes no markup but what the
// server sends.
var headers = map[string]string{
	"Cache-Control": "no-store",
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; " +
		"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types grapnel",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"X-Robots-Tag":                 "noindex, nofollow",
}

// ServeHTTP serves a page.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p)
		default: // the log of net/http has the address of the client
			h.o.Log.ErrorContext(r.Context(), "control room: a panic", "panic", p, "stack", string(debug.Stack()))
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	}()
	h.mux.ServeHTTP(w, r)
}

// signedIn returns a page for people who are signed in. Others are sent to sign in first.
func (h *Handler) signedIn(page func(http.ResponseWriter, *http.Request, *view)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := h.Identify(r)
		v := &view{who: who, now: time.Now()}
		switch {
		case errors.Is(err, errSignedOut):
			at := signInPath
			if r.URL.Path != prefix {
				at += "?" + url.Values{"back": {r.URL.RequestURI()}}.Encode()
			}
			http.Redirect(w, r, at, http.StatusSeeOther)
		case err != nil:
			h.fail(w, r, v, "identifying who sends a request", err)
		default:
			page(w, r, v)
		}
	})
}

// reply writes a page.
func reply(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

func (h *Handler) showNothing(w http.ResponseWriter, r *http.Request, v *view) {
	h.fail(w, r, v, "showing a page", durable.ErrNotFound)
}

// fail replies that something cannot be shown.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, v *view, doing string, err error) {
	status, title, text := http.StatusServiceUnavailable, "The store does not answer", "Try again in a moment."
	if errors.Is(err, durable.ErrNotFound) || errors.Is(err, errUnknownList) {
		status, title, text = http.StatusNotFound, "Nothing here", "There is no such page or run. It may have been deleted."
	} else {
		h.logError(r, doing, err)
	}
	v.title, v.live = title, ""
	v.Put("<h1>%s</h1>\n<p>%s <a href=\"%s\">All runs</a></p>\n", title, text, prefix+"runs")
	reply(w, status, v.render())
}

// logError logs a failure, unless the client has gone.
func (h *Handler) logError(r *http.Request, doing string, err error) {
	if r.Context().Err() == nil {
		h.o.Log.ErrorContext(r.Context(), "control room: "+doing, "error", err)
	}
}
