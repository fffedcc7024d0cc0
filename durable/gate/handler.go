package gate

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/callback"
)

// Path is the path of the URLs that Handler serves, before the token.
const Path = callback.Path

// HandlerOptions configures a Handler. The zero value is the default.
type HandlerOptions struct {
	// Origins are the addresses under which people reach the handler, such as "https://desk.example.com". Requests for other
	// hosts than these and this machine (localhost and loopback addresses) are refused.
	Origins []string
	// Decided is called with each run for which an answer was stored. The response waits for it. Nil does nothing: a worker
	// finds the run.
	Decided func(ctx context.Context, run agent.RunID)
	// Log receives decisions and failures of the store, but never tokens. Nil disables logging.
	Log *slog.Logger
}

// CallbackStore is the part of a durable.Store that a Handler needs.
type CallbackStore interface {
	durable.Inbox
	durable.AuditReader
}

// Handler serves the callbacks of gates on Path and a token. GET shows the question and decides nothing. POST decides, with
// {"action": "approve", "message": "…"}, a form, or ?action=approve; reject, continue and abort are the other
// actions. An unknown token gets 404, one whose gate was answered or waits no longer 409. It may be mounted below any path with
// http.StripPrefix and is safe for concurrent use. It panics if one of HandlerOptions.Origins is not an origin.
func Handler(store CallbackStore, o HandlerOptions) http.Handler {
	h := &handler{store: store, options: o, cross: http.NewCrossOriginProtection(), hosts: map[string]bool{}}
	if o.Log == nil {
		h.options.Log = slog.New(slog.DiscardHandler)
	}
	for _, origin := range o.Origins {
		if err := h.cross.AddTrustedOrigin(origin); err != nil {
			panic("gate: HandlerOptions.Origins: " + err.Error())
		}
		at, _ := url.Parse(origin) // AddTrustedOrigin has parsed it
		h.hosts[strings.ToLower(at.Hostname())] = true
	}
	return h
}

type handler struct {
	store   CallbackStore
	options HandlerOptions
	cross   *http.CrossOriginProtection
	hosts   map[string]bool
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.serves(r.Host) {
		callback.Reply(w, r, http.StatusMisdirectedRequest, "This address is not served here.")
		return
	}
	if h.cross.Check(r) != nil {
		callback.Reply(w, r, http.StatusForbidden, "The request came from another site. Nothing was decided.")
		return
	}
	token, ok := strings.CutPrefix(r.URL.Path, Path)
	var g *callback.Gate
	var err error
	if ok {
		g, err = h.find(r.Context(), token)
	}
	if err != nil {
		h.options.Log.ErrorContext(r.Context(), "gate: looking for a callback failed", "error", err)
		callback.Reply(w, r, http.StatusServiceUnavailable, "The store of runs does not respond. Try again in a moment.")
		return
	}
	callback.Serve(w, r, g)
}

// serves reports whether requests for a host are answered.
func (h *handler) serves(host string) bool {
	name := host
	if only, _, err := net.SplitHostPort(host); err == nil {
		name = only
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback() || h.hosts[name]
}

// find returns the gate for a token; nil when there is none.
func (h *handler) find(ctx context.Context, token string) (*callback.Gate, error) {
	wait, err := h.store.WaitByToken(ctx, durable.TokenHash(token))
	if errors.Is(err, durable.ErrTokenSpent) {
		return &callback.Gate{Used: true}, nil
	}
	if errors.Is(err, durable.ErrNotFound) || err == nil && wait.Kind != durable.WaitCallback {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	about, err := durable.InterventionOf(wait)
	if err != nil {
		return nil, err
	}
	q, ok := durable.GateOf(wait, about)
	if !ok {
		return nil, nil
	}
	run, err := h.store.Run(ctx, wait.Run)
	if err != nil {
		return nil, err
	}
	waits := run.Status == durable.StatusWaiting && run.CancelCause == ""
	return &callback.Gate{
		About: callback.About{Hook: q.By, Agent: agentOf(q), Reason: q.Reason},
		Used:  wait.Answer != nil || !waits || about.Answer() != nil,
		Answer: func(r *http.Request, what callback.Answer) error {
			return h.record(r.Context(), wait, q, what)
		},
	}, nil
}

// agentOf returns the name of the agent that waits for a gate.
func agentOf(q agent.Question) string {
	g, err := action.ReadWaitingGate(q.Gate, action.Host{})
	if err != nil { // such as for a secret that only the watcher has
		return ""
	}
	return g.Agent()
}

// record records an answer.
func (h *handler) record(ctx context.Context, wait durable.Wait, q agent.Question, what callback.Answer) error {
	a := agent.Approval{Verdict: what.Verdict(), Author: agent.AuthorEvent, Covers: []string{q.ID()}, By: q.By, Reason: what.Reason()}
	_, err := durable.Decide(ctx, h.store, wait, a)
	used := []error{durable.ErrAnswered, durable.ErrChanged, durable.ErrNotFound, durable.ErrExpired}
	if slices.ContainsFunc(used, func(one error) bool { return errors.Is(err, one) }) {
		return callback.ErrUsed
	}
	about := []any{"run", wait.Run, "wait", wait.ID, "verdict", a.Verdict.String()}
	if err != nil {
		h.options.Log.ErrorContext(ctx, "gate: recording an answer failed", append(about, "error", err)...)
		return err
	}
	h.options.Log.InfoContext(ctx, "gate: decided", about...)
	if h.options.Decided != nil {
		h.options.Decided(ctx, wait.Run)
	}
	return nil
}
