package approval

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
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
	// Log receives decisions (run, wait, verdict, name and identity), refused attempts and failures of the store, but never
	// tokens. Nil disables logging.
	Log *slog.Logger
	// Origins lists further origins of this server, such as "https://desk.example.com": requests for their hosts are
	// answered, and their pages may post decisions. Without them, only names of the loopback and the address of the connection
	// are accepted in the Host header.
	Origins []string
	// People are verified by their tokens, sent as "Authorization: Bearer …".
	People *People
	// Page shows a response to a person in a browser. Nil means that everyone gets JSON. Package coordinator/web has pages.
	Page func(w http.ResponseWriter, r *http.Request, p Page)
	// Waivers lets people who are verified make waivers: package waiver has the hook that answers with them. A waiver answers
	// only questions that everyone may answer.
	Waivers bool
	// Record, unless nil, is called before an answer or a waiver is stored, with its author (nil for a link), the run that it is about,
	// and what is stored, such as "approve" with the ID of the wait. It is stored with the returned context, so that a
	// durable.Companion is stored with it. Then finish is called, also when it was refused.
	Record func(ctx context.Context, author *Principal, run agent.RunID, what string) (storing context.Context, finish func() error)
	// Identify verifies the author of a request in another way, such as the header of a proxy that signs people in. It is
	// asked before People. It returns ErrUnidentified for a request without valid credentials.
	Identify func(r *http.Request) (Principal, error)
}

// Store is the part of a durable.Store that a Handler needs.
type Store interface {
	durable.Inbox
	durable.Audits
}

// Handler serves the question of a token on GET /approvals/{token} and accepts the decision on POST; the package comment
// describes the protocol. If Options can identify people, it also serves the inbox, /approvals/, and what runs wait for,
// /approvals/wait?run=…&wait=…. It may be mounted below any path with http.StripPrefix and is safe for concurrent use. It
// panics if one of Options.Origins is not an origin.
func Handler(store Store, o Options) http.Handler {
	h := &handler{store: store, options: o, cross: http.NewCrossOriginProtection(), hosts: map[string]bool{}}
	if o.Log == nil {
		h.options.Log = slog.New(slog.DiscardHandler)
	}
	for _, origin := range o.Origins {
		if err := h.cross.AddTrustedOrigin(origin); err != nil {
			panic("approval: Options.Origins: " + err.Error())
		}
		if at, err := url.Parse(origin); err == nil {
			h.hosts[strings.ToLower(at.Hostname())] = true
		}
	}
	return h
}

type handler struct {
	store   Store
	options Options
	cross   *http.CrossOriginProtection
	hosts   map[string]bool // of Options.Origins
}

// guards are headers that every response has.
var guards = map[string]string{
	"Cache-Control":                "no-store",
	"Content-Security-Policy":      "default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"X-Robots-Tag":                 "noindex, nofollow",
}

// prefix is the path prefix of all pages. The words below are pages; every other word is the token of a link.
const (
	prefix    = "/approvals/"
	pathInbox = ""
	pathWait  = "wait"
)

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range guards {
		w.Header().Set(name, value)
	}
	defer h.recoverPanic(w, r)
	if !h.isOwnHost(r) {
		h.reply(w, r, Page{Status: http.StatusMisdirectedRequest, Message: "This server does not answer for the host of the request. " +
			"If it is the address of this page, its operator must add it to the origins of the server."})
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, prefix)
	if !ok {
		h.reply(w, r, nothing)
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		if h.cross.Check(r) != nil {
			h.reply(w, r, Page{Status: http.StatusForbidden, Message: "The request came from another site. Nothing was decided. " +
				"Open the link itself, over HTTPS if it is not on this machine, and decide there."})
			return
		}
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		h.reply(w, r, Page{Status: http.StatusMethodNotAllowed, Message: "GET shows a question, POST decides it; other methods are not supported."})
		return
	}
	who, err := h.identify(r)
	if err != nil {
		h.replyFailure(w, r, "identifying the author of a request", err)
		return
	}
	h.route(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, who)), path)
}

// route serves the page that a path names.
func (h *handler) route(w http.ResponseWriter, r *http.Request, path string) {
	post := r.Method == http.MethodPost
	find := func(ctx context.Context) (*question, error) { return findByToken(ctx, h.store, path) }
	switch {
	case !h.identifies(): // there are only links
	case path == pathInbox, path == pathWait:
		if author(r.Context()) == nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			h.reply(w, r, Page{Status: http.StatusUnauthorized, Message: "Sign in to see what waits for people."})
			return
		}
		if path == pathInbox {
			h.showInbox(w, r)
			return
		}
		query := r.URL.Query()
		find = func(ctx context.Context) (*question, error) {
			return findWait(ctx, h.store, agent.RunID(query.Get("run")), query.Get("wait"))
		}
	}
	if post {
		h.decide(w, r, find)
		return
	}
	h.showQuestion(w, r, find)
}

// finder finds the question that a request is about.
type finder func(ctx context.Context) (*question, error)

// showQuestion serves a question. It changes nothing.
func (h *handler) showQuestion(w http.ResponseWriter, r *http.Request, find finder) {
	q, err := find(r.Context())
	if err != nil {
		h.replyFailure(w, r, "showing a question", err)
		return
	}
	h.replyQuestion(w, r, q, http.StatusOK, "")
}

// replyQuestion replies with a question.
func (h *handler) replyQuestion(w http.ResponseWriter, r *http.Request, q *question, status int, message string) {
	answer, err := h.replyWith(r.Context(), q, status, message)
	if err != nil {
		h.replyFailure(w, r, "showing a question", err)
		return
	}
	h.reply(w, r, answer)
}

// nothing is the reply for every token that no question has had, whatever the cause.
var nothing = Page{
	Status:  http.StatusNotFound,
	Message: "Nothing to decide here. The link may be incomplete, or the run was deleted.",
}

// replyFailure replies that an operation failed.
func (h *handler) replyFailure(w http.ResponseWriter, r *http.Request, doing string, err error) {
	var spent *spentError
	switch {
	case errors.Is(err, durable.ErrNotFound):
		h.reply(w, r, nothing)
		return
	case errors.As(err, &spent):
		gone, err := h.findDecided(r.Context(), spent.of)
		switch {
		case err != nil:
		case len(gone.Answers) == 0 && !spent.byToken && r.Method != http.MethodPost:
			h.reply(w, r, nothing)
			return
		default:
			h.reply(w, r, gone)
			return
		}
	}
	if r.Context().Err() == nil {
		h.options.Log.ErrorContext(r.Context(), "approval: "+doing+" failed", "error", err)
	}
	h.reply(w, r, Page{
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
		h.reply(w, r, Page{Status: http.StatusInternalServerError, Message: "Internal error. See the server log."})
	}
}
