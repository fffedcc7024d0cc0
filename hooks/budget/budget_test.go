package budget_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/budget"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/toolexec"
)

func agentOf(t testing.TB, list []hooks.Hook, turns ...agenttest.Turn) *agent.Agent {
	t.Helper()
	look := toolexec.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	a, err := builder.New().WithDriver(agenttest.Script(turns...)).
		With(capability.UseTools(look), capability.UseHooks(list...)).Build().Get()
	require.NoError(t, err)
	return a
}

// told returns a run's end: its calls' results, its answer, its stop.
func told(s agent.State) []string {
	var texts []string
	for _, m := range s.Messages() {
		if m.Role() == agent.RoleTool {
			texts = append(texts, m.Text())
		}
	}
	if signal, ok := s.StopSignal(), s.Stopped(); ok && s.Status() != agent.StatusDone {
		return append(texts, fmt.Sprintf("%s by %s: %s", s.Status(), signal.Source, signal.Message))
	}
	return append(texts, string(s.Status())+": "+s.Answer())
}

const (
	unclear = "the token usage of the run is unknown, so the limit of 100 cannot be enforced: a reply came without usage, or with " +
		"a usage that is negative or too large; have the driver set Usage, or remove the token limit"
	unclearCost = "the cost of the run is unknown, so the limit of $1 cannot be enforced: a reply came with a usage " +
		"that is negative or too large"
	unknownCost = "the cost of the run is unknown, so the limit of $1 cannot be enforced: a model's reply came without a cost; " +
		"have the driver set Usage.Cost, or remove the cost limit"
	goOn = "; call no more tools, and finish with what you have"
)

func TestBudgets(t *testing.T) {
	look := agenttest.Call("look", `{}`)
	done := agenttest.Say("done")
	for name, tc := range map[string]struct {
		limits budget.Limits
		turns  []agenttest.Turn
		want   []string
	}{
		"none": {budget.Limits{}, []agenttest.Turn{look, look, done}, []string{"seen", "seen", "done: done"}},
		"enough of all": {
			budget.Limits{Cost: 1, Tokens: 100, ToolCalls: 2},
			[]agenttest.Turn{look.WithCost(0.4).WithTokens(20, 20), look.WithCost(0.4).WithTokens(20, 20), done.WithCost(0)},
			[]string{"seen", "seen", "done: done"},
		},
		"cost": {
			budget.Limits{Cost: 1}, []agenttest.Turn{look.WithCost(0.6), look.WithCost(0.6), done},
			[]string{"seen", "not executed: run stopped by budget.call: $1.2 of at most $1 spent", "stopped by budget.call: $1.2 of at most $1 spent"},
		},
		"cost, to the cent": {
			budget.Limits{Cost: 0.3}, []agenttest.Turn{look.WithCost(0.1), look.WithCost(0.1), look.WithCost(0.1), done},
			[]string{"seen", "seen", "not executed: run stopped by budget.call: $0.3 of at most $0.3 spent", "stopped by budget.call: $0.3 of at most $0.3 spent"},
		},
		"cost of the answer": { // nothing is left to be stopped
			budget.Limits{Cost: 1}, []agenttest.Turn{look.WithCost(0.1), done.WithCost(5)}, []string{"seen", "done: done"},
		},
		"unknown cost": {
			budget.Limits{Cost: 1}, []agenttest.Turn{look, done},
			[]string{"not executed: run stopped by budget.call: " + unknownCost, "stopped by budget.call: " + unknownCost},
		},
		"no number": {
			budget.Limits{Cost: math.NaN()}, []agenttest.Turn{look.WithCost(0), done}, []string{"stopped by budget: $0 of at most $NaN spent"},
		},
		"nothing": {budget.Limits{Tokens: -1}, []agenttest.Turn{look, done}, []string{"stopped by budget: 0 of at most 0 tokens used"}},
		"tokens": {
			budget.Limits{Tokens: 100}, []agenttest.Turn{look.WithTokens(30, 30), look.WithTokens(30, 30), done},
			[]string{"seen", "not executed: run stopped by budget.call: 120 of at most 100 tokens used", "stopped by budget.call: 120 of at most 100 tokens used"},
		},
		"tokens, going on": {
			budget.Limits{Tokens: 100, Deny: true}, []agenttest.Turn{look.WithTokens(60, 30), look.WithTokens(30, 30), done},
			[]string{
				"seen", `tool "look": denied by budget.call: 150 of at most 100 tokens used; call no more tools, and finish with what you have`,
				"done: done",
			},
		},
		"unknown tokens": {
			budget.Limits{Tokens: 100, Deny: true}, []agenttest.Turn{look, look.WithTokens(1, 1), done},
			[]string{
				`tool "look": denied by budget.call: ` + unclear + goOn, `tool "look": denied by budget.call: ` + unclear + goOn, "done: done",
			},
		},
		"less than nothing": {
			budget.Limits{Tokens: 100}, []agenttest.Turn{look.WithTokens(50, 10), look.WithTokens(-1000, 10), look.WithTokens(90, 90), done},
			[]string{"seen", "not executed: run stopped by budget.call: " + unclear, "stopped by budget.call: " + unclear},
		},
		"more than can be counted": {
			budget.Limits{Tokens: math.MaxInt64}, []agenttest.Turn{look.WithTokens(math.MaxInt64-1, 0), look.WithTokens(0, math.MaxInt64-1), done},
			[]string{"seen", "not executed: run stopped by budget.call: " + strings.ReplaceAll(unclear, "100", strconv.Itoa(math.MaxInt64)), "stopped by budget.call: " + strings.ReplaceAll(unclear, "100", strconv.Itoa(math.MaxInt64))},
		},
		"a cost of less than nothing": {
			budget.Limits{Cost: 1}, []agenttest.Turn{look.WithCost(-5), done},
			[]string{"not executed: run stopped by budget.call: " + unclearCost, "stopped by budget.call: " + unclearCost},
		},
		"calls": {
			budget.Limits{ToolCalls: 2}, []agenttest.Turn{look, look.Call("look", `{}`), done},
			[]string{
				"seen", "seen", `tool "look": denied by budget.call: 2 of at most 2 tool calls made; call no more tools, and finish with what you have`,
				"done: done",
			},
		},
		"no calls": {
			budget.Limits{ToolCalls: -1}, []agenttest.Turn{look, done},
			[]string{`tool "look": denied by budget.call: 0 of at most 0 tool calls made; call no more tools, and finish with what you have`, "done: done"},
		},
		"invalid calls do not count": {
			budget.Limits{ToolCalls: 1}, []agenttest.Turn{agenttest.Call("look", `{"x":1}`), look, done},
			[]string{"", "seen", "done: done"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			final := agentOf(t, budget.Hooks(tc.limits), tc.turns...).Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
			got := told(final)
			for i, want := range tc.want {
				if want == "" && i < len(got) {
					got[i] = ""
				}
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// A reply without calls that a Stop hook does not accept is the last one all the same.
func TestRunIsStoppedBeforeTheNextModelCall(t *testing.T) {
	again := hooks.On(hooks.AtStop, "again", func(_ context.Context, c hooks.StopContext) hooks.Result { return c.Continue("go on") })
	a := agentOf(t, append(budget.Hooks(budget.Limits{Cost: 1}), again), agenttest.Say("a").WithCost(0.7), agenttest.Say("b").WithCost(0.7), agenttest.Say("c"))
	final := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
	assert.Equal(t, []string{"stopped by budget: $1.4 of at most $1 spent"}, told(final))
	assert.Equal(t, 2, final.RunStepCount())
}

func TestEachRunHasTheWholeBudget(t *testing.T) {
	look := agenttest.Call("look", `{}`).WithCost(0.4)
	a := agentOf(t, budget.Hooks(budget.Limits{Cost: 1, ToolCalls: 2}), look, look, agenttest.Say("done").WithCost(0))
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			final := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
			assert.Equal(t, []string{"seen", "seen", "done: done"}, told(final))
		})
	}
	all.Wait()
}

func TestWhatOthersDenyDoesNotCount(t *testing.T) {
	guard := hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return lo.Ternary(c.State().RunStepCount() < 3, c.Deny("not yet"), c.Allow())
	})
	look := agenttest.Call("look", `{}`)
	a := agentOf(t, append(budget.Hooks(budget.Limits{ToolCalls: 1}), guard), look, look, look, look, agenttest.Say("done"))
	assert.Equal(t, "seen", told(a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet())[3])
}

// Without run data, such as after a restart, the budget counts from the state.
func TestCallsOfAStoredRunCount(t *testing.T) {
	hook := lo.Filter(budget.Hooks(budget.Limits{ToolCalls: 2}), func(h hooks.Hook, _ int) bool { return h.Name() == "budget.call" })[0]
	step := agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "c", Name: "look", Arguments: "{}"})}
	at := hookstest.ToolCall("look", `{}`)
	hookstest.Cases{
		"one":     {At: at.AfterSteps(step), Want: hooks.Allow},
		"two":     {At: at.AfterSteps(step, step), Want: hooks.Deny, Saying: "2 of at most 2"},
		"invalid": {At: at.AfterSteps(step, step).Invalid(errors.New("wrong")), Want: hooks.Allow},
	}.Test(t, hook)
}

// If the hook is asked about a call again, the call counts once.
func TestRewrittenCallsCountOnce(t *testing.T) {
	rewrite := hooks.On(hooks.AtPreToolUse, "rewrite", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Rewrite(json.RawMessage(`{ }`))
	}).WithPriority(2 * hooks.PriorityAfterwork)
	look := agenttest.Call("look", `{}`)
	a := agentOf(t, append(budget.Hooks(budget.Limits{ToolCalls: 2}), rewrite), look, look, look, agenttest.Say("done"))
	got := told(a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet())
	assert.Equal(t, []string{"seen", "seen"}, got[:2])
	assert.Contains(t, got[2], "2 of at most 2 tool calls made")
}

func Example() {
	look := toolexec.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	model := agenttest.Script(
		agenttest.Call("look", `{}`).WithCost(0.30),
		agenttest.Call("look", `{}`).WithCost(0.30),
		agenttest.Say("never said"),
	)
	a := builder.New().WithDriver(model).
		With(capability.UseTools(look), capability.UseHooks(budget.Hooks(budget.Limits{Cost: 0.50})...)).
		Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("Look twice.")).MustGet()
	fmt.Println(final.Status(), "-", final.StopSignal().Message)
	// Output: stopped - $0.6 of at most $0.5 spent
}
