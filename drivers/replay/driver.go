package replay

import (
	"context"
	"fmt"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// StopRecordingEnded is why a run ends for which the recording has no further turn.
const StopRecordingEnded agent.StopReason = "recording_ended"

// Driver is a model that says what was recorded: in each run of the session that the context holds, one turn after
// the other, whatever it is shown. Where the recording has no further turn, the run is stopped with
// StopRecordingEnded. The zero Driver is ready to use, for any number of sessions at once.
type Driver struct{}

var _ agent.Driver = Driver{}

// String names the driver in a printed plan.
func (Driver) String() string { return "replay" }

// Next is the next recorded turn.
func (Driver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	x, err := sessionIn(ctx)
	if err != nil {
		return mo.Err[agent.Step](err)
	}
	if err := ctx.Err(); err != nil {
		return mo.Err[agent.Step](err)
	}
	run, ok := x.run(s)
	if !ok {
		return mo.Ok(ended(fmt.Sprintf("%q has %d runs, and this is run %d", x.id, len(x.runs), s.Run().Number)))
	}
	i := s.RunStepCount()
	if i >= len(run.turns) {
		return mo.Ok(ended(fmt.Sprintf("%q has no turn %d in run %d", x.id, i+1, s.Run().Number)))
	}
	step := agent.Step{Message: run.turns[i].message, FinishReason: agent.FinishStop, Model: "replay", ID: fmt.Sprintf("turn_%d", i)}
	if len(run.turns[i].answers) > 0 {
		step.FinishReason = agent.FinishToolCalls
	}
	for _, m := range run.turns[i].between {
		step.Prior = step.Prior.Plus(agent.EffectsOf(agent.AddMessage(m)))
	}
	return mo.Ok(step)
}

func ended(where string) agent.Step {
	return agent.Step{Stop: &agent.Signal{
		Reason: StopRecordingEnded, Source: "replay", Message: "the recording " + where,
	}}
}

// GoOn is the criterion that makes a run go on as long as the recording has further turns for it: recorded models
// sometimes speak twice in a row. Leave it out where a Stop hook is to decide.
var GoOn agent.Criterion = goOn{}

type goOn struct{}

func (goOn) String() string { return "replay.GoOn" }

func (goOn) Evaluate(ctx context.Context, s agent.State) mo.Result[agent.Evaluation] {
	x, err := sessionIn(ctx)
	if err != nil {
		return mo.Err[agent.Evaluation](err)
	}
	if run, ok := x.run(s); ok && s.RunStepCount() > 0 && s.RunStepCount() < len(run.turns) {
		return mo.Ok(agent.Evaluation{Verdict: agent.RequestContinuation})
	}
	return mo.Ok(agent.Evaluation{})
}

// Tools is tools with the given schemas that answer what was recorded: for the call at the same place of the same
// turn, whatever its arguments have become. Where nothing was recorded the call fails, and says so.
func Tools(schemas ...ToolSchema) []toolexec.Tool {
	tools := make([]toolexec.Tool, len(schemas))
	for i, schema := range schemas {
		spec := agent.ToolSpec{Name: schema.Name, Description: schema.Description, Parameters: string(schema.Parameters)}
		// What was recorded is told whole.
		tools[i] = toolexec.WithPolicy(toolexec.Raw(spec, recall), toolexec.Policy{MaxResultBytes: -1})
	}
	return tools
}

// recall is the recorded answer to a call.
func recall(ctx context.Context, c toolexec.Call) (toolexec.Output, error) {
	x, err := sessionIn(ctx)
	if err != nil {
		return toolexec.Output{}, err
	}
	run, ok := x.run(c.State)
	i := c.State.RunStepCount()
	if !ok || i >= len(run.turns) || c.Index >= len(run.turns[i].answers) || !run.turns[i].answers[c.Index].recorded {
		return toolexec.Output{}, fmt.Errorf("the recording %q has no answer to call %s", x.id, c.ID)
	}
	a := run.turns[i].answers[c.Index]
	return toolexec.Output{Content: agent.TextContent(a.text), Failed: a.failed}, nil
}
