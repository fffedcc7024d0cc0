// Command genkit is Generate of github.com/firebase/genkit/go as a contender, with a model and a tool that are
// defined as its plugins define theirs. A hook pair is a middleware that wraps tools. Its spans cannot be turned off,
// and nothing exports them. Results of one step reach the model in the order in which their calls ended.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/grapnel-go/grapnel/bench"
)

// contender is genkit's Generate.
func contender() bench.Contender {
	return bench.Contender{
		Name: "genkit", Module: "github.com/firebase/genkit/go", Unordered: true, Prepare: prepare,
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
	m := &scripted{script: script.AnyOrder()}
	if err := json.Unmarshal([]byte(bench.Arguments), &m.arguments); err != nil {
		return nil, fmt.Errorf("read the script's arguments: %w", err)
	}
	g := genkit.Init(context.Background())
	model := genkit.DefineModel(g, "bench/scripted",
		&ai.ModelOptions{Supports: &ai.ModelSupports{Multiturn: true, Tools: true}}, m.generate)
	add := genkit.DefineTool(g, bench.ToolName, bench.ToolText, func(_ *ai.ToolContext, in numbers) (int, error) {
		return script.Add(in.A, in.B), nil
	})
	messages := make([]*ai.Message, 0, job.History+1)
	for _, said := range script.Input() {
		m, err := fromBench(said)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	options := []ai.GenerateOption{
		ai.WithModel(model), ai.WithTools(add), ai.WithMessages(messages...), ai.WithMaxTurns(job.Steps + 1),
	}
	if job.HookPairs > 0 {
		pairs := make([]ai.Middleware, job.HookPairs)
		for i := range pairs {
			pairs[i] = pair(script)
		}
		options = append(options, ai.WithUse(pairs...))
	}

	return func(ctx context.Context) (bench.Outcome, error) {
		response, err := genkit.Generate(ctx, g, options...)
		if err != nil {
			return bench.Outcome{}, err
		}
		return script.Outcome(bench.InOrder(toBench(*m.shown.Load(), response.Text()))), nil
	}, nil
}

// pair returns a hook before the tool and one after it.
func pair(script *bench.Script) ai.MiddlewareFunc {
	hooks := &ai.Hooks{
		WrapTool: func(ctx context.Context, params *ai.ToolParams, next ai.ToolNext) (*ai.MultipartToolResponse, error) {
			script.Hook(params.Request.Name)
			out, err := next(ctx, params)
			script.Hook(params.Request.Name)
			return out, err
		},
	}
	return func(context.Context) (*ai.Hooks, error) { return hooks, nil }
}

// scripted is the model. It receives the whole transcript and reads the last message. In the end it keeps the
// transcript.
type scripted struct {
	script    *bench.Script
	arguments map[string]any
	shown     atomic.Pointer[[]*ai.Message]
}

func (m *scripted) generate(_ context.Context, request *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	last := request.Messages[len(request.Messages)-1]
	answers := ""
	if part := last.Content[len(last.Content)-1]; part.IsToolResponse() {
		answers = part.ToolResponse.Ref
	}
	ids, err := m.script.Reply(string(last.Role), answers)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		m.shown.Store(&request.Messages)
		return &ai.ModelResponse{
			Request: request, Message: ai.NewModelTextMessage(bench.Answer), FinishReason: ai.FinishReasonStop,
		}, nil
	}
	parts := make([]*ai.Part, len(ids))
	for i, id := range ids {
		parts[i] = ai.NewToolRequestPart(&ai.ToolRequest{Ref: id, Name: bench.ToolName, Input: m.arguments})
	}
	return &ai.ModelResponse{Request: request, Message: ai.NewModelMessage(parts...), FinishReason: ai.FinishReasonStop}, nil
}

func fromBench(m bench.Message) (*ai.Message, error) {
	switch {
	case m.Role == bench.RoleUser:
		return ai.NewUserTextMessage(m.Content), nil
	case m.Role == bench.RoleTool:
		var output any
		if err := json.Unmarshal([]byte(m.Content), &output); err != nil {
			return nil, fmt.Errorf("read result %q: %w", m.Content, err)
		}
		return ai.NewMessage(ai.RoleTool, nil, ai.NewToolResponsePart(
			&ai.ToolResponse{Ref: m.CallID, Name: bench.ToolName, Output: output})), nil
	case len(m.Calls) == 0:
		return ai.NewModelTextMessage(m.Content), nil
	}
	var parts []*ai.Part
	for _, c := range m.Calls {
		var input map[string]any
		if err := json.Unmarshal([]byte(c.Arguments), &input); err != nil {
			return nil, fmt.Errorf("read arguments %q: %w", c.Arguments, err)
		}
		parts = append(parts, ai.NewToolRequestPart(&ai.ToolRequest{Ref: c.ID, Name: c.Name, Input: input}))
	}
	return ai.NewModelMessage(parts...), nil
}

// toBench gives every result its own message, and adds the answer.
func toBench(shown []*ai.Message, answer string) iter.Seq[bench.Message] {
	return func(yield func(bench.Message) bool) {
		for _, m := range shown {
			out := bench.Message{Role: bench.RoleUser}
			if m.Role == ai.RoleModel {
				out.Role = bench.RoleAssistant
			}
			for _, part := range m.Content {
				switch {
				case part.IsText():
					out.Content += part.Text
				case part.IsToolRequest():
					out.Calls = append(out.Calls, bench.Call{
						ID: part.ToolRequest.Ref, Name: part.ToolRequest.Name, Arguments: text(part.ToolRequest.Input),
					})
				case part.IsToolResponse():
					if !yield(bench.Message{
						Role: bench.RoleTool, CallID: part.ToolResponse.Ref, Content: text(part.ToolResponse.Output),
					}) {
						return
					}
				}
			}
			if m.Role != ai.RoleTool && !yield(out) {
				return
			}
		}
		yield(bench.Message{Role: bench.RoleAssistant, Content: answer})
	}
}

// text returns JSON with its fields sorted by name, as in the script.
func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
