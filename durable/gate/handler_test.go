package gate_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/gate"
)

// send sends a request to a callback and returns the status.
func send(t *testing.T, method, url, body string, headers ...string) int {
	t.Helper()
	status, _ := fetch(t, method, url, body, headers...)
	return status
}

func fetch(t *testing.T, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// AP-30, AP-31, AP-37: a token answers one gate once, and only by POST from its own site.
func TestHandler(t *testing.T) {
	url, received := receiver(t, http.StatusOK)
	p := start(t, t.TempDir(), `{id: wait, type: gate, by: callback, reason: "To <prod>?", webhook: {url: "`+url+`", body: {url: "${CALLBACK_URL}"}}}`)
	id := p.run()
	decided := make(chan agent.RunID, 10)
	server := httptest.NewServer(gate.Handler(p.store, gate.HandlerOptions{
		Origins: []string{"https://desk.example.com"}, Decided: func(_ context.Context, run agent.RunID) { decided <- run },
	}))
	defer server.Close()
	stop := p.watch(gate.Options{Callbacks: server.URL})
	at := await(t, received).URL
	stop()
	require.True(t, strings.HasPrefix(at, server.URL+"/callback/"), at)

	for _, wrong := range []string{"/", "/callback", "/callback/", "/callback/WRONG", "/approvals/" + at[len(server.URL)+10:], "/callback?token=x"} {
		assert.Equal(t, http.StatusNotFound, send(t, http.MethodPost, server.URL+wrong, "approve"), wrong)
	}
	assert.Equal(t, http.StatusNotFound, send(t, http.MethodPost, at+"x", "approve"))
	status, page := fetch(t, http.MethodGet, at+"?action=approve", "")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, page, "To &lt;prod&gt;?")
	assert.Contains(t, page, "<b>clerk</b>")
	assert.Equal(t, http.StatusForbidden, send(t, http.MethodPost, at, "approve", "Origin", "https://evil.example.com"))
	assert.Equal(t, http.StatusForbidden, send(t, http.MethodPost, at, "approve", "Sec-Fetch-Site", "cross-site"))
	assert.Equal(t, http.StatusMisdirectedRequest, send(t, http.MethodPost, at, "approve", "Host", "evil.example.com"))
	assert.Equal(t, http.StatusOK, send(t, http.MethodGet, at, "", "Host", "desk.example.com:443"))
	assert.Equal(t, http.StatusMethodNotAllowed, send(t, http.MethodPut, at, "approve"))
	assert.Equal(t, http.StatusBadRequest, send(t, http.MethodPost, at, "perhaps"))
	assert.Equal(t, http.StatusRequestEntityTooLarge, send(t, http.MethodPost, at, strings.Repeat(" ", 65_537)))
	require.Nil(t, p.wait(id).Answer)

	assert.Equal(t, http.StatusOK, send(t, http.MethodPost, at, "action=approve&message=go", "Content-Type", "application/x-www-form-urlencoded"))
	assert.Equal(t, id, await(t, decided))
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		assert.Equal(t, http.StatusConflict, send(t, method, at, "reject"), method)
	}
	records, err := p.store.AuditRecords(t.Context(), durable.AuditFilter{Run: id})
	require.NoError(t, err)
	require.Len(t, records, 1)
	assert.Equal(t, "p/wait", records[0].By)
	assert.Contains(t, string(records[0].Answer.Data), `"reason":"go"`)
	p.resume(id)
	assert.EqualValues(t, 1, p.deployed.Load())
}

// After the deadline, an answer is too late.
func TestAnAnswerAfterTheDeadline(t *testing.T) {
	url, received := receiver(t, http.StatusOK)
	p := start(t, t.TempDir(), `{id: wait, type: gate, by: callback, timeout: 3s, webhook: {url: "`+url+`", body: {url: "${CALLBACK_URL}"}}}`)
	id := p.run()
	server := httptest.NewServer(gate.Handler(p.store, gate.HandlerOptions{}))
	defer server.Close()
	p.watch(gate.Options{Callbacks: server.URL})
	at := await(t, received).URL
	require.Eventually(t, func() bool { return time.Now().After(p.wait(id).Deadline) }, patience, 10*time.Millisecond)
	assert.Equal(t, http.StatusConflict, send(t, http.MethodPost, at, "approve"))
	p.resume(id)
	assert.Zero(t, p.deployed.Load())
}
