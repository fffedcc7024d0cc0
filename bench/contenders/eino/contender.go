// Command eino enters the ReAct agent of github.com/cloudwego/eino. A hook pair
// is one of its tool middlewares.
package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"github.com/grapnel-go/grapnel/bench"
)

// contender is eino's ReAct agent.
func contender() bench.Contender {
	return bench.Contender{
		Name: "eino ReAct", Module: "github.com/cloudwego/eino", Prepare: prepare,
	}
}

func prepare(job bench.Job) (bench.Run, error) {
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
	agent, err := react.NewAgent(context.Background(), &react.AgentConfig{
		ToolCallingModel: m,
		ToolsConfig: compose.ToolsNodeConfig{
			Tools:               []tool.BaseTool{add},
			ToolCallMiddlewares: slices.Repeat([]compose.ToolMiddleware{{Invokable: pair(script)}}, job.HookPairs),
		},
		MaxStep: 2*job.Steps + 2, // the model's turns and the tool's
	})
	if err != nil {
		return nil, fmt.Errorf("build agent: %w", err)
	}
	input := make([]*schema.Message, 0, job.History+1)
	for _, asked := range script.Input() {
		input = append(input, fromBench(asked))
	}

	return func(ctx context.Context) (bench.Outcome, error) {
		answer, err := agent.Generate(ctx, input)
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

// pair is a hook before the tool and one behind it.
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

// scripted is the model: shown everything, it looks at the last message, and in
// the end it keeps what it was shown, since the agent hands out the answer alone.
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

// Stream gives the reply in one piece.
func (m *scripted) Stream(
	ctx context.Context, transcript []*schema.Message, opts ...model.Option,
) (*schema.StreamReader[*schema.Message], error) {
	reply, err := m.Generate(ctx, transcript, opts...)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]*schema.Message{reply}), nil
}

// WithTools has nothing to tell the script, which knows its tool.
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
