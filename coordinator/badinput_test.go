package coordinator_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// request is a request to a handler, as the role admin.
type request struct{ method, path, body string }

// ask sends a request, and returns the response.
func (r request) ask(ctx context.Context, h http.Handler) *httptest.ResponseRecorder {
	in := httptest.NewRequestWithContext(ctx, r.method, "http://localhost"+r.path, strings.NewReader(r.body))
	in.Header.Set("Authorization", "Bearer secret")
	in.Header.Set("Content-Type", "application/json")
	in.Header.Set("Grapnel-Runner", "r1")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, in)
	return w
}

// refusals are requests that are wrong, and the statuses of their responses.
var refusals = map[string]struct {
	request

	status int
}{
	"a stored run of NUL":       {request{"GET", "/stored-runs/a%00", ""}, 404},
	"stored runs of NUL":        {request{"GET", "/stored-runs?name=a%00", ""}, 422},
	"stored runs of a status":   {request{"GET", "/stored-runs?status=done", ""}, 422},
	"entries of no run":         {request{"GET", "/runs/run_1/entries", ""}, 404},
	"waits of no run":           {request{"GET", "/runs/run_1/waits", ""}, 404},
	"input of no run":           {request{"GET", "/runs/run_1/input", ""}, 404},
	"a result of no run":        {request{"GET", "/runs/run_1/result", ""}, 404},
	"waits after no time":       {request{"GET", "/waits?after_asked=now&after_run=r&after_wait=w", ""}, 422},
	"decisions of a kind":       {request{"GET", "/decisions?kind=x", ""}, 422},
	"a switch without a state":  {request{"PUT", "/deny-tools", "{}"}, 422},
	"a switch that hides text":  {request{"PUT", "/deny-tools", `{"on": true, "reason": "no\u202etxt"}`}, 422},
	"a signal to NUL":           {request{"POST", "/runs/a%00/signals", `{"kind": "cancel"}`}, 404},
	"a signal to no run":        {request{"POST", "/runs/run_1/signals", `{"kind": "cancel"}`}, 404},
	"a signal that hides text":  {request{"POST", "/runs/run_1/signals", `{"kind": "context", "text": "pay \u202e001"}`}, 422},
	"a signal without a kind":   {request{"POST", "/runs/run_1/signals", `{}`}, 422},
	"an answer with nothing":    {request{"POST", "/runs/run_1/questions/w/answers", `{}`}, 422},
	"an answer to no run":       {request{"POST", "/runs/run_1/questions/w/answers", `{"verdict": "approve", "covers": ["q"]}`}, 404},
	"a session of NUL":          {request{"POST", "/sessions/a%00/resume", `{"prompt": "x"}`}, 404},
	"no JSON":                   {request{"POST", "/runs", "agent_name=job"}, 400},
	"nothing":                   {request{"POST", "/runs", ""}, 400},
	"cut off":                   {request{"POST", "/runs", `{"agent_name": "job"`}, 400},
	"two values":                {request{"POST", "/runs", `{"agent_name": "job"} {}`}, 400},
	"a list":                    {request{"POST", "/runs", `[]`}, 422},
	"NaN":                       {request{"POST", "/runs", `{"agent_name": "job", "priority": NaN}`}, 400},
	"a name twice":              {request{"POST", "/runs", `{"agent_name": "job", "agent_name": "other"}`}, 400},
	"a parameter twice":         {request{"POST", "/runs", `{"agent_name": "job", "parameters": {"a": 1, "a": 2}}`}, 400},
	"another case":              {request{"POST", "/runs", `{"AGENT_NAME": "job"}`}, 422},
	"unknown member":            {request{"POST", "/runs", `{"agent_name": "job", "color": "red"}`}, 422},
	"invalid UTF-8":             {request{"POST", "/runs", "{\"agent_name\": \"job\", \"parameters\": {\"a\": \"\xff\"}}"}, 400},
	"a lone surrogate":          {request{"POST", "/runs", `{"agent_name": "job", "parameters": {"a": "\ud800"}}`}, 400},
	"deep":                      {request{"POST", "/runs", `{"agent_name": "job", "parameters": {"a": ` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}`}, 400},
	"large":                     {request{"POST", "/runs", `{"agent_name": "job", "parameters": {"a": "` + strings.Repeat("x", 2<<20) + `"}}`}, 413},
	"a big priority":            {request{"POST", "/runs", `{"agent_name": "job", "priority": 1000}`}, 422},
	"a negative time":           {request{"POST", "/runs", `{"agent_name": "job", "timeout_seconds": -1}`}, 422},
	"an endless time":           {request{"POST", "/runs", `{"agent_name": "job", "timeout_seconds": 9223372036854775807}`}, 422},
	"a label of ours":           {request{"POST", "/runs", `{"agent_name": "job", "labels": {"coordinator.hooks": "yes"}}`}, 422},
	"NUL in a name":             {request{"POST", "/runs", `{"agent_name": "job\u0000"}`}, 422},
	"NUL in a key":              {request{"POST", "/runs", `{"agent_name": "job", "idempotency_key": "a\u0000"}`}, 422},
	"NUL in a label":            {request{"POST", "/runs", `{"agent_name": "job", "labels": {"a": "\u0000"}}`}, 422},
	"an unknown run":            {request{"GET", "/runs/run_1", ""}, 404},
	"an id that is a path":      {request{"GET", "/runs/..%2F..%2Ftokens", ""}, 404},
	"an id with NUL":            {request{"GET", "/runs/a%00b", ""}, 404},
	"an id that is no UTF-8":    {request{"GET", "/runs/%ff", ""}, 404},
	"a long id":                 {request{"GET", "/runs/" + strings.Repeat("a", 10_000), ""}, 404},
	"events of no run":          {request{"GET", "/runs/a%00/events", ""}, 404},
	"a negative event":          {request{"GET", "/runs/run_1/events?after=-1", ""}, 422},
	"an event too far":          {request{"GET", "/runs/run_1/events?after=9223372036854775808", ""}, 422},
	"a stream of no run":        {request{"GET", "/runs/a%00/stream", ""}, 404},
	"a page after no run":       {request{"GET", "/runs?before=run_1", ""}, 404},
	"a page after NUL":          {request{"GET", "/runs?before=a%00", ""}, 422},
	"a list of NUL":             {request{"GET", "/runs?agent_name=%00", ""}, 422},
	"an unknown status":         {request{"GET", "/runs?status=done", ""}, 422},
	"a label without a value":   {request{"GET", "/runs?label=a", ""}, 422},
	"an unreadable time":        {request{"GET", "/runs?since=yesterday", ""}, 422},
	"no page":                   {request{"GET", "/runs?limit=0", ""}, 422},
	"a large page":              {request{"GET", "/runs?limit=1001", ""}, 422},
	"stop of no run":            {request{"POST", "/runs/a%00/stop", `{}`}, 404},
	"stop without a reason":     {request{"POST", "/runs/a%00/stop", ""}, 404},
	"an unknown blueprint":      {request{"GET", "/blueprints/a%00", ""}, 404},
	"an unknown version":        {request{"GET", "/blueprints/job?version=99999999999999", ""}, 404},
	"a blueprint twice":         {request{"POST", "/blueprints", `{"name": "x", "name": "y", "type": "procedural"}`}, 400},
	"a schema that loops":       {request{"POST", "/blueprints", `{"name": "x", "type": "procedural", "parameters_schema": {"$ref": "https://evil.example.com/schema"}}`}, 422},
	"a command that never ends": {request{"POST", "/blueprints", `{"name": "x", "type": "procedural", "command": {"argv": ["x"], "timeout_seconds": 9223372036854775807}}`}, 422},
	"a token for NUL":           {request{"POST", "/tokens", `{"name": "\u0000", "role": "admin"}`}, 422},
	"a token that never ends":   {request{"POST", "/tokens", `{"name": "x", "role": "viewer", "ttl_seconds": 9223372036854775807}`}, 422},
	"no token":                  {request{"DELETE", "/tokens/a%00", ""}, 404},
	"work with a label":         {request{"GET", "/runner/runs?wait_seconds=0&label=a", ""}, 422},
	"work for an hour":          {request{"GET", "/runner/runs?wait_seconds=3600", ""}, 422},
	"work of an unknown type":   {request{"GET", "/runner/runs?wait_seconds=0&type=pipeline", ""}, 422},
	"report of no run":          {request{"POST", "/runner/runs/a%00/completed", `{"epoch": 1}`}, 404},
	"a journal of no run":       {request{"GET", "/runner/runs/a%00/journal", ""}, 404},
	"an unknown path":           {request{"GET", "/admin", ""}, 404},
	"another method":            {request{"PUT", "/runs", "{}"}, 405},
}

// Every wrong request gets an error that says so, on both stores, and changes nothing.
func TestBadRequests(t *testing.T) {
	check := func(t *testing.T, b *bench) {
		t.Helper()
		b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}}`)
		h := api.Handler(b.c, api.Options{Token: "secret"})
		for name, c := range refusals {
			t.Run(name, func(t *testing.T) {
				w := c.ask(t.Context(), h)
				assert.Equal(t, c.status, w.Code, "%.300s", w.Body)
				assert.NotContains(t, w.Body.String(), "goroutine ")
				if c.path != "/admin" && c.method != "PUT" { // which the router refuses
					assert.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
					assert.NotEmpty(t, detailOf(t, w.Body))
				}
			})
		}
		all, err := b.store.List(t.Context(), durable.Filter{})
		require.NoError(t, err)
		assert.Empty(t, all)
		blueprints, err := b.c.ListBlueprints(t.Context(), "", 10)
		require.NoError(t, err)
		assert.Len(t, blueprints, 1)
	}
	t.Run("sqlite", func(t *testing.T) { check(t, newBench(t)) })
	t.Run("postgres", func(t *testing.T) {
		store, err := postgres.Open(t.Context(), parts.Postgres(t), postgres.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		b := newBench(t)
		b.store = store
		b.c, err = coordinator.New(coordinator.Options{Store: store})
		require.NoError(t, err)
		check(t, b)
	})
}

// detailOf returns the detail of a problem.
func detailOf(t *testing.T, body io.Reader) string {
	t.Helper()
	var problem struct{ Detail string }
	require.NoError(t, json.NewDecoder(body).Decode(&problem))
	return problem.Detail
}

// A token that has expired or was revoked is not valid at once, and the response does not say which it is.
func TestTokensThatAreOver(t *testing.T) {
	b := newBench(t)
	h := api.Handler(b.c, api.Options{Token: "secret"})
	var texts []string
	send := func(token string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/runs", nil)
		r.Header.Set("Authorization", token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusUnauthorized {
			texts = append(texts, detailOf(t, w.Body))
		}
		return w.Code
	}
	revoked, about := b.newToken("ann", wire.Viewer, 3600)
	assert.Equal(t, http.StatusOK, send("Bearer "+revoked))
	assert.Equal(t, http.StatusNoContent, request{"DELETE", "/tokens/" + about.ID, ""}.ask(t.Context(), h).Code)
	expired := b.expiredToken()
	for _, token := range []string{revoked, expired, "grp_unknown", "secre", "secrets", "grp_" + strings.Repeat("a", 10_000), "\x00"} {
		assert.Equal(t, http.StatusUnauthorized, send("Bearer "+token), "%.20q", token)
	}
	assert.Len(t, lo.Uniq(texts), 1)
	for _, header := range []string{"", "secret", "Basic c2VjcmV0", "bearer", "Bearer"} {
		assert.Equal(t, http.StatusUnauthorized, send(header), header)
	}
}

// expiredToken returns a token that is in the store, and has expired.
func (b *bench) expiredToken() string {
	b.t.Helper()
	text, about := b.newToken("ann", wire.Viewer, 3600)
	sum := sha256.Sum256([]byte(text))
	name := hex.EncodeToString(sum[:])
	about.Expires = about.Created
	data, err := json.Marshal(about)
	require.NoError(b.t, err)
	_, err = b.store.PutDocument(b.t.Context(), durable.Document{Kind: "token", Name: name, Version: 1, Data: data})
	require.NoError(b.t, err)
	return text
}

// Hooks cannot be given addresses that lead into the network of the coordinator.
func TestHooksWithPrivateAddresses(t *testing.T) {
	for _, url := range []string{
		"http://169.254.169.254/latest", "http://10.0.0.1/", "http://[fd00::1]/", "http://2130706433/", "http://0x7f000001/", "http://017700000001/",
		"http://127.1/", "http://localhost.evil.example/", "http://evil.example/", "ftp://localhost/", "file:///etc/passwd", "http://user@localhost/",
		"gopher://localhost/", "//localhost/", "http://",
	} {
		b := newBench(t)
		_, err := b.c.CreateBlueprint(t.Context(), []byte(startHook(`{"type": "http", "url": "`+url+`", "on_error": "block"}`)), "ann")
		assert.Error(t, err, url)
	}
	for _, url := range []string{"https://169.254.169.254/", "https://[::ffff:10.0.0.1]/", "https://2130706433/", "https://0.0.0.0/", "https://127.1/"} {
		b := newBench(t)
		b.create(startHook(`{"type": "http", "url": "` + url + `", "on_error": "block", "timeout_seconds": 5}`))
		d := b.work(b.submit("job", `{}`))
		assert.Equal(t, wire.Failed, d.Status, url)
		assert.Equal(t, "hook_failed", d.Hooks[1].EventType, url)
	}
}

// FuzzRequests sends bodies to the routes that read one: the coordinator answers, and never with an error of its own.
func FuzzRequests(f *testing.F) {
	for _, body := range []string{
		`{"agent_name": "job"}`, `{"name": "x", "type": "procedural"}`, `{"name": "x", "role": "viewer"}`, `{"epoch": 1}`, `{"epoch": 1, "events": []}`,
		`{"epoch": 1, "commit_id": "1", "update": {"status": "waiting", "waits": []}}`, `{"agent_name": "job", "parameters": {"a": 1e999}}`, `null`, `{"a":"\ud800"}`,
		`{"name": "p", "type": "pipeline", "pipeline": {"files": {"pipeline.yaml": "name: p\nstages: [{name: s, command: {argv: [x]}, termination: {type: fixed, iterations: 1}}]"}}}`,
		`{"type": "pipeline", "command": null, "pipeline": {"file": "a/b.yaml", "files": {"a/b.yaml": "include: ../../x"}, "workspace": "/"}}`,
		`["run_1"]`, `{"kind": "cancel"}`, `{"kind": "context", "text": "\u0000"}`, `{"on": true}`, `{"prompt": "\u0000"}`, `{"verdict": 99}`, `{"verdict": "approve", "covers": ["q"]}`,
		`{"hooks": {"on_run_finish": {"$ref": "a"}}, "definitions": {"a": {"name": "a", "$ref": "b"}, "b": {"$ref": "a"}}}`,
	} {
		for i := range fuzzedRoutes {
			f.Add(i, body)
		}
	}
	store := memory.New()
	f.Cleanup(func() { require.NoError(f, store.Close()) })
	c, err := coordinator.New(coordinator.Options{Store: store, Pipelines: coordinator.PipelineOptions{Dir: filepath.Join(f.TempDir(), "pipelines")}})
	require.NoError(f, err)
	_, err = c.CreateBlueprint(context.Background(), []byte(`{"name": "job", "type": "procedural", "command": {"argv": ["cat"]}}`), "ann")
	require.NoError(f, err)
	h := api.Handler(c, api.Options{Token: "secret"})
	run, err := c.Submit(context.Background(), wire.RunRequest{AgentName: "job"}, "ann")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, route int, body string) {
		if route < 0 || route >= len(fuzzedRoutes) {
			return
		}
		method, path, _ := strings.Cut(fuzzedRoutes[route], " ")
		w := request{method, strings.NewReplacer("{id}", string(run.ID), "{session}", string(run.Session)).Replace(path), body}.ask(t.Context(), h)
		assert.Less(t, w.Code, http.StatusInternalServerError, "%s: %s", path, w.Body)
		_, err := c.Run(t.Context(), run.ID)
		require.NoError(t, err, "the run can be read")
	})
}

// fuzzedRoutes are routes with bodies.
var fuzzedRoutes = []string{
	"POST /runs", "POST /blueprints", "PATCH /blueprints/job", "POST /tokens", "POST /runs/{id}/stop", "POST /runner/runs/{id}/started",
	"POST /runner/runs/{id}/completed", "POST /runner/runs/{id}/events", "POST /runner/runs/{id}/journal", "POST /runner/runs/{id}/renew",
	"POST /sessions/{session}/resume", "PUT /deny-tools", "POST /runs/{id}/signals", "POST /runs/{id}/questions/q/answers",
	"POST /runner/runs/{id}/release", fmt.Sprintf("POST /runner/runs/%s/failed", "run_1"),
}

// FuzzPipelineFiles stores blueprints of pipelines and submits runs of those that are accepted: each mistake is an error about a member
// of the request, and nothing is written outside the folder for pipelines.
func FuzzPipelineFiles(f *testing.F) {
	const one = "name: p\nstages:\n  - name: s\n    command: {argv: [x]}\n    termination: {type: fixed, iterations: 1}\n"
	const two = "name: p\nstages:\n  - name: s\n    agent: writer\n    prompt: \"${inputs.a}\"\n    termination: {type: fixed, iterations: 1}\n"
	const three = "name: p\ninputs: {a: {type: string}}\nstages:\n  - {name: s, stage: loop, runs: 2}\nhooks:\n  on_session_complete: {type: spawn, pipeline: other}\n"
	f.Add("", "pipeline.yaml", one, "run.sh", "#!/bin/sh", "", `{}`)
	f.Add("", "pipeline.yaml", two, "agents/writer.yaml", "name: writer\nmodel: test/model\n", "/tmp", `{"a": "b"}`)
	f.Add("a/b.yaml", "a/b.yaml", three, "loop.yaml", one, "relative", `{"a": 1}`)
	f.Add("../x", "../x", one, "/etc/passwd", "x", "", `{}`)
	f.Add("a", "a", one, "a/b", "x", "", `{}`)
	f.Add("pipeline.yaml", "pipeline.yaml", "name: p\nstages: [&a [*a]]", "C:\\x", "\x00", "/", `{}`)
	store := memory.New()
	f.Cleanup(func() { require.NoError(f, store.Close()) })
	root := f.TempDir()
	c, err := coordinator.New(coordinator.Options{Store: store, Pipelines: coordinator.PipelineOptions{Dir: filepath.Join(root, "pipelines")}})
	require.NoError(f, err)
	var count atomic.Int64
	f.Fuzz(func(t *testing.T, file, name, text, otherName, other, workspace, params string) {
		b := &wire.Blueprint{
			Name: fmt.Sprintf("p%d", count.Add(1)), Type: wire.Pipeline,
			Pipeline: &wire.PipelineFiles{File: file, Files: map[string]string{name: text, otherName: other}, Workspace: workspace},
		}
		sent, err := json.Marshal(b)
		require.NoError(t, err)
		invalid := func(err error) bool {
			wrong, ok := errors.AsType[*coordinator.InvalidError](err)
			if err != nil {
				require.True(t, ok, "%v", err)
				require.NotEmpty(t, wrong.Fields)
			}
			return err != nil
		}
		read, err := coordinator.ParseBlueprint(sent)
		if invalid(err) {
			return
		}
		_, err = c.CreateBlueprint(t.Context(), sent, "ann")
		if invalid(err) {
			return
		}
		stored, err := c.Blueprint(t.Context(), b.Name, 0)
		require.NoError(t, err)
		require.Equal(t, read.Pipeline, stored.Pipeline)
		_, err = c.Submit(t.Context(), wire.RunRequest{AgentName: b.Name, Parameters: json.RawMessage(params)}, "ann")
		invalid(err)
		entries, err := os.ReadDir(root)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	})
}
