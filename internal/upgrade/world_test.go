package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// The runs of a fixture store.
const (
	runDone      = agent.RunID("run_done")      // ended
	runParked    = agent.RunID("run_parked")    // waits for approval
	runAnswered  = agent.RunID("run_answered")  // was approved and has not gone on
	runCut       = agent.RunID("run_cut")       // its process was killed while a tool ran
	runBoss      = agent.RunID("run_boss")      // its sub-agent waits for approval
	runJob       = agent.RunID("run_job")       // was submitted and has not begun
	runChild     = agent.RunID("run_child")     // the same, as a child of run_boss
	runCancelled = agent.RunID("run_cancelled") // waits for approval, and is to be cancelled
)

type memo struct {
	Text string   `json:"text"`
	Tags []string `json:"tags"`
}

var (
	memoKey  = agent.SessionKey[memo]("example.memo")
	countKey = agent.RunKey[int64]("example.count")
)

// world has what the agents of the fixtures do outside of their runs.
type world struct {
	mu   sync.Mutex
	did  map[string]int    // by call
	keys map[string]string // idempotency keys, by call
}

func newWorld() *world { return &world{did: map[string]int{}, keys: map[string]string{}} }

func (w *world) note(what, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did[what]++
	w.keys[what] = key
}

// done returns what was done, and how often.
func (w *world) done() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.did)
}

type amount struct {
	Amount int `json:"amount"`
}

// tools returns the tools of every agent here.
func (w *world) tools() []toolexec.Tool {
	act := func(name string) toolexec.Tool {
		return toolexec.CallFunc(agent.ToolSpec{Name: name}, func(_ context.Context, c toolexec.Call, _ amount) (string, error) {
			w.note(fmt.Sprint(c.State.Run().ID, " ", c.ID), c.IdempotencyKey())
			return name + " is done", nil
		})
	}
	look := toolexec.Func("look", "Looks.", func(context.Context, struct{}) (toolexec.Output, error) {
		return toolexec.Output{
			Content: agent.ContentOf(agent.Text("a picture: "), agent.Image("image/png", []byte{0, 1, 254, 255})),
			Effects: agent.EffectsOf(memoKey.Set(memo{"remember <the> milk", []string{"a", "b"}}), agent.AddContext("it is late")),
		}, nil
	})
	burn := toolexec.Func("burn", "Burns.", func(context.Context, struct{}) (string, error) { return "", errors.New("burnt") })
	return []toolexec.Tool{look, burn, act("pay"), toolexec.WithPolicy(act("add"), toolexec.Policy{Doubt: toolexec.DoubtRepeat})}
}

// member returns an agent whose model says these turns, and fails after them.
func (w *world) member(name string, k *durable.Keeper, turns ...agent.Step) builder.AgentBuilder {
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		if n := s.RunStepCount(); n < len(turns) {
			return turns[n], nil
		}
		return agent.Step{}, errors.New("the model is out of words")
	})
	guard := hooks.On(hooks.AtPreToolUse, name+" guard", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		switch c.Call().ID {
		case "ask":
			return c.AskAbout(agent.Question{Rule: "money/pay", Reason: "it pays", OnTimeout: agent.RejectAndContinue})
		case "deny":
			return c.Deny("not today")
		case "mock":
			return c.Mock("mocked", countKey.Set(1<<53+1))
		case "rewrite":
			return c.Rewrite(amount{Amount: 1})
		}
		return c.Pass()
	})
	b := builder.New().WithName(name).WithDriver(driver).With(capability.UseTools(w.tools()...), capability.UseHooks(guard))
	if k == nil {
		return b.With(capability.UseApproval(agent.ParkApprover))
	}
	receipt := hooks.Observe(hooks.AtPostToolUse, name+" receipt", func(ctx context.Context, c hooks.ToolResultContext) error {
		name := "receipt of " + c.Original().ID
		_, err := k.Once(ctx, c.State(), name, true, func(context.Context, string) ([]byte, error) {
			w.note(fmt.Sprint(c.Run().ID, " ", name), "")
			return []byte("sent"), nil
		})
		return err
	})
	return b.With(capability.UseHooks(receipt), capability.UseDurability{Keeper: k}, capability.UseApproval(agent.ParkApprover))
}

// agents returns the agents of the fixtures, by name. They are kept by the keeper, if there is one.
func (w *world) agents(t *testing.T, k *durable.Keeper) map[string]*agent.Agent {
	t.Helper()
	call := func(id, tool, arguments string) agent.ToolCall {
		return agent.ToolCall{ID: id, Name: tool, Arguments: arguments}
	}
	said := func(text string) agent.Step {
		return agent.Step{Message: agent.Assistant(text), FinishReason: agent.FinishStop, Usage: agent.Usage{InputTokens: 20, OutputTokens: 2}}
	}
	asks := agent.Step{
		Message: agent.AssistantContent(agent.ContentOf(agent.Reasoning("let me see", "sig=="), agent.Text("I pay."),
			agent.FileURL("b.txt", "https://example.com/b.txt")), call("ask", "pay", `{"amount":20}`), call("deny", "pay", `{"amount":9}`)),
		FinishReason: agent.FinishToolCalls, Model: "m-1", ID: "reply_1",
		Usage: agent.Usage{
			InputTokens: 100, OutputTokens: 50, CacheReadTokens: 60, CacheWriteTokens: 10, ReasoningTokens: 20, Cost: mo.Some(0.125),
		},
		Effects: agent.EffectsOf(countKey.Set(7), agent.AddMessage(agent.System("be brief"))).From("model"),
	}
	looks := agent.Step{Message: agent.Assistant("", call("see", "look", `{}`), call("rewrite", "add", `{"amount":5}`),
		call("mock", "pay", `{"broken":`), call("fail", "burn", `{}`))}
	clerk := func() builder.AgentBuilder { return w.member("clerk", k, asks, said("Paid.")) }
	all := []builder.AgentBuilder{
		clerk(),
		w.member("reader", k, looks, said("Read.")),
		w.member("worker", k, agent.Step{Message: agent.Assistant("", call("a", "add", `{"amount":1}`), call("b", "add", `{"amount":2}`))}, said("Added.")),
		w.member("boss", k, agent.Step{Message: agent.Assistant("", call("t", "task", `{"agent":"clerk","instruction":"pay it"}`))}, said("Delegated.")).
			With(capability.UseSubagents{Agents: []capability.Subagent{{Agent: clerk()}}}),
		w.member("mute", k, looks),
	}
	return lo.SliceToMap(all, func(b builder.AgentBuilder) (string, *agent.Agent) {
		a, err := b.Build().Get()
		require.NoError(t, err)
		return a.Name(), a
	})
}

// input is what the user says, with parts of all kinds that users send.
func input() agent.Message {
	return agent.User(agent.Text("look at this: "), agent.ImageURL("https://example.com/d.png"), agent.File("a.txt", "text/plain", []byte("hi")))
}

// mortal is the store of a process that is killed: nothing is written from the entry on that cut reports.
type mortal struct {
	durable.Store

	cut  func(durable.Entry) bool
	mu   sync.Mutex
	dead bool
}

var errKilled = errors.New("the process is gone")

func (m *mortal) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	m.mu.Lock()
	m.dead = m.dead || lo.SomeBy(c.Entries, m.cut)
	dead := m.dead
	m.mu.Unlock()
	if dead {
		return errKilled
	}
	return m.Store.Commit(ctx, l, c)
}

func (m *mortal) Renew(context.Context, durable.Lease, time.Duration) (durable.Lease, error) {
	return durable.Lease{}, errKilled
}

func (m *mortal) Release(ctx context.Context, l durable.Lease, delay time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errKilled
	}
	return m.Store.Release(ctx, l, delay)
}
