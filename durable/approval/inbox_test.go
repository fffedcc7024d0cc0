package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// The inbox lists what waits, for a person who is signed in, and a wait shows what would run and what was decided before.
func TestTheInbox(t *testing.T) {
	c := newCrew(t, map[string][]string{"ann": nil})
	d := park(t, scenario{
		question: soon, calls: []agent.ToolCall{call("c1", `{"to":"Carol","amount":1000}`), call("c2", `{}`)},
		rewrite: map[string]string{`{"to":"Carol","amount":1000}`: carol}, options: approval.Options{People: c.people},
	})
	var list struct {
		Waits []map[string]any `json:"waits"`
		Next  string           `json:"next"`
	}
	got := do(t, http.MethodGet, d.url+"/approvals/", "", c.bearer("ann")...)
	require.NoError(t, json.Unmarshal([]byte(got.body), &list))
	require.Len(t, list.Waits, 2)
	first, ok := lo.Find(list.Waits, func(w map[string]any) bool { return w["wait"] == d.card(0) }) // both were asked at the same time
	require.True(t, ok)
	assert.Equal(t, "clerk", first["agent"])
	assert.Equal(t, "reject_and_continue", first["on_timeout"])
	assert.Empty(t, list.Next)
	for query, want := range map[string]int{"?kind=doubt": 0, "?kind=approval": 2, "?expired=true": 0, "?run=" + string(d.notice.Run.ID): 2, "?run=x": 0} {
		got := do(t, http.MethodGet, d.url+"/approvals/"+query, "", c.bearer("ann")...)
		require.NoError(t, json.Unmarshal([]byte(got.body), &list))
		assert.Len(t, list.Waits, want, query)
	}
	for _, query := range []string{"?after=x", "?limit=7"} {
		assert.Equal(t, http.StatusBadRequest, do(t, http.MethodGet, d.url+"/approvals/"+query, "", c.bearer("ann")...).StatusCode)
	}
	assert.Equal(t, http.StatusMethodNotAllowed, do(t, http.MethodPost, d.url+"/approvals/", "{}", c.bearer("ann")...).StatusCode)
	for address, want := range map[string]int{
		d.waitAddress("c3"): http.StatusNotFound, d.url + "/approvals/wait?run=run_x&wait=c1": http.StatusNotFound, d.url + "/approvals/wait": http.StatusNotFound,
	} {
		assert.Equal(t, want, do(t, http.MethodGet, address, "", c.bearer("ann")...).StatusCode, address)
	}
	assert.Equal(t, http.StatusUnauthorized, see(t, d.waitAddress(d.card(0))).StatusCode)

	require.Equal(t, http.StatusOK, postOnce(t, d.link(1), d.form(1, "reject_and_continue", "by", "dan", "reason", "no")).StatusCode)
	page := do(t, http.MethodGet, d.waitAddress(d.card(0)), "", "Authorization", "Bearer "+c.tokens["ann"]).body
	for _, want := range []string{
		`-   \"amount\": 1000`, `+   \"amount\": 250`, `"history": [`, "dan",
	} {
		assert.Contains(t, page, want)
	}
	assert.NotContains(t, see(t, d.link(0)).body, `"history"`, "a link does not show what others decided elsewhere")
	got = postOnce(t, d.waitAddress(d.card(0)), d.form(0, "approve", "by", ""), "Authorization", "Bearer "+c.tokens["ann"])
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	assert.Contains(t, got.body, `"identity": "ann"`)
	got = do(t, http.MethodGet, d.url+"/approvals/", "", c.bearer("ann")...)
	require.NoError(t, json.Unmarshal([]byte(got.body), &list))
	assert.Empty(t, list.Waits)

	require.Equal(t, agent.StatusDone, d.goOn(t).Status())
	for _, got := range []answer{
		do(t, http.MethodGet, d.waitAddress(d.card(0)), "", c.bearer("ann")...),
		do(t, http.MethodPost, d.waitAddress(d.card(0)), `{"verdict":"approve","wait":"x"}`, append(c.bearer("ann"), "Content-Type", "application/json")...),
	} {
		assert.Equal(t, http.StatusConflict, got.StatusCode, "an answered wait of a run that went on")
	}
	assert.Equal(t, http.StatusNotFound, do(t, http.MethodGet, d.waitAddress("c3"), "", c.bearer("ann")...).StatusCode)
}

func TestDiff(t *testing.T) {
	assert.Empty(t, approval.Diff(`{"a":1}`, `{ "a": 1 }`))
	assert.Equal(t, "  {\n-   \"a\": 1,\n+   \"a\": 2,\n    \"b\": 2,\n-   \"c\": 3\n+   \"d\": 3\n  }\n", approval.Diff(`{"a":1,"b":2,"c":3}`, `{"a":2,"b":2,"d":3}`))
	assert.Equal(t, "- {}\n+ {\n+   \"a\": \"\\u202e\"\n+ }\n", approval.Diff("", "{\"a\":\"\u202e\"}"))
}

// AP-31: when the run has gone on, a person who is signed in sees who decided; a link shows nothing more.
func TestAWaitThatHasGone(t *testing.T) {
	c := newCrew(t, map[string][]string{"ann": nil})
	d := park(t, scenario{question: agent.Question{Reason: "much"}, options: approval.Options{People: c.people}})
	require.Equal(t, http.StatusOK, postOnce(t, d.link(0), d.form(0, "approve", "by", "dan", "reason", "fine"),
		"Authorization", "Bearer "+c.tokens["ann"]).StatusCode)
	require.Equal(t, agent.StatusDone, d.goOn(t).Status())
	got := do(t, http.MethodGet, d.waitAddress(d.card(0)), "", c.bearer("ann")...)
	assert.Equal(t, http.StatusConflict, got.StatusCode)
	assert.Regexp(t, `approve by ann, 20\d\d-.*: fine`, got.body)
	assert.Equal(t, http.StatusConflict, postOnce(t, d.waitAddress(d.card(0)), d.form(0, "reject"), "Authorization", "Bearer "+c.tokens["ann"]).StatusCode)
	assert.Equal(t, http.StatusNotFound, do(t, http.MethodGet, d.waitAddress("c2"), "", c.bearer("ann")...).StatusCode)
	assert.Equal(t, http.StatusConflict, see(t, d.link(0)).StatusCode)
}

// The history has decisions about calls that the same rule has asked about, with what they were about.
func TestLikeDecisions(t *testing.T) {
	c := newCrew(t, map[string][]string{"ann": nil})
	d := park(t, scenario{calls: []agent.ToolCall{call("c1", carol), call("c2", `{"to":"Dan"}`)}, options: approval.Options{People: c.people}})
	require.Equal(t, http.StatusOK, postOnce(t, d.link(1), d.form(1, "reject_and_continue", "by", "dan")).StatusCode)
	waits, err := d.store.Waits(t.Context(), d.notice.Run.ID)
	require.NoError(t, err)
	shown, err := approval.Show(t.Context(), d.store, waits[0], true)
	require.NoError(t, err)
	require.Len(t, shown.History, 1)
	assert.Equal(t, "Dan", shown.History[0].Preview)
	other, err := approval.Show(t.Context(), d.store, waits[1], true)
	require.NoError(t, err)
	assert.Empty(t, other.History, "the answer to the wait itself is not history")
}

// A question whose deadline has passed is marked in lists, and cannot be answered.
func TestExpiredWaits(t *testing.T) {
	c := newCrew(t, map[string][]string{"ann": nil})
	d := park(t, scenario{
		question: agent.Question{Reason: "much", Within: time.Millisecond, OnTimeout: agent.RejectAndContinue}, options: approval.Options{People: c.people},
	})
	time.Sleep(2 * time.Millisecond)
	for _, query := range []string{"", "?expired=true"} {
		list := do(t, http.MethodGet, d.url+"/approvals/"+query, "", c.bearer("ann")...).body
		assert.Contains(t, list, `"expired": true`)
	}
	assert.Contains(t, do(t, http.MethodGet, d.waitAddress(d.card(0)), "", c.bearer("ann")...).body, `"state": "expired"`)
	got := postOnce(t, d.waitAddress(d.card(0)), d.form(0, "approve"), "Authorization", "Bearer "+c.tokens["ann"])
	assert.Equal(t, http.StatusConflict, got.StatusCode)
	d.undecided(t, 0)
}

// An approval can make a waiver, whose effect is shown first. A waiver must match the call, and answers no question with approvers. The
// answer says why there can be none.
func TestApproveUntil(t *testing.T) {
	c := newCrew(t, map[string][]string{"ann": nil})
	var shown approval.Page
	var told []string
	o := approval.Options{People: c.people, Waivers: true, Page: func(w http.ResponseWriter, _ *http.Request, p approval.Page) {
		shown = p
		w.WriteHeader(p.Status)
	}, Record: func(ctx context.Context, _ *approval.Principal, _ agent.RunID, what string) (context.Context, func() error) {
		told = append(told, what)
		return ctx, func() error { return nil }
	}}
	d := park(t, scenario{calls: []agent.ToolCall{call("c1", carol), call("c2", `{"to":"Carol","amount":7}`)}, options: o})
	require.Equal(t, http.StatusOK, postOnce(t, d.link(1), d.form(1, "reject_and_continue", "by", "dan")).StatusCode)
	address := d.waitAddress(d.card(0))
	ann := []string{"Authorization", "Bearer " + c.tokens["ann"]}
	do(t, http.MethodGet, address, "", ann...)
	require.NotNil(t, shown.Waiver)
	assert.Equal(t, map[string]string{"to": "Carol", "amount": "250"}, shown.Waiver.Scope.Arguments)
	assert.Equal(t, time.Saturday, shown.Waiver.Until.Weekday())
	assert.Empty(t, shown.Waiver.Effect.Covered)
	seen := shown.Waiver.Fingerprint()
	see(t, d.link(0))
	assert.Nil(t, shown.Waiver, "a link makes no waivers")
	last := time.Now().UTC().AddDate(0, 0, 7).Format(time.DateOnly)
	form := d.form(0, "waive", "arg.to", "Car*", "arg.amount", "*", "until", last, "reason", "known", "seen", seen)
	waivers := func() []durable.Waiver {
		all, err := d.store.Waivers(t.Context(), false)
		require.NoError(t, err)
		return all
	}
	assert.Equal(t, http.StatusForbidden, postOnce(t, d.link(0), form).StatusCode, "not signed in")
	assert.Equal(t, http.StatusForbidden, postOnce(t, address, form, append(ann, "Sec-Fetch-Site", "cross-site")...).StatusCode)
	for field, value := range map[string]string{"until": "2199-01-01", "arg.to": "Dan", "reason": "\u202e"} {
		wrong := maps.Clone(form)
		wrong.Set(field, value)
		assert.Equal(t, http.StatusUnprocessableEntity, postOnce(t, address, wrong, ann...).StatusCode, field)
	}
	told = nil
	got := postOnce(t, address, form, ann...)
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	require.NotNil(t, shown.Waiver.Effect, "its effect was not seen, so it is shown first")
	assert.Equal(t, []int{1, 1, 1}, []int{len(shown.Waiver.Effect.Covered), shown.Waiver.Effect.Answers, shown.Waiver.Effect.Rejected})
	d.undecided(t, 0)
	assert.Empty(t, waivers())
	assert.Empty(t, told)
	form.Set("seen", shown.Waiver.Fingerprint())
	postOnce(t, address, form, ann...)
	assert.Contains(t, shown.Message, "Approved, and so are like calls until ")
	require.Len(t, waivers(), 1)
	assert.Equal(t, "ann", waivers()[0].By)
	assert.Equal(t, last, waivers()[0].Expires.UTC().AddDate(0, 0, -1).Format(time.DateOnly))
	require.Len(t, told, 1)
	assert.Regexp(t, `^approve \S+, and until \S+ 00:00:00 UTC waive guard: \S+ with to=Car\*$`, told[0])
	assert.Equal(t, agent.StatusDone, d.goOn(t).Status())
	assert.Len(t, d.ran, 1)

	for why, q := range map[string]agent.Question{"it needs an approval by ann": {Approvers: []string{"ann"}}, "it needs 2 approvals": {Quorum: 2}} {
		d = park(t, scenario{question: q, options: o})
		address := d.waitAddress(d.card(0))
		do(t, http.MethodGet, address, "", ann...)
		assert.Contains(t, shown.Waiver.WhyNot, why)
		got := do(t, http.MethodPost, address, `{"verdict":"approve","waiver":{},`+d.seen(0)+`}`, append(ann, "Content-Type", "application/json")...)
		assert.Equal(t, http.StatusUnprocessableEntity, got.StatusCode, why)
		assert.Contains(t, got.body, `"why_not": "about the rule guard, `+why)
		d.undecided(t, 0)
	}
	assert.Empty(t, waivers())
}

// Programs see the effect and make a waiver in the same way.
func TestApproveUntilAsJSON(t *testing.T) {
	c := newCrew(t, map[string][]string{"ann": nil})
	d := park(t, scenario{options: approval.Options{People: c.people, Waivers: true}})
	send := func(text string) answer {
		return do(t, http.MethodPost, d.waitAddress(d.card(0)), fmt.Sprintf(text, d.seen(0)), "Content-Type", "application/json",
			"Authorization", "Bearer "+c.tokens["ann"])
	}
	got := send(`{"verdict":"approve","waiver":{"arguments":{"to":"Car*"},"dry_run":true},%s}`)
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	assert.Contains(t, got.body, `"covered": 0`)
	assert.Equal(t, http.StatusUnprocessableEntity, send(`{"verdict":"reject","waiver":{},%s}`).StatusCode)
	assert.Equal(t, http.StatusUnprocessableEntity, send(`{"verdict":"approve","arguments":{"to":"Dan"},"waiver":{},%s}`).StatusCode)
	d.undecided(t, 0)
	require.Equal(t, http.StatusOK, send(`{"verdict":"approve","waiver":{},%s}`).StatusCode)
	all, err := d.store.Waivers(t.Context(), false)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, time.Saturday, all[0].Expires.UTC().Weekday())
}

// faultyStore fails to store answers.
type faultyStore struct {
	durable.Store

	err error
}

func (s *faultyStore) Answer(ctx context.Context, id agent.RunID, decide durable.AnswerFunc) error {
	if s.err != nil {
		return s.err
	}
	return s.Store.Answer(ctx, id, decide)
}

// A waiver is not lost when the process stops before the answer is stored: the same request makes one waiver. It does not stay if
// another answer came first.
func TestWaiverAndAnswer(t *testing.T) {
	c := newCrew(t, map[string][]string{"ann": nil})
	o := approval.Options{People: c.people, Waivers: true}
	d := park(t, scenario{options: o})
	store := &faultyStore{Store: d.store, err: errors.New("the process has stopped")}
	s := httptest.NewServer(approval.Handler(store, o))
	t.Cleanup(s.Close)
	waivers := func(all bool) int {
		list, err := d.store.Waivers(t.Context(), all)
		require.NoError(t, err)
		return len(list)
	}
	send := func(reason string) int {
		return do(t, http.MethodPost, strings.Replace(d.waitAddress(d.card(0)), d.url, s.URL, 1),
			`{"verdict":"approve","reason":"`+reason+`","waiver":{"until":"`+time.Now().AddDate(0, 0, 2).UTC().Format("2006-01-02T00:00:00Z")+`"},`+d.seen(0)+`}`,
			"Content-Type", "application/json", "Authorization", "Bearer "+c.tokens["ann"]).StatusCode
	}
	assert.Equal(t, http.StatusServiceUnavailable, send("known"))
	d.undecided(t, 0)
	store.err = durable.ErrAnswered
	assert.Equal(t, http.StatusConflict, send("other"))
	assert.Equal(t, []int{1, 2}, []int{waivers(false), waivers(true)}, "the second one is revoked")
	store.err = nil
	assert.Equal(t, http.StatusOK, send("known"))
	assert.Equal(t, []int{1, 2}, []int{waivers(false), waivers(true)})
	assert.Equal(t, agent.StatusDone, d.goOn(t).Status())
}
