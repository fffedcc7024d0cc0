package web_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/coordinator/web"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/pipeline"
)

const secret = "the-token-of-the-process"

// room is a control room with its coordinator.
type room struct {
	t        *testing.T
	c        *coordinator.Coordinator
	store    durable.Store
	pages    *web.Handler
	url      string
	client   *http.Client
	cookie   string
	decide   chan action.Decision // what the hook of the blueprint "gated" decides
	log      syncedLog
	unwaived bool // agents of ask have no waiver.Hook
	// hostile waits with hostile text: see hostile.
	hostile *asked
}

// syncedLog is a log that the server writes and the test reads.
type syncedLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *syncedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *syncedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newRoom starts a coordinator. Fake, unless nil, is what its pages read.
func newRoom(t *testing.T, fake web.Coordinator) *room {
	t.Helper()
	r := &room{t: t, store: &changes{Store: memory.New()}, decide: make(chan action.Decision)}
	t.Cleanup(func() { assert.NoError(t, r.store.Close()) })
	gate := func(ctx context.Context, _ *action.Request) (*action.Decision, error) {
		select {
		case d := <-r.decide:
			return &d, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	var err error
	o := coordinator.Options{Store: r.store, Host: action.Host{Funcs: map[string]action.Body{"gate": gate}, Parks: true}}
	o.Pipelines.Dir = t.TempDir()
	r.c, err = coordinator.New(o)
	require.NoError(t, err)
	for _, text := range []string{
		`{"name": "gated", "type": "procedural", "command": {"argv": ["cat"]}, "hooks": {"on_run_start": {"type": "func", "func": "gate", "on_error": "block"}}}`,
		`{"name": "plain", "type": "procedural", "command": {"argv": ["cat"]}}`,
	} {
		_, err = r.c.CreateBlueprint(t.Context(), []byte(text), "ann")
		require.NoError(t, err)
	}
	if fake == nil {
		fake = api.Local{Coordinator: r.c}
	}
	r.pages = web.New(web.Options{Coordinator: fake, Store: r.store, Token: secret})
	r.serve(api.Handler(r.c, api.Options{Token: secret, Pages: r.pages}))
	r.client = &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return r
}

// serve serves a handler until the test ends.
func (r *room) serve(h http.Handler) {
	server := httptest.NewServer(h)
	r.t.Cleanup(func() {
		server.CloseClientConnections() // a browser's streams have no end
		server.Close()
	})
	r.url, r.cookie = server.URL, ""
}

// changes is a store that knows which changes were made with an entry of an audit log.
type changes struct {
	durable.Store

	mu       sync.Mutex
	recorded []string
}

func (s *changes) note(ctx context.Context, change string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if durable.HasCompanion(ctx) {
		s.recorded = append(s.recorded, change)
	}
}

func (s *changes) Submit(ctx context.Context, jobs ...durable.Job) ([]durable.Run, error) {
	s.note(ctx, "submit")
	return s.Store.Submit(ctx, jobs...)
}

func (s *changes) Signal(ctx context.Context, id agent.RunID, signal durable.Signal) error {
	s.note(ctx, "signal")
	return s.Store.Signal(ctx, id, signal)
}

func (s *changes) Answer(ctx context.Context, id agent.RunID, form durable.AnswerFunc) error {
	s.note(ctx, "answer")
	return s.Store.Answer(ctx, id, form)
}

func (s *changes) AddWaiver(ctx context.Context, w durable.Waiver) error {
	s.note(ctx, "waiver")
	return s.Store.AddWaiver(ctx, w)
}

// work executes runs until the test ends.
func (r *room) work() {
	r.t.Helper()
	keeper, options := durable.Keep(r.store, durable.Options{}), coordinator.RunnerOptions{Pipelines: &pipeline.Options{Events: storedHook}}
	runners := r.c.Runners(keeper, options)
	maps.Copy(runners, r.c.HookRunners(keeper))
	worker, err := durable.NewWorker(r.store, durable.WorkerOptions{Runners: runners, Labels: r.c.Labels(options, nil)})
	require.NoError(r.t, err)
	ctx, stop := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	r.t.Cleanup(func() {
		stop()
		assert.NoError(r.t, <-ended)
	})
}

// storedHook returns the form in which hook events of pipelines are stored.
func storedHook(e agent.Event) (durable.EventForm, bool) {
	h, ok := e.(hooks.Event)
	if !ok || h.Kind == hooks.HookStart {
		return durable.EventForm{}, false
	}
	data, err := json.Marshal(map[string]any{"hook": h.Hook, "point": h.Point, "duration_ms": h.Duration.Milliseconds(), "policy": h.Policy})
	return durable.EventForm{Name: h.EventName(), Data: data}, err == nil
}

// reply is a page.
type reply struct {
	*http.Response

	body string
}

func (r *room) do(method, path string, form url.Values, header ...string) reply {
	r.t.Helper()
	in, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(form.Encode()))
	require.NoError(r.t, err)
	in.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if r.cookie != "" {
		in.Header.Set("Cookie", r.cookie)
	}
	for i := 0; i < len(header); i += 2 {
		in.Header.Set(header[i], header[i+1])
	}
	out, err := r.client.Do(in)
	require.NoError(r.t, err)
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	require.NoError(r.t, err)
	return reply{out, string(text)}
}

func (r *room) get(path string) reply {
	r.t.Helper()
	return r.do(http.MethodGet, path, nil)
}

// signIn signs in with a code or a token.
func (r *room) signIn(secret string) reply {
	r.t.Helper()
	out := r.do(http.MethodPost, "/ui/sign-in", url.Values{"secret": {secret}})
	for _, c := range out.Cookies() {
		r.cookie = c.Name + "=" + c.Value
	}
	return out
}

// token makes a token with a role and returns it. Its name is "my-" and the role.
func (r *room) token(role wire.Role) string {
	r.t.Helper()
	admin, err := client.New(client.Options{URL: r.url, Token: secret})
	require.NoError(r.t, err)
	token, err := admin.NewToken(r.t.Context(), "my-"+string(role), role, 0)
	require.NoError(r.t, err)
	return token
}

// audit returns the coordinator's audit log.
func (r *room) audit() []wire.AuditEntry {
	r.t.Helper()
	docs, err := r.store.ListDocuments(r.t.Context(), "audit", "", durable.DefaultLimit)
	require.NoError(r.t, err)
	return lo.Map(docs, func(d durable.Document, _ int) (e wire.AuditEntry) {
		require.NoError(r.t, json.Unmarshal(d.Data, &e))
		return e
	})
}

func (r *room) submit(in wire.RunRequest) agent.RunID {
	r.t.Helper()
	run, err := r.c.Submit(r.t.Context(), in, "ann")
	require.NoError(r.t, err)
	return run.ID
}

// Without a session, every page leads to the sign-in, and back after it.
func TestSignIn(t *testing.T) {
	r := newRoom(t, nil)
	assert.Equal(t, "/ui/", r.get("/").Header.Get("Location"))
	for _, path := range []string{"/ui/runs", "/ui/audit", "/ui/rules", "/ui/rules/hits?hook=x", "/ui/runs/live", "/ui/live", "/ui/runs/x", "/ui/agents", "/ui/agents/x", "/ui/agents/x/edit", "/ui/runners", "/ui/runs/x/live?after=1", "/ui/inbox", "/ui/inbox/live", "/ui/inbox/wait?run=x&wait=y", "/ui/sessions/x"} {
		got := r.get(path)
		assert.Equal(t, http.StatusSeeOther, got.StatusCode, path)
		assert.Equal(t, "/ui/sign-in?"+url.Values{"back": {path}}.Encode(), got.Header.Get("Location"), path)
	}
	for _, wrong := range []string{"", "wrong", "grp_wrong"} {
		got := r.signIn(wrong)
		assert.Equal(t, http.StatusUnauthorized, got.StatusCode, wrong)
		assert.Empty(t, got.Cookies(), wrong)
	}
	code := r.pages.NewCode()
	page := r.get(web.SignInPath(code))
	assert.Contains(t, page.body, `value="`+code+`"`)
	assert.Empty(t, page.Cookies(), "an address alone signs no person in")
	got := r.signIn(code)
	require.Equal(t, http.StatusSeeOther, got.StatusCode)
	assert.Equal(t, "/ui/", got.Header.Get("Location"))
	require.Len(t, got.Cookies(), 1)
	c := got.Cookies()[0]
	assert.Equal(t, "/ui/", c.Path)
	assert.True(t, c.HttpOnly)
	assert.Equal(t, http.SameSiteStrictMode, c.SameSite)
	assert.Contains(t, r.get("/ui/").body, "<b>local</b> admin")
	assert.Equal(t, http.StatusOK, r.get("/ui/inbox").StatusCode, "one sign-in for all pages")
	assert.Equal(t, http.StatusUnauthorized, r.do(http.MethodGet, "/approvals/", nil, "Accept", "application/json").StatusCode, "a cookie counts below /ui/ only")
	docs, err := r.store.ListDocuments(t.Context(), "session", "", 10)
	require.NoError(t, err)
	require.Len(t, docs, 1)
	_, value, _ := strings.Cut(r.cookie, "=")
	assert.NotContains(t, docs[0].Name+string(docs[0].Data), value, "the store has hashes only")
	assert.NotContains(t, string(docs[0].Data), secret)
	assert.NotContains(t, string(docs[0].Data), fmt.Sprintf("%x", sha256.Sum256([]byte(secret))), "a person may have chosen it")

	stolen := r.cookie
	r.cookie = ""
	assert.Equal(t, http.StatusUnauthorized, r.signIn(code).StatusCode, "a code works once")
	assert.Equal(t, "/ui/runs?q=a", r.do(http.MethodPost, "/ui/sign-in", url.Values{"secret": {secret}, "back": {"/ui/runs?q=a"}}).Header.Get("Location"))
	for _, back := range []string{"https://evil.example/ui/", "//evil.example/ui/", "javascript:alert(1)", `/\evil.example`, "/healthz"} {
		assert.Equal(t, "/ui/", r.do(http.MethodPost, "/ui/sign-in", url.Values{"secret": {secret}, "back": {back}}).Header.Get("Location"), back)
	}
	r.cookie = stolen
	r.do(http.MethodPost, "/ui/sign-out", nil)
	assert.Equal(t, http.StatusSeeOther, r.get("/ui/").StatusCode, "the session is gone for all who have the cookie")
}

// Pages limit the requests of a person, sign-ins from an address, and sign-ins altogether. A stream counts once.
func TestRates(t *testing.T) {
	r := newRoom(t, nil)
	id := r.submit(wire.RunRequest{AgentName: "plain"})
	refused := func(do func() reply) reply {
		t.Helper()
		for range 1000 {
			if got := do(); got.StatusCode == http.StatusTooManyRequests {
				assert.Equal(t, "1", got.Header.Get("Retry-After"))
				return got
			}
		}
		require.Fail(t, "nothing is refused")
		return reply{}
	}
	got := refused(func() reply { return r.signIn("wrong") })
	assert.Contains(t, got.body, "too many sign-ins")
	from := func(address string) int {
		in := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/ui/sign-in", strings.NewReader("secret="+secret))
		in.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		in.RemoteAddr = address
		out := httptest.NewRecorder()
		r.pages.ServeHTTP(out, in)
		return out.Code
	}
	assert.Equal(t, http.StatusSeeOther, from("192.0.2.7:1"), "another address")

	r.pages = web.New(web.Options{Coordinator: api.Local{Coordinator: r.c}, Store: r.store, Token: secret, Rate: 2})
	r.serve(api.Handler(r.c, api.Options{Token: secret, Pages: r.pages}))
	for i := range 1000 {
		if from(fmt.Sprintf("10.0.%d.%d:1", i/250, i%250)) == http.StatusTooManyRequests {
			assert.GreaterOrEqual(t, i, 4)
			break
		}
		require.Less(t, i, 999, "all sign-ins have a limit, too")
	}
	require.Eventually(t, func() bool { return r.signIn(secret).StatusCode == http.StatusSeeOther }, time.Minute, 100*time.Millisecond)
	require.Eventually(t, func() bool { // one request opens the stream
		in, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/ui/live", nil)
		require.NoError(t, err)
		in.Header.Set("Cookie", r.cookie)
		out, err := r.client.Do(in)
		require.NoError(t, err)
		defer out.Body.Close()
		_, err = io.ReadFull(out.Body, make([]byte, 100))
		return err == nil && out.Header.Get("Content-Type") == "text/event-stream"
	}, time.Minute, 100*time.Millisecond)
	got = refused(func() reply { return r.get("/ui/runs") })
	assert.Contains(t, got.body, "<h1>Too many requests</h1>")
	refused(func() reply { return r.do(http.MethodPost, "/ui/runs/"+string(id)+"/retry", nil) })
	refused(func() reply { return r.get("/approvals/" + strings.Repeat("x", 43)) })
	got = refused(func() reply {
		return r.do(http.MethodGet, "/approvals/", nil, "Accept", "application/json", "Authorization", "Bearer "+secret)
	})
	assert.JSONEq(t, `{"message": "Too many requests: wait a second, and send it again."}`, got.body)
	require.Eventually(t, func() bool { return r.get("/ui/").StatusCode == http.StatusOK }, time.Minute, 100*time.Millisecond)
}

// A session has the rights of its token, and ends with it.
func TestSessionsOfTokens(t *testing.T) {
	r := newRoom(t, nil)
	admin, err := client.New(client.Options{URL: r.url, Token: secret})
	require.NoError(t, err)
	for _, role := range []wire.Role{wire.Viewer, wire.Operator, wire.RunnerRole, wire.Admin} {
		r.cookie = ""
		token, err := admin.NewToken(t.Context(), "my-"+string(role), role, 0)
		require.NoError(t, err)
		got := r.signIn(token)
		if role == wire.RunnerRole {
			assert.Equal(t, http.StatusUnauthorized, got.StatusCode)
			continue
		}
		page := r.get("/ui/")
		assert.Contains(t, page.body, "<b>my-"+string(role)+"</b> "+string(role))
		assert.Equal(t, http.StatusOK, r.get("/ui/inbox").StatusCode, role)
		tokens, err := admin.Tokens(t.Context())
		require.NoError(t, err)
		about, _ := lo.Find(tokens, func(t wire.Token) bool { return t.Name == "my-"+string(role) })
		require.NoError(t, admin.RevokeToken(t.Context(), about.ID))
		assert.Equal(t, http.StatusSeeOther, r.get("/ui/").StatusCode, "%s: the cookie of a revoked token", role)
	}
	r.cookie = ""
	data, err := json.Marshal(wire.Token{Name: "late", Role: wire.Viewer, Expires: time.Now().Add(-time.Second)})
	require.NoError(t, err)
	_, err = r.store.PutDocument(t.Context(), durable.Document{Kind: "token", Name: fmt.Sprintf("%x", sha256.Sum256([]byte("grp_late"))), Data: data})
	require.NoError(t, err)
	assert.Equal(t, http.StatusUnauthorized, r.signIn("grp_late").StatusCode, "an expired token")
}

// Cookies count for pages alone, and forms from other sites for nothing.
func TestOtherSites(t *testing.T) {
	r := newRoom(t, nil)
	r.signIn(secret)
	assert.Equal(t, http.StatusUnauthorized, r.get("/runs").StatusCode, "the API wants a token")
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		for _, path := range []string{"/ui/sign-in", "/ui/sign-out"} {
			assert.Equal(t, http.StatusForbidden, r.do(http.MethodPost, path, url.Values{"secret": {secret}}, header...).StatusCode, "%s %s", path, header)
		}
	}
	page := r.get("/ui/")
	require.Equal(t, http.StatusOK, page.StatusCode, "no person was signed out")
	policy := page.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"} {
		assert.Contains(t, policy, want)
	}
	assert.NotContains(t, policy, "unsafe")
	assert.NotRegexp(t, `(?i)<style|\sstyle=|<script>|\son\w+=`, page.body)
	for _, m := range regexp.MustCompile(`(?:href|src)="(/ui/asset/[^"]+)"`).FindAllStringSubmatch(page.body, -1) {
		asset := r.get(m[1])
		assert.Equal(t, http.StatusOK, asset.StatusCode)
		assert.Contains(t, asset.Header.Get("Cache-Control"), "immutable")
	}
	assert.Equal(t, http.StatusNotFound, r.get("/ui/asset/x").StatusCode)
	assert.Equal(t, http.StatusNotFound, r.get("/ui/nothing").StatusCode)
	assert.Equal(t, http.StatusNotFound, r.get("/ui/runs/run_nothing").StatusCode)
	assert.Equal(t, http.StatusNotFound, r.get("/ui/runs?show=nothing").StatusCode)
}

// Rules that never hit and those that people override stand out in words; hits lead to the decision in its run.
func TestPageOfRules(t *testing.T) {
	r := newRoom(t, &stored{
		run:    wire.RunDetail{Run: wire.Run{RunID: "run_1", AgentName: "tidier", Status: wire.Completed}},
		events: told(""),
		rules: []wire.Rule{
			{Hook: "ours/no-delete", AgentName: "tidier", Point: "PreToolUse", Mode: "enforce", Asked: 12345, Hits: 40, Overridden: 39, P95MS: 20, Notice: wire.RuleOverridden,
				Decisions: map[durable.Decision]int64{durable.DecisionAsked: 40}, LastHit: time.Now().Add(-time.Hour)},
			{Hook: "ours/unused", AgentName: "tidier", Asked: 7, P95MS: -1, Notice: wire.RuleNever}, {AgentName: "tidier", Asked: 1, Hits: 1},
		},
	})
	r.signIn(secret)
	page := r.get("/ui/rules?days=90")
	require.Equal(t, http.StatusOK, page.StatusCode)
	for _, want := range []string{
		"People override it nearly always", "asked 12,345", "hits 40", "overridden 39", "95% within 20 ms", "last hit 1 h ago", "40 asked people",
		"tidier · PreToolUse · enforce", "Never hit in 7 calls", "over 20 s", "other hooks",
	} {
		assert.Contains(t, text(page.body), want)
	}
	assert.Regexp(t, `aria-current="page">90 days`, page.body)
	assert.Contains(t, page.body, `href="/ui/rules/hits?agent=tidier&amp;days=90&amp;hook=ours%2Fno-delete"`)
	page = r.get("/ui/rules/hits?hook=ours/no-delete")
	assert.Contains(t, text(page.body), "it deletes files")
	assert.Regexp(t, `href="/ui/runs/run_1\?d=\d+#d-\d+"`, page.body)
	assert.Contains(t, text(page.body), "Older runs")
	for _, path := range []string{"/ui/rules/hits", "/ui/rules/hits?hook=a&decision=nothing"} {
		assert.Equal(t, http.StatusNotFound, r.get(path).StatusCode, path)
	}
}

// Admins read who did what, and what was refused.
func TestPageOfTheAuditLog(t *testing.T) {
	r := newRoom(t, nil)
	id := r.submit(wire.RunRequest{AgentName: "plain"})
	r.signIn(r.token(wire.Operator))
	assert.Equal(t, http.StatusForbidden, r.get("/ui/audit").StatusCode)
	assert.NotContains(t, r.get("/ui/").body, `href="/ui/audit"`)
	r.do(http.MethodPost, "/ui/runs/"+string(id)+"/stop", url.Values{"reason": {"wrong"}})
	r.do(http.MethodPost, "/ui/runs/"+string(id)+"/stop", url.Values{"reason": {"again"}})
	r.signIn(secret)
	page := text(r.get("/ui/audit").body)
	assert.Contains(t, page, "stop-run by my-operator: done")
	assert.Contains(t, page, "stop-run by my-operator: not done, 409")
	assert.Contains(t, page, "create-token by local: done")
	page = r.get("/ui/audit?operation=stop-run&status=failed&run=" + string(id)).body
	assert.Contains(t, page, runLink(id))
	assert.Equal(t, 1, strings.Count(page, "stop-run by")+strings.Count(page, "<b>stop-run</b>"))
	assert.Contains(t, r.get("/ui/audit?by=carl").body, "No entry matches")
}

func runLink(id agent.RunID) string { return `href="/ui/runs/` + string(id) + `"` }

// CO-31
func TestListOfRuns(t *testing.T) {
	r := newRoom(t, nil)
	r.signIn(secret)
	assert.Contains(t, r.get("/ui/runs").body, `action="/ui/runs"`, "what to do first")
	var first, labelled agent.RunID
	for i := range 60 {
		in := wire.RunRequest{AgentName: "plain", Parameters: json.RawMessage(fmt.Sprintf(`{"n": "number-%d-"}`, i))}
		switch i {
		case 0:
			first = r.submit(in)
		case 1:
			in.Labels = map[string]string{"team": "Finance"}
			labelled = r.submit(in)
		default:
			r.submit(in)
		}
	}
	gated := r.submit(wire.RunRequest{AgentName: "gated"})
	rows := func(path string) []string {
		page := r.get(path)
		require.Equal(t, http.StatusOK, page.StatusCode, path)
		return lo.Map(regexp.MustCompile(`<li id="r-(\w+)">`).FindAllStringSubmatch(page.body, -1), func(m []string, _ int) string { return m[1] })
	}
	assert.Len(t, rows("/ui/runs"), 50)
	older := regexp.MustCompile(`href="(/ui/runs\?before=[^"]+)">Older runs`).FindStringSubmatch(r.get("/ui/runs").body)
	require.Len(t, older, 2)
	rest := rows(older[1])
	assert.Len(t, rest, 11)
	assert.Contains(t, rest, string(first))
	for query, want := range map[string][]string{
		"name=gated": {string(gated)}, "show=hooks": {string(gated)}, "q=NUMBER-0-": {string(first)}, "q=team%3Dfinance": {string(labelled)},
		"q=gated&name=plain": {}, "show=waiting": {}, "show=blocked": {}, "show=failed": {}, "show=running&name=gated": {string(gated)},
	} {
		assert.Equal(t, want, append([]string{}, rows("/ui/runs?"+query)...), query)
	}
	assert.Equal(t, "/ui/runs/"+string(first), r.get("/ui/runs?q="+string(first)).Header.Get("Location"))
	assert.Contains(t, r.get("/ui/").body, string(gated), "what runs")
}

// A run that is submitted after the page was made and before its stream begins comes with the stream.
func TestRunBetweenPageAndStream(t *testing.T) {
	r := newRoom(t, nil)
	r.signIn(secret)
	for _, between := range []bool{true, false} {
		var want []agent.RunID
		_, live, _ := strings.Cut(r.get("/ui/runs").body, `data-live="`)
		live, _, _ = strings.Cut(live, `"`)
		if between {
			want = append(want, r.submit(wire.RunRequest{AgentName: "plain"}))
		}
		in, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+html.UnescapeString(live), nil)
		require.NoError(t, err)
		in.Header.Set("Cookie", r.cookie)
		out, err := r.client.Do(in)
		require.NoError(t, err)
		defer out.Body.Close()
		last := r.submit(wire.RunRequest{AgentName: "plain"})
		var sent []agent.RunID
		for lines := bufio.NewScanner(out.Body); lines.Scan() && !slices.Contains(sent, last); {
			if _, rest, ok := strings.Cut(lines.Text(), `href="/ui/runs/`); ok {
				id, _, _ := strings.Cut(rest, `"`)
				sent = append(sent, agent.RunID(id))
			}
		}
		assert.Equal(t, append(want, last), sent)
	}
}

// told are the events of a run with decisions of every kind, as a store has them.
func told(texts ...any) []wire.EventView {
	lines := fmt.Sprintf(`hook_start {"event_type":"hook_start","hook":"agent.tidier/check","hook_type":"on_run_start","target_type":"agent","target_name":"checker","hook_run_id":"run_child"}
hook_complete {"event_type":"hook_complete","hook":"agent.tidier/check","hook_type":"on_run_start","target_type":"agent","target_name":"checker","hook_run_id":"run_child","duration_ms":12,"action":"continue","parameters_transformed":true,"before":{"month":"May"},"after":{"month":"June"}}
step.started {"run":"run_1","step":0}
inference.started {"run":"run_1","step":0,"input":["Tidy %[1]s"]}
inference.retrying {"run":"run_1","step":0,"attempt":1,"wait_ms":500,"error":{"kind":"x","text":"busy %[1]s"}}
inference.completed {"run":"run_1","step":0,"model":"m-1","text":"I remove it. %[1]s","calls":[{"id":"c1","name":"bash","arguments":"{\"command\":\"rm -rf build %[1]s\"}"},{"id":"c2","name":"bash","arguments":"{\"command\":\"ls\"}"},{"id":"c3","name":"mail","arguments":"{}"}],"usage":{"input_tokens":400,"output_tokens":30,"cost_usd":0.5}}
hook.blocked {"run":"run_1","step":0,"hook":"ours/no-delete","point":"PreToolUse","origin":{"policy":"ours","rule":"no-delete","file":"ours.yaml","line":12},"call_id":"c1","tool":"bash","duration_ms":2,"decision":"deny","reason":"it deletes files %[1]s","facts":[{"name":"args.command","value":"rm %[1]s"}]}
hook.complete {"run":"run_1","step":0,"hook":"ours/offline","point":"PreToolUse","shadow":true,"call_id":"c1","tool":"bash","duration_ms":2,"decision":"deny","reason":"no network %[1]s"}
tool_call.started {"run":"run_1","step":0,"call":{"id":"c1","name":"bash","arguments":"{\"command\":\"rm -rf build %[1]s\"}"},"runs":false}
tool_call.completed {"run":"run_1","step":0,"call":{"id":"c1","name":"bash","arguments":"{\"command\":\"rm -rf build %[1]s\"}"},"status":"not_executed","reason":"denied","decided_by":"ours/no-delete","denied":true,"text":"denied"}
hook.complete {"run":"run_1","step":0,"hook":"ours/inside","point":"PreToolUse","call_id":"c2","tool":"bash","duration_ms":2,"decision":"rewrite","before":"{\"command\":\"ls\"}","after":"{\"command\":\"ls -1 %[1]s\"}"}
tool_call.started {"run":"run_1","step":0,"call":{"id":"c2","name":"bash","arguments":"{\"command\":\"ls -1\"}"},"original_arguments":"{\"command\":\"ls\"}","runs":true}
tool_call.completed {"run":"run_1","step":0,"call":{"id":"c2","name":"bash","arguments":"{\"command\":\"ls -1\"}"},"original_arguments":"{\"command\":\"ls\"}","status":"executed","text":"a.txt %[1]s","attempts":1,"duration_ms":11}
hook.complete {"run":"run_1","step":0,"hook":"ours/publish","point":"PreToolUse","call_id":"c3","tool":"mail","duration_ms":2,"decision":"ask","reason":"it publishes %[1]s"}
approval.requested {"run":"run_1","step":0,"call":{"id":"c3","name":"mail","arguments":"{}"},"questions":[{"id":"q","by":"ours/publish","reason":"it publishes"}]}
run.parked {"run":"run_1","waiting":true}
run.resumed {"run":"run_1"}
approval.completed {"run":"run_1","step":0,"call":{"id":"c3","name":"mail","arguments":"{\"to\":\"Carol %[1]s\"}"},"answer":{"verdict":"approve","by":"Ann %[1]s","reason":"fine %[1]s"}}
tool_call.started {"run":"run_1","step":0,"call":{"id":"c3","name":"mail","arguments":"{\"to\":\"Carol %[1]s\"}"},"original_arguments":"{}","runs":true}
hook.blocked {"run":"run_1","step":0,"hook":"ours/secrets","point":"PostToolUse","call_id":"c3","tool":"mail","duration_ms":2,"decision":"withhold","reason":"a key %[1]s"}
tool_call.completed {"run":"run_1","step":0,"call":{"id":"c3","name":"mail","arguments":"{\"to\":\"Carol %[1]s\"}"},"original_arguments":"{}","status":"executed","reason":"withheld","decided_by":"ours/secrets","text":"withheld","attempts":1}
step.completed {"run":"run_1","step":0,"duration_ms":900}
subagent.started {"run":"run_1","call_id":"c3","subagent":"run_2","agent":"helper %[1]s"}
step.started {"run":"run_2","step":0}
hook.failed {"run":"run_2","step":0,"hook":"ours/judge","point":"PreInference","duration_ms":2,"policy":"closed","origin":{"rule":"judge","action":"http","target":"judge.example %[1]s","on_failure":"block","file":"ours.yaml","line":3},"error":{"kind":"x","text":"no answer %[1]s"}}
counts {"ours/no-delete pass":3}
hook_blocked {"event_type":"hook_blocked","hook":"agent.tidier/names","hook_type":"on_result","target_type":"command","target_name":"sh","duration_ms":8,"action":"block","block_reason":"it has a name %[1]s"}`, texts...)
	at := time.Date(2026, 11, 28, 21, 0, 0, 0, time.UTC)
	return lo.Map(strings.Split(lines, "\n"), func(line string, i int) wire.EventView {
		name, data, _ := strings.Cut(line, " ")
		return wire.EventView{Seq: int64(i + 1), Time: at.Add(time.Duration(i) * 100 * time.Millisecond), Type: name, Data: json.RawMessage(data)}
	})
}

// stored is a coordinator with one run.
type stored struct {
	web.Coordinator

	run     wire.RunDetail
	events  []wire.EventView
	session wire.Session
	agent   wire.Stored
	rules   []wire.Rule
	hits    []wire.Hit
	runners []wire.Runner
	queues  []wire.Queue
	audited []wire.AuditEntry
}

func (s *stored) ListBlueprints(context.Context, string, int) ([]wire.Stored, error) {
	other := s.agent
	other.ParametersSchema = nil
	other.Name = "other"
	return append([]wire.Stored{s.agent}, slices.Repeat([]wire.Stored{other}, 19)...), nil
}

func (s *stored) Blueprint(_ context.Context, _ string, version int64) (wire.Stored, error) {
	b := s.agent
	if b.Version = cmp.Or(version, 2); b.Version == 1 {
		b.SystemPrompt, b.Hooks = "", nil
	}
	return b, nil
}

func (s *stored) ListVersions(context.Context, string, int64, int) ([]wire.BlueprintVersion, error) {
	return []wire.BlueprintVersion{{Version: 2, By: s.agent.By}, {Version: 1, By: s.agent.By}}, nil
}

func (s *stored) Audit(context.Context, wire.AuditFilter) (wire.AuditList, error) {
	return wire.AuditList{Entries: s.audited, Next: "x"}, nil
}

func (s *stored) Rules(context.Context, wire.RuleFilter) (wire.RuleList, error) {
	return wire.RuleList{Rules: s.rules}, nil
}

func (s *stored) RuleHits(_ context.Context, hook string, _ wire.HitFilter) (wire.HitList, error) {
	hits, _ := coordinator.HitsIn(s.events, s.run.Run, hook, 10)
	return wire.HitList{Runs: []wire.RunHits{{Run: s.run.Run, Hits: append(hits, s.hits...), More: true}}, Next: "x"}, nil
}

func (s *stored) ListRunners(context.Context) ([]wire.Runner, error) { return s.runners, nil }

func (s *stored) ListQueues(context.Context) ([]wire.Queue, error) { return s.queues, nil }

func (s *stored) Run(context.Context, agent.RunID) (wire.RunDetail, error) { return s.run, nil }

func (s *stored) RulesOf(context.Context, agent.RunID) ([]wire.RuleView, error) {
	return s.run.Rules, nil
}

func (s *stored) Session(context.Context, agent.SessionID) (wire.Session, error) {
	return s.session, nil
}

func (s *stored) ListRuns(context.Context, wire.RunFilter) (wire.RunList, error) {
	return wire.RunList{Runs: []wire.Run{s.run.Run}}, nil
}

func (s *stored) ListEvents(_ context.Context, _ agent.RunID, after int64, limit int) ([]wire.EventView, error) {
	rest := s.events[min(int(after), len(s.events)):]
	return rest[:min(limit, len(rest))], nil
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
)

// text returns what people read on a page.
func text(body string) string {
	return spaces.ReplaceAllString(strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(tags.ReplaceAllString(body, " ")), " ")
}

// unreadable is a coordinator with one run, whose blueprint this version cannot read.
type unreadable struct{ *stored }

func (unreadable) RulesOf(context.Context, agent.RunID) ([]wire.RuleView, error) {
	return nil, errors.New("unknown action")
}

func TestPageOfARunWithUnreadableHooks(t *testing.T) {
	r := newRoom(t, unreadable{&stored{run: wire.RunDetail{Run: wire.Run{RunID: "run_1", AgentName: "tidier", Status: wire.Completed}}, events: told("")}})
	r.signIn(secret)
	page := r.get("/ui/runs/run_1")
	require.Equal(t, http.StatusOK, page.StatusCode)
	assert.Contains(t, text(page.body), "it deletes files")
}

// CO-31: the page of a run says who decided what about it, and why, in the words of "grapnel runs show".
func TestPageOfARun(t *testing.T) {
	run := wire.RunDetail{Run: wire.Run{
		RunID: "run_1", AgentName: "tidier", Version: "3", Type: wire.Autonomous, Status: wire.Completed, SubmittedBy: "ann",
		Ending: wire.Ending{Changes: []string{"on_result hook names (command sh) withheld the result: it has a name"}},
		Labels: map[string]string{"team": "finance"}, ParentRunID: "run_0", Hook: "on_run_start",
	}, Parameters: json.RawMessage(`{"month":"June"}`), OriginalParameters: json.RawMessage(`{"month":"May"}`), ResultText: new("Done.")}
	r := newRoom(t, &stored{run: run, events: told("")})
	r.signIn(secret)
	page := r.get("/ui/runs/run_1")
	require.Equal(t, http.StatusOK, page.StatusCode)
	shown := text(page.body)
	for _, want := range []string{
		"tidier v3", "completed", "finance", "on_run_start hook of run_0", "400 in · 30 out", "$0.5000", "Result withheld",
		"on_run_start hook check (agent checker): continue", "its run run_child", `- "month": "May"`, `+ "month": "June"`,
		"attempt 1 failed: busy ; trying again in 500ms", "I remove it.", "bash rm -rf build",
		"PreToolUse hook ours/no-delete: deny", "it deletes files", "rule no-delete in ours.yaml:12", "args.command", "denied by ours/no-delete",
		"PreToolUse hook ours/offline: in shadow: would deny", "PreToolUse hook ours/inside: rewrite", `- "command": "ls"`, `+ "command": "ls -1 "`,
		"ok · 11ms", "a.txt", "PreToolUse hook ours/publish: ask", "approve by Ann : fine", `+ "to": "Carol "`,
		"PostToolUse hook ours/secrets: withhold", "result withheld", "sub-agent helper", "Step 1 sub-agent helper",
		"PreInference hook ours/judge (http judge.example): failed, on_error block", "no answer", "rule judge in ours.yaml:3",
		"before a call · 3 passed", "Runs that its hooks started", "on_result hook names (command sh): block", "it has a name", "Done.",
		"1 denied", "2 withheld", "1 asked", "2 changed", "1 failed", "1 in shadow",
	} {
		assert.Contains(t, shown, want)
	}
	for _, want := range []string{`href="/ui/runs/run_child"`, `href="/ui/runs/run_0"`} {
		assert.Contains(t, page.body, want)
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page.body, -1) {
		assert.False(t, ids[m[1]], "%s is there twice", m[1])
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page.body, -1) {
		assert.True(t, ids[m[1]], "the link to %s leads nowhere", m[1])
	}
	assert.NotContains(t, shown, "running", "the beginning of the hook is replaced by its outcome")
}

// A page of a long run has its last steps, and those before are a click away.
func TestPageOfALongRun(t *testing.T) {
	var events []wire.EventView
	at := time.Date(2026, 11, 28, 21, 0, 0, 0, time.UTC)
	add := func(name, format string, args ...any) {
		at = at.Add(100 * time.Millisecond)
		events = append(events, wire.EventView{Seq: int64(len(events) + 1), Time: at, Type: name, Data: json.RawMessage(fmt.Sprintf(format, args...))})
	}
	for i := range 1667 {
		add("step.started", `{"run":"run_1","step":%d}`, i)
		add("inference.completed", `{"run":"run_1","step":%d,"text":"thought %d","calls":[{"id":"c","name":"bash","arguments":"{\"command\":\"ls\"}"}],"usage":{"input_tokens":100,"output_tokens":10}}`, i, i+1)
		add("hook.blocked", `{"run":"run_1","step":%d,"hook":"ours/no","point":"PreToolUse","call_id":"c","tool":"bash","decision":"deny","reason":"no"}`, i)
		add("tool_call.started", `{"run":"run_1","step":%d,"call":{"id":"c","name":"bash","arguments":"{\"command\":\"ls\"}"}}`, i)
		add("tool_call.completed", `{"run":"run_1","step":%d,"call":{"id":"c","name":"bash","arguments":"{\"command\":\"ls\"}"},"denied":true,"reason":"denied","text":"no"}`, i)
		add("step.completed", `{"run":"run_1","step":%d}`, i)
	}
	r := newRoom(t, &stored{run: wire.RunDetail{Run: wire.Run{RunID: "run_1", AgentName: "big", Status: wire.Running}}, events: events})
	r.signIn(secret)
	page := r.get("/ui/runs/run_1")
	assert.Less(t, len(page.body), 60<<10)
	assert.Contains(t, page.body, "thought 1667")
	assert.Contains(t, page.body, "thought 1628")
	assert.NotContains(t, page.body, "thought 1627")
	assert.Contains(t, text(page.body), "Steps 1667")
	assert.Contains(t, text(page.body), "1667 denied")
	assert.Contains(t, page.body, `href="?until=1628"`)
	before := r.get("/ui/runs/run_1?until=1628").body
	assert.Contains(t, before, "thought 1627")
	assert.NotContains(t, before, "thought 1628")
	assert.Contains(t, before, `href="?until=1588"`)
}

// evil is text that would be markup, a link, a script or a terminal command if a page took it for anything but text.
const evil = `\"'--></textarea></pre></title><script>alert(1)</script><img src=x onerror=alert(1)>javascript:alert(1)\u001b[31m\u202e{{.}}`

// fill sets all texts in a value.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer:
		if elem := v.Type().Elem(); elem.Kind() == reflect.String || elem == reflect.TypeFor[wire.PipelineView]() {
			v.Set(reflect.New(elem))
			fill(v.Elem(), text)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if isNested := field.Kind() == reflect.Slice && field.Type().Elem() == v.Type(); field.CanSet() && !isNested {
				fill(field, text)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			data, _ := json.Marshal(map[string]string{text: text})
			v.SetBytes(data)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if v.Type().Elem().Kind() == reflect.String {
			v.SetMapIndex(reflect.ValueOf(text), reflect.ValueOf(text))
		}
	case reflect.String:
		v.SetString(text)
	}
}

// hostile returns a control room whose runs have hostile text in every field.
func hostile(t *testing.T, status wire.Status) *room {
	t.Helper()
	var bad string
	require.NoError(t, json.Unmarshal([]byte(`"`+evil+`"`), &bad))
	var run wire.RunDetail
	fill(reflect.ValueOf(&run).Elem(), bad)
	run.Status, run.Blocked = status, status == wire.Failed
	if status != wire.Waiting { // runs of iterations have no verbs
		run.Stage = ""
	}
	events := told(evil)
	for i := range events {
		var data map[string]any
		require.NoError(t, json.Unmarshal(events[i].Data, &data), string(events[i].Data))
		for name, value := range data {
			if _, isText := value.(string); isText && name != "event_type" && name != "run" && name != "call_id" && name != "decision" && name != "status" && name != "subagent" {
				data[name] = bad
			}
		}
		changed, err := json.Marshal(data)
		require.NoError(t, err)
		events[i].Data = changed
	}
	session := wire.Session{SessionID: agent.SessionID(bad), AgentName: bad, ParentSessionID: agent.SessionID(bad), Status: status, Runs: []wire.Run{run.Run}, Children: []wire.Run{run.Run}}
	about := wire.Stored{Blueprint: wire.Blueprint{Name: `"></form><script>alert(1)</script>`, Description: bad}}
	about.ParametersSchema, _ = json.Marshal(map[string]any{"properties": map[string]any{
		"a": map[string]any{"type": "string", "title": bad, "description": bad, "format": bad, "default": bad},
		"b": map[string]any{"enum": []string{`"><script>`}, "enumNames": []string{bad}}, "prompt": map[string]any{"type": "string", "default": bad},
	}})
	about.SystemPrompt, about.By, about.Demands, about.Command = bad, bad, map[string]string{bad: bad}, &wire.Command{Argv: []string{bad}}
	about.Hooks, _ = json.Marshal(map[string]any{
		bad: map[string]string{"type": bad}, "on_run_start": []any{map[string]string{"type": bad, "agent_name": bad, "on_error": bad, "timeout_seconds": bad, "$ref": bad}},
		"on_tool_call": map[string]any{"id": bad, "match": bad, "when": bad, "decision": bad, "reason": bad},
	})
	about.Definitions, _ = json.Marshal(map[string]string{bad: bad})
	var rules [2]wire.Rule
	for i, notice := range []wire.RuleNotice{wire.RuleOverridden, wire.RuleNever} {
		fill(reflect.ValueOf(&rules[i]).Elem(), bad)
		rules[i].Notice, rules[i].Decisions = notice, map[durable.Decision]int64{durable.DecisionAsked: 2, durable.DecisionShadow: 9, "<script>": 1}
	}
	var hit wire.Hit
	fill(reflect.ValueOf(&hit).Elem(), bad)
	fake := &stored{run: run, events: events, session: session, agent: about, rules: rules[:], hits: []wire.Hit{hit}}
	fill(reflect.ValueOf(&fake.runners).Elem(), bad)
	fill(reflect.ValueOf(&fake.queues).Elem(), bad)
	fake.queues[0].Backlog = 1
	fake.audited = make([]wire.AuditEntry, 1)
	fill(reflect.ValueOf(&fake.audited[0]).Elem(), bad)
	r := newRoom(t, fake)
	quoted, err := json.Marshal(map[string]string{bad: bad})
	require.NoError(t, err)
	r.hostile = r.ask(agent.Question{Reason: bad, Rule: bad}, string(quoted), string(quoted), string(quoted), `{"to":"`+evil+`"}`)
	w := r.hostile.waits[1] // no person could say this, but a store may have it
	said, err := json.Marshal(agent.Approval{Verdict: agent.RejectAndContinue, By: bad, Identity: bad, Reason: bad, Covers: []string{r.hostile.notice.Calls[1].Questions[0].ID()}})
	require.NoError(t, err)
	require.NoError(t, r.store.Answer(t.Context(), w.Run, durable.Answers(durable.Answer{Wait: w.ID, Subject: w.Subject, By: bad, Data: said})))
	return r
}

// Whatever a model, tool, hook or user writes anywhere is text on every page and in every stream.
func TestHostileText(t *testing.T) {
	for _, status := range []wire.Status{wire.Completed, wire.Failed, wire.Stopped, wire.Waiting, wire.Pending} {
		r := hostile(t, status)
		r.signIn(secret)
		for _, path := range []string{"/ui/", "/ui/submit", "/ui/whatif?run=x", "/ui/agents?q=%3Cscript%3E", "/ui/agents", "/ui/agents/x", "/ui/agents/x/edit", "/ui/agents/new", "/ui/runners", "/ui/runs", "/ui/audit?" + url.Values{"by": {evil}, "run": {evil}}.Encode(), "/ui/rules", "/ui/rules?" + url.Values{"agent": {evil}}.Encode(), "/ui/rules/hits?" + url.Values{"hook": {evil}, "agent": {evil}}.Encode(), "/ui/runs/x", "/ui/runs/x?read=1", "/ui/sessions/x", "/ui/inbox", "/ui/inbox?show=decided", r.hostile.at(0), r.hostile.at(2), r.hostile.link(0), "/ui/runs?" + url.Values{"q": {"<script>alert(1)</script>"}, "name": {`"><script>`}}.Encode(), "/ui/sign-in?code=%22%3E%3Cscript%3E"} {
			page := r.get(path)
			for _, tag := range tags.FindAllString(page.body, -1) {
				bare := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(tag, `""`)
				assert.Regexp(t, `^</?(!DOCTYPE html|html|head|meta|title|link|script|body|a|b|i|div|header|nav|main|section|article|form|fieldset|legend|select|option|input|label|button|textarea|h[1-3]|p|ul|li|dl|dt|dd|pre|code|span|time|del|ins|details|summary|svg|defs|symbol|path|circle|rect|text|pattern|use)( [a-zA-Z0-9-]+(="")?)*/?>$`, bare, path)
				assert.NotRegexp(t, `(?i)\son\w+=`, bare, path)
				for _, m := range regexp.MustCompile(`(?:href|action|src)="([^"]*)"`).FindAllStringSubmatch(tag, -1) {
					assert.Regexp(t, `^(/ui/|#|\?)`, m[1], path)
				}
			}
			assert.LessOrEqual(t, strings.Count(page.body, "<script"), 1, path)
			assert.NotContains(t, page.body, "\x1b", path)
			assert.NotContains(t, page.body, "\u202e", path)
		}
		assert.Greater(t, strings.Count(r.get("/ui/runs/x").body, "&lt;script&gt;alert(1)&lt;/script&gt;"), 40, "%s: it is all shown", status)
	}
}

// Whatever a form or an address says, the answer is what is wrong with it, and never that the store fails.
func TestHostileRequests(t *testing.T) {
	r := newRoom(t, nil)
	_, err := r.c.CreateBlueprint(t.Context(), []byte(`{"name": "clerk", "type": "autonomous"}`), "ann")
	require.NoError(t, err)
	id := r.submit(wire.RunRequest{AgentName: "clerk", Parameters: json.RawMessage(`{"prompt": "a"}`)})
	run, err := r.c.Run(t.Context(), id)
	require.NoError(t, err)
	a := r.ask(agent.Question{Reason: "much"}, "", carol)
	r.signIn(r.token(wire.Operator))
	at := "/ui/runs/" + string(id)
	for _, value := range []string{"", "\x00", "\xff\xfe", evil, "a\u202eb", strings.Repeat("x", 300), strings.Repeat("ä", 100_000), strings.Repeat("[", 10_000), strings.Repeat("x", 2<<20)} {
		for path, fields := range map[string][]string{
			at + "/stop": {"reason"}, at + "/pause": {"text"}, at + "/resume": {"text"}, at + "/retry": {"key", "past", "reason"}, at + "/again": {"key", "parameters"},
			"/ui/whatif": {"before", "policy", "file", "run", "agent", "days"}, "/ui/whatif/patch": {"before", "policy", "file"},
			"/ui/runs": {"key", "agent_name", "parameters", "input.prompt", "input." + value},
			"/ui/sessions/" + string(run.SessionID) + "/resume": {"key", "prompt"},
			a.at(0): {"verdict", "wait", "question", "reason", "arguments", "by", "until", "seen", "arg.to", value},
		} {
			for _, field := range fields {
				form := url.Values{"parameters": {`{"prompt": "b"}`}, "agent_name": {"clerk"}, "reason": {"why"}, "past": {"x"}}
				switch path {
				case "/ui/runs":
					if strings.HasPrefix(field, "input.") {
						form.Del("parameters")
					}
				case a.at(0):
					form = a.form(0, "waive", "until", time.Now().AddDate(0, 0, 7).Format(time.DateOnly), "reason", "why") // which shows the effect first
				case at + "/stop":
					form = url.Values{}
				}
				form.Set(field, value)
				got := r.do(http.MethodPost, path, form)
				assert.Less(t, got.StatusCode, 500, "%s %s %.20q: %.200s", path, field, value, text(got.body))
				if strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") { // others are files to download
					assert.NotContains(t, got.body, "<script>alert", path)
				}
				assert.Less(t, len(got.body), 200<<10, path)
			}
		}
	}
	r.signIn(secret)
	for _, value := range []string{"", "\x00", "\xff\xfe", evil, "a\u202eb", strings.Repeat("ä", 10_000), strings.Repeat("[", 10_000), strings.Repeat("{a: ", 2_000), strings.Repeat("x", 5<<20)} {
		for _, field := range []string{"text", "was", "version", "do", "point", "f.name", "f.type", "f.command.argv", "f.output_schema", "f.hooks.on_run_start.type", "f." + value} {
			for _, do := range []string{"check", "save", "live", "add", "remove hooks.on_run_start", "remove " + value} {
				got := r.do(http.MethodPost, "/ui/agents/clerk/edit", with(url.Values{
					"do": {do}, "version": {"1"}, "was": {"name: clerk\ntype: autonomous\n"}, "text": {"name: clerk\ntype: autonomous\nhooks: {on_run_start: {type: shell}}\n"},
				}, field, value))
				assert.Less(t, got.StatusCode, 500, "%s %.20q %.20s: %.200s", field, value, do, text(got.body))
				assert.NotContains(t, got.body, "<script>alert")
			}
		}
	}
	r.signIn(r.token(wire.Operator))
	for _, e := range r.audit() {
		assert.Less(t, len(e.Detail)+len(e.Path), 10_000)
	}
	long := strings.Repeat("x", 10_000)
	for _, path := range []string{
		"/ui/runs?before=" + long, "/ui/runs?before=run_x", "/ui/runs?name=" + long, "/ui/runs?show=" + long, "/ui/runs?q=" + long, "/ui/runs/" + long,
		"/ui/whatif?file=" + long, "/ui/whatif?run=" + long + "&agent=" + long, at + "/case?d=-1", at + "/case?d=99999999999999999999", at + "/case?call=" + long,
		"/ui/pipelines/" + long, at + "/nothing", "/ui/sessions/" + long, "/ui/submit?after=" + long, "/ui/inbox?show=decided&before=-1", "/ui/inbox?show=decided&before=99999999999999999999",
		"/ui/inbox?last_asked=2026-01-01T00:00:00Z&last_run=" + long, "/ui/inbox/wait?run=" + long + "&wait=" + long, at + "?until=-5", at + "?until=9999999999",
		at + "/live?after=-1", at + "/live?after=x", "/ui/sign-in?code=" + long + "&back=" + long, "/approvals/" + long,
	} {
		in, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
		require.NoError(t, err)
		in.Header.Set("Cookie", r.cookie)
		out, err := r.client.Do(in)
		require.NoError(t, err)
		assert.Less(t, out.StatusCode, 500, "%.60s", path)
		assert.NoError(t, out.Body.Close())
	}
	assert.Equal(t, http.StatusSeeOther, r.do(http.MethodGet, "/ui/runs", nil, "Cookie", "grapnel="+long).StatusCode)
}

// What an operator does with a run on its page is done as with the API, and recorded. Others cannot do it.
func TestVerbs(t *testing.T) {
	r := newRoom(t, nil)
	id := r.submit(wire.RunRequest{AgentName: "plain", Parameters: json.RawMessage(`{"n": 1}`), Labels: map[string]string{"team": "finance"}})
	at := "/ui/runs/" + string(id)
	r.signIn(r.token(wire.Viewer))
	assert.NotContains(t, r.get(at).body, `class="verb"`)
	assert.Equal(t, http.StatusForbidden, r.do(http.MethodPost, at+"/stop", nil).StatusCode)
	r.cookie = ""
	r.signIn(r.token(wire.Operator))
	page := r.get(at).body
	assert.Contains(t, page, `action="`+at+`/stop"`)
	key := regexp.MustCompile(`name="key" value="(\w+)"`).FindStringSubmatch(page)
	require.Len(t, key, 2)
	assert.Equal(t, http.StatusForbidden, r.do(http.MethodPost, at+"/stop", nil, "Origin", "https://evil.example").StatusCode)
	got := r.do(http.MethodPost, at+"/stop", url.Values{"reason": {"no longer wanted"}})
	require.Equal(t, http.StatusSeeOther, got.StatusCode, got.body)
	assert.Equal(t, at, got.Header.Get("Location"))
	again := url.Values{"key": key[1:], "parameters": {`{"n": 2}`}}
	got = r.do(http.MethodPost, at+"/again", again)
	require.Equal(t, http.StatusSeeOther, got.StatusCode, got.body)
	next := got.Header.Get("Location")
	assert.NotEqual(t, at, next)
	assert.Equal(t, next, r.do(http.MethodPost, at+"/again", again).Header.Get("Location"), "a form that is sent twice submits one run")
	shown := r.get(next)
	assert.Contains(t, text(shown.body), `"n": 2`)
	assert.Contains(t, text(shown.body), "finance")
	again.Set("parameters", `{"n": 3}`)
	assert.Equal(t, http.StatusConflict, r.do(http.MethodPost, at+"/again", again).StatusCode)
	got = r.do(http.MethodPost, at+"/again", url.Values{"parameters": {`[`}})
	assert.Equal(t, http.StatusUnprocessableEntity, got.StatusCode)
	assert.Contains(t, got.body, "Nothing was changed")
	r.work()
	require.Eventually(t, func() bool { return strings.Contains(r.get(next).body, "s-completed") }, time.Minute, 10*time.Millisecond)
	assert.Equal(t, http.StatusConflict, r.do(http.MethodPost, next+"/stop", nil).StatusCode)
	assert.NotContains(t, r.get(next).body, next+"/stop")

	session := regexp.MustCompile(`href="(/ui/sessions/[^"]+)"`).FindStringSubmatch(shown.body)
	require.Len(t, session, 2)
	assert.Contains(t, r.get(session[1]).body, `href="`+next+`"`)
	assert.Equal(t, http.StatusNotFound, r.get("/ui/sessions/nothing").StatusCode)
	assert.Equal(t, http.StatusNotFound, r.do(http.MethodPost, "/ui/sessions/nothing/resume", url.Values{"prompt": {"go on"}}).StatusCode)
	told := lo.Map(r.audit(), func(e wire.AuditEntry, _ int) string { return e.By + " " + e.Operation + " " + e.Path })
	assert.Contains(t, told, "my-operator stop-run "+at+"/stop")
	assert.Contains(t, told, "my-operator submit-run "+at+"/again")
	assert.NotContains(t, strings.Join(told, "\n"), "my-viewer")
}

// The first run is submitted on the first page: its parameters have fields if their schema allows that.
func TestFirstRun(t *testing.T) {
	r := newRoom(t, nil)
	for _, text := range []string{
		`{"name": "clerk", "type": "autonomous", "description": "Tidies <b>books\u202e"}`,
		`{"name": "fields", "type": "procedural", "command": {"argv": ["cat"]}, "parameters_schema": {"type": "object", "required": ["n"], "properties": {
			"n": {"type": "integer", "title": "<i>How many"}, "kind": {"type": "string", "enum": ["a", "b"], "default": "b"}, "loud": {"type": "boolean"}}}}`,
	} {
		_, err := r.c.CreateBlueprint(t.Context(), []byte(text), "ann")
		require.NoError(t, err)
	}
	r.signIn(r.token(wire.Viewer))
	assert.Contains(t, r.get("/ui/").body, "No run was submitted yet")
	assert.NotContains(t, r.get("/ui/").body, `action="/ui/runs"`+" autocomplete")
	assert.Equal(t, http.StatusForbidden, r.do(http.MethodPost, "/ui/runs", url.Values{"agent_name": {"plain"}}).StatusCode)
	r.cookie = ""
	r.signIn(r.token(wire.Operator))
	for _, path := range []string{"/ui/", "/ui/runs", "/ui/submit"} {
		body := r.get(path).body
		for _, want := range []string{`name="input.prompt"`, `name="input.n"`, `name="input.kind"`, `name="parameters"`, `value="clerk"`, "&lt;i&gt;How many", "Tidies &lt;b&gt;books"} {
			assert.Contains(t, body, want, path)
		}
		assert.NotContains(t, body, "\u202e", path)
	}
	key := regexp.MustCompile(`name="key" value="([^"]+)"><input type="hidden" name="agent_name" value="clerk"`).FindStringSubmatch(r.get("/ui/submit").body)
	require.Len(t, key, 2)
	for want, form := range map[string]url.Values{
		`{"prompt":"Tidy\nthem"}`:        {"key": key[1:], "agent_name": {"clerk"}, "input.prompt": {"Tidy\r\nthem"}},
		`{"n":3,"kind":"a","loud":true}`: {"agent_name": {"fields"}, "input.n": {"3"}, "input.kind": {"a"}, "input.loud": {"true"}},
		`{"x":1}`:                        {"agent_name": {"plain"}, "parameters": {`{"x":1}`}},
		`{}`:                             {"agent_name": {"plain"}},
	} {
		got := r.do(http.MethodPost, "/ui/runs", form)
		require.Equal(t, http.StatusSeeOther, got.StatusCode, got.body)
		run, err := r.c.Run(t.Context(), agent.RunID(strings.TrimPrefix(got.Header.Get("Location"), "/ui/runs/")))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(run.Parameters))
		assert.Equal(t, "my-operator", run.SubmittedBy)
		if form.Has("key") {
			assert.Equal(t, got.Header.Get("Location"), r.do(http.MethodPost, "/ui/runs", form).Header.Get("Location"), "a form that is sent twice submits one run")
		}
	}
	before := len(r.audit())
	for want, form := range map[string]url.Values{
		"n: it must be a number": {"agent_name": {"fields"}, "input.n": {"many"}},
		"kind: ":                 {"agent_name": {"fields"}, "input.n": {"1"}, "input.kind": {"<script>"}},
		"prompt":                 {"agent_name": {"clerk"}},
		"it is not asked for":    {"agent_name": {"clerk"}, "input.prompt": {"a"}, "input.more": {"b"}},
		`no blueprint "nothing": create it first`: {"agent_name": {"nothing"}},
		"agent_name: missing":                     {},
		"it is given more than once":              {"agent_name": {"clerk"}, "input.prompt": {"a", "b"}},
		"parameters":                              {"agent_name": {"plain"}, "parameters": {"["}},
	} {
		got := r.do(http.MethodPost, "/ui/runs", form)
		assert.Equal(t, http.StatusUnprocessableEntity, got.StatusCode, want)
		assert.Contains(t, text(got.body), want)
	}
	assert.Len(t, r.audit(), before+8, "what was tried is in the audit log, too")
	assert.NotContains(t, r.get("/ui/").body, "No run was submitted yet")
	for i := range 20 {
		_, err := r.c.CreateBlueprint(t.Context(), []byte(fmt.Sprintf(`{"name": "more-%d", "type": "procedural"}`, i)), "ann")
		require.NoError(t, err)
	}
	next := regexp.MustCompile(`href="(/ui/submit\?after=[^"]+)">More blueprints`).FindStringSubmatch(r.get("/ui/submit").body)
	require.Len(t, next, 2)
	assert.Contains(t, r.get(next[1]).body, `value="plain"`)
}

// Pages store a change and its entry of the audit log in one transaction, and the entry alone if nothing has changed.
func TestChangesAreStoredWithTheirRecord(t *testing.T) {
	r := newRoom(t, nil)
	_, err := r.c.CreateBlueprint(t.Context(), []byte(`{"name": "clerk", "type": "autonomous"}`), "ann")
	require.NoError(t, err)
	id := r.submit(wire.RunRequest{AgentName: "clerk", Parameters: json.RawMessage(`{"prompt": "a"}`)})
	run, err := r.c.Run(t.Context(), id)
	require.NoError(t, err)
	a := r.ask(agent.Question{Reason: "much"}, "", carol, `{"to":"Dan"}`)
	r.signIn(r.token(wire.Operator))
	at, store := "/ui/runs/"+string(id), r.store.(*changes)
	day := time.Now().UTC().AddDate(0, 0, 7).Format(time.DateOnly)
	seen := regexp.MustCompile(`name="seen" value="([^"]+)"`).FindStringSubmatch(r.get(a.at(1)).body)
	require.Len(t, seen, 2)
	for _, c := range []struct {
		path   string
		form   url.Values
		status int
		want   []string
	}{
		{at + "/stop", nil, http.StatusSeeOther, []string{"signal"}},
		{at + "/stop", nil, http.StatusConflict, nil},
		{at + "/retry", url.Values{"key": {"a"}}, http.StatusSeeOther, []string{"submit"}},
		{at + "/again", url.Values{"parameters": {`{"prompt": "b"}`}}, http.StatusSeeOther, []string{"submit"}},
		{at + "/again", url.Values{"parameters": {`{"prompt": 1}`}}, http.StatusUnprocessableEntity, nil},
		{"/ui/sessions/" + string(run.SessionID) + "/resume", url.Values{"prompt": {"go on"}}, http.StatusSeeOther, []string{"submit"}},
		{a.at(0) + "&back=/ui/inbox", a.form(0, "approve"), http.StatusSeeOther, []string{"answer"}},
		{a.at(1) + "&back=/ui/inbox", a.form(1, "waive", "seen", html.UnescapeString(seen[1]), "until", day, "arg.to", "Dan"), http.StatusSeeOther, []string{"waiver"}},
	} {
		store.recorded = nil
		before := len(r.audit())
		got := r.do(http.MethodPost, c.path, c.form)
		assert.Equal(t, c.status, got.StatusCode, "%s: %s", c.path, text(got.body))
		assert.Equal(t, c.want, store.recorded, c.path)
		assert.Len(t, r.audit(), before+1, c.path)
	}
}

// A blocked run is tried again, or let past the hook that has blocked it, with a reason that both runs show.
func TestRetryOnThePage(t *testing.T) {
	r := newRoom(t, nil)
	r.work()
	first := r.submit(wire.RunRequest{AgentName: "gated", Parameters: json.RawMessage(`{"month": "May"}`), Labels: map[string]string{"team": "finance"}})
	r.decide <- action.Decision{Decision: hooks.Deny, Reason: "May is closed"}
	at := "/ui/runs/" + string(first)
	r.signIn(r.token(wire.Operator))
	status := func(at, want string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(r.get(at).body, "s-"+want) }, time.Minute, 10*time.Millisecond)
	}
	status(at, "blocked")
	page := r.get(at).body
	hook := regexp.MustCompile(`name="past" value="([^"]+)"`).FindStringSubmatch(page)
	require.Len(t, hook, 2)
	assert.Contains(t, page, "Let it through")
	got := r.do(http.MethodPost, at+"/retry", url.Values{"past": hook[1:]})
	require.Equal(t, http.StatusUnprocessableEntity, got.StatusCode)
	assert.Contains(t, got.body, "why the run may pass the hook")
	got = r.do(http.MethodPost, at+"/retry", url.Values{"past": hook[1:], "reason": {"May is open again"}, "key": {"k"}})
	require.Equal(t, http.StatusSeeOther, got.StatusCode, got.body)
	next := got.Header.Get("Location")
	status(next, "completed")
	shown := text(r.get(next).body)
	assert.Contains(t, shown, "A retry of "+string(first)[:12]+" , past the hook "+hook[1]+" , by my-operator: May is open again")
	assert.Contains(t, shown, "finance")
	assert.NotContains(t, r.get(next).body, next+"/retry")
	assert.Contains(t, text(r.get(at).body), "Tried again: "+next[len("/ui/runs/"):][:12]+" , past the hook")
	told := lo.Map(r.audit(), func(e wire.AuditEntry, _ int) string { return e.By + " " + e.Operation + " " + e.Path + " " + e.Detail })
	assert.Contains(t, told, "my-operator retry-run "+at+"/retry past "+hook[1]+": May is open again")

	got = r.do(http.MethodPost, at+"/retry", nil)
	require.Equal(t, http.StatusSeeOther, got.StatusCode, got.body)
	r.decide <- action.Decision{Decision: hooks.Deny, Reason: "still closed"}
	status(got.Header.Get("Location"), "blocked")
	r.cookie = ""
	r.signIn(r.token(wire.Viewer))
	assert.NotContains(t, r.get(at).body, "/retry")
	assert.Equal(t, http.StatusForbidden, r.do(http.MethodPost, at+"/retry", nil).StatusCode)
}

// A runner cannot make a page say that a hook has decided, nor keep it from being shown.
func TestEventsThatARunnerMadeUp(t *testing.T) {
	at := time.Date(2026, 11, 28, 21, 0, 0, 0, time.UTC)
	var events []wire.EventView
	for i, e := range [][2]string{
		{"hook_x", `{"event_type": "hook_complete", "hook_type": "on_run_start", "hook": "made up", "action": "continue"}`},
		{"tool_call.started", `{}`},
		{"tool_call.completed", `{}`},
	} {
		events = append(events, wire.EventView{Seq: int64(i + 1), Time: at, Type: e[0], Data: json.RawMessage(e[1])})
	}
	r := newRoom(t, &stored{run: wire.RunDetail{Run: wire.Run{RunID: "run_1", AgentName: "tidier", Status: wire.Completed}}, events: events})
	r.signIn(secret)
	for _, path := range []string{"/ui/runs/run_1", "/ui/runs/run_1?until=1"} {
		page := r.get(path)
		assert.Equal(t, http.StatusOK, page.StatusCode, path)
		assert.NotContains(t, page.body, "made up", path)
	}
}
