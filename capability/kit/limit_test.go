package kit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Two searches, and no more.
func ExampleToolCallLimit() {
	search := toolexec.Func("search", "Searches.", func(_ context.Context, in struct{ For string }) (string, error) {
		return "nothing about " + in.For, nil
	})
	model := agenttest.Script(
		agenttest.Call("search", `{"For":"cats"}`).Call("search", `{"For":"dogs"}`).Call("search", `{"For":"owls"}`),
		agenttest.Say("I found nothing."),
	)
	a := builder.New().WithDriver(model).
		With(capability.UseTools(search), kit.ToolCallLimit{Run: 20, PerTool: map[string]int{"search": 2}}).
		Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("look")).MustGet()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Println(m.Text())
		}
	}
	// Output:
	// nothing about cats
	// nothing about dogs
	// tool "search": denied by tool-call-limit: 2 of at most 2 calls of "search" in this run made; the limit does not change, so do not call it again, and finish with the results that you have
}

// became returns a letter for each call in the last run: r for the calls that ran.
func became(s agent.State) string {
	var b strings.Builder
	for _, step := range s.RunSteps() {
		for _, r := range step.Results() {
			switch {
			case r.Executed():
				b.WriteByte('r')
			case r.Denied() && r.DecidedBy == "tool-call-limit":
				b.WriteByte('L')
			case r.Denied():
				b.WriteByte('d')
			case r.Mocked():
				b.WriteByte('m')
			default:
				b.WriteByte('-')
			}
		}
	}
	return b.String()
}

func TestToolCallLimits(t *testing.T) {
	ok, failing, other := agenttest.Call("ok", `{}`), agenttest.Call("fail", `{}`), agenttest.Call("other", `{}`)
	end := agenttest.Say("end")
	for name, tc := range map[string]struct {
		limit kit.ToolCallLimit
		turns []agenttest.Turn
		want  string
	}{
		"run":                       {kit.ToolCallLimit{Run: 2}, []agenttest.Turn{ok, other, ok, end}, "rrL"},
		"run, in one step":          {kit.ToolCallLimit{Run: 2}, []agenttest.Turn{ok.Call("ok", `{}`).Call("other", `{}`), ok, end}, "rrLL"},
		"per tool":                  {kit.ToolCallLimit{PerTool: map[string]int{"ok": 1}}, []agenttest.Turn{ok.Call("other", `{}`).Call("ok", `{}`), other, ok, end}, "rrLrL"},
		"both":                      {kit.ToolCallLimit{Run: 3, PerTool: map[string]int{"ok": 1}}, []agenttest.Turn{ok, ok, other, other, other, end}, "rLrrL"},
		"what fails counts":         {kit.ToolCallLimit{Run: 1}, []agenttest.Turn{failing, ok, end}, "rL"},
		"what is invalid does not":  {kit.ToolCallLimit{Run: 1}, []agenttest.Turn{agenttest.Call("ok", `{"x":1}`), agenttest.Call("none", `{}`), agenttest.Call("ok", `{`), ok, ok, end}, "---rL"},
		"what is denied does not":   {kit.ToolCallLimit{Run: 1}, []agenttest.Turn{agenttest.Call("denied", `{}`), ok, ok, end}, "drL"},
		"what is mocked does not":   {kit.ToolCallLimit{Run: 1}, []agenttest.Turn{agenttest.Call("mocked", `{}`).Call("ok", `{}`), agenttest.Call("mocked", `{}`), ok, end}, "mrmL"},
		"what is rejected does not": {kit.ToolCallLimit{Run: 1}, []agenttest.Turn{agenttest.Call("asked", `{}`), ok, ok, end}, "drL"},
	} {
		for _, parallel := range []int{1, 4} {
			t.Run(fmt.Sprint(name, " ", parallel), func(t *testing.T) {
				var ran atomic.Int64
				body := func(name string, err error) toolexec.Tool {
					return toolexec.Func(name, name, func(context.Context, struct{}) (string, error) { ran.Add(1); return "", err })
				}
				hook := hooks.On(hooks.AtPreToolUse, "hook", func(_ context.Context, c hooks.ToolContext) hooks.Result {
					switch c.Tool() {
					case "denied":
						return c.Deny("no")
					case "mocked":
						return c.Mock("as if")
					case "asked":
						return c.Ask("may it?")
					}
					return c.Allow()
				})
				person := agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
					return agent.Approval{Verdict: agent.RejectAndContinue, By: "Ada"}, nil
				})
				a := builder.New().WithParallel(parallel).WithDriver(agenttest.Script(tc.turns...)).With(
					capability.UseTools(body("ok", nil), body("other", nil), body("fail", errors.New("bad")), body("denied", nil), body("mocked", nil), body("asked", nil)),
					capability.UseHooks(hook), capability.UseApproval(person), tc.limit,
				).Build().MustGet()
				s := done(t, a, agent.NewState(), "go")
				assert.Equal(t, tc.want, became(s))
				assert.EqualValues(t, strings.Count(tc.want, "r"), ran.Load())
			})
		}
	}
}

// A session's limit counts earlier runs, after a restart, too; a run's limit does not.
func TestToolCallLimitOfASession(t *testing.T) {
	ok := agenttest.Call("ok", `{}`)
	a := func() *agent.Agent {
		return built(t, agenttest.Script(ok, ok, agenttest.Say("a"), ok, ok, ok, agenttest.Say("b")), capability.UseTools(tool("ok", "")), kit.ToolCallLimit{Session: 4, Run: 3})
	}
	s := done(t, a(), agent.NewState(), "go")
	assert.Equal(t, "rr", became(s))
	s = done(t, a(), through(t, s), "go")
	assert.Equal(t, "rrL", became(s))
	assert.Contains(t, told(s)[4], "4 of at most 4 tool calls in this session made")
}

func TestToolCallLimitThatStops(t *testing.T) {
	ok := agenttest.Call("ok", `{}`)
	a := built(t, agenttest.Script(ok, ok.Call("ok", `{}`), agenttest.Say("never")), capability.UseTools(tool("ok", "")), kit.ToolCallLimit{Run: 2, Stop: true})
	s := done(t, a, agent.NewState(), "go")
	assert.Equal(t, agent.StatusStopped, s.Status())
	signal := s.StopSignal()
	assert.Equal(t, agent.Signal{
		Reason: kit.StopToolCalls, Message: "2 of at most 2 tool calls in this run made", Source: "tool-call-limit",
		Details: map[string]any{"calls": 2, "limit": 2},
	}, signal)
	assert.Equal(t, "r--", became(s), "no call of the step runs")
	through(t, s)
}

// One agent, many runs at once: each has the whole limit and no more.
func TestToolCallLimitOfParallelRuns(t *testing.T) {
	var all sync.WaitGroup
	many := agenttest.Call("ok", `{}`)
	for range 9 {
		many = many.Call("ok", `{}`)
	}
	a, err := builder.New().WithParallel(4).WithDriver(agenttest.Script(many, many, agenttest.Say("end"))).
		With(capability.UseTools(tool("ok", "")), kit.ToolCallLimit{Run: 13}).Build().Get()
	require.NoError(t, err)
	for range 20 {
		all.Go(func() {
			final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			assert.NoError(t, err)
			assert.Equal(t, strings.Repeat("r", 13)+strings.Repeat("L", 7), became(final))
		})
	}
	all.Wait()
}

func TestToolCallLimitKeepsTheContractOfAnExecutor(t *testing.T) {
	keepsContract(t, kit.ToolCallLimit{Run: 1000})
}

func TestToolCallLimitThatMakesNoSense(t *testing.T) {
	assert.Contains(t, wrong(t, kit.ToolCallLimit{}), `capability "tool-call-limit": no limit is set`)
	text := wrong(t, kit.ToolCallLimit{Run: -1, Session: -2, PerTool: map[string]int{"a": 0, "b": 1}})
	for _, want := range []string{"the limit of a run is -1", "the limit of a session is -2", `the limit of tool "a" is 0`} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, `"b"`)
}
