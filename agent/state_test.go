package agent_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// model holds the expected content of a state, in slices and maps that are always
// copied.
type model struct {
	messages []string
	accepted int
	run, all map[string]int
	stop     string
}

func (m model) copied() model {
	m.messages = slices.Clone(m.messages)
	m.run, m.all = cloned(m.run), cloned(m.all)
	return m
}

func cloned(m map[string]int) map[string]int {
	out := map[string]int{}
	maps.Copy(out, m)
	return out
}

// Forks of one state behave like copied slices in any interleaving: a state does not
// see the changes of another.
func TestForksOfAStateEqualTheModel(t *testing.T) {
	a := build(t, agent.Config{Driver: agenttest.Script().Then(agenttest.Say("answer"))})
	rapid.Check(t, func(t *rapid.T) {
		states := []agent.State{{}}
		models := []model{{}}
		text := rapid.StringMatching(`[a-z]{1,3}`)
		n := rapid.IntRange(1, 30).Draw(t, "changes")
		for range n {
			at := rapid.IntRange(0, len(states)-1).Draw(t, "at")
			s, m := states[at], models[at].copied()
			switch rapid.IntRange(0, 7).Draw(t, "change") {
			case 0:
				word := text.Draw(t, "message")
				s = s.With(agent.UserText(word), agent.System(word))
				m.messages = append(m.messages, word, word)
			case 1:
				word := text.Draw(t, "effect")
				s = s.Apply(agent.EffectsOf(agent.AddMessage(agent.UserText(word)), agent.SessionKey[int](word).Set(len(word))))
				m.messages, m.all[word] = append(m.messages, word), len(word)
			case 2:
				name := text.Draw(t, "key")
				s, m.run[name] = agent.RunKey[int](name).In(s, at), at
			case 3:
				word := text.Draw(t, "input")
				s = agent.Checkpoint(s).WithInput(agent.UserText(word))
				m.messages = append(m.messages[:m.accepted], word)
			case 4:
				source := text.Draw(t, "source")
				if s = s.WithStop(agent.Signal{Reason: agent.StopByHook, Source: source}); m.stop == "" || m.stop == "agent" { // a hook outweighs an answer
					m.stop = source
				}
			case 5: // a view is shown, and touches nothing
				view := s.WithView(agent.UserText("view"))
				require.Equal(t, []string{"view"}, texts(view))
				require.Equal(t, []string{"view", "more"}, texts(view.With(agent.UserText("more"))))
			case 6:
				s = throughJSON(t, s)
			case 7:
				final, err := a.Run(t.Context(), s).Get()
				require.NoError(t, err)
				s, m.messages, m.run, m.stop = final, append(m.messages, "answer"), map[string]int{}, "agent"
				m.accepted = len(m.messages)
			}
			states, models = append(states, s), append(models, m)
		}
		for i, s := range states {
			m := models[i]
			require.Equal(t, append([]string{}, m.messages...), texts(s))
			require.Equal(t, len(m.messages), s.MessageCount())
			require.Len(t, pending(s), len(m.messages)-m.accepted)
			for name, want := range m.all {
				require.Equal(t, want, agent.SessionKey[int](name).Or(s, -1))
			}
			for name, want := range m.run {
				require.Equal(t, want, agent.RunKey[int](name).Or(s, -1))
			}
			require.Equal(t, m.stop, s.StopSignal().Source)
			backward := []string{}
			for _, message := range s.MessagesBackward() {
				backward = append(backward, message.Text())
			}
			slices.Reverse(backward)
			require.Equal(t, texts(s), backward)
		}
	})
}

// For the race detector: forks can grow at the same time.
func TestForksMayGrowAtOnce(t *testing.T) {
	base := agent.NewState(agent.UserText("base"))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			s := base
			for i := range 50 {
				s = s.With(agent.UserText(fmt.Sprint(g, ":", i)))
			}
			for i, m := range s.MessagesFrom(1) {
				assert.Equal(t, fmt.Sprint(g, ":", i-1), m.Text())
			}
		})
	}
	wg.Wait()
	assert.Equal(t, []string{"base"}, texts(base))
}

func TestStepsOfTheRunAndOfTheSession(t *testing.T) {
	a := build(t, agent.Config{
		Driver:   agenttest.Script(calls("add", "fail"), agenttest.Say("one"), calls("add"), agenttest.Say("two")),
		Executor: tools().Executor(),
	})
	first := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).MustGet()
	second := a.Run(t.Context(), first, agent.UserText("again")).MustGet()

	var all, run, backward []int
	for i, r := range second.Steps() {
		all = append(all, i, r.Index())
	}
	for i, r := range second.RunSteps() {
		run = append(run, i, r.Index())
	}
	for i, r := range second.RunStepsBackward() {
		backward = append(backward, i, r.Index())
	}
	assert.Equal(t, []int{0, 0, 1, 1, 2, 0, 3, 1}, all)
	assert.Equal(t, []int{0, 0, 1, 1}, run)
	assert.Equal(t, []int{1, 1, 0, 0}, backward)
	assert.Equal(t, "two", lastStep(t, second).Message().Text())
	assert.Equal(t, "one", lastStep(t, first).Message().Text())

	for i, r := range first.RunSteps() {
		if i == 0 {
			assert.Equal(t, agent.StepToolExecution, r.Kind())
			assert.Equal(t, []string{"add", "fail"}, slices.Collect(r.Tools()))
			assert.Equal(t, 1, r.ToolFailures())
			assert.Equal(t, 2, r.ResultCount())
			result := r.Result(1)
			assert.True(t, result.Executed())
			assert.True(t, result.IsError())
			assert.Equal(t, "out of paper", result.Text())
			require.ErrorIs(t, result.Err, errOutOfPaper)
			assert.Equal(t, []string{"0", "out of paper"}, []string{results(r)[0].Text(), results(r)[1].Text()})
		}
	}
}

func TestUsageAddsUp(t *testing.T) {
	a := agent.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, ReasoningTokens: 5, Cost: mo.Some(0.5)}
	assert.Equal(t, agent.Usage{
		InputTokens: 2, OutputTokens: 4, CacheReadTokens: 6, CacheWriteTokens: 8, ReasoningTokens: 10, Cost: mo.Some(1.0),
	}, a.Add(a))
	assert.Equal(t, int64(3), a.Tokens())
	assert.True(t, a.Add(agent.Usage{}).Cost.IsAbsent(), "a sum with an unknown cost is unknown")
	assert.True(t, agent.Usage{}.Add(a).Cost.IsAbsent())
}
