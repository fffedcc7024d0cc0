package replay

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// StopRecordingEnded is why a run ends for which the recording has no further turn.
const StopRecordingEnded agent.StopReason = "recording_ended"

// Driver is a model that says what was recorded: in each run of the session that the context holds, one turn after
// the other, whatever it is shown. Where the recording has no further turn, the run is stopped with
// StopRecordingEnded. The zero Driver is ready to use, for any number of sessions at once.
//
// What others said between two turns comes with the later one: the driver adds it to the transcript.
type Driver struct{}

var _ agent.Driver = Driver{}

// String names the driver in a printed plan.
func (Driver) String() string { return "replay" }

// Next returns the next recorded turn. It is an error when the context holds no session.
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

// finalReply returns the reply of a recording that is over: what was said after its last turn, and nothing more.
func finalReply(rest []agent.Message, where string, args ...any) agent.Step {
	return agent.Step{Prior: addMessages(rest), Stop: &agent.Signal{
		Reason: StopRecordingEnded, Source: "replay", Message: "the recording " + fmt.Sprintf(where, args...),
	}}
}

func addMessages(messages []agent.Message) agent.Effects {
	return agent.EffectsOf(lo.Map(messages, func(m agent.Message, _ int) agent.Effect { return agent.AddMessage(m) })...)
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
	if run, i, ok := x.run(s); ok && i > 0 && i < len(run.turns) {
		return mo.Ok(agent.Evaluation{Verdict: agent.RequestContinuation})
	}
	return mo.Ok(agent.Evaluation{})
}

// Tools returns tools with the given schemas that answer what was recorded: for the call of the same tool at the same
// place of the same turn, whatever its arguments have become. Where nothing was recorded the call fails, and says so.
func Tools(schemas ...ToolSchema) []toolexec.Tool {
	return lo.Map(schemas, func(schema ToolSchema, _ int) toolexec.Tool {
		spec := agent.ToolSpec{Name: schema.Name, Description: schema.Description, Parameters: string(schema.Parameters)}
		// What was recorded is told whole.
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

// answerTo returns the answer that was recorded where the call stands; none when another tool was called there.
func (t turn) answerTo(c agent.ToolCall) answer {
	if c.Index >= len(t.answers) || t.message.Call(c.Index).Name != c.Name {
		return answer{}
	}
	return t.answers[c.Index]
}
