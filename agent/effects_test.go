package agent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// IP-116: messages are appended in order; context is joined into one message
// behind them.
func TestEffectsAreAppliedInOrder(t *testing.T) {
	key := agent.SessionKey[int]("n")
	s := agent.NewState(agent.UserText("hello")).Apply(
		agent.EffectsOf(agent.AddContext("it is late"), agent.AddMessage(agent.System("one")), key.Set(1)).From("clock").
			Add(agent.EffectsOf(agent.AddMessage(agent.System("two").WithSource("me")), key.Set(2)).From("hook")).
			Add(agent.EffectsOf(agent.AddContext("it rains")).From("weather")).
			Add(agent.EffectsOf(agent.AddContext("still")).From("weather")),
	)
	assert.Equal(t, []string{"hello", "one", "two", "it is late\n\nit rains\n\nstill"}, texts(s))
	assert.Equal(t, "clock", s.Message(1).Source())
	assert.Equal(t, "me", s.Message(2).Source(), "a source that was said stays")
	assert.Equal(t, "clock,weather", s.Message(3).Source())
	assert.Equal(t, agent.RoleUser, s.Message(3).Role())
	assert.Equal(t, 2, key.Or(s, 0), "later wins")

	plain := agent.State{}.Apply(agent.EffectsOf(agent.AddContext("who says?")))
	assert.Equal(t, "context", plain.Message(0).Source())
	nothing := agent.State{}.Apply(agent.Effects{})
	assert.Zero(t, nothing.MessageCount())
}

func TestEffectsSayWhatTheyAre(t *testing.T) {
	message, note := agent.AddMessage(agent.UserText("x")), agent.AddContext("y")
	value := agent.RunKey[int]("n").Set(3)

	m, ok := message.Message()
	assert.True(t, ok)
	assert.Equal(t, "x", m.Text())
	_, ok = note.Message()
	assert.False(t, ok)

	text, ok := note.Context()
	assert.True(t, ok)
	assert.Equal(t, "y", text)
	_, ok = value.Context()
	assert.False(t, ok)

	name, scope, n, ok := value.Metadata()
	assert.True(t, ok)
	assert.Equal(t, []any{"n", agent.ScopeRun, 3}, []any{name, scope, n})
	name, _, _, ok = message.Metadata()
	assert.False(t, ok)
	assert.Empty(t, name)

	all := agent.EffectsOf(message, note).From("a").Add(agent.EffectsOf(value))
	require.Equal(t, 3, all.Len())
	var sources []string
	for _, e := range all.All() {
		sources = append(sources, e.Source())
	}
	assert.Equal(t, []string{"a", "a", ""}, sources)
}

func TestEffectsDoNotShareTheirList(t *testing.T) {
	given := []agent.Effect{agent.AddContext("a")}
	base := agent.EffectsOf(given...)
	given[0] = agent.AddContext("changed")
	left, right := base.Add(agent.EffectsOf(agent.AddContext("l"))), base.Add(agent.EffectsOf(agent.AddContext("r")))
	named := base.From("x")
	for want, e := range map[string]agent.Effects{"a": base, "a\n\nl": left, "a\n\nr": right} {
		assert.Equal(t, []string{want}, texts(agent.State{}.Apply(e)))
	}
	for _, e := range base.All() {
		assert.Empty(t, e.Source())
	}
	assert.Equal(t, 1, named.Len())
}

// A call's effects are in the next step's state and in the final state, whether the tool ran or not. The decision's
// effects come first.
func TestEffectsOfCallsReachTheNextStep(t *testing.T) {
	order := agent.RunKey[string]("order")
	effects := func(text string) agent.Effects {
		return agent.EffectsOf(agent.AddMessage(agent.UserText(text)), order.Set(text))
	}
	both := executor{
		prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
			p := &agent.Prepared{Original: c, Call: c}
			if c.Name == "deny" {
				p = denied(c)
			}
			p.Effects = effects("decided " + c.Name)
			return p, nil
		},
		execute: func(_ context.Context, s agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
			assert.Empty(t, order.Or(s, ""), "no call sees the effects of another")
			return &agent.ToolResult{Content: agent.TextContent("ran"), Effects: effects("ran " + p.Call.Name)}, nil
		},
	}
	driver := agenttest.Script(calls("a", "deny"), agenttest.Play(func(_ context.Context, s agent.State) (agent.Step, error) {
		return agent.Step{Message: agent.Assistant("last was " + order.Or(s, "lost"))}, nil
	}))
	a := build(t, agent.Config{Driver: driver, Executor: both, Parallel: 2})
	final, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
	require.NoError(t, err)
	assert.Equal(t, []string{
		"hello", "", "ran", "denied by guard: no", "decided a", "ran a", "decided deny", "last was decided deny",
	}, texts(final))
	assert.Equal(t, "decided deny", order.Or(final, "lost"))
}

func ExampleState_Apply() {
	visits := agent.SessionKey[int]("example.visits")
	s := agent.NewState(agent.UserText("hello"))
	s = s.Apply(agent.EffectsOf(
		agent.AddContext("It is Sunday."), agent.AddContext("The shop is closed."), visits.Set(3),
	).From("calendar"))
	fmt.Print(agenttest.Transcript(s))
	fmt.Println(visits.Or(s, 0), "visits, says", s.LastMessage().Source())
	// Output:
	// user: hello
	// user: It is Sunday.
	//
	// The shop is closed.
	// 3 visits, says calendar
}
