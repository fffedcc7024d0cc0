package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tester is what testing.TB and *rapid.T have in common.
type tester interface {
	require.TestingT
	Helper()
}

func build(t tester, c agent.Config) *agent.Agent {
	t.Helper()
	a, err := agent.New(c).Get()
	require.NoError(t, err)
	return a
}

// play runs an agent with a script and the tools add and fail.
func play(t *testing.T, turns ...agenttest.Turn) agent.State {
	t.Helper()
	a := build(t, agent.Config{Name: "test", Driver: agenttest.Script(turns...), Executor: tools().Executor()})
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("hello")).Get()
	require.NoError(t, err)
	return final
}

// runError returns the error of a failed or cancelled run.
func runError(t tester, result mo.Result[agent.State]) *agent.RunError {
	t.Helper()
	var failed *agent.RunError
	require.ErrorAs(t, result.Error(), &failed)
	return failed
}

func tools() agenttest.Tools {
	return agenttest.Tools{
		"add": func(_ context.Context, c agent.ToolCall) (string, error) {
			var in struct{ A, B int }
			err := json.Unmarshal([]byte(c.Arguments), &in)
			return fmt.Sprint(in.A + in.B), err
		},
		"fail": func(context.Context, agent.ToolCall) (string, error) { return "", errOutOfPaper },
		"stop": func(context.Context, agent.ToolCall) (string, error) {
			return "", &agent.SignalError{Signal: stopSignal}
		},
	}
}

var (
	errOutOfPaper = fmt.Errorf("out of paper")
	stopSignal    = agent.Signal{
		Reason: agent.StopByHook, Message: "enough", Source: "stop", Details: map[string]any{"used": 3, "limit": 3},
	}
)

// executor is an Executor from funcs. If a func is nil, the call runs and the answer is
// "ran".
type executor struct {
	prepare func(ctx context.Context, s agent.State, c *agent.ToolCall) (*agent.Prepared, error)
	execute func(ctx context.Context, s agent.State, p *agent.Prepared) (*agent.ToolResult, error)
}

func (e executor) Prepare(ctx context.Context, s agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	if e.prepare == nil {
		return mo.Ok(&agent.Prepared{Original: c, Call: c})
	}
	return mo.TupleToResult(e.prepare(ctx, s, c))
}

func (e executor) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if e.execute == nil {
		return mo.Ok(&agent.ToolResult{Status: agent.ToolExecuted, Content: agent.TextContent("ran"), Attempts: 1})
	}
	return mo.TupleToResult(e.execute(ctx, s, p))
}

// MayAddMessages lets tests see messages of tools in every role.
func (executor) MayAddMessages(string) bool { return true }

// calls returns a turn with a call of each tool, without arguments.
func calls(names ...string) agenttest.Turn {
	turn := agenttest.Say("")
	for _, name := range names {
		turn = turn.Call(name, `{}`)
	}
	return turn
}

// answers returns "call id status reason" of each tool message, in order.
func answers(s agent.State) []string {
	var out []string
	for _, m := range s.Messages() {
		if m.Role() == agent.RoleTool {
			out = append(out, fmt.Sprintf("%s %s %s", m.CallID(), m.Status(), m.Reason()))
		}
	}
	return out
}

// texts returns the text of each message, in order.
func texts(s agent.State) []string {
	out := []string{}
	for _, m := range s.Messages() {
		out = append(out, m.Text())
	}
	return out
}

func results(r agent.StepRecord) []agent.ToolResult {
	var out []agent.ToolResult
	for _, result := range r.Results() {
		out = append(out, result)
	}
	return out
}

func lastStep(t *testing.T, s agent.State) agent.StepRecord {
	t.Helper()
	require.NotZero(t, s.RunStepCount(), "the run has taken a step")
	return s.LastStep()
}

func signalOf(t *testing.T, s agent.State) agent.Signal {
	t.Helper()
	signal, ok := s.StopSignal(), s.Stopped()
	require.True(t, ok, "the state has a stop signal")
	return signal
}

func around(name string, log *[]string) agent.Processor {
	return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		*log = append(*log, name+" begins")
		defer func() { *log = append(*log, name+" ends") }()
		return next(ctx, s)
	})
}

// printEnd prints how a run ended, for examples.
func printEnd(final agent.State, err error) {
	if err != nil {
		fmt.Println(err)
		return
	}
	signal := final.StopSignal()
	fmt.Printf("%s %s by %s: %s\n", final.Status(), signal.Reason, signal.Source, signal.Message)
}
