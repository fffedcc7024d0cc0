// Command adk is google.golang.org/adk as a contender: an LLM agent in a runner, with its sessions in memory. A hook
// pair is a callback before the tool and one after it. Each run has its own session. The messages of earlier turns
// are added to the session off the clock, and the session is deleted off the clock.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"sync/atomic"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/grapnel-go/grapnel/bench"
)

// contender is adk's runner.
func contender() bench.Contender {
	return bench.Contender{Name: "adk-go", Module: "google.golang.org/adk/v2", Prepare: prepare}
}

const app, user = "bench", "user"

type numbers struct {
	A int `json:"a"`
	B int `json:"b"`
}

func prepare(job bench.Job) (bench.Run, error) {
	script, err := bench.NewScript(job)
	if err != nil {
		return nil, err
	}
	m := &scripted{script: script}
	if err := json.Unmarshal([]byte(bench.Arguments), &m.arguments); err != nil {
		return nil, fmt.Errorf("read the script's arguments: %w", err)
	}
	sessions := session.InMemoryService()
	r, err := build(m, sessions, job.HookPairs)
	if err != nil {
		return nil, err
	}
	input := script.Input()
	past := make([]*genai.Content, job.History)
	for i, said := range input[:job.History] {
		if past[i], err = fromBench(said); err != nil {
			return nil, err
		}
	}
	asked := genai.NewContentFromText(input[job.History].Content, genai.RoleUser)
	var started atomic.Int64

	return func(ctx context.Context) (bench.Outcome, error) {
		id := strconv.FormatInt(started.Add(1), 10)
		var err error
		script.OffClock(func() { err = fill(ctx, sessions, id, past) })
		if err != nil {
			return bench.Outcome{}, err
		}
		answer := ""
		for event, err := range r.Run(ctx, user, id, asked, agent.RunConfig{}) {
			if err != nil {
				return bench.Outcome{}, err
			}
			if event.Content != nil && event.IsFinalResponse() {
				answer = event.Content.Parts[0].Text
			}
		}
		script.OffClock(func() {
			err = sessions.Delete(ctx, &session.DeleteRequest{AppName: app, UserID: user, SessionID: id})
		})
		return script.Outcome(toBench(*m.shown.Load(), answer)), err
	}, nil
}

func build(m *scripted, sessions session.Service, pairs int) (*runner.Runner, error) {
	add, err := functiontool.New(functiontool.Config{Name: bench.ToolName, Description: bench.ToolText},
		func(_ agent.Context, in numbers) (int, error) { return m.script.Add(in.A, in.B), nil })
	if err != nil {
		return nil, fmt.Errorf("make tool %q: %w", bench.ToolName, err)
	}
	config := llmagent.Config{Name: "bench_agent", Model: m, Tools: []tool.Tool{add}}
	for range pairs {
		config.BeforeToolCallbacks = append(config.BeforeToolCallbacks,
			func(_ agent.Context, t tool.Tool, _ map[string]any) (map[string]any, error) {
				m.script.Hook(t.Name())
				return nil, nil
			})
		config.AfterToolCallbacks = append(config.AfterToolCallbacks,
			func(_ agent.Context, t tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
				m.script.Hook(t.Name())
				return nil, nil
			})
	}
	a, err := llmagent.New(config)
	if err != nil {
		return nil, fmt.Errorf("build agent: %w", err)
	}
	return runner.New(runner.Config{AppName: app, Agent: a, SessionService: sessions})
}

// fill creates the session that a run continues.
func fill(ctx context.Context, sessions session.Service, id string, past []*genai.Content) error {
	created, err := sessions.Create(ctx, &session.CreateRequest{AppName: app, UserID: user, SessionID: id})
	if err != nil {
		return fmt.Errorf("create session: %w", err)
	}
	for _, content := range past {
		event := session.NewEvent(ctx, "earlier")
		event.Author = "bench_agent"
		if content.Role == genai.RoleUser && content.Parts[0].FunctionResponse == nil {
			event.Author = "user"
		}
		event.LLMResponse = model.LLMResponse{Content: content}
		if err := sessions.AppendEvent(ctx, created.Session, event); err != nil {
			return fmt.Errorf("fill session: %w", err)
		}
	}
	return nil
}

// scripted is the model. It receives the whole transcript and reads the last message. In the end it keeps the
// transcript.
type scripted struct {
	script    *bench.Script
	arguments map[string]any
	shown     atomic.Pointer[[]*genai.Content]
}

var _ model.LLM = (*scripted)(nil)

func (m *scripted) Name() string { return "scripted" }

func (m *scripted) GenerateContent(
	_ context.Context, request *model.LLMRequest, _ bool,
) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		last := request.Contents[len(request.Contents)-1]
		role, answers := bench.RoleUser, ""
		if out := last.Parts[len(last.Parts)-1].FunctionResponse; out != nil {
			role, answers = bench.RoleTool, out.ID
		}
		ids, err := m.script.Reply(role, answers)
		if err != nil {
			yield(nil, err)
			return
		}
		if len(ids) == 0 {
			m.shown.Store(&request.Contents)
			yield(&model.LLMResponse{Content: genai.NewContentFromText(bench.Answer, genai.RoleModel)}, nil)
			return
		}
		parts := make([]*genai.Part, len(ids))
		for i, id := range ids {
			parts[i] = &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: bench.ToolName, Args: m.arguments}}
		}
		yield(&model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: parts}}, nil)
	}
}

func fromBench(m bench.Message) (*genai.Content, error) {
	switch {
	case m.Role == bench.RoleUser:
		return genai.NewContentFromText(m.Content, genai.RoleUser), nil
	case m.Role == bench.RoleTool:
		var output any
		if err := json.Unmarshal([]byte(m.Content), &output); err != nil {
			return nil, fmt.Errorf("read result %q: %w", m.Content, err)
		}
		return &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
			ID: m.CallID, Name: bench.ToolName, Response: map[string]any{"result": output},
		}}}}, nil
	case len(m.Calls) == 0:
		return genai.NewContentFromText(m.Content, genai.RoleModel), nil
	}
	out := &genai.Content{Role: genai.RoleModel}
	for _, c := range m.Calls {
		var input map[string]any
		if err := json.Unmarshal([]byte(c.Arguments), &input); err != nil {
			return nil, fmt.Errorf("read arguments %q: %w", c.Arguments, err)
		}
		out.Parts = append(out.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: c.ID, Name: c.Name, Args: input}})
	}
	return out, nil
}

// toBench gives every result its own message, and adds the answer.
func toBench(shown []*genai.Content, answer string) iter.Seq[bench.Message] {
	return func(yield func(bench.Message) bool) {
		for _, content := range shown {
			out := bench.Message{Role: bench.RoleUser}
			if content.Role == genai.RoleModel {
				out.Role = bench.RoleAssistant
			}
			results := false
			for _, part := range content.Parts {
				switch {
				case part.FunctionResponse != nil:
					results = true
					r := part.FunctionResponse
					if !yield(bench.Message{Role: bench.RoleTool, CallID: r.ID, Content: text(r.Response["result"])}) {
						return
					}
				case part.FunctionCall != nil:
					c := part.FunctionCall
					out.Calls = append(out.Calls, bench.Call{ID: c.ID, Name: c.Name, Arguments: text(c.Args)})
				default:
					out.Content += part.Text
				}
			}
			if !results && !yield(out) {
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
