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

// Options is what may be said about how questions are answered over HTTP. The zero value
// is the default.
type Options struct {
	// Decided is told of each run that was answered for, after the answer was
	// stored, so that an engine can go on with the run at once. The page waits for it:
	// it should return soon. Nil: a worker that looks for runs that are due will find it.
	Decided func(ctx context.Context, run agent.RunID)
	// Log is told of decisions (run, call, verdict, and who they say they are) and of a
	// store that fails; of tokens never. Nil is silent.
	Log *slog.Logger
	// Origins are origins, such as "https://desk.example.com", whose pages may post
	// decisions besides our own, and that of a proxy which changes the Host header.
	Origins []string
}

// Handler shows the question that a token was made for at GET /approvals/{token} and
// takes the decision at POST: see the package comment for what it says. It may be served
// below any path with http.StripPrefix, and is safe for concurrent use. It panics when
// one of Options.Origins is no origin.
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

// guards are set on every answer, whatever it is.
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

// prefix is where questions are shown.
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

// show shows a question. It changes nothing.
func (h *handler) show(w http.ResponseWriter, r *http.Request, token string) {
	asked, err := findQuestion(r.Context(), h.store, token)
	if err != nil {
		h.replyFailure(w, r, "showing a question", err)
		return
	}
	h.reply(w, r, asked.reply(http.StatusOK, ""))
}

// nothing is the answer to every token that nothing is asked under, whatever the cause.
var nothing = reply{
	Status: http.StatusNotFound,
	Message: "Nothing to decide here. The link may be incomplete, or the question was decided or withdrawn " +
		"and the run has gone on or ended.",
}

// replyFailure answers that something could not be done.
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

// recoverPanic answers for what panicked. The server's own account of it would name the
// address of who asked.
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
