// Command langchaingo is the OpenAI functions agent of github.com/tmc/langchaingo, run by its executor, as a
// contender. Its tools call callback handlers, as the calculator of that module does, so a hook pair is such a
// handler. The agent shows successive steps with the same call to the model as one step of several calls; therefore
// the model adds a word to each call here, so that they differ.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"sync/atomic"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/prompts"
	"github.com/tmc/langchaingo/tools"

	"github.com/grapnel-go/grapnel/bench"
)

// contender is langchaingo's agent.
func contender() bench.Contender {
	return bench.Contender{
		Name: "langchaingo", Module: "github.com/tmc/langchaingo", AtOnce: 1, Prepare: prepare,
	}
}

func prepare(job bench.Job) (bench.Run, error) {
	script, err := bench.NewScript(job)
	if err != nil {
		return nil, err
	}
	tool := add{script: script}
	if job.HookPairs > 0 {
		handlers := make([]callbacks.Handler, job.HookPairs)
		for i := range handlers {
			handlers[i] = pair{script: script}
		}
		tool.handler = callbacks.CombiningHandler{Callbacks: handlers}
	}
	input := script.Input()
	var past history
	for _, m := range input[:job.History] {
		past = append(past, fromBench(m))
	}
	m := &scripted{script: script}
	agent := agents.NewOpenAIFunctionsAgent(m, []tools.Tool{tool},
		agents.NewOpenAIOption().WithExtraMessages([]prompts.MessageFormatter{past}))
	executor := agents.NewExecutor(agent, agents.WithMaxIterations(job.Steps+1))
	asked := input[job.History].Content

	return func(ctx context.Context) (bench.Outcome, error) {
		answer, err := chains.Run(ctx, executor, asked)
		if err != nil {
			return bench.Outcome{}, err
		}
		return script.Outcome(toBench(*m.shown.Load(), answer)), nil
	}, nil
}

// history precedes the question in every prompt.
type history []llms.ChatMessage

func (h history) FormatMessages(map[string]any) ([]llms.ChatMessage, error) { return h, nil }
func (h history) GetInputVariables() []string                               { return nil }

type add struct {
	script  *bench.Script
	handler callbacks.Handler
}

func (add) Name() string        { return bench.ToolName }
func (add) Description() string { return bench.ToolText }

func (t add) Call(ctx context.Context, input string) (string, error) {
	if t.handler != nil {
		t.handler.HandleToolStart(ctx, input)
	}
	var in struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	if err := json.Unmarshal([]byte(input), &in); err != nil {
		return "", fmt.Errorf("read arguments of tool %q: %w", bench.ToolName, err)
	}
	result := strconv.Itoa(t.script.Add(in.A, in.B))
	if t.handler != nil {
		t.handler.HandleToolEnd(ctx, result)
	}
	return result, nil
}

type pair struct {
	callbacks.SimpleHandler

	script *bench.Script
}

func (p pair) HandleToolStart(context.Context, string) { p.script.Hook(bench.ToolName) }
func (p pair) HandleToolEnd(context.Context, string)   { p.script.Hook(bench.ToolName) }

// scripted is the model. It receives the whole transcript and reads the last message. In the end it keeps the
// transcript.
type scripted struct {
	script *bench.Script
	shown  atomic.Pointer[[]llms.MessageContent]
}

var _ llms.Model = (*scripted)(nil)

func (m *scripted) GenerateContent(
	_ context.Context, shown []llms.MessageContent, _ ...llms.CallOption,
) (*llms.ContentResponse, error) {
	last := shown[len(shown)-1]
	answers := ""
	if part, ok := last.Parts[0].(llms.ToolCallResponse); ok {
		answers = part.ToolCallID
	}
	ids, err := m.script.Reply(roles[last.Role], answers)
	if err != nil {
		return nil, err
	}
	choice := &llms.ContentChoice{Content: bench.Answer, StopReason: "stop"}
	if len(ids) == 0 {
		m.shown.Store(&shown)
		return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}, nil
	}
	choice.Content, choice.StopReason = ids[0], "tool_calls"
	choice.ToolCalls = make([]llms.ToolCall, len(ids))
	for i, id := range ids {
		choice.ToolCalls[i] = call(id, bench.ToolName, bench.Arguments)
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}, nil
}

// Call is the deprecated method of the interface, which the agent does not call.
func (m *scripted) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

func call(id, name, arguments string) llms.ToolCall {
	return llms.ToolCall{ID: id, Type: "function", FunctionCall: &llms.FunctionCall{Name: name, Arguments: arguments}}
}

var roles = map[llms.ChatMessageType]string{
	llms.ChatMessageTypeHuman: bench.RoleUser,
	llms.ChatMessageTypeAI:    bench.RoleAssistant,
	llms.ChatMessageTypeTool:  bench.RoleTool,
}

func fromBench(m bench.Message) llms.ChatMessage {
	switch m.Role {
	case bench.RoleUser:
		return llms.HumanChatMessage{Content: m.Content}
	case bench.RoleTool:
		return llms.ToolChatMessage{ID: m.CallID, Content: m.Content}
	default:
		out := llms.AIChatMessage{Content: m.Content}
		for _, c := range m.Calls {
			out.ToolCalls = append(out.ToolCalls, call(c.ID, c.Name, c.Arguments))
		}
		return out
	}
}

// toBench omits the system message that the agent adds at the beginning.
func toBench(shown []llms.MessageContent, answer string) iter.Seq[bench.Message] {
	return func(yield func(bench.Message) bool) {
		for _, m := range shown {
			if m.Role == llms.ChatMessageTypeSystem {
				continue
			}
			out := bench.Message{Role: roles[m.Role]}
			for _, part := range m.Parts {
				switch p := part.(type) {
				case llms.TextContent:
					out.Content += p.Text
				case llms.ToolCall:
					out.Calls = append(out.Calls,
						bench.Call{ID: p.ID, Name: p.FunctionCall.Name, Arguments: p.FunctionCall.Arguments})
				case llms.ToolCallResponse:
					out.CallID, out.Content = p.ToolCallID, p.Content
				}
			}
			if !yield(out) {
				return
			}
		}
		yield(bench.Message{Role: bench.RoleAssistant, Content: answer})
	}
}
