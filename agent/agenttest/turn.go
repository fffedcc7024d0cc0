package agenttest

import (
	"context"
	"fmt"
	"slices"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Turn is one turn of a scripted model. It is an immutable value: its methods return a changed copy. The zero Turn is
// an empty reply.
type Turn struct {
	step  agent.Step
	calls []agent.ToolCall
	play  func(context.Context, agent.State) (agent.Step, error)
	tries []Turn
}

// Say returns a turn with plain text and no calls.
func Say(text string) Turn { return Turn{step: agent.Step{Message: agent.Assistant(text)}} }

// Call returns a turn that calls a tool. The method Call adds more calls to the turn.
func Call(tool, arguments string) Turn { return Say("").Call(tool, arguments) }

// Reply returns a turn that answers with step. Calls without an ID get one.
func Reply(step agent.Step) Turn {
	return Play(func(context.Context, agent.State) (agent.Step, error) { return step, nil })
}

// Fail returns a turn in which the model call fails.
func Fail(err error) Turn {
	return Play(func(context.Context, agent.State) (agent.Step, error) { return agent.Step{}, err })
}

// Hang returns a turn in which the model does not answer until the context is done.
func Hang() Turn {
	return Play(func(ctx context.Context, _ agent.State) (agent.Step, error) {
		<-ctx.Done()
		return agent.Step{}, context.Cause(ctx)
	})
}

// Play returns a turn that calls f for its step. S is the state that the model is shown. F must be safe for concurrent
// use.
func Play(f func(ctx context.Context, s agent.State) (agent.Step, error)) Turn { return Turn{play: f} }

// Tries returns a turn that differs when the model is asked again, as after a retry. Each try plays the next turn, and
// the last turn is repeated.
func Tries(turns ...Turn) Turn { return Turn{tries: slices.Clone(turns)} }

// Call returns the turn with one more tool call. The first call of the first turn has the ID call_1_1.
func (t Turn) Call(tool, arguments string) Turn {
	t.calls = append(slices.Clip(t.calls), agent.ToolCall{Name: tool, Arguments: arguments})
	return t
}

// WithUsage returns the turn with a usage. Without it a turn uses no tokens, at an unknown cost.
func (t Turn) WithUsage(u agent.Usage) Turn {
	t.step.Usage = u
	return t
}

// WithTokens returns the turn with a number of tokens and the same cost.
func (t Turn) WithTokens(input, output int64) Turn {
	t.step.Usage.InputTokens, t.step.Usage.OutputTokens = input, output
	return t
}

// WithCost returns the turn with a cost in US dollars and the same tokens.
func (t Turn) WithCost(dollars float64) Turn {
	t.step.Usage.Cost = mo.Some(dollars)
	return t
}

// WithFinish returns the turn with a finish reason. The default is
// agent.FinishToolCalls for a turn with calls and agent.FinishStop for others.
func (t Turn) WithFinish(reason agent.FinishReason) Turn {
	t.step.FinishReason = reason
	return t
}

// take plays the turn at a position of the script.
func (t Turn) take(ctx context.Context, s agent.State, position int) (agent.Step, error) {
	if t.play != nil {
		step, err := t.play(ctx, s)
		step.Message = withIDs(step.Message, position)
		return step, err
	}
	step := t.step
	if step.Message.Role() == "" {
		step.Message = agent.Assistant("")
	}
	step.Message = withIDs(step.Message.WithCalls(t.calls...), position)
	step.FinishReason = lo.CoalesceOrEmpty(step.FinishReason,
		lo.Ternary(len(t.calls) > 0, agent.FinishToolCalls, agent.FinishStop))
	step.Model = model
	return step, nil
}

// model is the Model in scripted replies.
const model = "script"

// withIDs gives an ID to each call without one.
func withIDs(m agent.Message, position int) agent.Message {
	var calls []agent.ToolCall
	for i, c := range m.Calls() {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d_%d", position+1, i+1)
		}
		calls = append(calls, c)
	}
	if len(calls) == 0 {
		return m
	}
	return m.WithCalls(calls...)
}
