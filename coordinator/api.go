package coordinator

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// HandlerOptions configures the API.
type HandlerOptions struct {
	// Version is the version in the OpenAPI document. Empty means "dev".
	Version string
	// Token, unless empty, is accepted as a token with the role admin, besides those in the store.
	Token string
	// Origins are the addresses under which the API is reached, such as "https://grapnel.example.com". Requests for other hosts
	// than these and this machine (localhost and loopback addresses) are refused, and so are those that a page of another
	// site sends.
	Origins []string
	// Log receives failures of the store, but never tokens. Nil disables logging.
	Log *slog.Logger
	// Rate, unless zero, is the highest number of requests a second that each token may send, with twice as many at once. It does
	// not apply to runners.
	Rate float64
	// People may sign in to the pages at /approvals/ with tokens of their own. Nil means none: then only programs with the token of an
	// operator or admin answer what runs wait for.
	People *approval.People
}

// maxBody is the maximum size of the body of a request, and maxJournal that of a commit of a runner.
const (
	maxBody    = 1 << 20
	maxJournal = 32 << 20
)

// Handler serves the API: see the package documentation and /openapi.json.
func (c *Coordinator) Handler(o HandlerOptions) http.Handler {
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	mux := http.NewServeMux()
	config := huma.DefaultConfig("Grapnel coordinator", o.Version)
	config.DocsPath, config.SchemasPath = "", ""
	config.Formats = map[string]huma.Format{"application/json": strictFormat, "json": strictFormat}
	config.CreateHooks = nil // no links to schemas in responses
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	a := &api{c: c, log: o.Log, token: o.Token, rates: newRates(o.Rate), huma: humago.New(mux, config)}
	a.huma.UseMiddleware(a.authorize)
	a.addBlueprints()
	a.addRuns()
	a.addStream()
	a.addRunner()
	a.addTokens()
	a.addAudit()
	a.addStore()
	mux.Handle("/approvals/", a.pages(approval.Handler(c.store, approval.Options{
		Log: o.Log, Origins: o.Origins, People: o.People, Waivers: true, Identify: identifyApprover, Record: a.recordPage,
	})))
	mux.HandleFunc("GET /healthz", a.health)
	return guard(mux, o.Origins)
}

// schemaName names a type in the OpenAPI document. Types of the engine begin with Durable.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if strings.HasSuffix(t.PkgPath(), "/durable") {
		return "Durable" + name
	}
	return name
}

// guard refuses requests for other hosts and from other sites, and forbids storing responses.
func guard(next http.Handler, origins []string) http.Handler {
	cross := http.NewCrossOriginProtection()
	hosts := map[string]bool{}
	for _, origin := range origins {
		if at, err := url.Parse(origin); err == nil {
			hosts[strings.ToLower(at.Host)] = true
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case !isLocal(r.Host) && !hosts[strings.ToLower(r.Host)]:
			writeProblem(w, http.StatusMisdirectedRequest, "this address is not served here: add it to the origins of the coordinator")
		case cross.Check(r) != nil || r.Header.Get("Sec-Fetch-Site") == "cross-site":
			writeProblem(w, http.StatusForbidden, "the request came from a page of another site")
		case !isText(r.URL.Path):
			writeProblem(w, http.StatusNotFound, "the path contains a control character or is not UTF-8")
		case !isQueryText(r.URL.RawQuery):
			writeProblem(w, http.StatusUnprocessableEntity, "the query is malformed, contains a control character or is not UTF-8")
		default:
			limitReading(w, r)
			next.ServeHTTP(w, r)
		}
	})
}

// writeProblem writes an error in the form of the others.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: detail}) //nolint:errchkjson // texts
}

// isText reports whether a text can be stored: not every store takes control characters and other encodings.
func isText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// isQueryText reports whether all names and values of a query are texts.
func isQueryText(query string) bool {
	values, err := url.ParseQuery(query)
	for name, all := range values {
		if !isText(name) || !lo.EveryBy(all, isText) {
			return false
		}
	}
	return err == nil
}

// strictFormat reads JSON strictly: repeated names, names in another case and invalid UTF-8 are errors.
var strictFormat = huma.Format{
	Marshal: huma.DefaultJSONFormat.Marshal,
	Unmarshal: func(data []byte, into any) error {
		if _, untyped := into.(*any); !untyped {
			return strictjson.Unmarshal(data, into)
		}
		var whole json.RawMessage
		if err := strictjson.Unmarshal(data, &whole); err != nil {
			return err
		}
		return json.Unmarshal(data, into) // which huma compares with the schema
	},
}

// limitReading lets the time limits for reading a request end with the request: otherwise they would also end the streams and the
// requests that wait.
func limitReading(w http.ResponseWriter, r *http.Request) {
	whenRead := sync.OnceFunc(func() { _ = http.NewResponseController(w).SetReadDeadline(time.Time{}) }) // without deadlines there is nothing to do
	if r.Body == nil || r.Body == http.NoBody {
		whenRead()
		return
	}
	r.Body = &limitedBody{r.Body, whenRead}
}

// limitedBody is the body of a request.
type limitedBody struct {
	io.ReadCloser

	whenRead func() // called when it was read
}

// Read reads from the body.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.whenRead()
	}
	return n, err
}

// isLocal reports whether a host with an optional port names this machine.
func isLocal(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && ip.Unmap().IsLoopback()
}

// api serves the API of a coordinator.
type api struct {
	c    *Coordinator
	log  *slog.Logger
	huma huma.API
	// token is HandlerOptions.Token.
	token string
	rates rates
}

// logError logs a failure, unless the client or this process has stopped.
func (a *api) logError(doing string, err error) {
	if !errors.Is(err, context.Canceled) {
		a.log.Error(doing, "error", err)
	}
}

// health reports whether the store answers.
func (a *api) health(w http.ResponseWriter, r *http.Request) {
	if _, err := a.c.store.DenyTools(r.Context()); err != nil {
		a.logError("the store does not answer", err)
		http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// roleKey is the key of the role in the metadata of an operation.
const roleKey = "role"

type identityKey struct{}

// identityOf returns who sends a request.
func identityOf(ctx context.Context) wire.Token {
	t, _ := ctx.Value(identityKey{}).(wire.Token)
	return t
}

// authorize refuses requests whose token does not allow the operation.
func (a *api) authorize(ctx huma.Context, next func(huma.Context)) {
	needed, _ := ctx.Operation().Metadata[roleKey].(wire.Role)
	token, ok := strings.CutPrefix(ctx.Header("Authorization"), "Bearer ")
	if !ok {
		ctx.SetHeader("WWW-Authenticate", "Bearer")
		a.refuse(ctx, http.StatusUnauthorized, "missing token: send it as Authorization: Bearer TOKEN")
		return
	}
	about, err := a.identify(ctx.Context(), strings.TrimSpace(token))
	switch {
	case errors.Is(err, errToken):
		ctx.SetHeader("WWW-Authenticate", "Bearer")
		a.refuse(ctx, http.StatusUnauthorized, err.Error())
	case err != nil:
		a.logError("looking a token up", err)
		a.refuse(ctx, http.StatusServiceUnavailable, "the store does not answer: try again")
	case needed == "" || !allows(about.Role, needed):
		a.refuse(ctx, http.StatusForbidden, missingRole(about, needed))
	case about.Role != wire.RunnerRole && !a.rates.allow(about.ID):
		ctx.SetHeader("Retry-After", "1")
		a.refuse(ctx, http.StatusTooManyRequests, "the token of "+about.Name+" has sent too many requests: wait a second")
	default:
		ctx, err := a.audit(huma.WithValue(ctx, identityKey{}, about))
		if err != nil {
			a.logError("recording a request", err)
			a.refuse(ctx, http.StatusServiceUnavailable, "the store does not answer, and changes must be recorded: try again")
			return
		}
		next(ctx)
	}
}

// pages returns the pages for people, with the token of each request in its context.
func (a *api) pages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), auditTargetKey{}, auditTarget{operation: answerOperation, path: "/approvals/"}) // a link is a secret
		if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			about, err := a.identify(ctx, strings.TrimSpace(token))
			if err != nil && !errors.Is(err, errToken) {
				a.logError("looking a token up", err)
				writeProblem(w, http.StatusServiceUnavailable, "the store does not answer: try again")
				return
			}
			ctx = context.WithValue(ctx, identityKey{}, about)
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// identifyApprover returns who answers what a run waits for: the name of a token of an operator or admin.
func identifyApprover(r *http.Request) (approval.Principal, error) {
	about := identityOf(r.Context())
	if !allows(about.Role, wire.Operator) {
		return approval.Principal{}, approval.ErrUnidentified
	}
	return approval.Principal{Name: about.Name, Roles: []string{string(about.Role)}}, nil
}

// recordPage writes to the audit log what a person does on a page.
func (a *api) recordPage(ctx context.Context, author *approval.Principal, run agent.RunID, what string) error {
	by := identityOf(ctx)
	switch {
	case author == nil:
		by, what = wire.Token{}, what+" by a link"
	case author.Name != by.Name: // who is signed in has no token of the coordinator
		by = wire.Token{Name: author.Name}
	}
	return a.record(context.WithValue(ctx, identityKey{}, by), run, what)
}

// missingRole says that an operation needs another role.
func missingRole(about wire.Token, needed wire.Role) string {
	return "the token of " + about.Name + " has the role " + string(about.Role) + ", and this needs the role " + string(needed)
}

// identify returns what is known about a token.
func (a *api) identify(ctx context.Context, token string) (wire.Token, error) {
	if a.token != "" && subtle.ConstantTimeCompare([]byte(hashToken(token)), []byte(hashToken(a.token))) == 1 {
		return wire.Token{Name: "local", Role: wire.Admin}, nil
	}
	return a.c.identify(ctx, token)
}

func (a *api) refuse(ctx huma.Context, status int, message string) {
	if err := huma.WriteErr(a.huma, ctx, status, message); err != nil {
		a.log.Debug("writing a response", "error", err)
	}
}

// route describes an operation for a role.
func route(method, path, id, summary string, role wire.Role, change ...func(o *huma.Operation)) huma.Operation {
	o := huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary, Metadata: map[string]any{roleKey: role}, MaxBodyBytes: maxBody,
		Security: []map[string][]string{{"token": {}}},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// withLargeBody allows the body that a journal needs.
func withLargeBody(o *huma.Operation) { o.MaxBodyBytes = maxJournal }

// withStatusCreated sets the status of a successful response to 201.
func withStatusCreated(o *huma.Operation) { o.DefaultStatus = http.StatusCreated }

// problem converts an error to a response.
func (a *api) problem(doing string, err error) error {
	if err == nil {
		return nil
	}
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		details := make([]error, len(invalid.Fields))
		for i, f := range invalid.Fields {
			details[i] = &huma.ErrorDetail{Location: strings.TrimSuffix("body."+strings.TrimPrefix(f.Field, "body"), "."), Message: f.Message}
		}
		return huma.NewError(http.StatusUnprocessableEntity, doing+": the request is invalid", details...)
	}
	for _, known := range []struct {
		err    error
		status int
	}{
		{durable.ErrNotFound, http.StatusNotFound}, {durable.ErrConflict, http.StatusConflict}, {durable.ErrExists, http.StatusConflict},
		{durable.ErrEnded, http.StatusConflict}, {durable.ErrStale, http.StatusConflict}, {ErrKeyUsed, http.StatusConflict},
	} {
		if errors.Is(err, known.err) {
			return huma.NewError(known.status, err.Error())
		}
	}
	if seq, ok := errors.AsType[*durable.SeqError](err); ok {
		return huma.NewError(http.StatusConflict, seq.Error())
	}
	a.logError(doing, err)
	return huma.NewError(http.StatusServiceUnavailable, doing+": the store does not answer: try again")
}
