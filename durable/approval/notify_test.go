package approval_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

const links approval.Links = "https://desk.example.com"

// waiting returns a notice of two calls that wait and one that was answered.
func waiting() durable.Notice {
	asked := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	c := func(id, token string, q agent.Question) durable.WaitingCall {
		w := durable.WaitingCall{Token: token, Intervention: agent.Intervention{
			ID: strings.Replace(token, "token", "card", 1), Original: call(id, carol), Call: call(id, `{"to":"Carol","amount":100}`), Questions: agent.Questions{q}, Asked: asked,
		}}
		if q.Within > 0 {
			w.Deadline = asked.Add(q.Within)
		}
		return w
	}
	return durable.Notice{Run: agent.Run{ID: "r1", Session: "s1", Agent: "clerk"}, Calls: []durable.WaitingCall{
		c("c1", "token-1", agent.Question{By: "guard", Reason: "more than 100", Within: time.Hour, OnTimeout: agent.RejectAndContinue}),
		c("c2", "", agent.Question{}),
		c("c3", "token-3", agent.Question{}),
	}}
}

func TestLog(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, approval.Log(&out, links).Notify(t.Context(), waiting()))
	assert.Equal(t, `run r1 of clerk waits for approval of pay (more than 100), until 2026-05-04T13:00:00Z: https://desk.example.com/approvals/token-1
run r1 of clerk waits for approval of pay: https://desk.example.com/approvals/token-3
`, out.String())

	n := waiting()
	n.Run.Agent, n.Calls[0].Call.Name = "", "pay\x1b[2J"
	n.Calls[0].Questions[0].Reason = "x\nrun r2 waits: https://evil.example.com\r\u202e\u2028"
	out.Reset()
	require.NoError(t, approval.Log(&out, links).Notify(t.Context(), n))
	assert.Contains(t, out.String(), `run r1 waits for approval of pay\u001b[2J (x run r2 waits: https://evil.example.com \u202e), until`)
	assert.Equal(t, 2, strings.Count(out.String(), "\n"))
	require.ErrorContains(t, approval.Log(broken{}, links).Notify(t.Context(), n), "announcing that run r1 waits: disk full")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

const newMessage = `{"event":"approval.requested","run":"r1","session":"s1","agent":"clerk","calls":[` +
	`{"call":"c1","tool":"pay","questions":[{"id":"Q1","asked_by":"guard","reason":"more than 100"}],"asked":"2026-05-04T12:00:00Z","deadline":"2026-05-04T13:00:00Z",` +
	`"on_timeout":"reject_and_continue","wait":"card-1","link":"https://desk.example.com/approvals/token-1"},` +
	`{"call":"c3","tool":"pay","questions":[{"id":"Q3"}],"asked":"2026-05-04T12:00:00Z","wait":"card-3","link":"https://desk.example.com/approvals/token-3"}]}`

func expected() string {
	calls := waiting().Calls
	return strings.NewReplacer("Q1", calls[0].Questions[0].ID(), "Q3", calls[2].Questions[0].ID()).Replace(newMessage)
}

// receiver is a server that answers with these statuses, one after the other.
type receiver struct {
	*httptest.Server

	asked  atomic.Int64
	bodies chan string
	header chan http.Header
}

func receive(t *testing.T, statuses ...int) *receiver {
	t.Helper()
	r := &receiver{bodies: make(chan string, 99), header: make(chan http.Header, 99)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.bodies <- q.Method + " " + string(body)
		r.header <- q.Header
		i := int(r.asked.Add(1)) - 1
		if q.URL.Path == "/elsewhere" {
			return
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(statuses[min(i, len(statuses)-1)])
	}))
	t.Cleanup(r.Close)
	return r
}

func TestWebhook(t *testing.T) {
	t.Setenv("DESK_TOKEN", "s3cret")
	r := receive(t, http.StatusNoContent)
	require.NoError(t, approval.Webhook{
		URL: r.URL + "/hook", Links: links, Key: []byte("key"),
		Header: map[string]string{"authorization": "Bearer ${DESK_TOKEN}", "X-Desk": "one two"}, Env: []string{"DESK_TOKEN"},
	}.Notify(t.Context(), waiting()))
	body, header := <-r.bodies, <-r.header
	assert.Equal(t, "POST "+expected(), body)
	assert.Equal(t, "application/json", header.Get("Content-Type"))
	assert.Equal(t, "Bearer s3cret", header.Get("Authorization"))
	assert.Equal(t, "one two", header.Get("X-Desk"))
	assert.Equal(t, approval.Signature([]byte("key"), []byte(expected())), header.Get(approval.SignatureHeader))
	assert.Equal(t, "sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8",
		approval.Signature([]byte("key"), []byte("The quick brown fox jumps over the lazy dog")), "a known answer")
	assert.False(t, hmac.Equal([]byte(approval.Signature([]byte("other"), nil)), []byte(approval.Signature([]byte("key"), nil))))

	n := waiting()
	n.Calls = n.Calls[1:2]
	require.NoError(t, approval.Webhook{URL: r.URL, Links: links}.Notify(t.Context(), n))
	assert.EqualValues(t, 1, r.asked.Load(), "there is no question")
	require.NoError(t, approval.Webhook{URL: r.URL, Links: links}.Notify(t.Context(), waiting()))
	assert.Empty(t, (<-r.header).Get(approval.SignatureHeader))
}

// It is tried again while that may help, always with the same body.
func TestWebhookTriesAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		statuses []int
		asked    int64
		want     string
	}{
		"busy, then well":   {[]int{503, 429, 408, 200}, 4, ""},
		"broken for good":   {[]int{500}, 4, "try 4 of 4: status 500 Internal Server Error"},
		"not wanted":        {[]int{400}, 1, "try 1 of 4: status 400 Bad Request"},
		"gone":              {[]int{410}, 1, "410 Gone"},
		"moved":             {[]int{302}, 1, "status 302: redirects are not followed"},
		"moved, and insist": {[]int{307}, 1, "status 307"},
		"moved for good":    {[]int{308}, 1, "status 308"},
	} {
		t.Run(name, func(t *testing.T) {
			r := receive(t, tc.statuses...)
			err := approval.Webhook{URL: r.URL + "/s3cret-path", Links: links, Wait: time.Microsecond}.Notify(t.Context(), waiting())
			if tc.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.want)
				assert.ErrorContains(t, err, "that run r1 waits")
				assert.NotContains(t, err.Error(), "s3cret")
				assert.NotContains(t, err.Error(), "token")
			}
			assert.Equal(t, tc.asked, r.asked.Load())
			for range tc.asked {
				assert.Equal(t, "POST "+expected(), <-r.bodies)
			}
		})
	}

	closed := receive(t, 200)
	closed.Close()
	err := approval.Webhook{URL: closed.URL + "/s3cret", Links: links, Wait: time.Microsecond, Tries: 2}.Notify(t.Context(), waiting())
	require.ErrorContains(t, err, "try 2 of 2")
	assert.NotContains(t, err.Error(), "s3cret")

	ctx, cancel := context.WithCancelCause(t.Context())
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		cancel(errors.New("going home"))
	}))
	defer busy.Close()
	err = approval.Webhook{URL: busy.URL, Links: links, Wait: time.Hour}.Notify(ctx, waiting())
	require.ErrorContains(t, err, "going home", "it does not wait for the next try")

	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer hangs.Close()
	err = approval.Webhook{URL: hangs.URL + "/s3cret", Links: links, Timeout: 20 * time.Millisecond, Tries: 1}.Notify(t.Context(), waiting())
	require.ErrorContains(t, err, "Timeout")
	assert.NotContains(t, err.Error(), "s3cret")
}

func TestWebhookOverTLS(t *testing.T) {
	got := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo) // it tells of those who do not trust it
	server.StartTLS()
	defer server.Close()
	hook := approval.Webhook{URL: server.URL, Links: links, Tries: 1}
	require.ErrorContains(t, hook.Notify(t.Context(), waiting()), "certificate")
	pool := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	hook.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}
	require.NoError(t, hook.Notify(t.Context(), waiting()))
	assert.Equal(t, expected(), <-got)
}

// What a webhook must not be given is refused before anything is sent, and no secret is in
// the error.
func TestWebhookRefuses(t *testing.T) {
	r := receive(t, 200)
	t.Setenv("DESK_TOKEN", "s3cret\r\nX-Evil: 1")
	t.Setenv("OTHER_KEY", "s3cret")
	for name, tc := range map[string]struct {
		hook approval.Webhook
		want string
	}{
		"no URL":             {approval.Webhook{}, "Webhook.URL: must begin with https://"},
		"a file":             {approval.Webhook{URL: "file:///etc/passwd"}, "https://"},
		"no scheme":          {approval.Webhook{URL: "//example.com/s3cret"}, "https://"},
		"opaque":             {approval.Webhook{URL: "https:example.com"}, "https://"},
		"no URL at all":      {approval.Webhook{URL: "http://s3cret:\x7f/"}, "Webhook.URL"},
		"a line break":       {approval.Webhook{URL: "https://example.com/s3cret\r\nX: y"}, "Webhook.URL"},
		"http":               {approval.Webhook{URL: "http://example.com/s3cret"}, "use https for example.com"},
		"a near miss":        {approval.Webhook{URL: "http://127.0.0.1.example.com/"}, "use https"},
		"a name and a word":  {approval.Webhook{URL: "https://me:s3cret@example.com/"}, "user name"},
		"variable not named": {approval.Webhook{URL: r.URL, Header: map[string]string{"X": "$OTHER_KEY"}}, `Webhook.Header: X: variable "OTHER_KEY" is not one of Webhook.Env`},
		"variable not set": {
			approval.Webhook{URL: r.URL, Header: map[string]string{"X": "$NO_SUCH"}, Env: []string{"NO_SUCH"}}, "variable NO_SUCH is not set",
		},
		"a line break in a variable": {
			approval.Webhook{URL: r.URL, Header: map[string]string{"X": "$DESK_TOKEN"}, Env: []string{"DESK_TOKEN"}}, "X: contains a line break",
		},
		"a line break in a value": {approval.Webhook{URL: r.URL, Header: map[string]string{"X": "a\nY: b"}}, "line break"},
		"a line break in a name":  {approval.Webhook{URL: r.URL, Header: map[string]string{"X: a\r\nY": "b"}}, "cannot be set"},
		"no name":                 {approval.Webhook{URL: r.URL, Header: map[string]string{"": "b"}}, "cannot be set"},
		"another host":            {approval.Webhook{URL: r.URL, Header: map[string]string{"host": "b"}}, "cannot be set"},
		"another length":          {approval.Webhook{URL: r.URL, Header: map[string]string{"content-length": "1"}}, "cannot be set"},
		"chunks":                  {approval.Webhook{URL: r.URL, Header: map[string]string{"transfer-encoding": "chunked"}}, "cannot be set"},
		"our signature":           {approval.Webhook{URL: r.URL, Header: map[string]string{"grapnel-signature": "x"}}, "cannot be set"},
	} {
		err := tc.hook.Notify(t.Context(), waiting())
		require.ErrorContains(t, err, tc.want, name)
		assert.NotContains(t, err.Error(), "s3cret", name)
		assert.NotContains(t, err.Error(), "token", name)
	}
	assert.Zero(t, r.asked.Load())
}

// All notifiers hear of a run that parks, and the link that they were given decides.
func TestNotifiersHearOfARun(t *testing.T) {
	var out bytes.Buffer
	r := receive(t, 200)
	d := park(t, scenario{question: soon, notify: []durable.Notifier{approval.Log(&out, ""), approval.Webhook{URL: r.URL}}})
	var m approval.Message
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(<-r.bodies, "POST ")), &m))
	require.Len(t, m.Calls, 1)
	assert.Equal(t, d.card(0), m.Calls[0].Wait)
	assert.Contains(t, out.String(), ": "+m.Calls[0].Link+"\n")
	assert.Equal(t, http.StatusOK, postOnce(t, d.url+m.Calls[0].Link, d.form(0, "approve")).StatusCode)
}
