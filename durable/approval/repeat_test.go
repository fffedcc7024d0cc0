package approval_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// The same answer again, while the run waits and after it has gone on, is refused as used, and says whose answer counted.
func TestTheSameAnswerAgain(t *testing.T) {
	d := park(t, asking{question: soon, calls: []agent.ToolCall{call("c1", carol), call("c2", carol)}})
	post := func() answer { return postJSON(t, d.link(0), `{"verdict":"approve","by":"ann","wait":%q}`, d.card(0)) }
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

// A card of one call does not decide another, and a question that is not on the card decides nothing.
func TestAnAnswerToAnotherCard(t *testing.T) {
	d := park(t, asking{question: soon, calls: []agent.ToolCall{call("c1", carol), call("c2", carol)}})
	assert.NotEqual(t, d.card(0), d.card(1), "equal calls are two questions")
	assert.Equal(t, http.StatusConflict, postJSON(t, d.link(0), `{"verdict":"approve","wait":%q}`, d.card(1)).StatusCode)
	assert.Equal(t, http.StatusConflict, postJSON(t, d.link(0), `{"verdict":"approve","wait":%q,"questions":["x"]}`, d.card(0)).StatusCode)
	d.undecided(t, 0)
	d.undecided(t, 1)
	id := d.notice.Calls[0].Questions[0].ID()
	assert.Equal(t, http.StatusOK, postJSON(t, d.link(0), `{"verdict":"approve","wait":%q,"questions":[%q]}`, d.card(0), id).StatusCode)
}
