package replay

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// StopRecordingEnded is the stop reason when the recording has no further turn.
const StopRecordingEnded agent.StopReason = "recording_ended"

// Driver is a model that repeats a recording. The context holds the session. In each run, Driver returns one recorded
// turn after the other, regardless of the messages. When the recording has no further turn, the run is stopped with
// StopRecordingEnded. The zero Driver is ready to use, for any number of sessions at the same time.
//
// Recorded messages between two turns belong to the later turn: the driver adds them to the transcript.
type Driver struct{}

var _ agent.Driver = Driver{}

// String names the driver in a printed plan.
func (Driver) String() string { return "replay" }

// Next returns the next recorded turn. It returns an error when the context holds no session.
func (Driver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	x, err := sessionIn(ctx)
	if err != nil {
		return mo.Err[agent.Step](err)
	}
	if err := ctx.Err(); err != nil {
		return mo.Err[agent.Step](err)
	}
	run, i, ok := x.run(s)
	if !ok {
		return mo.Ok(finalReply(nil, "%q has %d runs, and this is run %d", x.id, len(x.runs), s.Run().Number))
	}
	if i >= len(run.turns) {
		return mo.Ok(finalReply(run.rest, "%q has no turn %d in run %d", x.id, i+1, s.Run().Number))
	}
	t := run.turns[i]
	return mo.Ok(agent.Step{
		Message: t.message, Prior: addMessages(t.between),
		FinishReason: lo.Ternary(len(t.answers) > 0, agent.FinishToolCalls, agent.FinishStop),
		Model:        x.model, ID: fmt.Sprintf("turn_%d", i),
	})
}

// finalReply returns the step for the end of a recording: the messages after its last turn, and a stop.
func finalReply(rest []agent.Message, where string, args ...any) agent.Step {
	return agent.Step{Prior: addMessages(rest), Stop: &agent.Signal{
		Reason: StopRecordingEnded, Source: "replay", Message: "the recording " + fmt.Sprintf(where, args...),
	}}
}

func addMessages(messages []agent.Message) agent.Effects {
	return agent.EffectsOf(lo.Map(messages, func(m agent.Message, _ int) agent.Effect { return agent.AddMessage(m) })...)
}

// GoOn is the criterion that continues a run while the recording has further turns for it. Recorded models sometimes
// take two turns in a row. Omit it if a Stop hook should decide.
var GoOn agent.Criterion = goOn{}

type goOn struct{}

func (goOn) String() string { return "replay.GoOn" }

func (goOn) Evaluate(ctx context.Context, s agent.State) mo.Result[agent.Evaluation] {
	x, err := sessionIn(ctx)
	if err != nil {
		return mo.Err[agent.Evaluation](err)
	}
	if run, i, ok := x.run(s); ok && i > 0 && i < len(run.turns) {
		return mo.Ok(agent.Evaluation{Verdict: agent.RequestContinuation})
	}
	return mo.Ok(agent.Evaluation{})
}

// Tools returns tools with the given schemas that return the recorded answers. The answer to a call is the recorded
// answer to the same tool's call at the same position in the same turn, regardless of the arguments. If the recording
// has no answer, the call fails.
func Tools(schemas ...ToolSchema) []toolexec.Tool {
	return lo.Map(schemas, func(schema ToolSchema, _ int) toolexec.Tool {
		spec := agent.ToolSpec{Name: schema.Name, Description: schema.Description, Parameters: string(schema.Parameters)}
		// Recorded answers are not shortened.
		return toolexec.WithPolicy(toolexec.Raw(spec, recallAnswer), toolexec.Policy{MaxResultBytes: -1})
	})
}

// recallAnswer returns the recorded answer to a call.
func recallAnswer(ctx context.Context, c toolexec.Call) (toolexec.Output, error) {
	x, err := sessionIn(ctx)
	if err != nil {
		return toolexec.Output{}, err
	}
	if run, i, ok := x.run(c.State); ok && i < len(run.turns) {
		if a := run.turns[i].answerTo(c.ToolCall); a.recorded {
			return toolexec.Output{Content: agent.TextContent(a.text), Failed: a.failed}, nil
		}
	}
	return toolexec.Output{}, fmt.Errorf("the recording %q has no answer to call %s", x.id, c.ID)
}

// answerTo returns the answer that was recorded at the call's position. It is empty when the recording has another
// tool's call there.
func (t turn) answerTo(c agent.ToolCall) answer {
	if c.Index >= len(t.answers) || t.message.Call(c.Index).Name != c.Name {
		return answer{}
	}
	return t.answers[c.Index]
}
