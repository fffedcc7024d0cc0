package processor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asks returns a driver's func that asks for a tool in each of the first n steps of a
// run and then answers.
func asks(n int) agent.DriverFunc {
	return func(_ context.Context, s agent.State) (agent.Step, error) {
		used := agent.Usage{InputTokens: 10, OutputTokens: int64(s.RunStepCount()), Cost: mo.Some(0.5)}
		if s.RunStepCount() < n {
			return agent.Step{Message: agent.Assistant("", agent.ToolCall{Name: "t"}), Usage: used}, nil
		}
		return agent.Step{Message: agent.Assistant("done"), Usage: used}, nil
	}
}

// tool is an executor of one tool, known by any name.
type tool func(ctx context.Context) (string, error)

var works tool = func(context.Context) (string, error) { return "fine", nil }

func (tool) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(&agent.Prepared{Original: c, Call: c})
}

// Execute lets the run fail with an error that is a *broken.
func (f tool) Execute(ctx context.Context, _ agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if p.Disposition == agent.DisposeAnswer {
		return mo.Ok(p.Answer)
	}
	text, err := f(ctx)
	if _, ok := errors.AsType[*broken](err); ok {
		return mo.Err[*agent.ToolResult](err)
	}
	r := &agent.ToolResult{Status: agent.ToolExecuted, Content: agent.TextContent(text), Attempts: 1}
	if err != nil {
		r.Status, r.Reason, r.Err, r.Content = agent.ToolFailed, agent.ReasonError, err, agent.TextContent(err.Error())
	}
	return mo.Ok(r)
}

// broken is an error in the executor itself. Its kind allows a retry.
type broken struct{}

func (*broken) Error() string              { return "the executor broke" }
func (*broken) ErrorKind() agent.ErrorKind { return agent.KindModel }

// run runs an agent to its end, whatever that is.
func run(ctx context.Context, t *testing.T, config agent.Config) (agent.State, error) {
	t.Helper()
	if config.Executor == nil {
		config.Executor = works
	}
	if config.Criterion == nil {
		config.Criterion = continuation.All(agent.Base, continuation.Steps(20))
	}
	a, err := agent.New(config).Get()
	require.NoError(t, err)
	final, err := a.Run(ctx, agent.NewState(), agent.UserText("go")).Get()
	if failed, ok := errors.AsType[*agent.RunError](err); ok {
		final = failed.State
	}
	return final, err
}

func signal(t *testing.T, s agent.State) agent.Signal {
	t.Helper()
	signal, ok := s.StopSignal(), s.Stopped()
	require.True(t, ok, "the run ended without a signal")
	return signal
}

// events collects what an agent tells.
type events []agent.Event

func (e *events) Observe(_ context.Context, event agent.Event) { *e = append(*e, event) }

func (e *events) names() []string {
	var names []string
	for _, event := range *e {
		names = append(names, event.EventName())
	}
	return names
}
