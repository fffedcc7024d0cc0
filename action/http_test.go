package action_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
)

// receiver is a web service that keeps what it was sent, and answers what is next, or else the last.
type receiver struct {
	*httptest.Server

	mu     sync.Mutex
	got    []*http.Request
	bodies []string
}

func receive(t testing.TB, answers ...func(w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	x := &receiver{}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		x.mu.Lock()
		n := len(x.got)
		x.got, x.bodies = append(x.got, r), append(x.bodies, string(body))
		x.mu.Unlock()
		if len(answers) > 0 {
			answers[min(n, len(answers)-1)](w, r)
		}
	}))
	t.Cleanup(x.Close)
	return x
}

func (x *receiver) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.got)
}

func say(status int, text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// AP-22, LH-13: the body describes the hook and the call, regardless of the action's type.
func TestHTTPPostsTheRequest(t *testing.T) {
	x := receive(t, say(200, `{"decision":"deny","reason":"not today"}`))
	f := fire(t, ready(t, action.HTTP{URL: x.URL + "/check", Headers: map[string]string{"X-Team": "red"}}, action.Host{}), hookstest.ToolCall("bash", `{"command":"ls"}`))
	assert.Equal(t, hooks.Deny, f.Decision)
	assert.Equal(t, "not today", f.Reason)
	got := x.got[0]
	assert.Equal(t, "POST /check application/json red", strings.Join([]string{got.Method, got.URL.Path, got.Header.Get("Content-Type"), got.Header.Get("X-Team")}, " "))
	var form map[string]any
	require.NoError(t, json.Unmarshal([]byte(x.bodies[0]), &form))
	assert.Equal(t, "policy/rule", form["hook"])
	assert.Equal(t, "PreToolUse", form["point"])
	assert.Equal(t, map[string]any{"command": "ls"}, form["arguments"])
	assert.Equal(t, []any{"allow", "deny", "ask", "stop", "rewrite", "mock"}, form["decisions"])
}

// LH-14: only selected fields are sent, and never the run's state.
func TestHTTPSendsChosenFields(t *testing.T) {
	x := receive(t)
	lo.Must(ready(t, action.HTTP{URL: x.URL, Fields: []string{"tool"}}, action.Host{}).Do(t.Context(), guarded(t)))
	assert.JSONEq(t, `{"version":1,"hook":"policy/rule","point":"PreToolUse","tool":"bash"}`, x.bodies[0])
	require.ErrorContains(t, action.HTTP{URL: x.URL, Fields: []string{"finalState"}}.Validate(), `fields: unknown field "finalState"`)
}

// AP-23
func TestHTTPBody(t *testing.T) {
	x := receive(t)
	r := observed(t)
	r.Variables.Error, r.Variables.Iteration = "it's \"broken\"\n${SESSION} $(touch x)", 3
	lo.Must(ready(t, action.HTTP{URL: x.URL, Body: map[string]any{
		"text": "${ERROR}!", "n": 5, "list": []any{"${ITERATION} of ${MAX_ITERATIONS}", true, nil}, "${SESSION}": "${UNKNOWN} ${args.command}",
	}}, action.Host{}).Do(t.Context(), r))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(x.bodies[0]), &got))
	assert.Equal(t, map[string]any{
		"text": r.Variables.Error + "!", "n": 5.0, "list": []any{"3 of ", true, nil}, "${SESSION}": "${UNKNOWN} ls",
	}, got)
}

// AP-24, AP-25, LH-40
func TestHTTPRetries(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []func(http.ResponseWriter, *http.Request)
		retries int
		sent    int
		fault   action.Fault
	}{
		"the first is good":        {[]func(http.ResponseWriter, *http.Request){say(204, "")}, 3, 1, ""},
		"the third is good":        {[]func(http.ResponseWriter, *http.Request){say(500, ""), say(429, ""), say(200, "")}, 3, 3, ""},
		"none is":                  {[]func(http.ResponseWriter, *http.Request){say(503, "")}, 2, 3, action.FaultStatus},
		"the request is bad":       {[]func(http.ResponseWriter, *http.Request){say(400, "")}, 3, 1, action.FaultStatus},
		"the answer is bad":        {[]func(http.ResponseWriter, *http.Request){say(200, "<html>")}, 3, 1, action.FaultAnswer},
		"the answer is no UTF-8":   {[]func(http.ResponseWriter, *http.Request){say(200, "{\"decision\":\"deny\",\"reason\":\"\xff\"}")}, 3, 1, action.FaultAnswer},
		"a redirect":               {[]func(http.ResponseWriter, *http.Request){http.RedirectHandler("/other", http.StatusFound).ServeHTTP}, 3, 1, action.FaultStatus},
		"the connection is broken": {[]func(http.ResponseWriter, *http.Request){func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, say(200, "")}, 1, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := receive(t, tc.answers...)
			_, err := ready(t, action.HTTP{URL: x.URL, Retries: tc.retries}, action.Host{}).Do(t.Context(), guarded(t))
			assert.Equal(t, tc.sent, x.count())
			if tc.fault == "" {
				require.NoError(t, err)
				return
			}
			assert.Equal(t, tc.fault, faultOf(t, err))
		})
	}
}

// LH-21: limits count bytes, in the request and in the response.
func TestHTTPLimitsAreExact(t *testing.T) {
	decision := func(n int) string {
		text := `{"decision":"deny","reason":""}`
		return strings.Replace(text, `""`, `"`+strings.Repeat("é", (n-len(text))/2)+strings.Repeat("x", (n-len(text))%2)+`"`, 1)
	}
	for n, fault := range map[int]action.Fault{65_536: "", 65_537: action.FaultTooMuch} {
		require.Len(t, decision(n), n)
		x := receive(t, say(200, decision(n)))
		_, err := ready(t, action.HTTP{URL: x.URL}, action.Host{}).Do(t.Context(), guarded(t))
		if fault == "" {
			require.NoError(t, err)
		} else {
			assert.Equal(t, fault, faultOf(t, err))
		}
		body := strings.Repeat("x", n-2) // and two quotes
		_, err = ready(t, action.HTTP{URL: x.URL, Body: body}, action.Host{}).Do(t.Context(), observed(t))
		if fault == "" {
			require.NoError(t, err)
			assert.Len(t, x.bodies[1], n)
		} else {
			assert.Equal(t, fault, faultOf(t, err))
			assert.Equal(t, 1, x.count(), "nothing was sent")
		}
	}
}

// LH-22: an answer that breaks off is no failure where nothing is decided by it.
func TestHTTPAnswerOfANotification(t *testing.T) {
	x := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	a := ready(t, action.HTTP{URL: x.URL}, action.Host{})
	answer := lo.Must(a.Do(t.Context(), observed(t)))
	assert.Equal(t, "half", answer.Output)
	assert.True(t, answer.Truncated)
	_, err := a.Do(t.Context(), guarded(t))
	assert.Equal(t, action.FaultNetwork, faultOf(t, err))
}

// AP-26, LH-19, LH-20
func TestHTTPIsChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		h    action.HTTP
		want string
	}{
		"nothing":           {action.HTTP{}, "url: missing"},
		"http":              {action.HTTP{URL: "http://example.com/x"}, "url: http is allowed only for loopback addresses"},
		"a file":            {action.HTTP{URL: "file:///etc/passwd"}, "url: must begin with https://"},
		"no scheme":         {action.HTTP{URL: "//example.com/x"}, "url: must begin with https://"},
		"opaque":            {action.HTTP{URL: "https:example.com"}, "url: must begin with https://"},
		"no host":           {action.HTTP{URL: "https:///x"}, "url: missing host"},
		"a user":            {action.HTTP{URL: "https://user:pass@example.com"}, "url: contains a user name"},
		"a line break":      {action.HTTP{URL: "https://example.com/\r\nx"}, "url: contains a line break"},
		"a value as host":   {action.HTTP{URL: "https://${SESSION}/x"}, "url: SESSION is in the host"},
		"a value as URL":    {action.HTTP{URL: "${HOOK_RESPONSE}"}, "url: HOOK_RESPONSE is in the host"},
		"a value as port":   {action.HTTP{URL: "https://example.com:${ITERATION}/x"}, "url: ITERATION is in the host"},
		"http for a secret": {action.HTTP{URL: "http://example.com/${TOKEN}"}, "url: http is allowed only for loopback addresses"},
		"method":            {action.HTTP{URL: "https://example.com", Method: "CONNECT"}, `method: unknown method "CONNECT"`},
		"body of GET":       {action.HTTP{URL: "https://example.com", Method: "GET", Body: 1}, "body: GET has no body"},
		"header name":       {action.HTTP{URL: "https://example.com", Headers: map[string]string{"X Y": "z"}}, `headers: "X Y" is not a valid header name`},
		"forbidden header":  {action.HTTP{URL: "https://example.com", Headers: map[string]string{"host": "z"}}, "headers.host: set by the HTTP client"},
		"content length":    {action.HTTP{URL: "https://example.com", Headers: map[string]string{"Content-Length": "1"}}, "headers.Content-Length: set by the HTTP client"},
		"proxy header":      {action.HTTP{URL: "https://example.com", Headers: map[string]string{"Proxy-Authorization": "z"}}, "headers.Proxy-Authorization: set by the HTTP client"},
		"content type":      {action.HTTP{URL: "https://example.com", Headers: map[string]string{"Content-Type": "text/xml"}}, "headers.Content-Type: the body is JSON"},
		"CR LF":             {action.HTTP{URL: "https://example.com", Headers: map[string]string{"X": "a\r\nHost: b"}}, "headers.X: contains a line break"},
		"private":           {action.HTTP{URL: "https://example.com", Private: []string{"10.0.0"}}, `private: "10.0.0" is not an address`},
		"negative timeout":  {action.HTTP{URL: "https://example.com", Timeout: -1}, "timeout: -1ns is negative"},
		"endless timeout":   {action.HTTP{URL: "https://example.com", Timeout: 1 << 62}, "timeout: 1281023h53m38.427387904s is too long"},
		"retries":           {action.HTTP{URL: "https://example.com", Retries: -1}, "retries: -1"},
		"a body of funcs":   {action.HTTP{URL: "https://example.com", Body: func() {}}, "body: encoding as JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.h.Validate()
			require.ErrorContains(t, err, tc.want)
			field, _, _ := strings.Cut(tc.want, ": ")
			assert.Contains(t, lo.Map(action.Fields(err), func(f *action.FieldError, _ int) string { return f.Field }), field)
			assert.Error(t, lo.T2(tc.h.Action(action.Host{})).B)
		})
	}
	for _, url := range []string{"https://example.com", "http://localhost:1/x", "http://127.1.2.3", "http://[::1]:80/", "https://example.com/${SESSION}?x=${ERROR}", "${SLACK_WEBHOOK}", "https://${HOST}/x"} {
		assert.NoError(t, action.HTTP{URL: url, Headers: map[string]string{"Content-Type": "application/json; charset=utf-8"}}.Validate(), url)
	}
}

// Addresses are looked at when the connection is made, whatever stands in the URL.
func TestHTTPRefusesPrivateAddresses(t *testing.T) {
	for _, host := range []string{
		"10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "[fe80::1]",
		"[fd00::1]", "[::]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "[2002:a00:1::1]", "[fec0::1]", "[ff02::1]", "[::10.0.0.1]",
	} {
		t.Run(host, func(t *testing.T) {
			_, err := ready(t, action.HTTP{URL: "https://" + host + "/x", Timeout: 5 * time.Second}, action.Host{}).Do(t.Context(), guarded(t))
			assert.Equal(t, action.FaultNetwork, faultOf(t, err))
			assert.ErrorContains(t, err, "not a public address")
		})
	}
}

// A name of this machine that stands for another address than the loopback is refused, and can be listed.
func TestHTTPLooksAtWhatANameStandsFor(t *testing.T) {
	name, err := os.Hostname()
	require.NoError(t, err)
	found, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip", name)
	if err != nil || len(found) == 0 || !found[0].IsPrivate() && !found[0].IsLoopback() {
		t.Skip("the name of this machine stands for no private address here")
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(found[0].String(), "0"))
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	h := action.HTTP{URL: "https://" + net.JoinHostPort(name, port), Timeout: 10 * time.Second}
	_, err = ready(t, h, action.Host{}).Do(t.Context(), guarded(t))
	require.ErrorContains(t, err, "not a public address: list it under private")
	h.Private = lo.Map(found, func(ip netip.Addr, _ int) string { return ip.String() })
	_, err = ready(t, h, action.Host{}).Do(t.Context(), guarded(t))
	require.Error(t, err, "no server speaks TLS there")
	assert.NotContains(t, err.Error(), "not public")
}

const secret = "xoxb-very/secret+token\"7"

// AP-27, LH-18: secrets are read when they are sent, and nowhere else afterwards.
func TestSecretsAreSentAndNotTold(t *testing.T) {
	t.Setenv("API_TOKEN", secret)
	t.Setenv("OTHER_TOKEN", "not listed")
	x := receive(t, func(w http.ResponseWriter, r *http.Request) { // an echo
		quoted, _ := json.Marshal("you said " + r.Header.Get("Authorization") + " at " + r.URL.String())
		fmt.Fprintf(w, `{"decision":"deny","reason":%s}`, quoted)
	})
	file := filepath.Join(t.TempDir(), "secrets.env")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("# where to\nexport HOOK='" + x.URL + "/services/T0/abcdef'\n")
	h := action.HTTP{URL: "${HOOK}", Headers: map[string]string{"Authorization": "Bearer ${API_TOKEN}"}, Env: []string{"API_TOKEN"}}
	a := ready(t, h, action.Host{Secrets: action.Secrets{File: file}})
	f := fire(t, a, hookstest.ToolCall("bash", `{"command":"ls"}`))
	assert.Equal(t, "Bearer "+secret, x.got[0].Header.Get("Authorization"))
	assert.Equal(t, "/services/T0/abcdef", x.got[0].URL.Path)
	assert.Equal(t, "you said Bearer ${API_TOKEN} at ${HOOK}", f.Reason)
	told, err := json.Marshal(f.Events)
	require.NoError(t, err)
	assert.NotContains(t, string(told), "secret")
	assert.NotContains(t, x.bodies[0], "secret")

	// Another value, another time.
	write("HOOK=http://127.0.0.1:1/services/T1/ghijkl")
	_, err = a.Do(t.Context(), guarded(t))
	assert.Equal(t, action.FaultNetwork, faultOf(t, err))
	assert.Equal(t, "http: calling ${HOOK}: connection refused", err.Error())

	for text, want := range map[string]string{
		"HOOK=":                               "http: url ${HOOK}: must begin with https://",
		"HOOK=http://example.com/T2":          "http: url ${HOOK}: http is allowed only for loopback addresses",
		"HOOK=https://no-such-host.invalid/x": "http: calling ${HOOK}: ",
		"HOOK=https://10.1.2.3/T3":            "http: calling ${HOOK}: the host resolves to",
		"HOOK=https://a b/T3":                 "http: url ${HOOK}: not a valid URL",
		"OTHER=x":                             "HOOK is not set",
		"what is this":                        "secrets.env:1: expected NAME=value",
	} {
		write(text)
		_, err = a.Do(t.Context(), guarded(t))
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "T2")
		assert.NotContains(t, err.Error(), "no-such-host")
	}

	// What is not listed is not there.
	h.Headers["Authorization"] = "Bearer ${OTHER_TOKEN}"
	write("HOOK=" + x.URL)
	_, err = h.Action(action.Host{Secrets: action.Secrets{File: file}})
	require.ErrorContains(t, err, "headers.Authorization: OTHER_TOKEN is neither a variable nor a declared secret")
}

// Events have the beginning of the body of a failed response, without secrets. Its text has not, because models read that.
func TestHTTPFailureBody(t *testing.T) {
	t.Setenv("API_TOKEN", secret)
	x := receive(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "no token "+r.Header.Get("Authorization")+strings.Repeat("é", 2<<10))
	})
	a := ready(t, action.HTTP{URL: x.URL, Headers: map[string]string{"Authorization": "${API_TOKEN}"}, Env: []string{"API_TOKEN"}}, action.Host{})
	_, err := a.Do(t.Context(), guarded(t))
	failed, ok := errors.AsType[*action.Error](err)
	require.True(t, ok)
	assert.Equal(t, action.FaultStatus, failed.Fault)
	assert.True(t, strings.HasPrefix(failed.Body, "no token ${API_TOKEN}éé"), failed.Body)
	assert.InDelta(t, 2<<10, len(failed.Body), 1)
	assert.NotContains(t, err.Error(), "no token")
}

// A secret with a line break in it is not sent.
func TestSecretsFitIntoHeaders(t *testing.T) {
	t.Setenv("API_TOKEN", "one\r\nX-Evil: two")
	x := receive(t)
	a := ready(t, action.HTTP{URL: x.URL, Headers: map[string]string{"Authorization": "Bearer ${API_TOKEN}"}, Env: []string{"API_TOKEN"}}, action.Host{})
	_, err := a.Do(t.Context(), guarded(t))
	assert.Equal(t, action.FaultSetup, faultOf(t, err))
	assert.Equal(t, "http: header Authorization: contains a line break or another control character", err.Error())
	assert.Zero(t, x.count())
}

// LH-45: nothing is sent for a run that is cancelled already.
func TestCancelledBeforeItIsDone(t *testing.T) {
	x := receive(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ready(t, action.HTTP{URL: x.URL}, action.Host{}).Do(ctx, guarded(t))
	assert.Equal(t, action.FaultCancelled, faultOf(t, err))
	assert.Zero(t, x.count())
}

func TestLintOfBodies(t *testing.T) {
	got := action.HTTP{URL: "https://example.com", Body: map[string]any{"a": "${API_TOKEN} ${SESSION} ${args.path}"}}.Lint()
	require.Len(t, got, 1)
	assert.Equal(t, "${API_TOKEN}", got[0].Text)
}
