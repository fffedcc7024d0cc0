package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
)

// drawnExecutor handles each call as the name of its tool says.
type drawnExecutor struct{}

func (drawnExecutor) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	p := &agent.Prepared{Original: c, Call: c}
	switch c.Name {
	case "answered":
		p.Disposition, p.Answer = agent.DisposeAnswer, agent.NotExecuted(c, agent.ReasonDenied, "", "no")
	case "stopped":
		p.Disposition, p.Stop = agent.DisposeStop, &agent.Signal{Reason: agent.StopByHook, Message: "enough"}
	case "broken":
		return mo.Err[*agent.Prepared](errors.New("out of paper"))
	}
	return mo.Ok(p)
}

func (drawnExecutor) Execute(_ context.Context, _ agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	time.Sleep(time.Duration(p.Original.Index%3) * time.Second) // so that calls end in another order than they begin
	r := agent.NewResult(p)
	r.Content = agent.TextContent(p.Call.ID)
	switch p.Call.Name {
	case "adds":
		r.Effects = agent.EffectsOf(agent.AddContext("by " + p.Call.ID))
	case "stops":
		r.Stop = &agent.Signal{Reason: agent.StopByHook, Message: p.Call.ID}
	case "fails":
		return mo.Err[*agent.ToolResult](fmt.Errorf("call %s is out of paper", p.Call.ID))
	case "signals":
		return mo.Err[*agent.ToolResult](&agent.SignalError{Signal: agent.Signal{Reason: agent.StopByHook, Message: p.Call.ID}})
	case "nothing":
		return mo.Ok[*agent.ToolResult](nil)
	}
	return mo.Ok(r)
}

// Parallel calls have the same results as sequential calls.
func TestCallsComeToTheSameAtAnyWidth(t *testing.T) {
	names := []string{"works", "works", "adds", "stops", "fails", "signals", "nothing", "answered", "stopped", "broken"}
	rapid.Check(t, func(rt *rapid.T) {
		var calls []agent.ToolCall
		for i, name := range rapid.SliceOfN(rapid.SampledFrom(names), 1, 20).Draw(rt, "calls") {
			calls = append(calls, agent.ToolCall{ID: rapid.SampledFrom([]string{"", "a", fmt.Sprint("id_", i)}).Draw(rt, "id"), Name: name})
		}
		play := func(width int) (messages []string, status agent.Status, failure string) {
			turns := []agent.Message{agent.Assistant("", calls...), agent.Assistant("done")}
			driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
				return agent.Step{Message: turns[s.RunStepCount()]}, nil
			})
			a, err := agent.New(agent.Config{Driver: driver, Executor: drawnExecutor{}, Parallel: width}).Get()
			require.NoError(rt, err)
			synctest.Test(t, func(*testing.T) {
				final, err := a.RunWith(context.Background(), agent.RunSettings{ID: "run_1", Session: "session_1"}, agent.NewState(), agent.UserText("go")).Get()
				if failed, ok := errors.AsType[*agent.RunError](err); ok {
					final = failed.State
				}
				for _, m := range final.Messages() {
					messages = append(messages, fmt.Sprintf("%s %s %s %s %q %s", m.Role(), m.CallID(), m.Status(), m.Source(), m.Text(), final.StopSignal().Message))
				}
				status, failure = final.Status(), fmt.Sprint(err)
			})
			return messages, status, failure
		}
		messages, status, failure := play(1)
		answered := map[string]bool{}
		for _, m := range messages {
			if id, isAnswer := strings.CutPrefix(m, "tool "); isAnswer {
				answered[strings.Fields(id)[0]] = true
			}
		}
		require.Len(rt, answered, len(calls), "each call has an id of its own, and one answer, however many there are")
		for _, width := range []int{2, 30} {
			at, ended, why := play(width)
			require.Equal(rt, messages, at)
			require.Equal(rt, status, ended)
			require.Equal(rt, failure, why)
		}
	})
}
