package web_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/web"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// asked is a parked run: the calls of one step, which wait for people.
type asked struct {
	*room

	run    agent.RunID
	notice durable.Notice
	waits  []durable.Wait
	ran    []string // arguments that the tool ran with
	goOn   func() agent.State
}

const carol = `{"to":"Carol","amount":250}`

// ask parks a run whose model asks for calls of the tool pay. Rewrite has arguments that a hook replaces by carol.
func (r *room) ask(q agent.Question, rewrite string, arguments ...string) *asked {
	r.t.Helper()
	a := &asked{room: r, run: agent.RunID("run_" + rand.Text())}
	keeper := durable.Keep(r.store, durable.Options{Events: inputEvents, Notify: []durable.Notifier{
		durable.NotifierFunc(func(_ context.Context, n durable.Notice) error { a.notice = n; return nil }),
	}})
	pay := toolexec.Raw(agent.ToolSpec{Name: "pay", Parameters: `{"type":"object"}`}, func(_ context.Context, c toolexec.Call) (string, error) {
		a.ran = append(a.ran, c.Arguments)
		return "paid", nil
	})
	calls := lo.Map(arguments, func(one string, i int) agent.ToolCall {
		return agent.ToolCall{ID: fmt.Sprintf("c%d", i+1), Name: "pay", Arguments: one}
	})
	answering := []hooks.Hook{waiver.Hook(r.store)}
	if r.unwaived {
		answering = nil
	}
	clerk, err := builder.New().WithName("clerk").WithDriver(agenttest.Script(
		agenttest.Reply(agent.Step{Message: agent.Assistant("", calls...), FinishReason: agent.FinishToolCalls}), agenttest.Say("Done."))).
		With(capability.UseTools(pay), capability.UseDurability{Keeper: keeper}, capability.UseApproval(agent.ParkApprover), capability.UseHooks(answering...),
			capability.UseHooks(hooks.On(hooks.AtPreToolUse, "limit", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				if c.Call().Arguments == rewrite {
					return c.Rewrite(json.RawMessage(carol))
				}
				return c.Pass()
			}), hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.AskAbout(q) }))).
		Build().Get()
	require.NoError(r.t, err)
	s, err := clerk.RunWith(r.t.Context(), agent.RunSettings{ID: a.run}, agent.NewState(), agent.UserText("pay them")).Get()
	require.NoError(r.t, err)
	require.True(r.t, s.Waiting())
	a.goOn = func() agent.State {
		s, err := keeper.Resume(r.t.Context(), clerk, a.run, durable.TakeFree).Get()
		require.NoError(r.t, err)
		return s
	}
	a.waits, err = r.store.Waits(r.t.Context(), a.run)
	require.NoError(r.t, err)
	return a
}

// inputEvents keeps what each model call was given.
func inputEvents(e agent.Event) (durable.EventForm, bool) {
	_, ok := e.(agent.InferenceStarted)
	return durable.EventForm{Name: e.EventName(), Data: []byte(`{"input":["pay them"]}`)}, ok
}

func (a *asked) link(i int) string { return approval.Links("").To(a.notice.Calls[i].Token) }

// at returns the path of the page about call i.
func (a *asked) at(i int) string {
	return "/ui/inbox/wait?" + url.Values{"run": {string(a.run)}, "wait": {a.notice.Calls[i].ID}}.Encode()
}

// form returns what the page posts about call i.
func (a *asked) form(i int, verdict string, more ...string) url.Values {
	c := a.notice.Calls[i]
	v := url.Values{"verdict": {verdict}, "wait": {c.ID}, "question": {c.Questions[0].ID()}}
	for n := 0; n < len(more); n += 2 {
		v.Set(more[n], more[n+1])
	}
	return v
}

// newDesk serves a store without a coordinator, for people with roles. Ann has the printed code.
func newDesk(t *testing.T, roles map[string][]string) (*room, map[string]string) {
	t.Helper()
	r, tokens := newRoom(t, nil), map[string]string{}
	var all []approval.Person
	for name, of := range roles {
		token, sum := approval.NewToken()
		tokens[name], all = token, append(all, approval.Person{Name: name, Roles: of, Token: sum})
	}
	people, err := approval.NewPeople(all...)
	require.NoError(t, err)
	r.pages = web.New(web.Options{Store: r.store, Token: tokens["ann"], People: people, Log: slog.New(slog.NewTextHandler(&r.log, nil))})
	r.serve(api.Guard(r.pages, nil))
	return r, tokens
}

// The page of a link has all that a person needs in order to decide, and decides once.
func TestPageOfALink(t *testing.T) {
	r, _ := newDesk(t, map[string][]string{"ann": nil})
	before := `{"to":"Carol","amount":1000}`
	a := r.ask(agent.Question{Reason: "it is more than 100", Within: time.Hour, OnTimeout: agent.RejectAndContinue}, before, before, `{"to":"Dan"}`)
	got := r.get(a.link(0))
	require.Equal(t, http.StatusOK, got.StatusCode)
	shown := text(got.body)
	for _, want := range []string{
		"May “pay” run?", "it is more than 100 asked by guard", "clerk", string(a.run), "59 min left , then reject and continue without the call",
		`- "amount": 1000`, `+ "amount": 250`, "What else this step waits for", `"to": "Dan"`, "Your name", "Change the arguments",
	} {
		assert.Contains(t, shown, want)
	}
	for _, want := range []string{`name="wait" value="` + a.notice.Calls[0].ID + `"`, `name="question" value="`, `value="approve"`, `value="edit"`, `value="reject"`, `value="reject_and_continue"`} {
		assert.Contains(t, got.body, want)
	}
	assert.Equal(t, "<button disabled hidden>", regexp.MustCompile(`<button[^>]*>`).FindString(got.body), "the Enter key in a text field presses the first button")
	assert.NotContains(t, got.body, a.notice.Calls[0].Token, "the address is enough")
	assert.NotContains(t, got.body, a.notice.Calls[1].Token, "a link decides about its own call alone")
	assert.Empty(t, got.Cookies())
	assert.Contains(t, got.Header.Get("Content-Security-Policy"), "form-action 'self'")
	assert.Equal(t, "no-referrer", got.Header.Get("Referrer-Policy"))

	got = r.do(http.MethodPost, a.link(0), a.form(0, "approve", "arguments", `{"to":"Eve"}`, "by", "<b>dan", "reason", "</textarea>because"))
	assert.Equal(t, http.StatusUnprocessableEntity, got.StatusCode)
	assert.Contains(t, text(got.body), "You changed the arguments")
	for _, typed := range []string{`{&#34;to&#34;:&#34;Eve&#34;}`, "&lt;b&gt;dan", "&lt;/textarea&gt;because"} {
		assert.Contains(t, got.body, typed, "what was typed is kept")
	}
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}} {
		assert.Equal(t, http.StatusForbidden, r.do(http.MethodPost, a.link(0), a.form(0, "approve"), header...).StatusCode)
	}
	got = r.do(http.MethodPost, a.link(0), a.form(0, "edit", "arguments", `{"to":"Carol","amount":90}`, "by", "dan", "reason", "less"))
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	assert.Contains(t, text(got.body), "approve with other arguments by dan")
	got = r.do(http.MethodPost, a.link(0), a.form(0, "reject"))
	assert.Equal(t, http.StatusConflict, got.StatusCode)
	assert.Contains(t, got.body, "<h1>Answered or changed since you saw it</h1>")
	assert.Contains(t, text(got.body), "approve with other arguments by dan")
	assert.NotContains(t, got.body, `name="verdict"`)
	require.Equal(t, http.StatusOK, r.do(http.MethodPost, a.link(1), a.form(1, "reject_and_continue")).StatusCode)
	assert.Equal(t, agent.StatusDone, a.goOn().Status())
	assert.Equal(t, []string{`{"to":"Carol","amount":90}`}, a.ran)
	assert.Equal(t, http.StatusConflict, r.get(a.link(0)).StatusCode)
	assert.Equal(t, http.StatusNotFound, r.get("/approvals/"+strings.Repeat("x", 43)).StatusCode)
	for _, c := range a.notice.Calls {
		assert.NotContains(t, r.log.String(), c.Token)
	}
}

// A link proves no identity: it leads to the sign-in, and from there back to the question. What a person may not do, and why,
// stands on the page.
func TestWhoMayAnswer(t *testing.T) {
	r, tokens := newDesk(t, map[string][]string{"ann": {"lead"}, "bob": {"lead"}, "eve": nil})
	a := r.ask(agent.Question{Reason: "much", Approvers: []string{"lead"}, Quorum: 2}, "", carol)
	page := r.get(a.link(0))
	assert.NotContains(t, page.body, `value="approve"`)
	assert.Contains(t, text(page.body), "for lead · 0 of 2 approvals")
	assert.Equal(t, http.StatusForbidden, r.do(http.MethodPost, a.link(0), a.form(0, "approve", "by", "lead")).StatusCode)
	lead := regexp.MustCompile(`href="(/ui/sign-in\?back=[^"]+)"`).FindStringSubmatch(page.body)
	require.Len(t, lead, 2)
	form := r.get(lead[1]).body
	back := regexp.MustCompile(`name="back" value="([^"]+)"`).FindStringSubmatch(form)
	require.Len(t, back, 2)
	as := func(name string) {
		r.cookie = ""
		got := r.do(http.MethodPost, "/ui/sign-in", url.Values{"secret": {tokens[name]}, "back": {strings.ReplaceAll(back[1], "&amp;", "&")}})
		require.Equal(t, a.at(0), got.Header.Get("Location"))
		require.Len(t, got.Cookies(), 1)
		r.cookie = got.Cookies()[0].Name + "=" + got.Cookies()[0].Value
	}
	as("eve")
	assert.Contains(t, text(r.get(a.at(0)).body), "You cannot approve this: it needs 2 approvals by lead")
	assert.NotContains(t, r.get(a.at(0)).body, `name="verdict"`)
	assert.Contains(t, text(r.get("/ui/inbox").body), "not for you")
	assert.Equal(t, http.StatusForbidden, r.do(http.MethodPost, a.at(0), a.form(0, "approve")).StatusCode)
	as("ann")
	assert.NotContains(t, text(r.get("/ui/inbox").body), "not for you")
	got := r.do(http.MethodPost, a.at(0)+"&back=/ui/inbox", a.form(0, "approve"))
	assert.Equal(t, http.StatusSeeOther, got.StatusCode, got.body)
	assert.Equal(t, "/ui/inbox", got.Header.Get("Location"))
	shown := r.get("/ui/inbox").body
	assert.Contains(t, text(shown), "1 of 2 approvals")
	assert.Contains(t, text(shown), "You cannot approve this: ann has approved it already")
	assert.NotContains(t, shown, `value="approve"`)
	assert.Contains(t, shown, `value="reject"`, "a person who approved may still reject")
	got = r.do(http.MethodPost, a.at(0)+"&back=/ui/inbox", a.form(0, "approve"))
	assert.Equal(t, http.StatusConflict, got.StatusCode)
	assert.Contains(t, got.body, "<h1>Answered or changed since you saw it</h1>")
	as("bob")
	assert.Equal(t, http.StatusSeeOther, r.do(http.MethodPost, a.at(0)+"&back=/ui/inbox", a.form(0, "approve")).StatusCode)
	assert.Contains(t, r.get("/ui/inbox").body, "Nothing waits for a person.")
	decided := text(r.get("/ui/inbox?show=decided").body)
	assert.Contains(t, decided, "approve by ann verified")
	assert.Contains(t, decided, "approve by bob verified")
	assert.Equal(t, agent.StatusDone, a.goOn().Status())
	assert.Len(t, a.ran, 1)
}

// Without a coordinator there is the inbox alone. The printed code signs in the person who has the token, once, and no address
// signs a person in.
func TestInboxOfAStore(t *testing.T) {
	r, tokens := newDesk(t, map[string][]string{"ann": {"lead"}})
	a := r.ask(agent.Question{Reason: "much"}, "", carol)
	for _, path := range []string{"/ui/inbox", a.at(0), "/ui/runs"} {
		assert.Contains(t, []int{http.StatusSeeOther, http.StatusNotFound}, r.get(path).StatusCode, path)
	}
	assert.Equal(t, "/ui/inbox", r.get("/approvals/").Header.Get("Location"))
	wait, _ := url.Parse(a.at(0))
	assert.Equal(t, a.at(0), r.get("/approvals/wait?"+wait.RawQuery).Header.Get("Location"))
	assert.Empty(t, r.get("/ui/sign-in?token="+tokens["ann"]).Cookies())
	assert.Equal(t, http.StatusNotFound, r.get("/approvals/sign-in?token="+tokens["ann"]).StatusCode)
	require.Equal(t, http.StatusSeeOther, r.signIn(r.pages.NewCode()).StatusCode)
	assert.Equal(t, "/ui/inbox", r.get("/ui/").Header.Get("Location"))
	page := r.get("/ui/inbox")
	assert.Contains(t, page.body, "<b>ann</b> approver")
	assert.NotContains(t, page.body, `"/ui/runs`)
	shown := text(page.body)
	for _, want := range []string{"pay amount, to asked by guard", "The run was asked: pay them", "Approve", `"amount": 250`} {
		assert.Contains(t, shown, want)
	}
	docs, err := r.store.ListDocuments(t.Context(), "session", "", 10)
	require.NoError(t, err)
	require.Len(t, docs, 1)
	sum := durable.TokenHash(tokens["ann"])
	assert.NotContains(t, string(docs[0].Data), fmt.Sprintf("%x", sum), "a person may have chosen it")

	program := []string{"Accept", "application/json", "Authorization", "Bearer " + tokens["ann"], "Content-Type", "application/json"}
	r.cookie = ""
	list := r.do(http.MethodGet, "/approvals/", nil, program...)
	assert.Equal(t, http.StatusOK, list.StatusCode)
	assert.Contains(t, list.body, a.notice.Calls[0].ID)
	assert.Equal(t, http.StatusUnauthorized, r.do(http.MethodGet, "/approvals/", nil, "Accept", "application/json").StatusCode)
}

// Questions of one rule about calls of one shape are one group, with the last answers to like ones. Long arguments cannot be
// approved before they were shown.
func TestGroups(t *testing.T) {
	r, _ := newDesk(t, map[string][]string{"ann": nil})
	r.signIn(r.pages.NewCode())
	a := r.ask(agent.Question{Reason: "much"}, "", `{"command":"git push"}`, `{"command":"git pull"}`, `{"command":"rm -rf x"}`, `{"to":"`+strings.Repeat("x", 3000)+`"}`)
	body := r.get("/ui/inbox").body
	assert.ElementsMatch(t, []string{"pay git …", "pay rm …"}, lo.Map(regexp.MustCompile(`<h2><code>(pay [a-z]{1,5} …)</code>`).FindAllStringSubmatch(body, -1), func(m []string, _ int) string { return m[1] }))
	assert.Equal(t, 4, strings.Count(body, "data-card"))
	assert.Equal(t, 3, strings.Count(body, `value="approve"`))
	assert.Contains(t, body, "Read all of it and answer")
	assert.Contains(t, r.get(a.at(3)).body, strings.Repeat("x", 3000))
	require.Equal(t, http.StatusSeeOther, r.do(http.MethodPost, a.at(2)+"&back=/ui/inbox", a.form(2, "reject_and_continue", "reason", "never")).StatusCode)
	assert.Regexp(t, `Former decisions about like calls.*reject and continue without the call by ann.*never`, text(r.get("/ui/inbox").body))
}

// "Yes, until Friday": the inbox leads to the effect of that, which the answer then has.
func TestYesUntilFriday(t *testing.T) {
	r, _ := newDesk(t, map[string][]string{"ann": nil})
	r.signIn(r.pages.NewCode())
	a := r.ask(agent.Question{Reason: "much"}, "", `{"command":"git push\nx","n":1}`, `{"command":"git pull","n":1}`, `{"list":["x"]}`)
	require.Equal(t, http.StatusSeeOther, r.do(http.MethodPost, a.at(1)+"&back=/ui/inbox", a.form(1, "reject_and_continue")).StatusCode)
	body := r.get("/ui/inbox").body
	assert.Equal(t, 1, strings.Count(body, "Yes, until Friday"))
	link := regexp.MustCompile(`<a class="button" href="([^"]+)#waiver"`).FindStringSubmatch(body)
	require.NotNil(t, link)
	page := r.get(html.UnescapeString(link[1])).body
	shown := text(page)
	assert.Contains(t, shown, "In the last 30 days, people answered 1 question about this tool. It would have given 0 of these answers")
	assert.Contains(t, shown, "Approve until Friday ")
	assert.Contains(t, page, "<textarea id=\"arg0\" name=\"arg.command\" rows=\"2\" spellcheck=\"false\" class=\"code\">\ngit push\nx</textarea>")
	assert.Contains(t, text(r.get(a.at(2)).body), "Like calls cannot be approved in advance: no pattern can describe its arguments")
	seen := html.UnescapeString(regexp.MustCompile(`name="seen" value="([^"]+)"`).FindStringSubmatch(page)[1])
	day := regexp.MustCompile(`name="until" type="date" required value="([^"]+)"`).FindStringSubmatch(page)[1]
	form := a.form(0, "waive", "seen", strings.ReplaceAll(seen, "\n", "\r\n"), "until", day, "reason", "known", "arg.command", "git push\r\nx", "arg.n", "1")
	require.Equal(t, http.StatusSeeOther, r.do(http.MethodPost, html.UnescapeString(link[1]), form).StatusCode)
	all, err := r.store.Waivers(t.Context(), false)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, "ann", all[0].By)

	// An agent without the hook would not use it.
	r.unwaived = true
	a = r.ask(agent.Question{Reason: "much"}, "", `{"command":"git push"}`)
	assert.NotContains(t, r.get("/ui/inbox").body, "Yes, until Friday")
	assert.Contains(t, text(r.get(a.at(0)).body), "Like calls cannot be approved in advance: the agent does not use waivers")
	got := r.do(http.MethodPost, a.at(0), a.form(0, "waive", "until", day, "arg.command", "git push"))
	assert.Equal(t, http.StatusUnprocessableEntity, got.StatusCode)
	assert.Contains(t, got.body, "A waiver cannot answer this: the agent does not use waivers")
}

// A wait whose question cannot be read hides no other question.
func TestUnreadableQuestions(t *testing.T) {
	r, tokens := newDesk(t, map[string][]string{"ann": nil})
	a := r.ask(agent.Question{Reason: "much"}, "", carol)
	for i, data := range []string{"", "[]", `{"id":"other"}`} {
		id := agent.RunID(fmt.Sprint("run_bad", i))
		l, err := r.store.Begin(t.Context(), durable.Job{ID: id, Session: "ses_1", Name: "liar"}, "one", time.Hour)
		require.NoError(t, err)
		bad := durable.Wait{ID: "w", Kind: durable.WaitApproval, Tool: "pay", Asked: time.Now(), Data: []byte(data)}
		require.NoError(t, r.store.Commit(t.Context(), l, durable.Commit{Update: durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{bad}}}))
		require.NoError(t, r.store.Release(t.Context(), l, 0))
	}
	r.signIn(r.pages.NewCode())
	body := r.get("/ui/inbox").body
	assert.Contains(t, body, `value="approve"`)
	assert.Equal(t, 3, strings.Count(body, "A question cannot be shown"))
	r.cookie = ""
	list := r.do(http.MethodGet, "/approvals/", nil, "Accept", "application/json", "Authorization", "Bearer "+tokens["ann"])
	assert.Equal(t, http.StatusOK, list.StatusCode)
	assert.Contains(t, list.body, a.notice.Calls[0].ID)
}

// Operators of a coordinator answer, viewers only look, and the audit log has who did what.
func TestAnswersOfACoordinator(t *testing.T) {
	r := newRoom(t, nil)
	a := r.ask(agent.Question{Reason: "much"}, "", carol)
	r.signIn(r.token(wire.Viewer))
	page := r.get("/ui/inbox")
	assert.Contains(t, text(page.body), "your token has the role viewer, and answers need the role operator")
	assert.NotContains(t, page.body, `name="verdict"`)
	assert.Equal(t, http.StatusForbidden, r.do(http.MethodPost, a.at(0), a.form(0, "approve")).StatusCode)
	r.cookie = ""
	r.signIn(r.token(wire.Operator))
	assert.Contains(t, r.get("/ui/").body, `href="/ui/inbox"`)
	require.Equal(t, http.StatusSeeOther, r.do(http.MethodPost, a.at(0)+"&back=/ui/inbox", a.form(0, "approve")).StatusCode)
	entries := r.audit()
	last := entries[len(entries)-1]
	assert.Equal(t, []string{"my-operator", "answer", "/approvals/", string(a.run), "approve " + a.notice.Calls[0].ID},
		[]string{last.By, last.Operation, last.Path, string(last.Run), last.Detail})
	assert.Equal(t, agent.StatusDone, a.goOn().Status())
}

// What a gate and a tool that asks for input want is said in words of their own, and all of it is text.
func TestOtherQuestions(t *testing.T) {
	r, _ := newDesk(t, map[string][]string{"ann": nil})
	r.signIn(r.pages.NewCode())
	a := r.ask(agent.Question{Kind: agent.QuestionGate, Reason: "not yet", Gate: &agent.Gate{Kind: "file", Data: json.RawMessage(`{"path":"<i>/tmp"}`)}}, "", carol)
	page := text(r.get("/ui/inbox").body)
	assert.Contains(t, page, "“pay” waits for a file")
	assert.Contains(t, page, "Do not wait, and go on without it")
	assert.NotContains(t, r.get("/ui/inbox").body, "<i>/tmp")
	assert.NotContains(t, r.get("/ui/inbox").body, `value="approve"`)
	i, err := durable.InterventionOf(a.waits[0])
	require.NoError(t, err)
	for n, change := range []func(){
		func() {
			i.Call = agent.ToolCall{ID: "gate-1", Name: "gate", Arguments: `{"hook":"review","question":"Is the plan good?"}`}
			i.Questions = agent.Questions{{By: "review", Reason: "Is the plan good?"}}
		},
		func() {
			i.Call = agent.ToolCall{ID: "c9", Name: "order", Arguments: "{}"}
			i.Questions = agent.Questions{{Kind: agent.QuestionInput, By: "order", Input: &agent.InputRequest{
				By: `mcp server "shop"`, Message: "Who <b>are</b> you?\x1b[2J", URL: "https://example.com/connect",
				Schema: `{"type":"object","properties":{"name":{"type":"string","title":"<i>Name"},"plan":{"type":"string","enum":["a","b"],"enumNames":["Plan A","Plan B"],"default":"b"},` +
					`"tags":{"type":"array","items":{"type":"string","enum":["x","y"]}},"age":{"type":"integer"},"news":{"type":"boolean"}},"required":["name"]}`,
			}}}
		},
	} {
		change()
		i.Original = i.Call
		id := agent.RunID(fmt.Sprintf("run_other%d", n))
		l, err := r.store.Begin(t.Context(), durable.Job{ID: id}, "one", time.Hour)
		require.NoError(t, err)
		waits, err := durable.Notice{Run: agent.Run{ID: id}, Calls: []durable.WaitingCall{{Intervention: i.WithID(id, 0)}}}.Waits()
		require.NoError(t, err)
		require.NoError(t, r.store.Commit(t.Context(), l, durable.Commit{Update: durable.Update{Status: durable.StatusWaiting, Waits: waits}}))
	}
	body := r.get("/ui/inbox").body
	page = text(body)
	assert.Contains(t, body, ">Is the plan good?</a></h2>")
	assert.NotContains(t, page, "“gate”")
	for _, want := range []string{">Yes</button>", ">No</button>"} {
		assert.Contains(t, body, want)
	}
	for _, want := range []string{
		"“order” asks for input", "Who &lt;b&gt;are&lt;/b&gt; you?", "&lt;i&gt;Name", `name="input.name"`, `<option value="b" selected>Plan B</option>`,
		`type="checkbox" name="input.tags" value="x"`, `type="checkbox" name="input.news" value="true"`, "Decline, and go on", "<code>https://example.com/connect</code>",
	} {
		assert.Contains(t, body, want)
	}
	for _, unwanted := range []string{"<b>are", "<i>", "\x1b", `href="https://example.com`} {
		assert.NotContains(t, body, unwanted)
	}
}

// A page has a limited number of questions. The others are on later pages.
func TestInboxPages(t *testing.T) {
	r, _ := newDesk(t, map[string][]string{"ann": nil})
	r.signIn(r.pages.NewCode())
	r.ask(agent.Question{Reason: "much"}, "", slices.Repeat([]string{carol}, 31)...)
	cards := func(body string) []string { return regexp.MustCompile(`id="w-\w+" tabindex`).FindAllString(body, -1) }
	first := r.get("/ui/inbox").body
	assert.Contains(t, text(first), "Inbox , open questions: 30+ ")
	next := regexp.MustCompile(`href="(/ui/inbox[^"]+)">Later questions`).FindStringSubmatch(first)
	require.NotEmpty(t, next)
	second := r.get(html.UnescapeString(next[1])).body
	assert.Len(t, lo.Uniq(append(cards(first), cards(second)...)), 31)
	assert.Contains(t, second, `href="/ui/inbox">Oldest questions`)
	assert.NotContains(t, second, "Later questions")
	assert.Contains(t, second, "/ui/inbox/live?last_asked=")
	assert.NotContains(t, first, "questions are open")
}

// A person's own questions come first, before older ones on any page. More than are put in order at a time follow in later pages.
func TestOwnQuestionsComeFirst(t *testing.T) {
	r, tokens := newDesk(t, map[string][]string{"ann": {"lead"}, "eve": nil})
	lead := agent.Question{Reason: "much", Approvers: []string{"lead"}}
	r.ask(lead, "", slices.Repeat([]string{carol}, 40)...)
	own := r.ask(agent.Question{Reason: "little"}, "", carol, carol)
	r.signIn(tokens["eve"])
	cards := regexp.MustCompile(`id="(w-\w+)" tabindex`)
	later := regexp.MustCompile(`href="(/ui/inbox[^"]+)">Later questions`)
	all := func() (pages [][]string) {
		for at := "/ui/inbox"; ; {
			body := r.get(at).body
			pages = append(pages, lo.Map(cards.FindAllStringSubmatch(body, -1), func(m []string, _ int) string { return m[1] }))
			next := later.FindStringSubmatch(body)
			if next == nil {
				return pages
			}
			at = html.UnescapeString(next[1])
		}
	}
	pages := all()
	require.Len(t, pages, 2)
	require.Len(t, lo.Uniq(slices.Concat(pages...)), 42)
	ids := lo.Map(own.notice.Calls, func(c durable.WaitingCall, _ int) string {
		return fmt.Sprintf("w-%x", sha256.Sum256([]byte(string(own.run)+" "+c.ID)))[:14]
	})
	assert.ElementsMatch(t, ids, pages[0][:2])
	r.ask(lead, "", slices.Repeat([]string{carol}, 170)...)
	pages = all()
	assert.Len(t, pages, 8, "the oldest 200, and the next ones")
	assert.Len(t, lo.Uniq(slices.Concat(pages...)), 212)
	assert.Contains(t, r.get("/ui/inbox").body, "More than 200 questions are open")
	for _, made := range []string{"asked=x&run=%00&wait=y", "last_asked=2026-01-01T00:00:00Z&last_run=run_x", "others=true", "asked=9999-12-31T00:00:00Z", "asked=0001-01-01T00:00:00Z&last_asked=9999-12-31T23:59:59.999Z&others=1"} {
		assert.Contains(t, []int{http.StatusOK, http.StatusUnprocessableEntity}, r.get("/ui/inbox?"+made).StatusCode, "%s: a made-up place", made)
	}
}

// The inbox changes while people look at it: what was answered elsewhere says so, and new questions appear.
func TestLiveInbox(t *testing.T) {
	r, _ := newDesk(t, map[string][]string{"ann": nil})
	r.signIn(r.pages.NewCode())
	assert.Contains(t, r.get("/ui/inbox").body, `Inbox<span id="open"></span>`)
	a := r.ask(agent.Question{Reason: "much"}, "", carol)
	assert.Contains(t, text(r.get("/ui/inbox").body), "Inbox , open questions: 1 ")
	in, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/ui/inbox/live", nil)
	require.NoError(t, err)
	in.Header.Set("Cookie", r.cookie)
	out, err := r.client.Do(in)
	require.NoError(t, err)
	defer out.Body.Close()
	var read bytes.Buffer
	until := func(wants ...string) (all string) {
		buffer := make([]byte, 1<<16)
		for !lo.EveryBy(wants, func(want string) bool { return strings.Contains(read.String(), want) }) {
			n, err := out.Body.Read(buffer)
			require.NoError(t, err)
			read.Write(buffer[:n])
		}
		all = read.String()
		read.Reset()
		return all
	}
	until("much")
	require.Equal(t, http.StatusOK, r.do(http.MethodPost, a.link(0), a.form(0, "approve")).StatusCode)
	all := until("was answered, or is not asked any more", `<span id="open"></span>`)
	assert.Contains(t, all, `<section class="group" id="g-`)
	assert.NotContains(t, all, "<h2>", "a group without open questions")
	r.ask(agent.Question{Reason: "much more"}, "", carol)
	until("much more")
}
