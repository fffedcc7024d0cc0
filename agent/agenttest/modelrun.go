package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// way says whether a model streams.
type way bool

// outcome records everything that happened in a run.
type outcome struct {
	final    agent.State
	err      error
	deltas   []agent.Delta
	executor *Executor
}

// echoing is a set of tools for runs. Two return their arguments, and one fails.
var echoing = Tools{
	"echo":   func(_ context.Context, c agent.ToolCall) (string, error) { return c.Arguments, nil },
	"other":  func(_ context.Context, c agent.ToolCall) (string, error) { return c.Arguments, nil },
	"broken": func(context.Context, agent.ToolCall) (string, error) { return "", errors.New("out of paper") },
}

// toolSpecs returns the tools' specs. One has a schema, and the others have none.
func (t Tools) toolSpecs() agent.Tools {
	specs := []agent.ToolSpec{}
	for _, spec := range t.Specs().All() {
		if spec.Name == "echo" {
			spec.Description = "Says what it was told."
			spec.Parameters = `{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"}}}`
		}
		specs = append(specs, spec)
	}
	return agent.ToolsOf(specs...)
}

// sayTurn returns a turn with text, callTurn a turn with calls. Their usage depends on their content, so that a sum
// without one turn differs.
func sayTurn(text string) agent.Step {
	return agent.Step{
		Message: agent.Assistant(text), FinishReason: agent.FinishStop,
		Usage: agent.Usage{InputTokens: 100 + int64(len(text)%50), OutputTokens: 1 + int64(len(text))/4},
	}
}

func callTurn(text string, calls ...agent.ToolCall) agent.Step {
	step := sayTurn(text + strings.Repeat("call", len(calls)))
	step.Message, step.FinishReason = agent.Assistant(text, calls...), agent.FinishToolCalls
	return step
}

// withTools works like New for runs with tools.
func (m Model) withTools(t *testing.T, turns ...agent.Step) agent.Driver {
	t.Helper()
	d := m.New(t, turns...)
	if said := agent.FeaturesOf(d); said != (agent.Features{}) && !said.Tools {
		t.Skip("the driver says that there are no tools")
	}
	return d
}

func newAgent(t *testing.T, d agent.Driver, tools Tools) (*agent.Agent, *Executor) {
	t.Helper()
	executor := tools.Executor()
	a, err := agent.New(agent.Config{
		Name: "agenttest", Driver: d, Executor: executor, Parallel: 3,
		Request: agent.Request{Instructions: "Be brief. Seid kurz — будь краток.", Tools: tools.toolSpecs()},
	}).Get()
	require.NoError(t, err)
	return a, executor
}

// run runs an agent with the driver to its end.
func (w way) run(t *testing.T, d agent.Driver, tools Tools, input ...agent.Message) outcome {
	t.Helper()
	a, executor := newAgent(t, d, tools)
	out := outcome{executor: executor}
	soon(t, "the run", func() { w.on(t.Context(), a, &out, agent.NewState(), input...) })
	return out
}

// on runs the agent on a state and records the outcome.
func (w way) on(ctx context.Context, a *agent.Agent, out *outcome, s agent.State, input ...agent.Message) {
	if !w {
		out.final, out.err = a.Run(ctx, s, input...).Get()
		if failed, ok := errors.AsType[*agent.RunError](out.err); ok {
			out.final = failed.State
		}
		return
	}
	for p, err := range a.Stream(ctx, s, input...) {
		out.err = err
		if p.Delta != nil {
			out.deltas = append(out.deltas, *p.Delta)
		} else {
			out.final = p.State
		}
	}
}

// streamText returns the text of all pieces.
func (o outcome) streamText() string {
	return strings.Join(lo.Map(o.deltas, func(d agent.Delta, _ int) string { return d.Text }), "")
}

func (o outcome) finishReasons() (reasons []agent.FinishReason) {
	for _, step := range o.final.RunSteps() {
		reasons = append(reasons, step.Reply().FinishReason)
	}
	return reasons
}

// ran returns the calls whose tools ran, in call order, as "name arguments".
func (o outcome) ran(t *testing.T) (calls []string) {
	t.Helper()
	for _, step := range o.final.RunSteps() {
		for _, r := range step.Results() {
			if r.Attempts > 0 {
				c := r.Call()
				calls = append(calls, c.Name+" "+canonicalJSON(t, c.Arguments))
			}
		}
	}
	assert.Len(t, o.executor.Calls(), len(calls), "calls that reached the executor")
	return calls
}

// checkAnswered checks that every call has a unique ID in its reply, and one answer.
func (o outcome) checkAnswered(t *testing.T) {
	t.Helper()
	for i, step := range o.final.RunSteps() {
		checkStep(t, step.Reply())
		for j, r := range step.Results() {
			assert.NotEmpty(t, r.CallID(), "the id of call %d of step %d", j, i)
			assert.Equal(t, step.Message().Call(j).ID, r.CallID(), "the answer to call %d of step %d", j, i)
		}
	}
}

// checkUsage checks that the run's usage is the sum of the turns.
func (o outcome) checkUsage(t *testing.T, turns ...agent.Step) {
	t.Helper()
	used := o.final.RunUsage()
	assert.Equal(t, lo.SumBy(turns, func(s agent.Step) int64 { return s.Usage.InputTokens }), used.InputTokens, "input tokens of the run")
	assert.Equal(t, lo.SumBy(turns, func(s agent.Step) int64 { return s.Usage.OutputTokens }), used.OutputTokens, "output tokens of the run")
}

// checkText compares texts that are too long for a failure message.
func checkText(t *testing.T, what, want, got string) {
	t.Helper()
	if want != got {
		assert.Fail(t, what, "%s has %d bytes and should have %d, or others", what, len(got), len(want))
	}
}

// canonicalJSON returns JSON text in a canonical form. Empty text means an empty object.
func canonicalJSON(t *testing.T, text string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(lo.CoalesceOrEmpty(text, "{}")), &value); err != nil {
		assert.NoError(t, err, "arguments %q", text)
		return text
	}
	out, err := json.Marshal(value)
	require.NoError(t, err)
	return string(out)
}
