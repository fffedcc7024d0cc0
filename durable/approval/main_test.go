package approval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inbox is a store with a parked run, and a server that takes its answers.
type inbox struct {
	store  durable.Store
	keeper *durable.Keeper
	agent  *agent.Agent
	notice durable.Notice
	url    string

	mu      sync.Mutex
	during  func()   // what the tool does besides
	ran     []string // arguments that the tool was run with
	decided []agent.RunID
}

// scenario is what a test's run asks for.
type scenario struct {
	calls    []agent.ToolCall // what the model asks for; one call of pay when there are none
	question agent.Question
	rewrite  map[string]string // arguments in the place of others
	options  approval.Options
	notify   []durable.Notifier
	name     string
	schema   string // of the tool
	silent   bool   // no notifier
}

func call(id, arguments string) agent.ToolCall {
	return agent.ToolCall{ID: id, Name: "pay", Arguments: arguments}
}

const carol = `{"to":"Carol","amount":250}`

func park(t *testing.T, how scenario) *inbox {
	t.Helper()
	store := memory.New()
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	var err error
	d := &inbox{store: store}
	take := durable.NotifierFunc(func(_ context.Context, n durable.Notice) error { d.notice = n; return nil })
	d.keeper = durable.Keep(store, durable.Options{Notify: append(how.notify, take)})
	if how.silent {
		d.keeper = durable.Keep(store, durable.Options{})
	}
	if how.calls == nil {
		how.calls = []agent.ToolCall{call("c1", carol)}
	}
	if how.name == "" {
		how.name = "clerk"
	}
	if how.schema == "" {
		how.schema = `{"type":"object"}`
	}
	pay := toolexec.Raw(agent.ToolSpec{Name: "pay", Parameters: how.schema}, d.pay)
	d.agent, err = builder.New().WithName(how.name).WithDriver(agenttest.Script(
		agenttest.Reply(agent.Step{Message: agent.Assistant("", how.calls...), FinishReason: agent.FinishToolCalls}), agenttest.Say("Done."))).
		With(capability.UseTools(pay), capability.UseDurability{Keeper: d.keeper}, capability.UseApproval(agent.ParkApprover),
			capability.UseHooks(hooks.On(hooks.AtPreToolUse, "limit", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				if other, ok := how.rewrite[c.Call().Arguments]; ok {
					return c.Rewrite(json.RawMessage(other))
				}
				return c.Pass()
			}), hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				return c.AskAbout(how.question)
			}), waiver.Hook(store))).Build().Get()
	require.NoError(t, err)
	s, err := d.agent.Run(t.Context(), agent.NewState(), agent.UserText("pay them")).Get()
	require.NoError(t, err)
	require.True(t, s.Waiting())
	notify := how.options.Decided
	how.options.Decided = func(ctx context.Context, run agent.RunID) {
		d.mu.Lock()
		d.decided = append(d.decided, run)
		d.mu.Unlock()
		if notify != nil {
			notify(ctx, run)
		}
	}
	server := httptest.NewServer(approval.Handler(store, how.options))
	t.Cleanup(server.Close)
	d.url = server.URL
	return d
}

func (d *inbox) pay(ctx context.Context, c toolexec.Call) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ran = append(d.ran, c.Arguments)
	if d.during != nil {
		d.during()
	}
	return "paid", ctx.Err()
}

// goOn goes on with the run, and is what became of it.
func (d *inbox) goOn(t *testing.T) agent.State {
	t.Helper()
	s, err := d.keeper.Resume(t.Context(), d.agent, d.notice.Run.ID, durable.TakeFree).Get()
	require.NoError(t, err)
	return s
}

func (d *inbox) link(i int) string { return approval.Links(d.url).To(d.notice.Calls[i].Token) }
func (d *inbox) card(i int) string { return d.notice.Calls[i].ID }

// questions returns the IDs of the questions about call i.
func (d *inbox) questions(i int) []string {
	return lo.Map(d.notice.Calls[i].Questions, func(q agent.Question, _ int) string { return q.ID() })
}

// seen returns the members of a JSON answer that say what its author saw of call i.
func (d *inbox) seen(i int) string {
	ids, err := json.Marshal(d.questions(i))
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`"wait":%q,"questions":%s`, d.card(i), ids)
}

// form returns what the page would post about call i.
func (d *inbox) form(i int, verdict string, more ...string) url.Values {
	v := url.Values{"verdict": {verdict}, "wait": {d.card(i)}, "question": d.questions(i), "by": {"ann"}, "reason": {""}}
	for n := 0; n < len(more); n += 2 {
		v.Set(more[n], more[n+1])
	}
	return v
}

// answer is what came back.
type answer struct {
	*http.Response

	body string
}

func do(t *testing.T, method, link, body string, header ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, link, strings.NewReader(body))
	require.NoError(t, err)
	for n := 0; n < len(header); n += 2 {
		request.Header.Set(header[n], header[n+1])
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{response, string(text)}
}

func see(t *testing.T, link string) answer {
	t.Helper()
	return do(t, http.MethodGet, link, "", "Accept", "text/html")
}

func postOnce(t *testing.T, link string, form url.Values, header ...string) answer {
	t.Helper()
	return do(t, http.MethodPost, link, form.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
}

func postJSON(t *testing.T, link, format string, args ...any) answer {
	t.Helper()
	return do(t, http.MethodPost, link, fmt.Sprintf(format, args...), "Content-Type", "application/json")
}

// undecided fails the test when call i has an answer.
func (d *inbox) undecided(t *testing.T, i int) {
	t.Helper()
	all, err := d.store.Waits(t.Context(), d.notice.Run.ID)
	require.NoError(t, err)
	assert.Nil(t, all[i].Answer, "an answer was recorded")
}

var soon = agent.Question{Reason: "it is more than 100", Within: time.Hour, OnTimeout: agent.RejectAndContinue}
