// Command fantasy is the agent of charm.land/fantasy as a contender. It has no hooks; its users wrap tools in tools
// instead, and that is measured. Its Generate runs the calls of a step one after the other; its Stream runs up to
// five calls of tools that are declared parallel concurrently. So steps with several calls are streamed.
package main

import (
	"context"
	"iter"
	"strconv"
	"sync/atomic"

	"charm.land/fantasy"

	"github.com/grapnel-go/grapnel/bench"
)

// contender is fantasy's agent.
func contender() bench.Contender {
	return bench.Contender{
		Name: "fantasy", Module: "charm.land/fantasy", AtOnce: 5, Unordered: true, Prepare: prepare,
	}
}

type numbers struct {
	A int `json:"a"`
	B int `json:"b"`
}

func prepare(job bench.Job) (bench.Run, error) {
	script, err := bench.NewScript(job)
	if err != nil {
		return nil, err
	}
	script.AnyOrder()
	add := fantasy.NewParallelAgentTool(bench.ToolName, bench.ToolText,
		func(_ context.Context, in numbers, _ fantasy.ToolCall) (fantasy.ToolResponse, error) {
			return fantasy.NewTextResponse(strconv.Itoa(script.Add(in.A, in.B))), nil
		})
	for range job.HookPairs {
		add = pair{add, script}
	}
	m := &scripted{script: script}
	agent := fantasy.NewAgent(m, fantasy.WithTools(add))
	var past []fantasy.Message
	input := script.Input()
	for _, m := range input[:job.History] {
		past = append(past, fromBench(m))
	}
	asked := input[job.History].Content

	return func(ctx context.Context) (bench.Outcome, error) {
		var result *fantasy.AgentResult
		var err error
		if job.Calls > 1 {
			result, err = agent.Stream(ctx, fantasy.AgentStreamCall{Messages: past, Prompt: asked})
		} else {
			result, err = agent.Generate(ctx, fantasy.AgentCall{Messages: past, Prompt: asked})
		}
		if err != nil {
			return bench.Outcome{}, err
		}
		return script.Outcome(bench.InOrder(toBench(*m.shown.Load(), result.Response.Content.Text()))), nil
	}, nil
}

// pair is a tool with a hook before it and one after it.
type pair struct {
	fantasy.AgentTool
	script *bench.Script
}

func (p pair) Run(ctx context.Context, call fantasy.ToolCall) (fantasy.ToolResponse, error) {
	p.script.Hook(call.Name)
	out, err := p.AgentTool.Run(ctx, call)
	p.script.Hook(call.Name)
	return out, err
}

// scripted is the model. It receives the whole transcript and reads the last message. In the end it keeps the
// transcript.
type scripted struct {
	fantasy.LanguageModel // methods that are never called

	script *bench.Script
	shown  atomic.Pointer[fantasy.Prompt]
}

func (m *scripted) reply(shown fantasy.Prompt) ([]string, error) {
	last := shown[len(shown)-1]
	answers := ""
	if part, ok := last.Content[len(last.Content)-1].(fantasy.ToolResultPart); ok {
		answers = part.ToolCallID
	}
	ids, err := m.script.Reply(string(last.Role), answers)
	if len(ids) == 0 {
		m.shown.Store(&shown)
	}
	return ids, err
}

func (m *scripted) Generate(_ context.Context, call fantasy.Call) (*fantasy.Response, error) {
	ids, err := m.reply(call.Prompt)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return &fantasy.Response{
			Content:      fantasy.ResponseContent{fantasy.TextContent{Text: bench.Answer}},
			FinishReason: fantasy.FinishReasonStop,
		}, nil
	}
	content := make(fantasy.ResponseContent, len(ids))
	for i, id := range ids {
		content[i] = fantasy.ToolCallContent{ToolCallID: id, ToolName: bench.ToolName, Input: bench.Arguments}
	}
	return &fantasy.Response{Content: content, FinishReason: fantasy.FinishReasonToolCalls}, nil
}

func (m *scripted) Stream(_ context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	ids, err := m.reply(call.Prompt)
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		reason := fantasy.FinishReasonToolCalls
		if len(ids) == 0 {
			reason = fantasy.FinishReasonStop
			for _, part := range []fantasy.StreamPart{
				{Type: fantasy.StreamPartTypeTextStart, ID: "0"},
				{Type: fantasy.StreamPartTypeTextDelta, ID: "0", Delta: bench.Answer},
				{Type: fantasy.StreamPartTypeTextEnd, ID: "0"},
			} {
				if !yield(part) {
					return
				}
			}
		}
		for _, id := range ids {
			if !yield(fantasy.StreamPart{
				Type: fantasy.StreamPartTypeToolCall, ID: id, ToolCallName: bench.ToolName, ToolCallInput: bench.Arguments,
			}) {
				return
			}
		}
		yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish, FinishReason: reason})
	}, nil
}

func fromBench(m bench.Message) fantasy.Message {
	out := fantasy.Message{Role: fantasy.MessageRole(m.Role)}
	switch {
	case m.Role == bench.RoleTool:
		out.Content = append(out.Content, fantasy.ToolResultPart{
			ToolCallID: m.CallID, Output: fantasy.ToolResultOutputContentText{Text: m.Content},
		})
	case m.Content != "":
		out.Content = append(out.Content, fantasy.TextPart{Text: m.Content})
	}
	for _, c := range m.Calls {
		out.Content = append(out.Content, fantasy.ToolCallPart{ToolCallID: c.ID, ToolName: c.Name, Input: c.Arguments})
	}
	return out
}

// toBench gives every result its own message, and adds the answer.
func toBench(shown fantasy.Prompt, answer string) iter.Seq[bench.Message] {
	return func(yield func(bench.Message) bool) {
		for _, m := range shown {
			out := bench.Message{Role: string(m.Role)}
			for _, part := range m.Content {
				switch p := part.(type) {
				case fantasy.TextPart:
					out.Content += p.Text
				case fantasy.ToolCallPart:
					out.Calls = append(out.Calls, bench.Call{ID: p.ToolCallID, Name: p.ToolName, Arguments: p.Input})
				case fantasy.ToolResultPart:
					text, _ := p.Output.(fantasy.ToolResultOutputContentText)
					if !yield(bench.Message{Role: bench.RoleTool, CallID: p.ToolCallID, Content: text.Text}) {
						return
					}
				}
			}
			if m.Role != fantasy.MessageRoleTool && !yield(out) {
				return
			}
		}
		yield(bench.Message{Role: bench.RoleAssistant, Content: answer})
	}
}
