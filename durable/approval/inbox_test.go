package approval_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
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

// A person who is signed in sees the effect of a waiver before it is made. A waiver must match the call, and answers no
// question with approvers.
func TestAWaiverOnThePage(t *testing.T) {
	c := newCrew(t, map[string][]string{"ann": nil})
	var shown approval.Page
	o := approval.Options{People: c.people, Waivers: true, Page: func(w http.ResponseWriter, _ *http.Request, p approval.Page) {
		shown = p
		w.WriteHeader(p.Status)
	}}
	d := park(t, scenario{calls: []agent.ToolCall{call("c1", carol), call("c2", `{"to":"Carol"}`)}, options: o})
	require.Equal(t, http.StatusOK, postOnce(t, d.link(1), d.form(1, "reject_and_continue", "by", "dan")).StatusCode)
	ann := []string{"Authorization", "Bearer " + c.tokens["ann"]}
	do(t, http.MethodGet, d.waitAddress(d.card(0)), "", ann...)
	require.NotNil(t, shown.Waiver)
	assert.Equal(t, map[string]string{"to": "Carol"}, shown.Waiver.Scope.Arguments)
	see(t, d.link(0))
	assert.Nil(t, shown.Waiver, "a link makes no waivers")
	form := url.Values{"run": {string(d.notice.Run.ID)}, "wait": {d.card(0)}, "arg.to": {"Car*"}, "days": {"7"}, "reason": {"known"}}
	waivers := func() []durable.Waiver {
		all, err := d.store.Waivers(t.Context(), false)
		require.NoError(t, err)
		return all
	}
	address := d.url + "/approvals/waiver"
	assert.Equal(t, http.StatusNotFound, postOnce(t, address, form).StatusCode, "not signed in")
	assert.Equal(t, http.StatusForbidden, postOnce(t, address, form, append(ann, "Sec-Fetch-Site", "cross-site")...).StatusCode)
	got := postOnce(t, address, form, ann...)
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	require.NotNil(t, shown.Waiver.Effect)
	assert.Equal(t, []int{1, 1, 1}, []int{len(shown.Waiver.Effect.Covered), shown.Waiver.Effect.Answers, shown.Waiver.Effect.Rejected})
	form.Set("make", "yes")
	for field, value := range map[string]string{"days": "366", "arg.to": "Dan", "reason": "\u202e"} {
		wrong := maps.Clone(form)
		wrong.Set(field, value)
		assert.Equal(t, http.StatusUnprocessableEntity, postOnce(t, address, wrong, ann...).StatusCode, field)
	}
	assert.Empty(t, waivers())
	postOnce(t, address, form, ann...)
	assert.Contains(t, shown.Message, "is in force until")
	require.NotNil(t, shown.Question)
	require.Len(t, waivers(), 1)
	assert.Equal(t, "ann", waivers()[0].By)
	d.undecided(t, 0)

	for name, q := range map[string]agent.Question{"approvers": {Approvers: []string{"ann"}}, "quorum": {Quorum: 2}} {
		d = park(t, scenario{question: q, options: o})
		form.Set("run", string(d.notice.Run.ID))
		form.Set("wait", d.card(0))
		do(t, http.MethodGet, d.waitAddress(d.card(0)), "", ann...)
		assert.Nil(t, shown.Waiver, name)
		assert.Equal(t, http.StatusUnprocessableEntity, postOnce(t, d.url+"/approvals/waiver", form, ann...).StatusCode, name)
		assert.Empty(t, waivers(), name)
	}
}
