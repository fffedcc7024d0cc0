//go:build unix

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

const secret = "s3cr3t-t0ken"

func overHTTP(url string) mcp.Server {
	return mcp.Server{
		Name: "web", URL: url, Headers: http.Header{"authorization": {"Bearer " + secret}},
		ConnectTimeout: 10 * time.Second, CloseGrace: 200 * time.Millisecond, MaxMessageBytes: 64 << 10,
		Policy: toolexec.Policy{Timeout: 10 * time.Second},
	}
}

type greeting struct {
	Name string `json:"name"`
}

// greeter returns a server made with the SDK, which counts its calls.
func greeter(t *testing.T, calls *atomic.Int32) http.Handler {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "greeter", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "greet", Description: "Greets."},
		func(_ context.Context, _ *sdk.CallToolRequest, in greeting) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("hello %s, call %d", in.Name, calls.Add(1))}}}, nil, nil
		})
	t.Cleanup(func() {
		for session := range server.Sessions() {
			session.Close()
		}
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
}

func TestASessionThatTheServerForgotIsMadeAgain(t *testing.T) {
	var calls atomic.Int32
	var current atomic.Value
	current.Store(greeter(t, &calls))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer "+secret, r.Header.Get("Authorization"))
		if r.Header.Get("Mcp-Session-Id") != "" {
			assert.Equal(t, "2025-11-25", r.Header.Get("Mcp-Protocol-Version"))
		}
		current.Load().(http.Handler).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c := connect(t, overHTTP(server.URL))
	assert.Equal(t, "hello Ada, call 1", answer(t, t.Context(), c, "mcp__web__greet", `{"name":"Ada"}`).Text())
	current.Store(greeter(t, &calls)) // as after a restart: it knows no session
	r := answer(t, t.Context(), c, "mcp__web__greet", `{"name":"Bob"}`)
	assert.Equal(t, "hello Bob, call 2", r.Text(), "called once, on a new session")
	assert.Equal(t, 1, r.Attempts)
	assert.Equal(t, "hello Cy, call 3", answer(t, t.Context(), c, "mcp__web__greet", `{"name":"Cy"}`).Text())
}

// webHostile returns a server over HTTP that does wrong by the name of the tool.
func webHostile(t *testing.T) *httptest.Server {
	t.Helper()
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m message
		_ = json.Unmarshal(body, &m)
		reply := func(result string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		}
		switch {
		case r.Method == http.MethodDelete:
			<-gone // hangs at close
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "session-1")
			reply(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"w","version":"1"}}`)
		case m.Method == "tools/list":
			var tools []string
			for name := range strings.FieldsSeq("ok auth html hang huge hugeerror flood cut badjson busy redirect wrongid nasty reset") {
				tools = append(tools, `{"name":"`+name+`","inputSchema":{}}`)
			}
			reply(`{"tools":[` + strings.Join(tools, ",") + `]}`)
		case m.Method == "tools/call":
			webCall(w, r, m, reply, gone)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(func() { close(gone); server.Close() })
	return server
}

func webCall(w http.ResponseWriter, r *http.Request, m message, reply func(string), gone chan struct{}) {
	const done = `{"content":[{"type":"text","text":"done"}]}`
	events := func(text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, text)
		w.(http.Flusher).Flush()
	}
	switch m.Params.Name {
	case "ok":
		reply(done)
	case "auth":
		http.Error(w, "who is "+r.Header.Get("Authorization")+"?", http.StatusUnauthorized)
	case "html":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<h1>Welcome</h1>")
	case "hang":
		<-r.Context().Done()
	case "huge":
		reply(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 1<<20) + `"}]}`)
	case "hugeerror":
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, strings.Repeat("x", 1<<20))
	case "flood":
		for r.Context().Err() == nil {
			events(fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%q,\"progress\":1}}\n\n", m.Params.Meta.Token))
		}
	case "cut":
		events("event: message\n\n")
	case "badjson":
		events("data: {\"jsonrpc\n\n")
	case "busy":
		w.WriteHeader(http.StatusServiceUnavailable)
	case "redirect":
		http.Redirect(w, r, "http://localhost.invalid/steal", http.StatusTemporaryRedirect)
	case "wrongid":
		events("data: {\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}\n\n")
		select {
		case <-r.Context().Done():
		case <-gone:
		}
	case "nasty":
		events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/elicitation/complete\",\"params\":null}\n\n" +
			"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/elicitation/complete\"}\n\n" +
			"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\"}\n\n" +
			"data: {\"jsonrpc\":\"2.0\",\"id\":" + string(m.ID) + ",\"result\":" + done + "}\n\n")
	case "reset":
		connection, _, _ := w.(http.Hijacker).Hijack()
		connection.Close()
	}
}

func TestCallsOfAHostileServerOverHTTP(t *testing.T) {
	t.Parallel()
	server := webHostile(t)
	for name, tc := range map[string]struct {
		reason agent.ReasonCode
		within time.Duration
		lost   bool
		want   []string
	}{
		"nasty":     {"", 0, false, []string{"done"}},
		"auth":      {agent.ReasonError, 0, false, []string{"Unauthorized: status 401: the server refused access: check Headers"}},
		"html":      {agent.ReasonError, 0, true, []string{`unsupported content type "text/html"`}},
		"hang":      {agent.ReasonTimeout, 2 * time.Second, false, []string{"no answer within 2s"}},
		"wrongid":   {agent.ReasonTimeout, 2 * time.Second, false, []string{"no answer within 2s"}},
		"huge":      {agent.ReasonError, 0, true, []string{"the server sent too much"}},
		"hugeerror": {agent.ReasonError, 0, true, []string{"status 502: try again later"}},
		"flood":     {agent.ReasonError, 0, true, []string{"calling tool"}},
		"cut":       {agent.ReasonError, 0, true, []string{"request terminated without response"}},
		"badjson":   {agent.ReasonError, 0, true, []string{"failed to decode event"}},
		"busy":      {agent.ReasonError, 0, false, []string{"status 503: try again later"}},
		"redirect":  {agent.ReasonError, 0, false, []string{"it redirects to another origin (localhost.invalid)"}},
		"reset":     {agent.ReasonError, 0, true, []string{"EOF", "it is unknown whether the call took effect"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := overHTTP(server.URL)
			if tc.within > 0 {
				s.Policy.Timeout = tc.within
			}
			c := connect(t, s)
			r := answer(t, t.Context(), c, "mcp__web__"+name, "{}")
			assert.Equal(t, tc.reason, r.Reason, r.Text())
			for _, want := range tc.want {
				assert.Contains(t, r.Text(), want)
			}
			assert.NotContains(t, r.Text(), secret)
			var known *mcp.Error
			if tc.reason == agent.ReasonError {
				require.ErrorAs(t, r.Err, &known)
				assert.Equal(t, tc.lost, known.Lost, r.Text())
			}
			assert.Equal(t, "done", answer(t, t.Context(), c, "mcp__web__ok", "{}").Text(), "the next call")
		})
	}
}

func TestConnectOverHTTPSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Authorization"), "a secret went to another origin")
	}))
	defer other.Close()
	for want, handle := range map[string]http.HandlerFunc{
		"status 401: the server refused access: check Headers": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no %s"}}`, r.Header.Get("Authorization"))
		},
		"status 404: check the URL":   http.NotFound,
		`unsupported content type ""`: func(http.ResponseWriter, *http.Request) {},
		"it redirects to another origin": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusPermanentRedirect)
		},
		"no answer within the 500ms of ConnectTimeout": func(http.ResponseWriter, *http.Request) { <-gone },
		"failed to decode response":                    func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/json") },
		"status 500: try again later":                  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	} {
		t.Run(want, func(t *testing.T) {
			server := httptest.NewServer(handle)
			s := overHTTP(strings.Replace(server.URL, "//", "//user:passw0rd@", 1) + "/mcp?key=qu3ry-k3y")
			if strings.HasPrefix(want, "no answer") {
				s.ConnectTimeout = 500 * time.Millisecond
			}
			_, err := mcp.Connect(t.Context(), s)
			require.ErrorContains(t, err, `connecting to mcp server "web": `)
			require.ErrorContains(t, err, want)
			for _, hidden := range []string{secret, "passw0rd", "qu3ry-k3y"} {
				assert.NotContains(t, err.Error(), hidden)
			}
			if strings.HasPrefix(want, "no answer") {
				close(gone)
			}
			server.Close()
		})
	}
	// The port of a server that was closed may be another one's by now: no server listens on port 1.
	_, err := mcp.Connect(t.Context(), overHTTP("http://user:passw0rd@127.0.0.1:1/mcp?key=qu3ry-k3y"))
	require.ErrorContains(t, err, "connection refused")
	assert.NotContains(t, err.Error(), "qu3ry-k3y")
}

// A client of the caller's own keeps what it was set up with; only the headers are added.
func TestAnHTTPClientOfOnesOwn(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(greeter(t, &calls))
	t.Cleanup(server.Close)
	seen := &seeing{base: server.Client().Transport}
	s := overHTTP(server.URL)
	s.HTTPClient = &http.Client{Transport: seen}
	c := connect(t, s)
	assert.Equal(t, "hello , call 1", answer(t, t.Context(), c, "mcp__web__greet", `{"name":""}`).Text())
	assert.Positive(t, seen.requests.Load())
	assert.Equal(t, seen, s.HTTPClient.Transport, "the caller's client stays as it is")
}

type seeing struct {
	base     http.RoundTripper
	requests atomic.Int32
}

func (s *seeing) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests.Add(1)
	if r.Header.Get("Authorization") == "" {
		return nil, fmt.Errorf("no header")
	}
	return s.base.RoundTrip(r)
}
