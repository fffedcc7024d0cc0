package mock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// world has a tool, weather, and counts how often it really ran.
type world struct{ ran atomic.Int64 }

func (w *world) weather() toolexec.Tool {
	return toolexec.Func("weather", "Tells the weather.", func(_ context.Context, in struct {
		City string  `json:"city"`
		Days float64 `json:"days,omitempty"`
	},
	) (string, error) {
		n := w.ran.Add(1)
		if in.City == "Atlantis" {
			return "", errors.New("no such city")
		}
		return fmt.Sprintf("%s: report %d", in.City, n), nil
	})
}

func (w *world) agent(t testing.TB, list []hooks.Hook, turns ...agenttest.Turn) *agent.Agent {
	t.Helper()
	a, err := builder.New().WithDriver(agenttest.Script(append(turns, agenttest.Say("done"))...).EachRun()).
		With(capability.UseTools(w.weather()), capability.UseHooks(list...)).Build().Get()
	require.NoError(t, err)
	return a
}

// play returns the answers to a script's calls.
func (w *world) play(t testing.TB, list []hooks.Hook, turns ...agenttest.Turn) []string {
	t.Helper()
	return answers(w.agent(t, list, turns...).Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet())
}

// answers returns a line for each call: its status, attempts, who decided, and the text.
func answers(s agent.State) []string {
	var lines []string
	for _, step := range s.Steps() {
		for _, r := range step.Results() {
			mark := ""
			if r.IsError() {
				mark = "!"
			}
			lines = append(lines, fmt.Sprintf("%s%s %d %s: %s", r.Status, mark, r.Attempts, r.DecidedBy, r.Text()))
		}
	}
	return lines
}

func weather(city string) agenttest.Turn {
	return agenttest.Call("weather", fmt.Sprintf(`{"city":%q}`, city))
}
