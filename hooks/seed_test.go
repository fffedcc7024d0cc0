package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// bashTool is a tool that says what it would do.
var bashTool = toolexec.Func("bash", "Runs a command in a directory.", func(_ context.Context, in struct {
	Command string `json:"command"`
	Dir     string `json:"dir"`
},
) (string, error) {
	return "ran " + in.Command + " in " + in.Dir, nil
})

// IP-118: a command outside of the base directory is blocked; the output of tools is
// copied into the metadata; the duration of each step is reported.
func TestExamplesOfTheConcept(t *testing.T) {
	outputs := agent.RunKey[[]string]("outputs")
	baseDir := hooks.On(hooks.AtPreToolUse, "base-dir", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		dir, ok := c.Call().Text("dir")
		if dir = path.Clean(dir); !ok || dir != "/srv" && !strings.HasPrefix(dir, "/srv/") {
			return c.Deny("outside /srv")
		}
		return c.Allow()
	}, hooks.ToolNamed("bash"))
	copies := hooks.On(hooks.AtPostToolUse, "copy", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
		return c.Allow(outputs.Set(append(outputs.Or(c.State(), nil), c.Text())))
	}, hooks.ToolNamed("bash"))
	synctest.Test(t, func(t *testing.T) {
		var took []time.Duration
		times := hooks.Observe(hooks.AtStepEnd, "telemetry", func(_ context.Context, c hooks.StepEndContext) error {
			took = append(took, c.Duration())
			return nil
		})
		thinks := func(turn agenttest.Turn, d time.Duration) agenttest.Turn {
			return agenttest.Play(func(ctx context.Context, s agent.State) (agent.Step, error) {
				time.Sleep(d)
				return agenttest.Script().Then(turn).Next(ctx, s).Get()
			})
		}
		end := play(t, agenttest.Script(
			thinks(agenttest.Call("bash", `{"command":"ls","dir":"/srv/a"}`), time.Second),
			thinks(agenttest.Call("bash", `{"command":"rm -rf .","dir":"/srv/../etc"}`), 2*time.Second),
			thinks(agenttest.Call("bash", `{"command":"ls","dir":"/srvx"}`), 3*time.Second),
			thinks(agenttest.Say("done"), 4*time.Second),
		), []hooks.Hook{baseDir, copies, times}, capability.UseTools(bashTool))
		require.NoError(t, end.err)
		denied := `tool "bash": denied by base-dir: outside /srv`
		assert.Equal(t, []string{"ran ls in /srv/a", denied, denied}, outputs.Or(end.State, nil))
		assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}, took)
		assert.Equal(t, "done", end.Answer())
	})
}

// IP-117, SW-19: hooks that only observe do not change a byte of the transcript, also
// when they fail, panic or are detached.
func TestObserversLeaveNoTrace(t *testing.T) {
	script := func() *agenttest.Driver {
		return agenttest.Script(
			agenttest.Call("bash", `{"command":"ls","dir":"/"}`).Call("echo", `{"text":1}`).Call("nope", `{}`).WithTokens(5, 2),
			agenttest.Call("echo", `{"text": "bro`), agenttest.Say("done").WithCost(0.1),
		)
	}
	observe := func(name string, f func() error) hooks.Hook {
		return hooks.ObserveAll(name, func(context.Context, hooks.Context) error { return f() })
	}
	transcript := func(list ...hooks.Hook) string {
		a := hookedAgent(t, script(), agenttest.Record(), list, capability.UseTools(bashTool))
		final, err := a.RunWith(t.Context(), agent.RunSettings{ID: "run_1"}, agent.NewState(), agent.UserText("hello")).Get()
		require.NoError(t, err)
		require.NoError(t, a.Drain(t.Context()))
		var messages []agent.Message
		for _, m := range final.Messages() {
			messages = append(messages, m)
		}
		raw, err := json.Marshal(messages)
		require.NoError(t, err)
		return string(raw)
	}
	want := transcript()
	assert.Equal(t, want, transcript(
		observe("quiet", func() error { return nil }),
		observe("fails", func() error { return errors.New("boom") }),
		observe("panics", func() error { panic("boom") }),
		observe("detached", func() error { return nil }).Detach(),
		observe("limited", func() error { return nil }).WithTimeout(time.Minute),
		beforeStep("passes", func(c hooks.StepContext) hooks.Result { return c.Pass() }),
		afterModel("allows", func(c hooks.ReplyContext) hooks.Result { return c.Allow() }),
	))
	assert.Contains(t, want, "done")
}

// IP-81, IP-84: one hook value serves many runs at the same time. A run's data is in its scratch values.
func TestOneHookServesManyRuns(t *testing.T) {
	type clock struct{ ticks int }
	clocks := agent.NewScratch[clock](nil)
	key := agent.RunKey[int]("ticks")
	a := hookedAgent(t, agenttest.Script(agenttest.Call("echo", `{}`), agenttest.Call("echo", `{}`), agenttest.Say("x")), nil, []hooks.Hook{
		beforeStep("tick", func(c hooks.StepContext) hooks.Result {
			mine := clocks.Get(c.State())
			mine.ticks++
			return c.Allow(key.Set(mine.ticks))
		}),
	})
	done := make(chan int)
	for range 16 {
		go func() {
			final, _ := a.Run(t.Context(), agent.NewState(agent.UserText("go"))).Get()
			done <- key.Or(final, 0)
		}()
	}
	for range 16 {
		assert.Equal(t, 3, <-done)
	}
}
