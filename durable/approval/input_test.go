package approval_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/toolexec"
)

const personForm = `{"type":"object","properties":{
	"name":{"type":"string","title":"<i>Name","minLength":2},
	"plan":{"type":"string","enum":["a","b"],"enumNames":["Plan A","Plan B"],"default":"b"},
	"tags":{"type":"array","items":{"type":"string","enum":["x","y"]}},
	"age":{"type":"integer"},
	"news":{"type":"boolean"}},"required":["name"]}`

// parkForInput parks a run whose tool asks for input.
func parkForInput(t *testing.T, r agent.InputRequest) *inbox {
	t.Helper()
	store := memory.New()
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	var err error
	d := &inbox{store: store}
	d.keeper = durable.Keep(store, durable.Options{Notify: []durable.Notifier{
		durable.NotifierFunc(func(_ context.Context, n durable.Notice) error { d.notice = n; return nil }),
	}})
	tool := toolexec.Raw(agent.ToolSpec{Name: "order"}, func(_ context.Context, c toolexec.Call) (string, error) {
		if len(c.Given) == 0 {
			return "", &agent.InputError{Request: r, State: []byte("opaque-4711")}
		}
		d.ran = append(d.ran, c.Given[0].Content)
		return "ordered", nil
	})
	d.agent, err = builder.New().WithName("clerk").WithDriver(agenttest.Script(agenttest.Call("order", `{}`), agenttest.Say("Done."))).
		With(capability.UseTools(tool), capability.UseDurability{Keeper: d.keeper}, capability.UseApproval(agent.ParkApprover)).Build().Get()
	require.NoError(t, err)
	s, err := d.agent.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	require.True(t, s.Waiting())
	server := httptest.NewServer(approval.Handler(store, approval.Options{}))
	t.Cleanup(server.Close)
	d.url = server.URL
	return d
}

func (d *inbox) inputForm(verdict string, more ...string) url.Values {
	v := url.Values{"verdict": {verdict}, "wait": {d.card(0)}, "question": d.questions(0), "by": {"ann"}, "reason": {""}}
	for n := 0; n < len(more); n += 2 {
		v.Add(more[n], more[n+1])
	}
	return v
}

func TestInputFromAForm(t *testing.T) {
	t.Parallel()
	d := parkForInput(t, agent.InputRequest{By: `mcp server "shop"`, Message: "Who <b>are</b> you?\x1b[2J", Schema: personForm})
	for want, form := range map[string]url.Values{
		"/name: it is required":   d.inputForm("approve"),
		"at least 2 characters":   d.inputForm("approve", "input.name", "A"),
		"it is not asked for":     d.inputForm("approve", "input.name", "Ann", "input.admin", "true"),
		"age: it must be a num":   d.inputForm("approve", "input.name", "Ann", "input.age", "old"),
		"name: it is given more":  d.inputForm("approve", "input.name", "Ann", "input.name", "Bob"),
		"is not one of":           d.inputForm("approve", "input.name", "Ann", "input.plan", "c"),
		"Expected the form field": d.inputForm("approve", "output", "Ann"),
	} {
		got := postOnce(t, d.link(0), form)
		assert.GreaterOrEqual(t, got.StatusCode, http.StatusBadRequest, want)
		assert.Contains(t, got.body, want)
	}
	got := postOnce(t, d.link(0), d.inputForm("approve", "input.name", "Ann", "input.plan", "a", "input.tags", "x", "input.tags", "y", "input.age", "7", "input.news", "true"))
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	d.goOn(t)
	require.Len(t, d.ran, 1)
	assert.JSONEq(t, `{"name":"Ann","plan":"a","tags":["x","y"],"age":7,"news":true}`, d.ran[0])
}

func TestInputAsJSON(t *testing.T) {
	t.Parallel()
	d := parkForInput(t, agent.InputRequest{By: "shop", Message: "Who?", Schema: personForm})
	shown := do(t, http.MethodGet, d.link(0), "", "Accept", "application/json").body
	assert.Contains(t, shown, `"message": "Who?"`)
	assert.Contains(t, shown, `"kind": "input"`)
	assert.NotContains(t, shown, "opaque")
	seen := d.seen(0)
	for _, body := range []string{
		`{"verdict":"approve",` + seen + `}`,
		`{"verdict":"approve",` + seen + `,"input":{"name":1}}`,
		`{"verdict":"approve",` + seen + `,"input":[]}`,
		`{"verdict":"reject",` + seen + `,"input":{"name":"Ann"}}`,
	} {
		assert.Equal(t, http.StatusUnprocessableEntity, postJSON(t, d.link(0), "%s", body).StatusCode, body)
	}
	other := d.notice.Calls[0].Original.ID
	assert.Equal(t, http.StatusConflict, postJSON(t, d.link(0), `{"verdict":"approve","wait":%q,"input":{"name":"Ann"}}`, other).StatusCode,
		"the call alone does not say what was asked")
	got := postJSON(t, d.link(0), `{"verdict":"approve",%s,"input":{"name":"Ann"}}`, seen)
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	d.goOn(t)
	assert.Equal(t, []string{`{"name":"Ann"}`}, d.ran)
}

// An announcer also sends links for requests for input.
func TestAnnounceInput(t *testing.T) {
	t.Parallel()
	store := parkForInput(t, agent.InputRequest{By: "the desk", Message: "Who are you?", Schema: personForm}).store
	// The notifier of the run has made a token: the same question of another run has none.
	l, err := store.Begin(t.Context(), durable.Job{ID: "r"}, "one", time.Hour)
	require.NoError(t, err)
	open, err := store.OpenWaits(t.Context(), durable.WaitFilter{})
	require.NoError(t, err)
	require.Len(t, open, 1)
	w := open[0]
	w.TokenHash = [32]byte{}
	require.NoError(t, store.Commit(t.Context(), l, durable.Commit{Update: durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{w}}}))
	ctx, cancel := context.WithCancel(t.Context())
	var notices []durable.Notice
	note := durable.NotifierFunc(func(_ context.Context, n durable.Notice) error {
		notices = append(notices, n)
		cancel()
		return nil
	})
	require.NoError(t, approval.Announcer{Store: store, Notify: []durable.Notifier{note}, Every: time.Millisecond}.Run(ctx))
	require.Len(t, notices, 1)
	assert.Equal(t, agent.RunID("r"), notices[0].Run.ID)
	asked, ok := notices[0].Calls[0].Questions.Asked()
	assert.True(t, ok)
	assert.Equal(t, "Who are you?", asked.Message)
}
