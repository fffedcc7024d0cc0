package approval

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Options configure a Handler. The zero value is the default.
type Options struct {
	// Decided is called with each run for which an answer was stored, so that an engine can continue the run at once. The
	// page waits for it, so it should return quickly. If it is nil, a worker that polls for due runs finds the run.
	Decided func(ctx context.Context, run agent.RunID)
	// Log receives decisions (run, call, verdict, and the name entered) and failures of the store, but never tokens. Nil
	// disables logging.
	Log *slog.Logger
	// Origins lists further origins whose pages may post decisions, such as "https://desk.example.com". Add the origin of
	// a proxy that changes the Host header.
	Origins []string
}

// Handler serves the question of a token on GET /approvals/{token} and accepts the decision on POST; the package comment
// describes the protocol. It may be mounted below any path with http.StripPrefix and is safe for concurrent use. It
// panics if one of Options.Origins is not an origin.
func Handler(store durable.Store, o Options) http.Handler {
	h := &handler{store: store, options: o, cross: http.NewCrossOriginProtection()}
	if o.Log == nil {
		h.options.Log = slog.New(slog.DiscardHandler)
	}
	for _, origin := range o.Origins {
		if err := h.cross.AddTrustedOrigin(origin); err != nil {
			panic("approval: Options.Origins: " + err.Error())
		}
	}
	return h
}

type handler struct {
	store   durable.Store
	options Options
	cross   *http.CrossOriginProtection
}

// guards are headers that every response has.
var guards = map[string]string{
	"Cache-Control":                "no-store",
	"Content-Security-Policy":      "default-src 'none'; style-src " + styleHash + "; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"X-Robots-Tag":                 "noindex, nofollow",
}

// prefix is the path prefix of questions.
const prefix = "/approvals/"

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range guards {
		w.Header().Set(name, value)
	}
	defer h.recoverPanic(w, r)
	token, ok := strings.CutPrefix(r.URL.Path, prefix)
	if !ok {
		h.reply(w, r, nothing)
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		h.show(w, r, token)
	case http.MethodPost:
		if h.cross.Check(r) != nil {
			h.reply(w, r, reply{Status: http.StatusForbidden, Message: "The request came from another site. Nothing was decided. " +
				"Open the link itself, over HTTPS if it is not on this machine, and decide there."})
			return
		}
		h.decide(w, r, token)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		h.reply(w, r, reply{Status: http.StatusMethodNotAllowed, Message: "GET shows a question, POST decides it; other methods are not supported."})
	}
}

// show serves a question. It changes nothing.
func (h *handler) show(w http.ResponseWriter, r *http.Request, token string) {
	asked, err := findQuestion(r.Context(), h.store, token)
	if err != nil {
		h.replyFailure(w, r, "showing a question", err)
		return
	}
	h.reply(w, r, asked.reply(http.StatusOK, ""))
}

// nothing is the reply for every token without an open question, whatever the cause.
var nothing = reply{
	Status: http.StatusNotFound,
	Message: "Nothing to decide here. The link may be incomplete, or the question was decided or withdrawn " +
		"and the run has gone on or ended.",
}

// replyFailure replies that an operation failed.
func (h *handler) replyFailure(w http.ResponseWriter, r *http.Request, doing string, err error) {
	if errors.Is(err, durable.ErrNotFound) {
		h.reply(w, r, nothing)
		return
	}
	if r.Context().Err() == nil {
		h.options.Log.ErrorContext(r.Context(), "approval: "+doing+" failed", "error", err)
	}
	h.reply(w, r, reply{
		Status:  http.StatusServiceUnavailable,
		Message: "The store of runs does not respond. Try again in a moment; the page then shows whether your decision was recorded.",
	})
}

// recoverPanic replies after a panic. The log entry of net/http would contain the client's address.
func (h *handler) recoverPanic(w http.ResponseWriter, r *http.Request) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p)
	default:
		h.options.Log.ErrorContext(r.Context(), "approval: a panic", "panic", p, "stack", string(debug.Stack()))
		h.reply(w, r, reply{Status: http.StatusInternalServerError, Message: "Internal error. See the server log."})
	}
}
