package approval_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// The inbox lists what waits, for a person who is signed in, and a wait shows what would run and what was decided before.
func TestTheInbox(t *testing.T) {
	c := newCrew(t, map[string][]string{"ann": nil})
	d := park(t, asking{
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
	assert.Equal(t, "c1", list.Waits[0]["wait"])
	assert.Equal(t, "clerk", list.Waits[0]["agent"])
	assert.Equal(t, "reject_and_continue", list.Waits[0]["on_timeout"])
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
	assert.Equal(t, http.StatusUnauthorized, see(t, d.waitAddress("c1")).StatusCode)

	require.Equal(t, http.StatusOK, postOnce(t, d.link(1), d.form(1, "reject_and_continue", "by", "dan", "reason", "no")).StatusCode)
	page := do(t, http.MethodGet, d.waitAddress("c1"), "", "Authorization", "Bearer "+c.tokens["ann"]).body
	for _, want := range []string{
		"<del>-   &#34;amount&#34;: 1000</del>", "<ins>+   &#34;amount&#34;: 250</ins>", "Former decisions about like calls", "dan", "ann",
	} {
		assert.Contains(t, page, want)
	}
	assert.NotContains(t, see(t, d.link(0)).body, "Former decisions", "a link does not show what others decided elsewhere")
	got = postOnce(t, d.waitAddress("c1"), d.form(0, "approve", "by", ""), "Authorization", "Bearer "+c.tokens["ann"])
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	assert.Contains(t, got.body, "verified")
	got = do(t, http.MethodGet, d.url+"/approvals/", "", c.bearer("ann")...)
	require.NoError(t, json.Unmarshal([]byte(got.body), &list))
	assert.Empty(t, list.Waits)
}

func TestDiff(t *testing.T) {
	assert.Empty(t, approval.Diff(`{"a":1}`, `{ "a": 1 }`))
	assert.Equal(t, "  {\n-   \"a\": 1,\n+   \"a\": 2,\n    \"b\": 2,\n-   \"c\": 3\n+   \"d\": 3\n  }\n", approval.Diff(`{"a":1,"b":2,"c":3}`, `{"a":2,"b":2,"d":3}`))
	assert.Equal(t, "- {}\n+ {\n+   \"a\": \"\\u202e\"\n+ }\n", approval.Diff("", "{\"a\":\"\u202e\"}"))
}
