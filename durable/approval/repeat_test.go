package approval_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// AP-31: the same answer again, while the run waits and after it has gone on, is refused as used, and says whose answer counted.
func TestTheSameAnswerAgain(t *testing.T) {
	d := park(t, scenario{question: soon, calls: []agent.ToolCall{call("c1", carol), call("c2", carol)}})
	post := func() answer { return postJSON(t, d.link(0), `{"verdict":"approve","by":"ann",%s}`, d.seen(0)) }
	require.Equal(t, http.StatusOK, post().StatusCode)
	var told struct {
		Question *struct {
			Decided struct{ By string }
		}
		Answers []struct{ By, Verdict string }
	}
	got := post()
	assert.Equal(t, http.StatusConflict, got.StatusCode)
	require.NoError(t, json.Unmarshal([]byte(got.body), &told))
	require.NotNil(t, told.Question)
	assert.Equal(t, "ann", told.Question.Decided.By)
	d.undecided(t, 1)

	require.Equal(t, http.StatusOK, postOnce(t, d.link(1), d.form(1, "approve")).StatusCode)
	require.Equal(t, agent.StatusDone, d.goOn(t).Status())
	got = post()
	assert.Equal(t, http.StatusConflict, got.StatusCode)
	told.Question = nil
	require.NoError(t, json.Unmarshal([]byte(got.body), &told))
	require.Len(t, told.Answers, 1)
	assert.Equal(t, []string{"ann", "approve"}, []string{told.Answers[0].By, told.Answers[0].Verdict})
	assert.Len(t, d.ran, 2)
}

// LH-66: a card of one call does not decide another, and a question that is not on the card decides nothing.
func TestAnAnswerToAnotherCard(t *testing.T) {
	d := park(t, scenario{question: soon, calls: []agent.ToolCall{call("c1", carol), call("c2", carol)}})
	assert.NotEqual(t, d.card(0), d.card(1), "equal calls are two questions")
	assert.Equal(t, http.StatusConflict, postJSON(t, d.link(0), `{"verdict":"approve",%s}`, d.seen(1)).StatusCode)
	assert.Equal(t, http.StatusConflict, postJSON(t, d.link(0), `{"verdict":"approve","wait":%q,"questions":["x"]}`, d.card(0)).StatusCode)
	d.undecided(t, 0)
	d.undecided(t, 1)
	id := d.notice.Calls[0].Questions[0].ID()
	assert.Equal(t, http.StatusOK, postJSON(t, d.link(0), `{"verdict":"approve","wait":%q,"questions":[%q]}`, d.card(0), id).StatusCode)
}

// The page of a gate names its question, too. People can only reject it, once.
func TestAPersonRejectsAGate(t *testing.T) {
	c := newCrew(t, map[string][]string{"ann": nil})
	d := park(t, scenario{question: agent.Question{Kind: agent.QuestionGate, Reason: "not yet", Gate: &agent.Gate{Kind: "file"}}, options: approval.Options{People: c.people}})
	waits, err := d.store.OpenWaits(t.Context(), durable.WaitFilter{})
	require.NoError(t, err)
	require.Len(t, waits, 1)
	w := waits[0]
	i, err := durable.InterventionOf(w)
	require.NoError(t, err)
	at := d.url + "/approvals/wait?" + url.Values{"run": {string(w.Run)}, "wait": {w.ID}}.Encode()
	ann := []string{"Authorization", "Bearer " + c.tokens["ann"]}
	id := i.Questions[0].ID()
	assert.Contains(t, do(t, http.MethodGet, at, "", ann...).body, `"id": "`+id+`"`)
	form := url.Values{"verdict": {"approve"}, "wait": {w.ID}, "question": {id}}
	assert.Equal(t, http.StatusForbidden, postOnce(t, at, form, ann...).StatusCode)
	form.Set("verdict", "reject_and_continue")
	form.Set("question", "other")
	assert.Equal(t, http.StatusConflict, postOnce(t, at, form, ann...).StatusCode)
	form.Set("question", id)
	assert.Equal(t, http.StatusOK, postOnce(t, at, form, ann...).StatusCode)
	assert.Equal(t, http.StatusConflict, postOnce(t, at, form, ann...).StatusCode)
}
