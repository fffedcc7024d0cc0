package continuation_test

import (
	"context"
	"errors"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// turns returns a driver that gives the turns of a script, one for each step of the
// run, and the last of them from there on.
func turns(script ...turn) agent.Driver {
	return agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		if s.RunStepCount() > 100 {
			panic("the run should have ended long ago")
		}
		t := script[min(s.RunStepCount(), len(script)-1)]
		return t.step, t.err
	})
}

type turn struct {
	step agent.Step
	err  error
}

func answer(text string) turn {
	return turn{step: agent.Step{
		Message: agent.Assistant(text), FinishReason: agent.FinishStop, Usage: agent.Usage{Cost: mo.Some(0.0)},
	}}
}

func call(tools ...string) turn {
	calls := make([]agent.ToolCall, len(tools))
	for i, name := range tools {
		calls[i].Name = name
	}
	return turn{step: agent.Step{
		Message: agent.Assistant("", calls...), FinishReason: agent.FinishToolCalls, Usage: agent.Usage{Cost: mo.Some(0.0)},
	}}
}

func fail(err error) turn { return turn{err: err} }

func (t turn) using(u agent.Usage) turn {
	t.step.Usage = u
	return t
}

// tools is an executor of tools that fail with an error, or work where it is nil.
type tools map[string]error

func (tools) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(&agent.Prepared{Original: c, Call: c})
}

func (t tools) Execute(_ context.Context, _ agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	r := &agent.ToolResult{Status: agent.ToolExecuted, Content: agent.TextContent("fine"), Attempts: 1}
	if err := t[p.Call.Name]; err != nil {
		r.Status, r.Reason, r.Err = agent.ToolFailed, agent.ReasonError, err
		r.Content = agent.TextContent("it did not work: " + err.Error())
	}
	return mo.Ok(r)
}

var works = tools{}

// run runs an agent to its end, whatever that is.
func run(t *testing.T, config agent.Config) (agent.State, error) {
	t.Helper()
	a, err := agent.New(config).Get()
	require.NoError(t, err)
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	if broken, ok := errors.AsType[*agent.RunError](err); ok {
		final = broken.State
	}
	return final, err
}

// signal returns why a run ended.
func signal(t *testing.T, s agent.State) agent.Signal {
	t.Helper()
	signal, ok := s.StopSignal(), s.Stopped()
	require.True(t, ok, "the run ended without a signal")
	return signal
}

// says returns a criterion that always says the same.
func says(e agent.Evaluation) agent.Criterion {
	return agent.CriterionFunc(func(context.Context, agent.State) (agent.Evaluation, error) { return e, nil })
}

// afterSteps returns a criterion that says something once so many steps are taken.
func afterSteps(n int, e agent.Evaluation) agent.Criterion {
	return agent.CriterionFunc(func(_ context.Context, s agent.State) (agent.Evaluation, error) {
		if s.RunStepCount() == n {
			return e, nil
		}
		return agent.Evaluation{}, nil
	})
}

func forbidBecause(reason agent.StopReason, source string) agent.Evaluation {
	return agent.Evaluation{Verdict: agent.Forbid, Signal: agent.Signal{Reason: reason, Source: source}}
}
