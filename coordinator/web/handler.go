package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/internal/rates"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/internal/markup"
)

// Coordinator is what the pages show and change. An api.Local is one.
type Coordinator interface { //nolint:interfacebloat // one method for each thing that the pages show or change
	// ListRuns returns a page of runs, newest first.
	ListRuns(ctx context.Context, f wire.RunFilter) (wire.RunList, error)
	// Run returns everything about a run; durable.ErrNotFound for an unknown one.
	Run(ctx context.Context, id agent.RunID) (wire.RunDetail, error)
	// RulesOf returns the hooks of a run's blueprint.
	RulesOf(ctx context.Context, id agent.RunID) ([]wire.RuleView, error)
	// ListEvents returns at most limit events of a run after the one with a number: its own, its end, and later hooks' events.
	ListEvents(ctx context.Context, id agent.RunID, after int64, limit int) ([]wire.EventView, error)
	// TokenByHash returns the valid token with a hash; durable.ErrNotFound for an unknown one.
	TokenByHash(ctx context.Context, hash string) (wire.Token, error)
	// Session returns a session; durable.ErrNotFound for an unknown one.
	Session(ctx context.Context, id agent.SessionID) (wire.Session, error)
	// Rules returns how often rules were called, and RuleHits what one has decided.
	Rules(ctx context.Context, f wire.RuleFilter) (wire.RuleList, error)
	RuleHits(ctx context.Context, hook string, f wire.HitFilter) (wire.HitList, error)
	// ListBlueprints returns at most limit blueprints after a name, and Blueprint the newest version of one if version is zero.
	ListBlueprints(ctx context.Context, after string, limit int) ([]wire.Stored, error)
	Blueprint(ctx context.Context, name string, version int64) (wire.Stored, error)
	// ListVersions returns who has stored a blueprint's versions, newest first: those before a version, unless that is zero.
	ListVersions(ctx context.Context, name string, before int64, limit int) ([]wire.BlueprintVersion, error)
	// CheckBlueprint finds all mistakes in a blueprint. CreateBlueprint stores a new one, and UpdateBlueprint the version after another.
	CheckBlueprint(ctx context.Context, text []byte, assumed ...string) (wire.Blueprint, error)
	CreateBlueprint(ctx context.Context, text []byte, by string) (wire.Stored, error)
	UpdateBlueprint(ctx context.Context, name string, changes []byte, after int64, by string) (wire.Stored, error)
	// ListRunners returns the runners that are connected, and ListQueues the queues of runs.
	ListRunners(ctx context.Context) ([]wire.Runner, error)
	ListQueues(ctx context.Context) ([]wire.Queue, error)
	// Submit submits a run, Resume the next run of a session, and Retry one that has failed again. Stop stops one.
	Submit(ctx context.Context, r wire.RunRequest, by string) (durable.Run, error)
	Resume(ctx context.Context, id agent.SessionID, r wire.ResumeRequest, by string) (durable.Run, error)
	Retry(ctx context.Context, id agent.RunID, r wire.RetryRequest, by string) (durable.Run, error)
	Stop(ctx context.Context, id agent.RunID, reason, by string) error
	// Signal pauses a run or resumes it.
	Signal(ctx context.Context, id agent.RunID, s durable.Signal) error
	// WhatIf replays stored runs with other rules, and tells progress how far it is. Case returns a test case, and the name of its file.
	WhatIf(ctx context.Context, in wire.WhatIfRequest, progress func(wire.WhatIfProgress)) (wire.WhatIf, error)
	Case(ctx context.Context, id agent.RunID, in wire.CaseRequest) (name string, text []byte, err error)
	// Audit returns a page of the audit log, newest first.
	Audit(ctx context.Context, f wire.AuditFilter) (wire.AuditList, error)
	// WithAuditEntry returns a context whose first change stores an entry of the audit log with it. Finish stores it, with the outcome, if
	// no change has.
	WithAuditEntry(ctx context.Context, e wire.AuditEntry) (changing context.Context, finish func(failed error) error)
}

// Options configures the pages.
type Options struct {
	// Coordinator is what the pages show. Nil means that there is only the inbox of Store.
	Coordinator Coordinator
	// Store has the runs, and the sessions as documents. Required.
	Store durable.Store
	// Token is the token of api.Options: people may sign in with it, as admins, or as the one of People who has it. NewCode needs
	// it. Empty means none.
	Token string
	// People may sign in to the inbox with tokens of their own. Nil means none.
	People *approval.People
	// Origins are the origins of api.Options: their cookies need HTTPS if they do.
	Origins []string
	// Rate, unless zero, is the highest number of requests a second that each person may send, and how many sign-ins may be tried in all,
	// with twice as many at once. A stream counts as one request. Each address may try a sign-in a second anyway.
	Rate float64
	// ReadOnly lets only Options.Token in, as a viewer, and serves no links. Sessions are then in memory, not in Store.
	ReadOnly bool
	// Log receives failures, and who signs in. Nil disables logging.
	Log *slog.Logger
}

// Handler serves the control room. New returns one.
type Handler struct {
	o Options
	// sessions has the sessions as documents.
	sessions durable.Documents
	mux      *http.ServeMux
	answers  http.Handler // of package approval
	code     code
	secure   map[string]bool // hosts of Options.Origins with HTTPS
	rates    *rates.Limits   // by person; all sign-ins share one
	signIns  *rates.Limits   // by address
}

// signInsAtOnce is how many sign-ins an address may try at once.
const signInsAtOnce = 20

// prefix is the path of all pages.
const (
	prefix     = "/ui/"
	signInPath = prefix + "sign-in"
)

// New returns the pages, to be served at /ui/, and what is at /approvals/: links to one question, and the inbox for programs.
// The handler around them must refuse requests from other sites and for other hosts, as api.Handler and api.Guard do.
func New(o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{
		o: o, sessions: o.Store, mux: http.NewServeMux(), secure: map[string]bool{},
		rates: rates.New(o.Rate, int(2*o.Rate)), signIns: rates.New(1, signInsAtOnce),
	}
	if o.ReadOnly {
		h.sessions = memory.New()
	}
	for _, origin := range o.Origins {
		if at, err := url.Parse(origin); err == nil && at.Scheme == "https" {
			h.secure[strings.ToLower(at.Host)] = true
		}
	}
	h.mux.HandleFunc("GET "+prefix+"asset/{name}", serveAsset)
	h.mux.HandleFunc("GET "+signInPath, h.showSignIn)
	h.mux.HandleFunc("POST "+signInPath, h.signIn)
	h.mux.HandleFunc("POST "+prefix+"sign-out", h.signOut)
	h.answers = approval.Handler(o.Store, approval.Options{
		Log: o.Log, Origins: o.Origins, Waivers: true, Identify: identifyAuthor, Record: h.recordAnswer, Page: h.showAnswer,
	})
	if !o.ReadOnly {
		h.mux.HandleFunc(linksPath, h.serveLinks)
	}
	h.mux.Handle("GET /{$}", http.RedirectHandler(prefix, http.StatusSeeOther))
	type page = func(http.ResponseWriter, *http.Request, *view)
	inbox := map[string]page{
		"GET inbox": h.showInbox, "GET inbox/live": h.streamInbox, "GET inbox/wait": h.answersAt("wait"), "POST inbox/wait": h.answersAt("wait"),
		"GET ": h.showNothing,
	}
	room := map[string]page{
		"GET {$}": h.showOverview, "GET live": h.streamOverview, "GET runs": h.showRuns, "GET runs/live": h.streamRuns,
		"GET runs/{id}": h.showRun, "GET runs/{id}/live": h.streamRun, "GET sessions/{id}": h.showSession,
		"POST runs/{id}/stop": h.operation("stop-run", h.stopRun), "POST runs/{id}/again": h.operation("submit-run", h.submitRun),
		"GET audit": h.showAudit, "GET rules": h.showRules, "GET rules/hits": h.showHits,
		"GET submit": h.showSubmit, "POST runs": h.operation("submit-run", h.submitRun),
		"GET runners": h.showRunners, "GET agents": h.showAgents, "GET agents/{name}": h.showAgent,
		"GET agents/new": h.showNewAgent, "POST agents/new": h.edit, "GET agents/{name}/edit": h.showEditor, "POST agents/{name}/edit": h.edit,
		"GET pipelines/{id}": h.showPipeline,
		"GET whatif":         h.showWhatIf, "POST whatif": h.replayRuns, "POST whatif/patch": h.servePatch, "GET runs/{id}/case": h.serveCase,
		"POST runs/{id}/pause":      h.operation("send-signal", h.signalRun(durable.SignalPause)),
		"POST runs/{id}/resume":     h.operation("send-signal", h.signalRun(durable.SignalResume)),
		"POST runs/{id}/retry":      h.operation("retry-run", h.retryRun),
		"POST sessions/{id}/resume": h.operation("resume-session", h.resumeSession),
	}
	if o.Coordinator == nil {
		room = map[string]page{"GET {$}": h.showNothing}
	}
	for forAll, pages := range map[bool]map[string]page{true: inbox, false: room} {
		for at, p := range pages {
			method, path, _ := strings.Cut(at, " ")
			h.mux.Handle(method+" "+prefix+path, h.signedIn(p, forAll))
		}
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

// signedIn returns a page for people who are signed in. Others are sent to sign in first. Unless it is for all, approvers are
// sent to the inbox.
func (h *Handler) signedIn(page func(http.ResponseWriter, *http.Request, *view), forAll bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := h.identify(r)
		v := &view{who: who, now: time.Now(), key: rand.Text()}
		switch {
		case errors.Is(err, errSignedOut):
			at := signInPath
			if r.URL.Path != prefix {
				at = signInBack(r.URL.RequestURI())
			}
			http.Redirect(w, r, at, http.StatusSeeOther)
		case err == nil && !forAll && who.Role == approver:
			http.Redirect(w, r, inboxPath, http.StatusSeeOther)
		case err != nil:
			h.fail(w, r, v, "identifying who sends a request", err)
		case !h.rates.Allow(who.client()):
			refuseRate(w, v)
		default:
			v.open = h.countOpen(r.Context())
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

// client returns the name of a person for the limits of requests.
func (p person) client() string { return string(p.Role) + " " + cmp.Or(p.ID, p.Name) }

// tooMany is what a client that sends too many requests is told.
const tooMany = "Too many requests: wait a second, and send it again."

// refuseRate replies that a client sends too many requests. Nothing was read or changed.
func refuseRate(w http.ResponseWriter, v *view) {
	v.title, v.live = "Too many requests", ""
	v.Put("<h1>%s</h1>\n<p role=\"alert\">%s</p>\n", v.title, tooMany)
	w.Header().Set("Retry-After", "1")
	reply(w, http.StatusTooManyRequests, v.render())
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
	v.Page = markup.Page{}
	v.Put("<h1>%s</h1>\n<p>%s <a href=\"%s\">Start</a></p>\n", title, text, prefix)
	reply(w, status, v.render())
}

// logError logs a failure, unless the client has gone.
func (h *Handler) logError(r *http.Request, doing string, err error) {
	if r.Context().Err() == nil {
		h.o.Log.ErrorContext(r.Context(), "control room: "+doing, "error", err)
	}
}
