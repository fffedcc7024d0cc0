package approval_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/durable/durabletest"
)

// crew are people with tokens.
type crew struct {
	people *approval.People
	tokens map[string]string
}

func newCrew(t *testing.T, roles map[string][]string) crew {
	t.Helper()
	c := crew{tokens: map[string]string{}}
	var all []approval.Person
	for name, of := range roles {
		token, sum := approval.NewToken()
		c.tokens[name] = token
		all = append(all, approval.Person{Name: name, Roles: of, Token: sum})
	}
	var err error
	c.people, err = approval.NewPeople(all...)
	require.NoError(t, err)
	return c
}

func (c crew) bearer(name string) []string {
	return []string{"Authorization", "Bearer " + c.tokens[name], "Accept", "application/json"}
}

func (d *inbox) waitAddress(wait string) string {
	return d.url + "/approvals/wait?" + url.Values{"run": {string(d.notice.Run.ID)}, "wait": {wait}}.Encode()
}

// a link proves no identity: a question with approvers or a quorum wants one, of the right person.
func TestALinkIsNoIdentity(t *testing.T) {
	c := newCrew(t, map[string][]string{"ann": {"lead"}, "bob": nil})
	d := park(t, scenario{question: agent.Question{Reason: "much", Approvers: []string{"lead"}}, options: approval.Options{People: c.people}})
	got := postOnce(t, d.link(0), d.form(0, "approve", "by", "lead"))
	assert.Equal(t, http.StatusForbidden, got.StatusCode)
	assert.Contains(t, got.body, "it needs an approval by lead")
	assert.Contains(t, got.body, "Sign in")
	got = postOnce(t, d.link(0), d.form(0, "approve", "by", "ann"), "Authorization", "Bearer "+c.tokens["bob"])
	assert.Equal(t, http.StatusForbidden, got.StatusCode, "the name in the form gives no role")
	got = postOnce(t, d.link(0), d.form(0, "approve", "by", "ann"), "Authorization", "Bearer "+c.tokens["bob"]+"x")
	assert.Equal(t, http.StatusForbidden, got.StatusCode)
	d.undecided(t, 0)
	got = postOnce(t, d.link(0), d.form(0, "approve", "by", ""), "Authorization", "Bearer "+c.tokens["ann"])
	assert.Equal(t, http.StatusOK, got.StatusCode, got.body)
	records, err := d.store.AuditRecords(t.Context(), durable.AuditFilter{Run: d.notice.Run.ID})
	require.NoError(t, err)
	require.Len(t, records, 1)
	assert.Equal(t, "ann", records[0].By)
	assert.Equal(t, agent.StatusDone, d.goOn(t).Status())
	assert.Len(t, d.ran, 1)
}

// a quorum counts people, not answers, and each answer is recorded with what is still missing.
func TestAQuorumOfPeople(t *testing.T) {
	c := newCrew(t, map[string][]string{"ann": {"lead"}, "bob": {"lead"}, "eve": nil})
	d := park(t, scenario{
		question: agent.Question{Reason: "much", Approvers: []string{"lead"}, Quorum: 2}, options: approval.Options{People: c.people},
	})
	body := `{"verdict":"approve",` + d.seen(0) + `}`
	answer := func(name, body string) answer {
		return do(t, http.MethodPost, d.waitAddress(d.card(0)), body, append(c.bearer(name), "Content-Type", "application/json")...)
	}
	got := answer("ann", body)
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	assert.Contains(t, got.body, "Recorded. It needs 1 more approval by lead.")
	got = answer("ann", body)
	assert.Equal(t, http.StatusConflict, got.StatusCode, "one person counts once")
	assert.Contains(t, got.body, "this request changed nothing")
	assert.Equal(t, http.StatusForbidden, answer("eve", body).StatusCode)
	got = answer("bob", `{"verdict":"approve",`+d.seen(0)+`,"arguments":{"to":"Bob"}}`)
	assert.Equal(t, http.StatusUnprocessableEntity, got.StatusCode, "each approves what they were shown")
	assert.Empty(t, d.decided)
	page := do(t, http.MethodGet, d.waitAddress(d.card(0)), "", "Authorization", "Bearer "+c.tokens["bob"]).body
	assert.Contains(t, page, `"quorum": 2`)
	assert.Contains(t, page, `"approvals": 1`)
	assert.Regexp(t, `"answers": \[\s*\{\s*"verdict": "approve"`, page)
	assert.Contains(t, answer("bob", body).body, "Decided")
	assert.Equal(t, http.StatusConflict, answer("bob", body).StatusCode)
	assert.Equal(t, agent.StatusDone, d.goOn(t).Status())
	assert.Equal(t, []string{carol}, d.ran)
}

// Of answers that race, one counts; with a quorum, no approval is lost.
func TestRacingAnswers(t *testing.T) {
	names := map[string][]string{"ann": nil, "bob": nil, "cyd": nil, "dan": nil}
	c := newCrew(t, names)
	for quorum, want := range map[int]int{1: 1, 3: 3} {
		d := park(t, scenario{question: agent.Question{Quorum: quorum}, options: approval.Options{People: c.people}})
		var all sync.WaitGroup
		codes := make(chan int, len(names))
		for name := range names {
			all.Go(func() {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.waitAddress(d.card(0)), strings.NewReader(`{"verdict":"approve",`+d.seen(0)+`}`))
				if !assert.NoError(t, err) {
					return
				}
				request.Header.Set("Content-Type", "application/json")
				request.Header.Set("Authorization", "Bearer "+c.tokens[name])
				response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
				if assert.NoError(t, err) {
					_ = response.Body.Close()
					codes <- response.StatusCode
				}
			})
		}
		all.Wait()
		close(codes)
		recorded := 0
		for code := range codes {
			if code == http.StatusOK {
				recorded++
				continue
			}
			assert.Equal(t, http.StatusConflict, code)
		}
		assert.Equal(t, want, recorded)
		waits, err := d.store.Waits(t.Context(), d.notice.Run.ID)
		require.NoError(t, err)
		assert.Len(t, waits[0].Answers(), want)
		assert.NotNil(t, waits[0].Answer)
		assert.Len(t, d.decided, 1)
	}
}

// Changed arguments fit the schema of the tool before they are recorded, and every field that does not is named.
func TestChangedArgumentsFitTheTool(t *testing.T) {
	schema := `{"type":"object","properties":{"to":{"type":"string"},"amount":{"type":"number","maximum":250}},"required":["to","amount"],"additionalProperties":false}`
	d := park(t, scenario{question: soon, schema: schema})
	got := postJSON(t, d.link(0), `{"verdict":"approve",%s,"arguments":{"to":7,"amount":251,"note":"x"}}`, d.seen(0))
	assert.Equal(t, http.StatusUnprocessableEntity, got.StatusCode)
	for _, field := range []string{"/to", "/amount", "/note"} {
		assert.Contains(t, got.body, field)
	}
	got = postOnce(t, d.link(0), d.form(0, "edit", "arguments", `{"to":"Carol"}`))
	assert.Equal(t, http.StatusUnprocessableEntity, got.StatusCode)
	assert.Contains(t, got.body, "/amount")
	d.undecided(t, 0)
	var invalid *agent.ArgumentsError
	err := durabletest.Approve(t.Context(), d.store, d.notice.Run.ID, "c1", agent.Approval{Verdict: agent.Approve, Arguments: `{"to":"Carol"}`})
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, http.StatusOK, postJSON(t, d.link(0), `{"verdict":"approve",%s,"arguments":{"to":"Dan","amount":1}}`, d.seen(0)).StatusCode)
	d.goOn(t)
	assert.Equal(t, []string{`{"to":"Dan","amount":1}`}, d.ran)
}

// A token that has expired, and a person without a token, cannot sign in.
func TestPeople(t *testing.T) {
	token, sum := approval.NewToken()
	people, err := approval.ParsePeople("people.yaml", []byte("people:\n  - name: ann\n    roles: [lead, ops]\n    token: "+sum.String()+"\n    expires: 2999-01-31T00:00:00Z\n  - name: bob\n"))
	require.NoError(t, err)
	p, ok := people.Find(token)
	assert.True(t, ok)
	assert.Equal(t, approval.Principal{Name: "ann", Roles: []string{"lead", "ops"}}, p)
	_, ok = people.Find("")
	assert.False(t, ok)
	past := people.All()
	past[0].Expires.Time = time.Now().Add(-time.Second)
	people, err = approval.NewPeople(past...)
	require.NoError(t, err)
	_, ok = people.Find(token)
	assert.False(t, ok, "it has expired")
	for text, want := range map[string]string{
		"people:\n  - name: ann\n  - name: ann\n":                                                               "two people are named",
		"people:\n  - name: ann\n    token: " + token + "\n":                                                    "64 hexadecimal digits",
		"people:\n  - name: ann\n    role: lead\n":                                                              "role",
		"people:\n  - name: ' ann'\n":                                                                           "cannot be used",
		"people:\n  - name: ann\n    expires: tomorrow\n":                                                       "2027-01-31T00:00:00Z",
		"people:\n  - {name: a, token: '" + sum.String() + "'}\n  - {name: b, token: '" + sum.String() + "'}\n": "the same token",
	} {
		_, err := approval.ParsePeople("people.yaml", []byte(text))
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), token)
	}
}

// A name that another site points to this machine reaches nothing.
func TestForeignHosts(t *testing.T) {
	d := park(t, scenario{question: soon})
	handler := approval.Handler(d.store, approval.Options{Origins: []string{"https://desk.example.com"}})
	for host, want := range map[string]int{
		"evil.example.com": http.StatusMisdirectedRequest, "localhost.evil.com:80": http.StatusMisdirectedRequest, "192.0.2.7": http.StatusMisdirectedRequest,
		"": http.StatusMisdirectedRequest, "localhost:8080": http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:80": http.StatusOK, "desk.example.com": http.StatusOK,
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/approvals/"+d.notice.Calls[0].Token, nil)
		request.Host = host
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		assert.Equal(t, want, recorder.Code, host)
	}
}

// submitted is a store in which one person has submitted every run.
type submitted struct {
	durable.Store

	by string
}

func (s submitted) Run(ctx context.Context, id agent.RunID) (durable.Run, error) {
	r, err := s.Store.Run(ctx, id)
	r.By = s.by
	return r, err
}

// Who submitted a run cannot approve it where approvers or a quorum are required, and may reject it.
func TestSelfApproval(t *testing.T) {
	c := newCrew(t, map[string][]string{"ann": {"lead"}})
	d := park(t, scenario{question: agent.Question{Approvers: []string{"lead"}}})
	server := httptest.NewServer(approval.Handler(submitted{d.store, "ann"}, approval.Options{People: c.people}))
	defer server.Close()
	d.url = server.URL
	got := postOnce(t, d.waitAddress(d.card(0)), d.form(0, "approve"), "Authorization", "Bearer "+c.tokens["ann"])
	assert.Equal(t, http.StatusForbidden, got.StatusCode)
	assert.Contains(t, got.body, "ann has submitted the run and cannot approve it")
	d.undecided(t, 0)
	assert.Equal(t, http.StatusOK, postOnce(t, d.waitAddress(d.card(0)), d.form(0, "reject"), "Authorization", "Bearer "+c.tokens["ann"]).StatusCode)
}
