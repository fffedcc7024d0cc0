package agenttest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// TestProcessor tests a processor against the contract of agent.Processor, around a run and around a step. NewProcessor
// is called once for each part of the test. It returns a processor that allows runs of two steps. The processor may
// have any other effects.
func TestProcessor(t *testing.T, newProcessor func(t *testing.T) agent.Processor) {
	t.Helper()
	echo := Tools{"echo": func(_ context.Context, c agent.ToolCall) (string, error) { return c.Arguments, nil }}
	places := map[string]func(p agent.Processor) agent.Config{
		"around a run":  func(p agent.Processor) agent.Config { return agent.Config{AroundRun: []agent.Processor{p}} },
		"around a step": func(p agent.Processor) agent.Config { return agent.Config{AroundStep: []agent.Processor{p}} },
	}
	for place, config := range places {
		build := func(t *testing.T, driver agent.Driver) *agent.Agent {
			t.Helper()
			c := config(newProcessor(t))
			c.Driver, c.Executor = driver, echo.Executor()
			a, err := agent.New(c).Get()
			require.NoError(t, err)
			return a
		}
		t.Run(place, func(t *testing.T) {
			t.Run("lets a run pass", func(t *testing.T) {
				a := build(t, Script(Call("echo", `{}`), Say("done")))
				final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
				require.NoError(t, err)
				assert.Equal(t, agent.StatusDone, final.Status(), "the status")
				assert.Equal(t, "done", final.Answer(), "the answer")
				assert.Equal(t, 2, final.RunStepCount(), "steps")
			})
			t.Run("keeps runs apart", func(t *testing.T) {
				back := func(_ context.Context, s agent.State) (agent.Step, error) {
					return agent.Step{Message: agent.Assistant("answer to " + s.Message(0).Text())}, nil
				}
				a := build(t, Script(Call("echo", `{}`), Play(back)))
				together(func(i int) {
					question := fmt.Sprintf("question %d", i)
					final, err := a.Run(t.Context(), agent.NewState(agent.UserText(question))).Get()
					if assert.NoError(t, err) {
						assert.Equal(t, "answer to "+question, final.Answer())
					}
				})
			})
			t.Run("hands the end of the context down", func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				a := build(t, Script(Play(func(inner context.Context, _ agent.State) (agent.Step, error) {
					cancel()
					<-inner.Done()
					return agent.Step{}, context.Cause(inner)
				})))
				soon(t, "Run", func() {
					_, err := a.Run(ctx, agent.NewState(agent.UserText("hello"))).Get()
					assert.Error(t, err, "the run was cancelled")
				})
			})
			t.Run("does not keep the state", func(t *testing.T) {
				a := build(t, Script(Call("echo", `{}`), Say("done")).EachRun())
				checkForgets(t, "the processor", func(s agent.State) { a.Run(t.Context(), s) })
				_, err := a.Run(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
				require.NoError(t, err)
			})
		})
	}
	t.Run("returns after next, with an error, or with a stop", func(t *testing.T) {
		broken := errors.New("the rest of the chain is broken")
		for name, next := range map[string]agent.Next{
			"when the rest fails": func(context.Context, agent.State) mo.Result[agent.State] {
				return mo.Err[agent.State](broken)
			},
			"when the rest stops": func(_ context.Context, s agent.State) mo.Result[agent.State] {
				return mo.Ok(s.WithStop(agent.Signal{Reason: agent.StopByHook, Source: "agenttest"}))
			},
		} {
			t.Run(name, func(t *testing.T) {
				called := false
				s, err := newProcessor(t).Process(t.Context(), agent.NewState(agent.UserText("hello")),
					func(ctx context.Context, s agent.State) mo.Result[agent.State] {
						called = true
						return next(ctx, s)
					}).Get()
				if err == nil {
					assert.True(t, s.Stopped() || s.Status().Terminal(),
						"the processor returned no error, and a state that has neither stopped nor ended (next called: %v)", called)
				}
			})
		}
	})
}
