// Command trpc is trpc.group/trpc-go/trpc-agent-go as a contender: an LLM agent in a runner, with sessions of
// unlimited length in memory, without tracing, and with a model that is called without channels. A hook pair is a
// callback before the tool and one after it. Each run has its own session. The messages of earlier turns are added to
// the session off the clock, and the session is deleted off the clock.
package main

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"sync/atomic"

	"trpc.group/trpc-go/trpc-agent-go/agent"
	"trpc.group/trpc-go/trpc-agent-go/agent/llmagent"
	"trpc.group/trpc-go/trpc-agent-go/event"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/runner"
	"trpc.group/trpc-go/trpc-agent-go/session"
	"trpc.group/trpc-go/trpc-agent-go/session/inmemory"
	"trpc.group/trpc-go/trpc-agent-go/tool"
	"trpc.group/trpc-go/trpc-agent-go/tool/function"

	"github.com/grapnel-go/grapnel/bench"
)

// contender is trpc-agent-go's runner.
func contender() bench.Contender {
	return bench.Contender{Name: "trpc-agent-go", Module: "trpc.group/trpc-go/trpc-agent-go", Prepare: prepare}
}

const app, user, agentName = "bench", "user", "bench-agent"

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
	sessions := inmemory.NewSessionService(inmemory.WithSessionEventLimit(0))
	r := runner.NewRunner(app, build(m, job), runner.WithSessionService(sessions))
	input := script.Input()
	past, asked := input[:job.History], model.NewUserMessage(input[job.History].Content)
	var started atomic.Int64

	return func(ctx context.Context) (bench.Outcome, error) {
		key := session.Key{AppName: app, UserID: user, SessionID: strconv.FormatInt(started.Add(1), 10)}
		var err error
		script.OffClock(func() { err = fill(ctx, sessions, key, past) })
		if err != nil {
			return bench.Outcome{}, err
		}
		events, err := r.Run(ctx, user, key.SessionID, asked, agent.WithDisableTracing(true), agent.WithStream(false))
		if err != nil {
			return bench.Outcome{}, err
		}
		answer := ""
		for e := range events {
			switch {
			case e.Error != nil:
				err = fmt.Errorf("run agent: %s: %s", e.Error.Type, e.Error.Message)
			case e.Object == model.ObjectTypeChatCompletion && len(e.Choices) > 0:
				answer = e.Choices[0].Message.Content
			}
		}
		if err != nil {
			return bench.Outcome{}, err
		}
		script.OffClock(func() { err = sessions.DeleteSession(ctx, key) })
		return script.Outcome(toBench(*m.shown.Load(), answer)), err
	}, nil
}

func build(m *scripted, job bench.Job) agent.Agent {
	add := function.NewFunctionTool(func(_ context.Context, in numbers) (int, error) {
		return m.script.Add(in.A, in.B), nil
	}, function.WithName(bench.ToolName), function.WithDescription(bench.ToolText))
	options := []llmagent.Option{
		llmagent.WithModel(m),
		llmagent.WithTools([]tool.Tool{add}),
		llmagent.WithEnableParallelTools(job.Calls > 1),
	}
	if job.HookPairs > 0 {
		callbacks := tool.NewCallbacks()
		for range job.HookPairs {
			callbacks.RegisterBeforeTool(func(_ context.Context, args *tool.BeforeToolArgs) (*tool.BeforeToolResult, error) {
				m.script.Hook(args.ToolName)
				return nil, nil
			})
			callbacks.RegisterAfterTool(func(_ context.Context, args *tool.AfterToolArgs) (*tool.AfterToolResult, error) {
				m.script.Hook(args.ToolName)
				return nil, nil
			})
		}
		options = append(options, llmagent.WithToolCallbacks(callbacks))
	}
	return llmagent.New(agentName, options...)
}

// fill creates the session that a run continues.
func fill(ctx context.Context, sessions session.Service, key session.Key, past []bench.Message) error {
	s, err := sessions.CreateSession(ctx, key, session.StateMap{})
	if err != nil {
		return fmt.Errorf("create session: %w", err)
	}
	for _, said := range past {
		author := agentName
		if said.Role == bench.RoleUser {
			author = user
		}
		e := event.NewResponseEvent("earlier", author, &model.Response{Choices: []model.Choice{{Message: fromBench(said)}}})
		e.FilterKey = app
		if err := sessions.AppendEvent(ctx, s, e); err != nil {
			return fmt.Errorf("fill session: %w", err)
		}
	}
	return nil
}

// scripted is the model. It receives the whole transcript and reads the last message. In the end it keeps the
// transcript.
type scripted struct {
	script *bench.Script
	shown  atomic.Pointer[[]model.Message]
}

var _ model.IterModel = (*scripted)(nil)

func (m *scripted) Info() model.Info { return model.Info{Name: "scripted"} }

func (m *scripted) reply(request *model.Request) (*model.Response, error) {
	last := request.Messages[len(request.Messages)-1]
	ids, err := m.script.Reply(string(last.Role), last.ToolID)
	if err != nil {
		return nil, err
	}
	answer := model.NewAssistantMessage(bench.Answer)
	if len(ids) == 0 {
		m.shown.Store(&request.Messages)
	} else {
		answer.Content = ""
		answer.ToolCalls = make([]model.ToolCall, len(ids))
		for i, id := range ids {
			answer.ToolCalls[i] = call(id, bench.ToolName, bench.Arguments)
		}
	}
	return &model.Response{
		Object: model.ObjectTypeChatCompletion, Done: true, Choices: []model.Choice{{Message: answer}},
	}, nil
}

func (m *scripted) GenerateContentIter(_ context.Context, request *model.Request) (model.Seq[*model.Response], error) {
	response, err := m.reply(request)
	if err != nil {
		return nil, err
	}
	return func(yield func(*model.Response) bool) { yield(response) }, nil
}

// GenerateContent is for flows that read from a channel.
func (m *scripted) GenerateContent(_ context.Context, request *model.Request) (<-chan *model.Response, error) {
	response, err := m.reply(request)
	if err != nil {
		return nil, err
	}
	out := make(chan *model.Response, 1)
	out <- response
	close(out)
	return out, nil
}

func call(id, name, arguments string) model.ToolCall {
	return model.ToolCall{
		ID: id, Type: "function", Function: model.FunctionDefinitionParam{Name: name, Arguments: []byte(arguments)},
	}
}

func fromBench(m bench.Message) model.Message {
	out := model.Message{Role: model.Role(m.Role), Content: m.Content, ToolID: m.CallID}
	if m.CallID != "" {
		out.ToolName = bench.ToolName
	}
	for _, c := range m.Calls {
		out.ToolCalls = append(out.ToolCalls, call(c.ID, c.Name, c.Arguments))
	}
	return out
}

// toBench omits the system message, if there is one, and adds the answer.
func toBench(shown []model.Message, answer string) iter.Seq[bench.Message] {
	return func(yield func(bench.Message) bool) {
		for _, m := range shown {
			if m.Role == model.RoleSystem {
				continue
			}
			out := bench.Message{Role: string(m.Role), Content: m.Content, CallID: m.ToolID}
			for _, c := range m.ToolCalls {
				out.Calls = append(out.Calls, bench.Call{ID: c.ID, Name: c.Function.Name, Arguments: string(c.Function.Arguments)})
			}
			if !yield(out) {
				return
			}
		}
		yield(bench.Message{Role: bench.RoleAssistant, Content: answer})
	}
}
