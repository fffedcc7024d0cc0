package approval_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// What each verdict does to the run, from the page and as JSON.
func TestVerdicts(t *testing.T) {
	for name, tc := range map[string]struct {
		form   []string // what the page posts
		json   string   // or what a program does
		status agent.Status
		ran    []string
		told   string // what the model was told
	}{
		"approve": {form: []string{"approve"}, status: agent.StatusDone, ran: []string{carol}, told: "paid"},
		"with the arguments that the page brings along": {
			form:   []string{"approve", "arguments", "{\r\n  \"to\": \"Carol\",\r\n  \"amount\": 250\r\n}"},
			status: agent.StatusDone, ran: []string{carol}, told: "paid",
		},
		"edit": {
			form:   []string{"edit", "arguments", "{\r\n \"to\": \"Carol\", \"amount\": 99.50}"},
			status: agent.StatusDone, ran: []string{`{"to":"Carol","amount":99.50}`}, told: "paid",
		},
		"an edit that changes nothing": {
			form: []string{"edit", "arguments", `{"to":"Carol", "amount":250}`}, status: agent.StatusDone, ran: []string{carol}, told: "paid",
		},
		"reject and go on": {
			form:   []string{"reject_and_continue", "reason", "too much\r\nfor her"},
			status: agent.StatusDone, told: "tool \"pay\": rejected by ann: too much\nfor her",
		},
		"reject": {form: []string{"reject", "reason", "fraud"}, status: agent.StatusInterrupted, told: `tool "pay": rejected by ann: fraud`},
		"JSON approve": {
			json: `{"verdict":"approve","by":"ann",%s}`, status: agent.StatusDone, ran: []string{carol}, told: "paid",
		},
		"JSON edit": {
			json:   `{"verdict":"approve","arguments":{"to": "Carol", "amount": 1e2},%s}`,
			status: agent.StatusDone, ran: []string{`{"to":"Carol","amount":1e2}`}, told: "paid",
		},
		"JSON reject": {
			json:   `{"verdict":"reject","by":"ann","reason":"fraud",%s}`,
			status: agent.StatusInterrupted, told: `tool "pay": rejected by ann: fraud`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := park(t, scenario{question: soon})
			var got answer
			if tc.json != "" {
				got = postJSON(t, d.link(0), tc.json, d.seen(0))
			} else {
				got = postOnce(t, d.link(0), d.form(0, tc.form[0], tc.form[1:]...))
			}
			require.Equal(t, http.StatusOK, got.StatusCode, got.body)
			assert.Contains(t, got.body, "Decided")
			assert.Equal(t, []agent.RunID{d.notice.Run.ID}, d.decided)
			s := d.goOn(t)
			assert.Equal(t, tc.status, s.Status())
			assert.Equal(t, tc.ran, d.ran)
			assert.Equal(t, tc.told, firstResult(s), "without the note about changed arguments")
		})
	}
}

// firstResult returns what the model was told of the first call.
func firstResult(s agent.State) string {
	for _, step := range s.RunSteps() {
		for _, r := range step.Results() {
			return agent.ToolAnswer(&r).ToolText()
		}
	}
	return ""
}

// AP-37: reading never decides, for any reader.
func TestLookingDecidesNothing(t *testing.T) {
	d := park(t, scenario{question: soon})
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for _, query := range []string{"", "?verdict=approve&wait=" + d.card(0), "?action=approve"} {
			got := do(t, method, d.link(0)+query, "", "Purpose", "prefetch", "Sec-Purpose", "prefetch")
			assert.Equal(t, http.StatusOK, got.StatusCode)
			assert.Equal(t, method == http.MethodHead, got.body == "")
			got = do(t, method, d.link(0)+query, d.form(0, "approve").Encode(), "Content-Type", "application/x-www-form-urlencoded")
			assert.Equal(t, http.StatusOK, got.StatusCode)
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "APPROVE"} {
		got := do(t, method, d.link(0), d.form(0, "approve").Encode(), "Content-Type", "application/x-www-form-urlencoded")
		assert.Equal(t, http.StatusMethodNotAllowed, got.StatusCode, method)
		assert.Equal(t, "GET, HEAD, POST", got.Header.Get("Allow"))
	}
	got := do(t, http.MethodPost, d.link(0)+"?verdict=approve&wait="+d.card(0), "", "Content-Type", "application/x-www-form-urlencoded")
	assert.Equal(t, http.StatusBadRequest, got.StatusCode, "what stands in the address is no decision")
	d.undecided(t, 0)
	assert.Empty(t, d.decided)
}

// What is not a decision decides nothing, and says why.
func TestWhatIsNoDecision(t *testing.T) {
	d := park(t, scenario{question: soon})
	seen := d.seen(0)
	form := func(verdict string, more ...string) string { return d.form(0, verdict, more...).Encode() }
	const formType, jsonType = "application/x-www-form-urlencoded", "application/json"
	for name, tc := range map[string]struct {
		media, body string
		want        int
	}{
		"no type":               {"", form("approve"), http.StatusUnsupportedMediaType},
		"text":                  {"text/plain", form("approve"), http.StatusUnsupportedMediaType},
		"multipart":             {"multipart/form-data; boundary=x", "--x--", http.StatusUnsupportedMediaType},
		"a broken type":         {jsonType + "; charset", `{}`, http.StatusUnsupportedMediaType},
		"another charset":       {formType + "; charset=utf-16", form("approve"), http.StatusUnsupportedMediaType},
		"empty form":            {formType, "", http.StatusBadRequest},
		"broken form":           {formType, form("approve") + "&a=%zz", http.StatusBadRequest},
		"semicolons":            {formType, form("approve") + ";x=y", http.StatusBadRequest},
		"no wait":               {formType, "verdict=approve", http.StatusBadRequest},
		"twice":                 {formType, form("reject") + "&verdict=approve", http.StatusBadRequest},
		"unknown field":         {formType, form("approve", "action", "x"), http.StatusBadRequest},
		"another wait":          {formType, form("approve", "wait", strings.Repeat("0", 64)), http.StatusConflict},
		"no verdict":            {formType, form(""), http.StatusUnprocessableEntity},
		"park":                  {formType, form("park"), http.StatusUnprocessableEntity},
		"a verdict in capitals": {formType, form("Approve"), http.StatusUnprocessableEntity},
		"approve, though edited": {
			formType, form("approve", "arguments", `{"to":"Carol","amount":1}`), http.StatusUnprocessableEntity,
		},
		"edited to no JSON":      {formType, form("edit", "arguments", `{"to":`), http.StatusUnprocessableEntity},
		"edited to a list":       {formType, form("edit", "arguments", `[1]`), http.StatusUnprocessableEntity},
		"edited to nothing":      {formType, form("edit", "arguments", ``), http.StatusUnprocessableEntity},
		"edited, a name twice":   {formType, form("edit", "arguments", `{"to":"a","to":"b"}`), http.StatusUnprocessableEntity},
		"edited, two cases":      {formType, form("edit", "arguments", `{"to":"a","To":"b"}`), http.StatusUnprocessableEntity},
		"edit without arguments": {formType, form("edit"), http.StatusUnprocessableEntity},
		"a name that is a line":  {formType, form("approve", "by", "ann\nroot"), http.StatusUnprocessableEntity},
		"a long name":            {formType, form("approve", "by", strings.Repeat("x", 201)), http.StatusUnprocessableEntity},
		"a name backwards":       {formType, form("approve", "by", "\u202enna"), http.StatusUnprocessableEntity},
		"text only models read":  {formType, form("reject_and_continue", "reason", "no\U000e0041"), http.StatusUnprocessableEntity},
		"a broken name":          {formType, form("approve", "by", "\xff"), http.StatusUnprocessableEntity},
		"a long reason":          {formType, form("reject", "reason", strings.Repeat("x", 9000)), http.StatusUnprocessableEntity},
		"a reason that beeps":    {formType, form("reject", "reason", "\a"), http.StatusUnprocessableEntity},
		"empty JSON":             {jsonType, ``, http.StatusBadRequest},
		"JSON that is no object": {jsonType, `"approve"`, http.StatusBadRequest},
		"JSON, unknown member":   {jsonType, `{"verdict":"approve",` + seen + `,"force":true}`, http.StatusBadRequest},
		"JSON, other case":       {jsonType, `{"Verdict":"approve",` + seen + `}`, http.StatusBadRequest},
		"JSON, twice":            {jsonType, `{"verdict":"reject","verdict":"approve",` + seen + `}`, http.StatusBadRequest},
		"JSON and more":          {jsonType, `{"verdict":"approve",` + seen + `}{}`, http.StatusBadRequest},
		"JSON, no wait":          {jsonType, `{"verdict":"approve"}`, http.StatusBadRequest},
		"JSON, another wait":     {jsonType, `{"verdict":"approve","wait":"0"}`, http.StatusConflict},
		"JSON, no questions":     {jsonType, `{"verdict":"approve","wait":"` + d.card(0) + `"}`, http.StatusBadRequest},
		"JSON, none of them":     {jsonType, `{"verdict":"approve","wait":"` + d.card(0) + `","questions":[]}`, http.StatusBadRequest},
		"form, no questions":     {formType, "verdict=approve&wait=" + d.card(0), http.StatusBadRequest},
		"JSON, the page's word":  {jsonType, `{"verdict":"edit",` + seen + `}`, http.StatusUnprocessableEntity},
		"JSON, a list":           {jsonType, `{"verdict":"approve","arguments":[],` + seen + `}`, http.StatusUnprocessableEntity},
		"JSON, arguments of a no": {
			jsonType, `{"verdict":"reject","arguments":{},` + seen + `}`, http.StatusUnprocessableEntity,
		},
		"JSON, null": {jsonType, `{"verdict":"approve","arguments":null,` + seen + `}`, http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			got := do(t, http.MethodPost, d.link(0), tc.body, "Content-Type", tc.media)
			assert.Equal(t, tc.want, got.StatusCode, got.body)
		})
	}
	got := do(t, http.MethodPost, d.link(0), form("approve"), "Content-Type", formType, "Content-Encoding", "gzip")
	assert.Equal(t, http.StatusUnsupportedMediaType, got.StatusCode)
	d.undecided(t, 0)
	assert.Empty(t, d.decided)

	got = postOnce(t, d.link(0), d.form(0, "approve", "arguments", `{"to":"Carol","amount":7}`, "reason", "<b>because"))
	assert.Contains(t, got.body, "You changed the arguments")
}

// AP-31: a link decides once. Who comes second hears what was decided, and when the run
// has gone on there is nothing to hear.
func TestALinkDecidesOnce(t *testing.T) {
	d := park(t, scenario{question: soon, calls: []agent.ToolCall{call("c1", carol), call("c2", `{}`)}})
	require.Equal(t, http.StatusOK, postOnce(t, d.link(0), d.form(0, "reject_and_continue", "reason", "not her")).StatusCode)
	for range 2 {
		got := postOnce(t, d.link(0), d.form(0, "approve", "by", "eve"))
		assert.Equal(t, http.StatusConflict, got.StatusCode)
		for _, want := range []string{"Already decided", "reject_and_continue", "ann", "not her"} {
			assert.Contains(t, got.body, want)
		}
	}
	got := postJSON(t, d.link(0), `{"verdict":"approve","by":"eve",%s}`, d.seen(0))
	assert.Equal(t, http.StatusConflict, got.StatusCode)
	var told struct {
		Question struct {
			State   string
			Decided struct{ Verdict, By, Reason string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.body), &told))
	assert.Equal(t, "decided", told.Question.State)
	assert.Equal(t, []string{"reject_and_continue", "ann", "not her"},
		[]string{told.Question.Decided.Verdict, told.Question.Decided.By, told.Question.Decided.Reason})
	got = see(t, d.link(0))
	assert.Equal(t, http.StatusOK, got.StatusCode)
	assert.Contains(t, see(t, d.link(1)).body, `"verdict": "reject_and_continue"`, "the page of the other call says it")

	require.Equal(t, http.StatusOK, postOnce(t, d.link(1), d.form(1, "approve")).StatusCode)
	require.Equal(t, agent.StatusDone, d.goOn(t).Status())
	assert.Equal(t, []string{"{}"}, d.ran)
	for i := range 2 {
		for _, got := range []answer{
			see(t, d.link(i)), postOnce(t, d.link(i), d.form(i, "approve")), do(t, http.MethodGet, d.link(i), "", "Accept", "application/json"),
			postJSON(t, d.link(i), `{"verdict":"approve",%s}`, d.seen(i)),
		} {
			assert.Equal(t, http.StatusConflict, got.StatusCode, "a used link of a run that went on")
			assert.Contains(t, got.body, "the run has gone on or ended")
		}
	}
	require.NoError(t, d.store.Delete(t.Context(), d.notice.Run.ID))
	assert.Equal(t, http.StatusNotFound, see(t, d.link(0)).StatusCode)
}

// Of many who decide at once exactly one does, and all others hear what it was.
func TestARace(t *testing.T) {
	d := park(t, scenario{question: soon})
	const people = 16
	got := make([]answer, people)
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range people {
		all.Go(func() {
			verdict := []string{"approve", "reject_and_continue"}[i%2]
			<-start
			got[i] = postOnce(t, d.link(0), d.form(0, verdict, "by", "number "+string(rune('A'+i))))
		})
	}
	close(start)
	all.Wait()
	won := -1
	for i := range got {
		if got[i].StatusCode == http.StatusOK {
			assert.Equal(t, -1, won, "two have won")
			won = i
			continue
		}
		assert.Equal(t, http.StatusConflict, got[i].StatusCode, got[i].body)
	}
	require.GreaterOrEqual(t, won, 0, "one answer must win")
	for i := range got {
		assert.Contains(t, got[i].body, "number "+string(rune('A'+won)))
	}
	assert.Len(t, d.decided, 1)
	assert.Equal(t, agent.StatusDone, d.goOn(t).Status())
	assert.Len(t, d.ran, (won+1)%2)
}

// AP-30: a token that nothing is asked under is answered in one way, whatever the cause.
func TestNothingToDecide(t *testing.T) {
	d := park(t, scenario{question: soon})
	over := park(t, scenario{question: soon})
	require.Equal(t, http.StatusOK, postOnce(t, over.link(0), over.form(0, "approve")).StatusCode)
	over.goOn(t)
	require.NoError(t, over.store.Delete(t.Context(), over.notice.Run.ID))
	token := d.notice.Calls[0].Token
	near := "A" + token[1:]
	if near == token {
		near = "B" + token[1:]
	}
	var first answer
	for name, link := range map[string]string{
		"unknown": d.url + "/approvals/" + strings.Repeat("x", 43), "near": d.url + "/approvals/" + near, "short": d.url + "/approvals/" + token[:42],
		"long": d.url + "/approvals/" + token + "A", "empty": d.url + "/approvals/", "below": d.url + "/approvals/" + token + "/x",
		"slash": d.url + "/approvals/" + token + "/", "above": d.url + "/approvals", "elsewhere": d.url + "/", "huge": d.url + "/approvals/" + strings.Repeat("y", 8000),
		"the card": d.url + "/approvals/" + d.card(0), "dots": d.url + "/approvals/../approvals/x", "NUL": d.url + "/approvals/%00",
		"twice": d.url + "//approvals/" + token, "deleted": over.link(0),
	} {
		got := see(t, link)
		if first.Response == nil {
			first = got
		}
		assert.Equal(t, http.StatusNotFound, got.StatusCode, name)
		assert.Equal(t, first.body, got.body, name)
		got.Header.Del("Date")
		first.Header.Del("Date")
		assert.Equal(t, first.Header, got.Header, name)
		got = postOnce(t, link, d.form(0, "approve"))
		assert.Equal(t, http.StatusNotFound, got.StatusCode, name)
		assert.Equal(t, first.body, got.body, name)
	}
	d.undecided(t, 0)
}

// When the time is over nothing can be decided any more.
func TestTooLate(t *testing.T) {
	d := park(t, scenario{question: agent.Question{Within: time.Nanosecond, OnTimeout: agent.RejectAndContinue}})
	for _, got := range []answer{
		see(t, d.link(0)), postOnce(t, d.link(0), d.form(0, "approve")), postJSON(t, d.link(0), `{"verdict":"approve",%s}`, d.seen(0)),
	} {
		assert.Equal(t, http.StatusConflict, got.StatusCode)
		assert.Contains(t, got.body, "deadline has passed")
		assert.Contains(t, got.body, "reject and continue without the call")
		assert.NotContains(t, got.body, `"state": "open"`)
	}
	d.undecided(t, 0)
	assert.Equal(t, agent.StatusDone, d.goOn(t).Status())
	assert.Empty(t, d.ran)
}

// A page that was opened before the question became another one decides nothing, though
// its link be alive.
func TestTheQuestionChanged(t *testing.T) {
	d := park(t, scenario{question: soon})
	shown, run := d.card(0), d.notice.Run.ID
	lease, err := d.store.Acquire(t.Context(), run, "other", time.Minute, durable.TakeFree)
	require.NoError(t, err)
	changed := d.notice.Calls[0].Intervention
	changed.Call.Arguments = `{"to":"Mallory","amount":250}`
	changed.Round++
	changed = changed.WithID(run, 0)
	data, err := json.Marshal(changed)
	require.NoError(t, err)
	ask := func(id string) {
		require.NoError(t, d.store.Commit(t.Context(), lease, durable.Commit{Update: durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{{
			ID: id, Kind: durable.WaitApproval, Subject: "c1", Tool: "pay", Asked: time.Now(), Data: data, TokenHash: durable.TokenHash(d.notice.Calls[0].Token),
		}}}}))
	}
	ask(changed.ID)
	got := postOnce(t, d.link(0), d.form(0, "approve", "wait", shown))
	assert.Equal(t, http.StatusConflict, got.StatusCode)
	assert.Contains(t, got.body, "read what is asked now")
	assert.Contains(t, got.body, "Mallory")
	d.undecided(t, 0)

	ask(shown) // what the store says is asked is not what people would be shown
	for _, got := range []answer{see(t, d.link(0)), postOnce(t, d.link(0), d.form(0, "approve", "wait", shown))} {
		assert.Equal(t, http.StatusServiceUnavailable, got.StatusCode)
		assert.NotContains(t, got.body, "Mallory")
	}
	d.undecided(t, 0)
}

// A link is good for as long as its question is asked, also when others were answered.
func TestALinkStaysGood(t *testing.T) {
	d := park(t, scenario{question: soon, calls: []agent.ToolCall{call("c1", carol), call("c2", `{}`)}})
	require.Equal(t, http.StatusOK, postOnce(t, d.link(0), d.form(0, "approve")).StatusCode)
	require.True(t, d.goOn(t).Waiting(), "one waits still")
	require.Equal(t, http.StatusOK, postOnce(t, d.link(1), d.form(1, "approve")).StatusCode)
	assert.Equal(t, agent.StatusDone, d.goOn(t).Status())
	assert.Equal(t, []string{carol, "{}"}, d.ran)
}

// When the run has been ended or is to be cancelled, there is nothing left to decide.
func TestWithdrawn(t *testing.T) {
	d := park(t, scenario{question: soon, calls: []agent.ToolCall{call("c1", carol), call("c2", `{}`)}})
	require.Equal(t, http.StatusOK, postOnce(t, d.link(0), d.form(0, "reject")).StatusCode)
	assert.Equal(t, http.StatusConflict, see(t, d.link(1)).StatusCode)
	assert.Equal(t, http.StatusConflict, postOnce(t, d.link(1), d.form(1, "approve")).StatusCode)
	assert.Equal(t, http.StatusOK, see(t, d.link(0)).StatusCode, "what was said is shown")
	d.undecided(t, 1)
	assert.Equal(t, agent.StatusInterrupted, d.goOn(t).Status())
	assert.Empty(t, d.ran)

	d = park(t, scenario{question: soon})
	require.NoError(t, d.store.Signal(t.Context(), d.notice.Run.ID, durable.Signal{Kind: durable.SignalCancel, Text: "no longer wanted"}))
	assert.Equal(t, http.StatusConflict, postOnce(t, d.link(0), d.form(0, "approve")).StatusCode)
	d.undecided(t, 0)
}
