package continuation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/continuation"
)

func ExampleSelfCritique() {
	critique := continuation.SelfCritique{Critic: func(_ context.Context, s agent.State) (string, error) {
		if !strings.Contains(s.Answer(), "source") {
			return "Name your source.", nil
		}
		return "", nil
	}}
	a := agent.New(agent.Config{
		Driver:    agenttest.Script(agenttest.Say("It is 42."), agenttest.Say("It is 42; source: the Guide.")),
		Criterion: continuation.All(agent.Base, critique),
	}).MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("What is the answer?")).MustGet()
	fmt.Print(agenttest.Transcript(final))
	// Output:
	// user: What is the answer?
	// assistant: It is 42.
	// user: Name your source.
	// assistant: It is 42; source: the Guide.
}

// IP-107: if a critic rejects every answer, the run is stopped for the retry limit after
// the maximum number of critiques. The count survives JSON.
func TestSelfCritique(t *testing.T) {
	asked := 0
	never := func(context.Context, agent.State) (string, error) { asked++; return "try harder", nil }
	for most, want := range map[int]int{0: 3, 1: 1, 2: 2, -1: 0} {
		t.Run(fmt.Sprint("most ", most), func(t *testing.T) {
			asked = 0
			critique := continuation.SelfCritique{Critic: never, Most: most}
			a, err := agent.New(agent.Config{Driver: turns(call("look"), answer("x")), Criterion: continuation.All(agent.Base, critique)}).Get()
			require.NoError(t, err)
			s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			assert.Equal(t, agent.StatusStopped, s.Status())
			signal := s.StopSignal()
			assert.Equal(t, agent.StopRetryLimit, signal.Reason)
			assert.Equal(t, "continuation.SelfCritique", signal.Source)
			assert.Equal(t, map[string]any{"iterations": want, "maxIterations": want}, signal.Details)
			assert.Equal(t, want+1, asked, "not asked about a step with calls")
			assert.Equal(t, want+2, s.RunStepCount())

			text, err := json.Marshal(s)
			require.NoError(t, err)
			var back agent.State
			require.NoError(t, json.Unmarshal(text, &back))
			if want > 0 {
				count, ok := agent.RunKey[int]("continuation.critiques").From(back)
				assert.True(t, ok)
				assert.Equal(t, want, count)
			}
		})
	}
}

// A critic that returns an error, or is missing, fails the run.
func TestACriticThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		critique continuation.SelfCritique
		says     string
	}{
		"an error": {continuation.SelfCritique{Critic: func(context.Context, agent.State) (string, error) { return "", errors.New("no idea") }}, "self-critique: no idea"},
		"none":     {continuation.SelfCritique{}, "Critic is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := agent.New(agent.Config{Driver: turns(answer("x")), Criterion: continuation.All(agent.Base, tc.critique)}).Get()
			require.NoError(t, err)
			require.ErrorContains(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error(), tc.says)
		})
	}
}
