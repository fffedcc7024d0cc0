package api

import (
	"cmp"
	"context"
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

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/internal/cause"
	"github.com/grapnel-go/grapnel/coordinator/internal/rates"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Options configures the API.
type Options struct {
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
	// Pages serves /ui/, to which / leads, and /approvals/, such as package web does. Nil means none: requests for these get an
	// error.
	Pages http.Handler
}

// maxBody is the maximum size of the body of a request, and maxJournal that of a commit of a runner.
const (
	maxBody    = 1 << 20
	maxJournal = 32 << 20
)

// Handler serves a coordinator.
func Handler(c *coordinator.Coordinator, o Options) http.Handler {
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	mux := http.NewServeMux()
	a := &api{Coordinator: c, store: c.Store(), log: o.Log, token: o.Token, rates: rates.New(o.Rate, int(2*o.Rate)), mux: mux, version: o.Version}
	a.addBlueprints()
	a.addRuns()
	a.addChanges()
	a.addSessions()
	a.addRules()
	a.addEvents()
	a.addRunners()
	a.addTokens()
	a.addAudit()
	a.addStored()
	a.addWhatIf()
	a.addMetrics()
	document := a.lazily(a.describe)
	for _, name := range []string{"openapi.json", "openapi.yaml", "openapi-3.0.json", "openapi-3.0.yaml"} {
		mux.HandleFunc("GET /"+name, document)
	}
	if o.Pages == nil {
		o.Pages = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			writeProblem(w, http.StatusNotFound, "this coordinator has no pages and takes no answers: its program must set api.Options.Pages")
		})
	}
	for _, path := range []string{"/ui/", "/approvals/", "GET /{$}"} {
		mux.Handle(path, o.Pages)
	}
	mux.HandleFunc("GET /healthz", a.health)
	return Guard(mux, o.Origins)
}

// newAPI returns an API without operations.
func (a *api) newAPI(mux *http.ServeMux) huma.API {
	config := huma.DefaultConfig("Grapnel coordinator", a.version)
	config.DocsPath, config.SchemasPath = "", ""
	config.Formats = map[string]huma.Format{"application/json": strictFormat, "json": strictFormat}
	config.CreateHooks = nil // no links to schemas in responses
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	out := humago.New(mux, config)
	out.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) { a.authorize(out, ctx, next) })
	return out
}

// lazily returns a handler for operations that are registered by the first request: describing the types of all operations takes longer than
// most commands that use a coordinator in their own process.
func (a *api) lazily(register func(to huma.API)) http.HandlerFunc {
	handler := sync.OnceValue(func() http.Handler {
		mux := http.NewServeMux()
		register(a.newAPI(mux))
		return mux
	})
	return func(w http.ResponseWriter, r *http.Request) { handler().ServeHTTP(w, r) }
}

// register adds an operation.
func (a *api) register(o huma.Operation, register func(to huma.API)) {
	a.operations = append(a.operations, register)
	a.mux.HandleFunc(o.Method+" "+o.Path, a.lazily(register))
}

// describe registers all operations, for the document.
func (a *api) describe(to huma.API) {
	for _, register := range a.operations {
		register(to)
	}
	to.OpenAPI().Paths["/blueprints"].Post.RequestBody.Content["application/json"].Schema = to.OpenAPI().Components.Schemas.
		Schema(reflect.TypeFor[wire.Blueprint](), true, "")
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

// Guard refuses requests for hosts other than this machine and the origins, and requests from other sites' pages. It
// forbids storing responses.
func Guard(next http.Handler, origins []string) http.Handler {
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
		case !invisible.IsStorable(r.URL.Path):
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

// isQueryText reports whether all names and values of a query are texts.
func isQueryText(query string) bool {
	values, err := url.ParseQuery(query)
	for name, all := range values {
		if !invisible.IsStorable(name) || !lo.EveryBy(all, invisible.IsStorable) {
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
	*coordinator.Coordinator

	store durable.Store
	log   *slog.Logger
	mux   *http.ServeMux
	// operations register the operations.
	operations []func(to huma.API)
	version    string
	// token is Options.Token.
	token string
	rates *rates.Limits
}

// logError logs a failure, unless the client or this process has stopped.
func (a *api) logError(doing string, err error) {
	if !errors.Is(err, context.Canceled) {
		a.log.Error(doing, "error", err)
	}
}

// health reports whether the store answers.
func (a *api) health(w http.ResponseWriter, r *http.Request) {
	if _, err := a.store.DenyTools(r.Context()); err != nil {
		a.logError("the store does not answer", err)
		http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// roleKey is the key of the role in the metadata of an operation.
const roleKey = "role"

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

// reply is a response with a body.
type reply[B any] struct{ Body B }

// add adds an operation that returns a body.
func add[I, B any](a *api, o huma.Operation, do func(ctx context.Context, in *I) (B, error)) {
	a.register(o, func(to huma.API) {
		huma.Register(to, o, func(ctx context.Context, in *I) (*reply[B], error) {
			out, err := do(ctx, in)
			return &reply[B]{out}, a.finish(ctx, o, err)
		})
	})
}

// addQuiet adds an operation that returns no body.
func addQuiet[I any](a *api, o huma.Operation, do func(ctx context.Context, in *I) error) {
	a.register(o, func(to huma.API) {
		huma.Register(to, o, func(ctx context.Context, in *I) (*struct{}, error) { return nil, a.finish(ctx, o, do(ctx, in)) })
	})
}

// finish records an operation that has changed nothing, and converts its error to a response.
func (a *api) finish(ctx context.Context, o huma.Operation, err error) error {
	setOutcome(ctx, outcomeOf(err))
	return a.problem(ctx, o, cmp.Or(err, recordNow(ctx, a.store)))
}

// problem converts the error of an operation to a response.
func (a *api) problem(ctx context.Context, o huma.Operation, err error) error {
	if err == nil {
		return nil
	}
	if invalid, ok := errors.AsType[*coordinator.InvalidError](err); ok {
		details := make([]error, len(invalid.Fields))
		for i, f := range invalid.Fields {
			details[i] = &huma.ErrorDetail{Location: strings.TrimSuffix("body."+strings.TrimPrefix(f.Field, "body"), "."), Message: f.Message}
		}
		return huma.NewError(http.StatusUnprocessableEntity, "the request is invalid", details...)
	}
	if status, ok := errors.AsType[huma.StatusError](err); ok {
		return status
	}
	cause.Set(ctx, err)
	if seq, ok := errors.AsType[*durable.SeqError](err); ok {
		err = seq
	}
	if status := statusOf(err); status != http.StatusServiceUnavailable {
		return huma.NewError(status, err.Error())
	}
	a.logError(o.OperationID, err)
	return huma.NewError(http.StatusServiceUnavailable, "the store does not answer: try again")
}

// statusOf returns the status of the response for an error.
func statusOf(err error) int {
	if _, ok := errors.AsType[*coordinator.InvalidError](err); ok {
		return http.StatusUnprocessableEntity
	}
	if status, ok := errors.AsType[huma.StatusError](err); ok {
		return status.GetStatus()
	}
	if changed, ok := errors.AsType[*coordinator.ChangedError](err); ok && changed.Read != 0 {
		return http.StatusPreconditionFailed
	}
	for known, status := range map[error]int{
		durable.ErrNotFound: http.StatusNotFound, durable.ErrConflict: http.StatusConflict, durable.ErrExists: http.StatusConflict,
		durable.ErrEnded: http.StatusConflict, durable.ErrStale: http.StatusConflict, coordinator.ErrKeyUsed: http.StatusConflict,
	} {
		if errors.Is(err, known) {
			return status
		}
	}
	if _, ok := errors.AsType[*durable.SeqError](err); ok {
		return http.StatusConflict
	}
	return http.StatusServiceUnavailable
}

// listOf returns a list that is not null as JSON.
func listOf[T any](all []T) []T { return append([]T{}, all...) }
