package approval_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// A page of another site decides nothing, though it knew the link.
func TestOtherSites(t *testing.T) {
	d := park(t, scenario{question: soon, options: approval.Options{Origins: []string{"https://desk.example.com"}}})
	for name, header := range map[string][]string{
		"another site":            {"Sec-Fetch-Site", "cross-site"},
		"a sister":                {"Sec-Fetch-Site", "same-site"},
		"an unknown word":         {"Sec-Fetch-Site", "friendly"},
		"another origin":          {"Origin", "https://evil.example.com"},
		"another port":            {"Origin", "http://127.0.0.1:1"},
		"no origin to speak of":   {"Origin", "null"},
		"another, and the origin": {"Sec-Fetch-Site", "cross-site", "Origin", d.url},
	} {
		for _, body := range []string{d.form(0, "approve").Encode(), ""} {
			got := do(t, http.MethodPost, d.link(0), body, append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
			assert.Equal(t, http.StatusForbidden, got.StatusCode, name)
			assert.NotContains(t, got.body, "Carol", name)
		}
	}
	assert.Equal(t, http.StatusOK, do(t, http.MethodGet, d.link(0), "", "Sec-Fetch-Site", "cross-site").StatusCode, "a link in a chat may be opened")
	d.undecided(t, 0)
	require.Equal(t, http.StatusOK, postOnce(t, d.link(0), d.form(0, "approve"), "Origin", "https://desk.example.com", "Sec-Fetch-Site", "cross-site").StatusCode)

	for _, header := range [][]string{{"Sec-Fetch-Site", "same-origin", "Origin", "null"}, {"Sec-Fetch-Site", "none"}, {}} {
		d := park(t, scenario{question: soon})
		assert.Equal(t, http.StatusOK, postOnce(t, d.link(0), d.form(0, "approve"), header...).StatusCode, header)
	}
	assert.PanicsWithValue(t, `approval: Options.Origins: invalid origin "desk": scheme is required`, func() {
		approval.Handler(d.store, approval.Options{Origins: []string{"desk"}})
	})
}

// A body has an end: that of a decision, which may bring the arguments back.
func TestHugeBodies(t *testing.T) {
	d := park(t, scenario{question: soon})
	handler := approval.Handler(d.store, approval.Options{})
	huge := strings.Repeat("x", 4<<20)
	form, token := d.form(0, "approve", "reason", huge).Encode(), d.notice.Calls[0].Token
	for name, tc := range map[string]struct {
		token, media, body string
		status, most       int
	}{
		"form":    {token, "application/x-www-form-urlencoded", form, http.StatusRequestEntityTooLarge, 300 << 10},
		"JSON":    {token, "application/json", `{"verdict":"approve","reason":"` + huge + `"}`, http.StatusRequestEntityTooLarge, 300 << 10},
		"other":   {token, "text/plain", huge, http.StatusUnsupportedMediaType, 0},
		"unknown": {"x", "application/x-www-form-urlencoded", form, http.StatusNotFound, 0},
	} {
		body := strings.NewReader(tc.body)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/approvals/"+tc.token, body)
		request.Host = "localhost"
		request.Header.Set("Content-Type", tc.media)
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, request)
		assert.Equal(t, tc.status, got.Code, name)
		assert.LessOrEqual(t, len(tc.body)-body.Len(), tc.most, "%s: so much was read", name)
	}
	got := postJSON(t, d.link(0), `{"verdict":"approve",%s,"arguments":{"a":%s}}`, d.seen(0), strings.Repeat("[", 5000)+strings.Repeat("]", 5000))
	assert.Equal(t, http.StatusBadRequest, got.StatusCode, "nested too deep")
	d.undecided(t, 0)
}

// What is logged says who decided what, and has no token in it, whatever happens.
func TestTokensAreNeverLogged(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	broken := true
	d := park(t, scenario{question: soon, calls: []agent.ToolCall{call("c1", carol), call("c2", "{}")}, options: approval.Options{
		Log: log, Decided: func(context.Context, agent.RunID) {
			if broken {
				panic("out of paper")
			}
		},
	}})
	see(t, d.link(0))
	postOnce(t, d.link(0), d.form(0, "approve", "wait", "x"))
	postOnce(t, d.link(0), nil, "Origin", "null")
	assert.Contains(t, out.String(), `"msg":"approval: refused","method":"POST","status":409,"reason":"The question has changed since you saw it. Nothing was decided: read what is asked now.","run":"`+string(d.notice.Run.ID)+`","wait":"`+d.card(0)+`"`)
	assert.Contains(t, out.String(), `"status":403`)
	assert.Equal(t, http.StatusUnprocessableEntity, postOnce(t, d.link(0), d.form(0, "approve", "by", "ann\tx")).StatusCode)
	assert.Equal(t, http.StatusInternalServerError, postOnce(t, d.link(0), d.form(0, "approve")).StatusCode)
	assert.Contains(t, out.String(), `"msg":"approval: decided","run":"`+string(d.notice.Run.ID)+`","wait":"`+d.card(0)+`","tool":"pay","verdict":"approve","edited":false,"by":"ann","identity":"","decides":true`)
	assert.Contains(t, out.String(), "out of paper")
	broken = false
	assert.Equal(t, http.StatusConflict, postOnce(t, d.link(0), d.form(0, "approve")).StatusCode, "it was recorded before")

	server := httptest.NewServer(approval.Handler(gone{d.store}, approval.Options{Log: log}))
	defer server.Close()
	token := d.notice.Calls[1].Token
	for _, got := range []answer{see(t, approval.Links(server.URL).To(token)), postOnce(t, approval.Links(server.URL).To(token), d.form(1, "approve"))} {
		assert.Equal(t, http.StatusServiceUnavailable, got.StatusCode)
		assert.NotContains(t, got.body, "connection refused", "the reader must not learn that")
	}
	assert.Contains(t, out.String(), "connection refused")
	for _, c := range d.notice.Calls {
		assert.NotContains(t, out.String(), c.Token)
	}
	d.undecided(t, 1)
}

// gone is a store that is away.
type gone struct{ durable.Store }

func (gone) WaitByToken(context.Context, [32]byte) (durable.Wait, error) {
	return durable.Wait{}, errors.New("connection refused")
}

// A store that finds the wrong question, or finds one for a token that is no token, is
// not believed.
func TestTheTokenIsCompared(t *testing.T) {
	d := park(t, scenario{question: soon})
	server := httptest.NewServer(approval.Handler(lax{d.store, durable.TokenHash(d.notice.Calls[0].Token)}, approval.Options{}))
	defer server.Close()
	links := approval.Links(server.URL)
	assert.Equal(t, http.StatusOK, see(t, links.To(d.notice.Calls[0].Token)).StatusCode)
	for _, token := range []string{"", "x", strings.ToLower(d.notice.Calls[0].Token), strings.ToUpper(d.notice.Calls[0].Token)} {
		assert.Equal(t, http.StatusNotFound, see(t, links.To(token)).StatusCode)
		assert.Equal(t, http.StatusNotFound, postOnce(t, links.To(token), d.form(0, "approve")).StatusCode)
	}
	d.undecided(t, 0)
}

// lax is a store that finds one question whatever is looked for.
type lax struct {
	durable.Store

	only [32]byte
}

func (s lax) WaitByToken(ctx context.Context, _ [32]byte) (durable.Wait, error) {
	return s.Store.WaitByToken(ctx, s.only)
}

// Of the calls of a run that an approver ended, none can be decided any more once it goes on.
func TestARunThatIsRunning(t *testing.T) {
	d := park(t, scenario{question: soon})
	lease, err := d.store.Acquire(t.Context(), d.notice.Run.ID, "other", 1<<40, durable.TakeFree)
	require.NoError(t, err)
	require.NoError(t, d.store.Commit(t.Context(), lease, durable.Commit{Update: durable.Update{Status: durable.StatusRunning}}))
	assert.Equal(t, http.StatusConflict, see(t, d.link(0)).StatusCode)
	assert.Equal(t, http.StatusConflict, postOnce(t, d.link(0), d.form(0, "approve")).StatusCode)
	require.NoError(t, d.store.Release(t.Context(), lease, 0))
	require.NoError(t, d.store.Delete(t.Context(), d.notice.Run.ID))
	assert.Equal(t, http.StatusNotFound, see(t, d.link(0)).StatusCode)
}

// gap is a store whose question is gone, or answered, between looking and answering.
type gap struct {
	durable.Store

	err error
}

func (s gap) Answer(context.Context, agent.RunID, durable.AnswerFunc) error { return s.err }

func TestBetweenLookingAndAnswering(t *testing.T) {
	d := park(t, scenario{question: soon})
	for want, err := range map[int]error{
		http.StatusConflict: durable.ErrNotFound, http.StatusServiceUnavailable: errors.New("disk full"),
	} {
		server := httptest.NewServer(approval.Handler(gap{d.store, err}, approval.Options{}))
		got := postOnce(t, approval.Links(server.URL).To(d.notice.Calls[0].Token), d.form(0, "approve"))
		server.Close()
		assert.Equal(t, want, got.StatusCode)
	}
	d.undecided(t, 0)
}
