package approval_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// The page has all that an approver needs in order to decide.
func TestThePage(t *testing.T) {
	d := park(t, scenario{
		question: soon, calls: []agent.ToolCall{call("c1", `{"to":"Carol","amount":1000}`), call("c2", `{"to":"Dan"}`)},
		rewrite: map[string]string{`{"to":"Carol","amount":1000}`: carol},
	})
	got := see(t, d.link(0))
	require.Equal(t, http.StatusOK, got.StatusCode)
	assert.Equal(t, "text/html; charset=utf-8", got.Header.Get("Content-Type"))
	for _, want := range []string{
		"May “pay” run?", "guard", "it is more than 100", "clerk", string(d.notice.Run.ID), "59 min left", "reject and continue without the call",
		"&#34;amount&#34;: 1000", "&#34;amount&#34;: 250", `<span class="mark">changed</span>`, "What else this step waits for", "&#34;to&#34;: &#34;Dan&#34;",
		`<input type="hidden" name="wait" value="` + d.card(0) + `">`,
		`name="verdict" value="approve"`, `value="edit"`, `value="reject"`, `value="reject_and_continue"`, `name="by"`, `name="reason"`,
	} {
		assert.Contains(t, got.body, want)
	}
	assert.NotContains(t, got.body, d.notice.Calls[0].Token, "the address is enough")
	assert.NotContains(t, got.body, d.notice.Calls[1].Token, "a link decides about its own call alone")
	first := regexp.MustCompile(`<button[^>]*>`).FindString(got.body)
	assert.Equal(t, "<button disabled hidden>", first, "the Enter key in a text field presses the first button")
	assert.NotContains(t, see(t, d.link(1)).body, `class="mark"`)
}

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
	got = do(t, http.MethodGet, d.link(0), "", "Accept", "text/html,application/xhtml+xml,application/json;q=0.9")
	assert.Contains(t, got.Header.Get("Content-Type"), "text/html")
}

// Every answer keeps itself to itself, and lets the page have its own style only.
func TestGuards(t *testing.T) {
	d := park(t, scenario{question: soon})
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(see(t, d.link(0)).body)
	require.Len(t, style, 2)
	sum := sha256.Sum256([]byte(style[1]))
	for name, got := range map[string]answer{
		"shown": see(t, d.link(0)), "nothing": see(t, d.url+"/approvals/x"), "JSON": do(t, http.MethodGet, d.link(0), "", "Accept", "application/json"),
		"refused": postOnce(t, d.link(0), nil), "from elsewhere": postOnce(t, d.link(0), nil, "Sec-Fetch-Site", "cross-site"),
		"method": do(t, http.MethodPut, d.link(0), ""), "decided": postOnce(t, d.link(0), d.form(0, "approve")),
	} {
		h := got.Header
		assert.Equal(t, "no-store", h.Get("Cache-Control"), name)
		assert.Equal(t, "no-referrer", h.Get("Referrer-Policy"), name)
		assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), name)
		assert.Equal(t, "DENY", h.Get("X-Frame-Options"), name)
		policy := h.Get("Content-Security-Policy")
		for _, want := range []string{
			"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'",
			"'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
		} {
			assert.Contains(t, policy, want, name)
		}
		assert.NotContains(t, policy, "unsafe", name)
		assert.Empty(t, h.Values("Set-Cookie"), name)
		assert.Empty(t, h.Get("Access-Control-Allow-Origin"), name)
	}
}

// Whatever an attacker writes anywhere is text on the page and nothing else.
func TestScriptsInEveryField(t *testing.T) {
	n := 0
	evil := func() string { // each is another one, to see that all are shown
		n++
		return fmt.Sprintf(`"'--></textarea></pre></title></style><script>alert(%d)</script><img src=x onerror=alert(%d)>{{.}}`, n, n)
	}
	quoted := func(s string) string {
		text, err := json.Marshal(map[string]string{s: s})
		require.NoError(t, err)
		raw := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(text))
		return raw
	}
	original := quoted(evil())
	d := park(t, scenario{
		question: agent.Question{Reason: evil()}, name: evil(),
		calls:   []agent.ToolCall{call(evil(), original), call("c2", quoted(evil())), call("c3", "{}")},
		rewrite: map[string]string{original: quoted(evil())},
	})
	require.Equal(t, http.StatusOK, postOnce(t, d.link(1), d.form(1, "reject_and_continue", "by", evil(), "reason", evil())).StatusCode)
	typed := postOnce(t, d.link(0), d.form(0, "edit", "by", evil(), "reason", evil(), "arguments", evil()))
	bad := postOnce(t, d.link(0), d.form(0, strings.ReplaceAll(evil(), "alert", "verdict")))
	unseen := n // the verdict is not shown again
	odd := postJSON(t, d.link(0), `{"<script>":1}`)
	pages := []answer{
		see(t, d.link(0)), see(t, d.link(1)), typed, bad, odd, see(t, d.url+"/approvals/"+`%3Cscript%3Ealert(1)%3C/script%3E`),
		postOnce(t, d.link(0), d.form(0, "edit", "by", evil(), "reason", evil(), "arguments", quoted(evil()))),
		see(t, d.link(0)), see(t, d.link(2)),
	}
	shown := ""
	for i, got := range pages {
		if got.Header.Get("Content-Type") == "application/json" {
			assert.True(t, json.Valid([]byte(got.body)))
			assert.NotContains(t, got.body, "<", "page %d", i)
			continue
		}
		shown += got.body
		body := regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(got.body, "")
		for _, tag := range regexp.MustCompile(`<[^>]*>`).FindAllString(body, -1) {
			assert.Regexp(t, `^</?(!DOCTYPE html|html|head|meta|title|body|main|h1|h2|p|section|dl|dt|dd|code|span|br|div|pre|details|summary|form|button|input|label|textarea|del|ins)\b`,
				tag, "page %d", i)
			bare := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(tag, `""`)
			assert.NotRegexp(t, `(?i)[\s"]on\w+\s*=|src=|href=|['<]$`, bare, "page %d", i)
		}
	}
	for i := 1; i <= n; i++ {
		if i == unseen {
			continue
		}
		assert.Contains(t, shown, fmt.Sprintf("alert(%d)&lt;/script&gt;", i), "field %d", i)
	}
}

// What cannot be seen is not approved: letters that show nothing, or turn others around,
// are on the page as escapes, and the run gets them as they were.
func TestLettersThatCannotBeSeen(t *testing.T) {
	hidden := "rm\u00a0-rf \u202e/\u2066 a\u200bb\u00ad \U000e0041\ufe0f\u3164\u2800\u2028\u007f\U000f0000 é 漢 😀"
	arguments := `{"to":"` + hidden + `"}`
	d := park(t, scenario{question: agent.Question{Reason: hidden}, calls: []agent.ToolCall{call("c1", arguments)}})
	got := see(t, d.link(0))
	want := `rm\u00a0-rf \u202e/\u2066 a\u200bb\u00ad \udb40\udc41\ufe0f\u3164\u2800\u2028\u007f\udb80\udc00 é 漢 😀`
	assert.Contains(t, got.body, want)
	for _, r := range "\u00a0\u202e\u2066\u200b\u00ad\U000e0041\ufe0f\u3164\u2800\u2028\u007f\U000f0000" {
		assert.NotContains(t, got.body, string(r))
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
		got := see(t, d.link(0))
		require.Equal(t, http.StatusOK, got.StatusCode)
		assert.Less(t, len(got.body), 30*len(arguments), name)
		assert.Greater(t, len(got.body), 2*len(arguments), "%s: nothing is left out", name)
		got = postOnce(t, d.link(0), d.form(0, "approve", "arguments", arguments))
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
	for _, want := range []string{"Run “pay” again?", "What may have happened", "Repeat it", "Do not repeat it, and go on", "Do not repeat it, and end the run", "its outcome is unknown"} {
		assert.Contains(t, got.body, want)
	}
	assert.NotContains(t, got.body, "Change the arguments")
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
