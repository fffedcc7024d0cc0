package pii_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/hooks/pii"
	"github.com/grapnel-go/grapnel/toolexec"
)

// customer returns a tool that knows one customer, and can fail with what it knows.
func customer() toolexec.Tool {
	return toolexec.Func("customer", "Finds a customer.", func(_ context.Context, in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		switch in.Name {
		case "Ada":
			return `{"name": "Ada", "mail": "ada@example.com", "card": 4111111111111111}`, nil
		case "Bob":
			return "", errors.New("bob@example.com is not a customer")
		case "Eve":
			panic("eve@example.com")
		}
		return "none", nil
	})
}

func find(name string) agenttest.Turn {
	return agenttest.Call("customer", fmt.Sprintf(`{"name":%q}`, name))
}

func run(t testing.TB, list []hooks.Hook, input string, turns ...agenttest.Turn) (agent.State, *agenttest.Driver) {
	t.Helper()
	driver := agenttest.Script(turns...)
	a, err := builder.New().WithDriver(driver).With(capability.UseTools(customer()), capability.UseHooks(list...)).Build().Get()
	require.NoError(t, err)
	return a.Run(t.Context(), agent.NewState(), agent.UserText(input)).MustGet(), driver
}

func TestInAnAgent(t *testing.T) {
	var reports []pii.Report
	f := filter(t, pii.Options{Told: func(_ context.Context, r pii.Report) { reports = append(reports, r) }})
	final, driver := run(t, []hooks.Hook{f.Results(), f.Input(), f.Replies()}, "I am ada@example.com, who am I?",
		find("Ada").Call("customer", `{"name":"Bob"}`).Call("customer", `{"name":"Eve"}`).Call("customer", `{"name":"x"}`),
		agenttest.Say("You are Ada, ada@example.com."))
	assert.Equal(t, "You are Ada, [EMAIL].", final.Answer())
	transcript := agenttest.Transcript(final)
	assert.NotContains(t, transcript, "@example.com")
	assert.Contains(t, transcript, `{"name": "Ada", "mail": "[EMAIL]", "card": "[CREDIT_CARD]"}`)
	assert.Contains(t, transcript, "[EMAIL] is not a customer")
	assert.Contains(t, transcript, "I am [EMAIL], who am I?")
	for _, asked := range driver.Calls() {
		assert.NotContains(t, asked.Transcript(), "@example.com")
	}
	for _, step := range final.Steps() {
		for _, r := range step.Results() {
			assert.NotContains(t, fmt.Sprint(r.Err), "@example.com")
		}
	}
	require.Len(t, reports, 5)
	assert.Equal(t, pii.Report{Run: final.Run(), Point: hooks.PostToolUse, Tool: "customer", CallID: "call_1_1", Counts: pii.Counts{"email": 1, "credit_card": 1}}, reports[1])
}

func TestBlock(t *testing.T) {
	f := filter(t, pii.Options{Strategies: map[string]pii.Strategy{"credit_card": pii.Block}})
	all := []hooks.Hook{f.Results(), f.Input(), f.Replies()}
	final, _ := run(t, all, "go", find("Ada").Call("customer", `{"name":"Bob"}`), agenttest.Say("The card is 4111111111111111.").Call("customer", `{"name":"x"}`), agenttest.Say("done"))
	transcript := agenttest.Transcript(final)
	assert.NotContains(t, transcript, "4111")
	assert.NotContains(t, transcript, "example.com")
	assert.Contains(t, transcript, "the result contains personal data: CREDIT_CARD")
	assert.Contains(t, transcript, "[EMAIL] is not a customer", "other kinds are replaced")
	assert.Contains(t, transcript, "[withheld: the reply has personal data in it: CREDIT_CARD]")
	assert.Contains(t, transcript, "none", "what the reply called was run")
	assert.Equal(t, "done", final.Answer())

	final, driver := run(t, all, "my card is 4111 1111 1111 1111", agenttest.Say("done"))
	assert.Equal(t, agent.StatusDenied, final.Status())
	assert.Empty(t, driver.Calls())
	assert.Equal(t, "the input has personal data in it: CREDIT_CARD; send it without", final.StopSignal().Message)
}

// Pictures, files and thoughts.
func TestParts(t *testing.T) {
	f := filter(t, pii.Options{})
	picture := agent.Image("image/png", []byte("\x89PNG ada@example.com"))
	content, counts := f.Content(agent.ContentOf(agent.Text("ada@example.com"), picture, agent.File("ada@example.com.txt", "text/plain", []byte("4111111111111111")),
		agent.FileURL("x", "data:text/plain;base64,YWRhQGV4YW1wbGUuY29t")))
	var parts []agent.Part
	for _, p := range content.Parts() {
		parts = append(parts, p)
	}
	assert.Equal(t, "[EMAIL]", parts[0].Text)
	assert.Equal(t, picture, parts[1])
	assert.Equal(t, agent.Bytes("[CREDIT_CARD]"), parts[2].Data)
	assert.Equal(t, "data:text/plain;base64,W0VNQUlMXQ==", parts[3].URL)
	assert.Equal(t, pii.Counts{"email": 2, "credit_card": 1}, counts)

	thought := agent.Reasoning("ask ada@example.com", "signature")
	reply := agent.AssistantContent(agent.ContentOf(thought, agent.Text("Ask ada@example.com.")), agent.ToolCall{ID: "1", Name: "customer", Arguments: `{"name":"ada@example.com"}`})
	fired := hookstest.Fire(t, f.Replies(), hookstest.Reply("").WithReply(agent.Step{Message: reply}))
	assert.Equal(t, hooks.Replace, fired.Decision)
	var after []agent.Part
	for _, p := range fired.Reply.Message.Content().Parts() {
		after = append(after, p)
	}
	assert.Equal(t, []agent.Part{agent.Reasoning("ask [EMAIL]", ""), agent.Text("Ask [EMAIL].")}, after, "a thought that has changed has no signature")
	assert.Equal(t, `{"name":"[EMAIL]"}`, fired.Reply.Message.Call(0).Arguments)
}

func TestNothingFound(t *testing.T) {
	f := filter(t, pii.Options{Told: func(context.Context, pii.Report) { t.Error("told of nothing") }})
	hookstest.Cases{"result": {At: hookstest.ToolResult("t", `{}`, "12 apples"), Want: hooks.Pass, Leaving: "12 apples"}}.Test(t, f.Results())
	hookstest.Cases{"input": {At: hookstest.Input("12 apples"), Want: hooks.Pass, Leaving: "12 apples"}}.Test(t, f.Input())
	hookstest.Cases{"reply": {At: hookstest.Reply("12 apples"), Want: hooks.Pass, Leaving: "12 apples"}}.Test(t, f.Replies())
}

// A detector of one's own that panics keeps the result back.
func TestFailure(t *testing.T) {
	f := filter(t, pii.Options{Detectors: []pii.Detector{{Kind: "odd", Regexp: "odd", Valid: func(string) bool { panic("oh") }}}})
	fired := hookstest.Fire(t, f.Results(), hookstest.ToolResult("t", `{}`, "odd ada@example.com"))
	require.Error(t, fired.Err)
	assert.NotContains(t, fired.Text(), "ada@")
}

func TestRunsAtOnce(t *testing.T) {
	f := filter(t, pii.Options{Strategy: pii.Hash, Key: []byte("0123456789abcdef")})
	want, _ := f.Text("ada@example.com")
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			final, _ := run(t, []hooks.Hook{f.Results()}, "go", find("Ada"), agenttest.Say("done"))
			assert.Contains(t, agenttest.Transcript(final), want)
		})
	}
	all.Wait()
}

// Where two kinds overlap, neither leaves its end behind, and one that is blocked blocks.
func TestOverlaps(t *testing.T) {
	const both = "at +1 4111 1111 1111 1111 now"
	for _, strategy := range []pii.Strategy{pii.Redact, pii.Mask} {
		got, counts := filter(t, pii.Options{Strategy: strategy}).Text(both)
		assert.Equal(t, "at [PHONE] now", got)
		assert.Equal(t, pii.Counts{"phone": 1, "credit_card": 1}, counts)
	}
	got, counts := filter(t, pii.Options{Except: []string{"+1 4111 1111 1111"}}).Text(both)
	assert.Equal(t, "at +1 [CREDIT_CARD] now", got, "what is left alone does not cover what is not")
	assert.Equal(t, pii.Counts{"credit_card": 1}, counts)

	f := filter(t, pii.Options{Strategies: map[string]pii.Strategy{"credit_card": pii.Block}})
	final, driver := run(t, []hooks.Hook{f.Input()}, both, agenttest.Say("done"))
	assert.Equal(t, agent.StatusDenied, final.Status())
	assert.Empty(t, driver.Calls())
}

// The name of a member stands before all that is in it, whatever else was found there.
func TestMembersWithMore(t *testing.T) {
	f := filter(t, pii.Options{})
	for text, want := range map[string]string{
		`{"phone":"030 123456 or a@b.de"}`:      `{"phone":"[PHONE] or [EMAIL]"}`,
		`{"phone":["030 123456", 30654321]}`:    `{"phone":["[PHONE]", "[PHONE]"]}`,
		`{"phone":["030 123456","030 654321"]}`: `{"phone":["[PHONE]","[PHONE]"]}`,
		`[{"phone":"030 123456"},30654321]`:     `[{"phone":"[PHONE]"},30654321]`,
	} {
		got, _ := f.Text(text)
		assert.Equal(t, want, got)
	}
}
