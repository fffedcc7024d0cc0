// Command grapnel is the framework itself as a contender, assembled as in its README: a builder, a typed tool with a
// schema, hooks. Telemetry is on, which is the default, but has no exporter; variants of the contender record spans.
package main

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/bench"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// contender is grapnel.
func contender() bench.Contender {
	return bench.Contender{
		Name: "grapnel", Prepare: func(job bench.Job) (bench.Run, error) {
			return prepare(job, capability.UseTelemetry{}, capability.UseGuards{Steps: -1})
		},
	}
}

// withGuards is grapnel as many agents use it: with limits of steps and time, hooks around each step, and a hook at
// Stop.
func withGuards() bench.Contender {
	return bench.Contender{
		Name: "grapnel, guards", Prepare: func(job bench.Job) (bench.Run, error) {
			return prepare(job, capability.UseTelemetry{}, capability.UseGuards{Steps: 1_000_000, Time: time.Hour},
				hooks.On(hooks.AtStepStart, "step", func(_ context.Context, c hooks.StepContext) hooks.Result { return c.Allow() }),
				hooks.On(hooks.AtStepEnd, "step end", func(_ context.Context, c hooks.StepEndContext) hooks.Result { return c.Allow() }),
				hooks.On(hooks.AtStop, "stop", func(_ context.Context, c hooks.StopContext) hooks.Result { return c.Allow() }))
		},
	}
}

type sum struct {
	A int `json:"a" jsonschema:"one number"`
	B int `json:"b" jsonschema:"another"`
}

func prepare(job bench.Job, telemetry capability.UseTelemetry, guards capability.UseGuards, more ...hooks.Hook) (bench.Run, error) {
	script, err := bench.NewScript(job)
	if err != nil {
		return nil, err
	}
	add := toolexec.Func(bench.ToolName, bench.ToolText, func(_ context.Context, in sum) (string, error) {
		return strconv.Itoa(script.Add(in.A, in.B)), nil
	})
	pairs := more
	for i := range job.HookPairs {
		pairs = append(pairs,
			hooks.On(hooks.AtPreToolUse, "before "+strconv.Itoa(i), func(_ context.Context, c hooks.ToolContext) hooks.Result {
				script.Hook(c.Tool())
				return c.Allow()
			}, hooks.ToolNamed(bench.ToolName)),
			hooks.On(hooks.AtPostToolUse, "after "+strconv.Itoa(i), func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
				script.Hook(c.Tool())
				return c.Allow()
			}, hooks.ToolNamed(bench.ToolName)))
	}
	a, err := builder.New().
		WithName("bench").
		WithDriver(scripted{script}).
		WithParallel(job.Calls).
		With(capability.UseTools(add), capability.UseHooks(pairs...), guards, telemetry).
		Build().Get()
	if err != nil {
		return nil, err
	}
	input := script.Input()
	past, err := earlier(input[:job.History])
	if err != nil {
		return nil, err
	}
	asked := agent.UserText(input[job.History].Content)
	return func(ctx context.Context) (bench.Outcome, error) {
		final, err := a.Run(ctx, past, asked).Get()
		return script.Outcome(toBench(final)), err
	}, nil
}

// scripted is the model. It receives the whole transcript and reads the last message.
type scripted struct{ script *bench.Script }

func (m scripted) Next(_ context.Context, s agent.State) mo.Result[agent.Step] {
	last := s.LastMessage()
	ids, err := m.script.Reply(string(last.Role()), last.CallID())
	if err != nil {
		return mo.Err[agent.Step](err)
	}
	if len(ids) == 0 {
		return mo.Ok(agent.Step{Message: agent.Assistant(bench.Answer), FinishReason: agent.FinishStop})
	}
	var one [1]agent.ToolCall // the message copies it
	calls := one[:0]
	for _, id := range ids {
		calls = append(calls, agent.ToolCall{ID: id, Name: bench.ToolName, Arguments: bench.Arguments})
	}
	return mo.Ok(agent.Step{Message: agent.Assistant("", calls...), FinishReason: agent.FinishToolCalls})
}

// earlier returns the state that an earlier run of the session left. Its agent repeats the history.
func earlier(history []bench.Message) (agent.State, error) {
	if len(history) == 0 {
		return agent.NewState(), nil
	}
	turns := history[1:]
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		m := turns[2*s.RunStepCount()]
		var calls []agent.ToolCall
		for _, c := range m.Calls {
			calls = append(calls, agent.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
		return agent.Step{Message: agent.Assistant(m.Content, calls...)}, nil
	})
	tool := toolexec.Func(bench.ToolName, bench.ToolText, func(_ context.Context, in sum) (string, error) {
		return strconv.Itoa(in.A + in.B), nil
	})
	a, err := builder.New().WithDriver(driver).With(capability.UseTools(tool), capability.UseGuards{Steps: -1}).Build().Get()
	if err != nil {
		return agent.State{}, err
	}
	return a.Run(context.Background(), agent.NewState(), agent.UserText(history[0].Content)).Get()
}

func toBench(s agent.State) iter.Seq[bench.Message] {
	return func(yield func(bench.Message) bool) {
		for _, m := range s.Messages() {
			out := bench.Message{Role: string(m.Role()), Content: m.Text(), CallID: m.CallID()}
			for _, c := range m.Calls() {
				out.Calls = append(out.Calls, bench.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
			}
			if !yield(out) {
				return
			}
		}
	}
}
