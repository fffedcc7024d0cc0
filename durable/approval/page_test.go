package approval_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// The page as a program reads it.
func TestTheQuestionAsJSON(t *testing.T) {
	d := park(t, scenario{
		question: soon, calls: []agent.ToolCall{call("c1", `{"to":"Carol","amount":1000.0}`), call("c2", ``)},
		rewrite: map[string]string{`{"to":"Carol","amount":1000.0}`: carol},
	})
	got := do(t, http.MethodGet, d.link(0), "", "Accept", "application/json")
	require.Equal(t, http.StatusOK, got.StatusCode)
	assert.Equal(t, "application/json", got.Header.Get("Content-Type"))
	var told map[string]map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.body), &told))
	q := told["question"]
	for _, name := range []string{"asked", "deadline"} {
		assert.NotEmpty(t, q[name])
		delete(q, name)
	}
	assert.Equal(t, map[string]any{
		"run": string(d.notice.Run.ID), "agent": "clerk", "kind": "approval", "call": "c1", "needs": "it needs a person", "preview": `{"to":"Carol","amount":250}`,
		"diff": "  {\n    \"to\": \"Carol\",\n-   \"amount\": 1000.0\n+   \"amount\": 250\n  }\n",
		"tool": "pay", "wait": d.card(0),
		"questions":  []any{map[string]any{"id": d.notice.Calls[0].Questions[0].ID(), "asked_by": "guard", "reason": "it is more than 100"}},
		"on_timeout": "reject_and_continue", "state": "open",
		"original":  map[string]any{"to": "Carol", "amount": 1000.0},
		"arguments": map[string]any{"to": "Carol", "amount": 250.0},
		"others": []any{map[string]any{
			"wait": d.card(1), "kind": "approval", "tool": "pay", "reason": "it is more than 100", "arguments": map[string]any{},
		}},
	}, q)
	assert.Contains(t, got.body, `"amount": 1000.0`, "numbers are as the model wrote them")
	got = do(t, http.MethodGet, d.url+"/approvals/x", "", "Accept", "application/json")
	assert.Equal(t, http.StatusNotFound, got.StatusCode)
	assert.True(t, json.Valid([]byte(got.body)), got.body)
	for name, value := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
	} {
		assert.Equal(t, value, got.Header.Get(name))
	}
	assert.Contains(t, got.Header.Get("Content-Security-Policy"), "default-src 'none'")
}

// What cannot be seen is not approved: letters that show nothing, or turn others around, are shown as escapes, and the run gets
// them as they were.
func TestLettersThatCannotBeSeen(t *testing.T) {
	hidden := "rm\u00a0-rf \u202e/\u2066 a\u200bb\u00ad \U000e0041\ufe0f\u3164\u2800\u2028\u007f\U000f0000 é 漢 😀"
	arguments := `{"to":"` + hidden + `"}`
	d := park(t, scenario{question: agent.Question{Reason: hidden}, calls: []agent.ToolCall{call("c1", arguments)}})
	got := see(t, d.link(0))
	want := `rm\u00a0-rf \u202e/\u2066 a\u200bb\u00ad \udb40\udc41\ufe0f\u3164\u2800\u2028\u007f\udb80\udc00 é 漢 😀`
	require.Equal(t, http.StatusOK, got.StatusCode)
	shown := approval.Arguments(arguments).Text()
	assert.Contains(t, shown, want)
	for _, r := range "\u00a0\u202e\u2066\u200b\u00ad\U000e0041\ufe0f\u3164\u2800\u2028\u007f\U000f0000" {
		assert.NotContains(t, shown, string(r))
	}
	got = postOnce(t, d.link(0), d.form(0, "approve", "arguments", "{\r\n  \"to\": \""+want+"\"\r\n}"))
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	d.goOn(t)
	assert.Equal(t, []string{arguments}, d.ran)
}

// Arguments that are no JSON are shown as they are, and a text that would explode when
// it is laid out is not laid out.
func TestArgumentsOfAllKinds(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`
	many := `{"a":[` + strings.TrimSuffix(strings.Repeat(deep+",", 100), ",") + `]}`
	long := `{"a":"` + strings.Repeat("x", 300_000) + `"}`
	for name, arguments := range map[string]string{"deep": many, "long": long} {
		d := park(t, scenario{question: soon, calls: []agent.ToolCall{call("c1", arguments)}})
		assert.Less(t, len(approval.Arguments(arguments).Text()), 30*len(arguments), name)
		got := postOnce(t, d.link(0), d.form(0, "approve", "arguments", arguments))
		require.Equal(t, http.StatusOK, got.StatusCode, "%s: what is shown can be sent back", name)
		d.goOn(t)
		require.Len(t, d.ran, 1)
		assert.Equal(t, arguments, d.ran[0], name)
	}
}

func TestLinks(t *testing.T) {
	for base, want := range map[approval.Links]string{
		"https://desk.example.com":     "https://desk.example.com/approvals/a-b_c",
		"https://desk.example.com/x//": "https://desk.example.com/x/approvals/a-b_c",
		"":                             "/approvals/a-b_c",
	} {
		assert.Equal(t, want, base.To("a-b_c"))
	}
	assert.Equal(t, "/approvals/a%2F..%3F", approval.Links("").To("a/..?"))
}

// A call that may have happened is repeated as it was, or not at all, and the page says so.
func TestThePageOfACallInDoubt(t *testing.T) {
	d := park(t, scenario{question: agent.Question{Reason: "it pays"}})
	require.Equal(t, http.StatusOK, postOnce(t, d.link(0), d.form(0, "approve")).StatusCode)
	ctx, cancel := context.WithCancelCause(t.Context())
	d.during = func() { cancel(agent.ErrSuspended) } // the process goes away while the tool runs
	s, err := d.keeper.Resume(ctx, d.agent, d.notice.Run.ID, durable.TakeFree).Get()
	require.NoError(t, err)
	require.True(t, s.Parked())
	d.during = nil
	require.True(t, d.goOn(t).Waiting(), "the approval was used up")

	got := see(t, d.link(0))
	for _, want := range []string{`"kind": "doubt"`, "its outcome is unknown"} {
		assert.Contains(t, got.body, want)
	}
	assert.NotContains(t, got.body, "it pays", "that was answered before the call began")
	assert.Contains(t, do(t, http.MethodGet, d.link(0), "", "Accept", "application/json").body, `"begun": true`)
	refused := postJSON(t, d.link(0), `{"verdict":"approve",%s,"arguments":{"to":"Dan"}}`, d.seen(0))
	assert.Equal(t, http.StatusUnprocessableEntity, refused.StatusCode)
	d.undecided(t, 0)

	require.Equal(t, http.StatusOK, postOnce(t, d.link(0), d.form(0, "reject_and_continue")).StatusCode)
	s = d.goOn(t)
	assert.Equal(t, agent.StatusDone, s.Status())
	assert.Equal(t, []string{carol}, d.ran)
	for _, step := range s.RunSteps() {
		assert.Equal(t, agent.ToolUnknown, step.Result(0).Status)
		break
	}
}
