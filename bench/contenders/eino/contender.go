// Command eino is two agents of github.com/cloudwego/eino as contenders: the ReAct graph and the chat model agent of
// its agent development kit. A hook pair is a middleware of the tools node that both use.
package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"github.com/grapnel-go/grapnel/bench"
)

// contenders are eino's two agents.
func contenders() []bench.Contender {
	const module = "github.com/cloudwego/eino"
	return []bench.Contender{
		{Name: "eino ReAct", Module: module, Prepare: prepared(reAct)},
		{Name: "eino ADK", Module: module, Prepare: prepared(chatModelAgent)},
	}
}

type (
	// runner runs an agent and returns its answer. builder builds an agent.
	runner  func(context.Context, []*schema.Message) (*schema.Message, error)
	builder func(ctx context.Context, m *scripted, tools compose.ToolsNodeConfig, steps int) (runner, error)
)

func reAct(ctx context.Context, m *scripted, tools compose.ToolsNodeConfig, steps int) (runner, error) {
	a, err := react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel: m, ToolsConfig: tools,
		MaxStep: 2*steps + 2, // the model's turns and the tool's
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, input []*schema.Message) (*schema.Message, error) {
		return a.Generate(ctx, input)
	}, nil
}

func chatModelAgent(ctx context.Context, m *scripted, tools compose.ToolsNodeConfig, steps int) (runner, error) {
	a, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
		Name: "bench", Description: "adds numbers", Model: m,
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: tools}, MaxIterations: steps + 1,
	})
	if err != nil {
		return nil, err
	}
	r := adk.NewRunner(ctx, adk.RunnerConfig{Agent: a})
	return func(ctx context.Context, input []*schema.Message) (*schema.Message, error) {
		var answer *schema.Message
		for events := r.Run(ctx, input); ; {
			event, more := events.Next()
			switch {
			case !more:
				return answer, nil
			case event.Err != nil:
				return nil, event.Err
			case event.Output != nil && event.Output.MessageOutput != nil:
				answer = event.Output.MessageOutput.Message
			}
		}
	}, nil
}

func prepared(build builder) func(bench.Job) (bench.Run, error) {
	return func(job bench.Job) (bench.Run, error) { return prepare(job, build) }
}

func prepare(job bench.Job, build builder) (bench.Run, error) {
	script, err := bench.NewScript(job)
	if err != nil {
		return nil, err
	}
	add, err := utils.InferTool(bench.ToolName, bench.ToolText, func(_ context.Context, in numbers) (int, error) {
		return script.Add(in.A, in.B), nil
	})
	if err != nil {
		return nil, fmt.Errorf("make tool %q: %w", bench.ToolName, err)
	}
	m := &scripted{script: script}
	run, err := build(context.Background(), m, compose.ToolsNodeConfig{
		Tools:               []tool.BaseTool{add},
		ToolCallMiddlewares: slices.Repeat([]compose.ToolMiddleware{{Invokable: pair(script)}}, job.HookPairs),
	}, job.Steps)
	if err != nil {
		return nil, fmt.Errorf("build agent: %w", err)
	}
	input := make([]*schema.Message, 0, job.History+1)
	for _, asked := range script.Input() {
		input = append(input, fromBench(asked))
	}

	return func(ctx context.Context) (bench.Outcome, error) {
		answer, err := run(ctx, input)
		if err != nil {
			return bench.Outcome{}, fmt.Errorf("run agent: %w", err)
		}
		return script.Outcome(toBench(*m.shown.Load(), answer)), nil
	}, nil
}

type numbers struct {
	A int `json:"a"`
	B int `json:"b"`
}

// pair returns a hook before the tool and one after it.
func pair(script *bench.Script) compose.InvokableToolMiddleware {
	return func(next compose.InvokableToolEndpoint) compose.InvokableToolEndpoint {
		return func(ctx context.Context, in *compose.ToolInput) (*compose.ToolOutput, error) {
			script.Hook(in.Name)
			out, err := next(ctx, in)
			script.Hook(in.Name)
			return out, err
		}
	}
}

// scripted is the model. It receives the whole transcript and reads the last message. In the end it keeps the
// transcript, because the agent returns only the answer.
type scripted struct {
	script *bench.Script
	shown  atomic.Pointer[[]*schema.Message]
}

var _ model.ToolCallingChatModel = (*scripted)(nil)

func (m *scripted) Generate(
	_ context.Context, transcript []*schema.Message, _ ...model.Option,
) (*schema.Message, error) {
	last := transcript[len(transcript)-1]
	ids, err := m.script.Reply(string(last.Role), last.ToolCallID)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		m.shown.Store(&transcript)
		return schema.AssistantMessage(bench.Answer, nil), nil
	}
	calls := make([]schema.ToolCall, len(ids))
	for i, id := range ids {
		calls[i] = schema.ToolCall{
			ID: id, Type: "function", Function: schema.FunctionCall{Name: bench.ToolName, Arguments: bench.Arguments},
		}
	}
	return schema.AssistantMessage("", calls), nil
}

// Stream returns the reply in one piece.
func (m *scripted) Stream(
	ctx context.Context, transcript []*schema.Message, opts ...model.Option,
) (*schema.StreamReader[*schema.Message], error) {
	reply, err := m.Generate(ctx, transcript, opts...)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]*schema.Message{reply}), nil
}

// WithTools returns the model unchanged, because the script knows its tool.
func (m *scripted) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return m, nil }

func fromBench(m bench.Message) *schema.Message {
	out := &schema.Message{Role: schema.RoleType(m.Role), Content: m.Content, ToolCallID: m.CallID}
	for _, c := range m.Calls {
		out.ToolCalls = append(out.ToolCalls, schema.ToolCall{
			ID: c.ID, Type: "function", Function: schema.FunctionCall{Name: c.Name, Arguments: c.Arguments},
		})
	}
	return out
}

func toBench(shown []*schema.Message, answer *schema.Message) iter.Seq[bench.Message] {
	return func(yield func(bench.Message) bool) {
		for _, m := range append(slices.Clip(shown), answer) {
			out := bench.Message{Role: string(m.Role), Content: m.Content, CallID: m.ToolCallID}
			for _, c := range m.ToolCalls {
				out.Calls = append(out.Calls, bench.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
			}
			if !yield(out) {
				return
			}
		}
	}
}
