// Command openaiagents is github.com/nlpodyssey/openai-agents-go as a contender, without tracing. A run has one
// object of hooks, which is called concurrently with the tool, not before it. Ten hook pairs are one such object that
// calls ten functions.
package main

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"

	"github.com/nlpodyssey/openai-agents-go/agents"
	"github.com/nlpodyssey/openai-agents-go/tracing"
	"github.com/nlpodyssey/openai-agents-go/usage"
	"github.com/openai/openai-go/v2/packages/param"
	"github.com/openai/openai-go/v2/responses"

	"github.com/grapnel-go/grapnel/bench"
)

// contender is openai-agents-go's runner.
func contender() bench.Contender {
	return bench.Contender{
		Name: "openai-agents-go", Module: "github.com/nlpodyssey/openai-agents-go", Prepare: prepare,
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
	add, err := agents.SafeNewFunctionTool(bench.ToolName, bench.ToolText, func(_ context.Context, in numbers) (int, error) {
		return script.Add(in.A, in.B), nil
	})
	if err != nil {
		return nil, fmt.Errorf("make tool %q: %w", bench.ToolName, err)
	}
	tracing.SetLogger(slog.New(slog.DiscardHandler)) // it says in every step that tracing is off
	m := &scripted{script: script}
	agent := agents.New("bench").WithModelInstance(m).WithTools(add)
	runner := agents.Runner{Config: agents.RunConfig{
		TracingDisabled: true,
		MaxTurns:        uint64(job.Steps) + 1, //nolint:gosec // a job has no less than no steps
	}}
	if job.HookPairs > 0 {
		runner.Config.Hooks = pairs{script: script, n: job.HookPairs}
	}
	var input []agents.TResponseInputItem
	for _, said := range script.Input() {
		input = append(input, fromBench(said)...)
	}

	return func(ctx context.Context) (bench.Outcome, error) {
		result, err := runner.RunInputs(ctx, agent, input)
		if err != nil {
			return bench.Outcome{}, err
		}
		return script.Outcome(toBench(*m.shown.Load(), fmt.Sprint(result.FinalOutput))), nil
	}, nil
}

type pairs struct {
	agents.NoOpRunHooks

	script *bench.Script
	n      int
}

func (p pairs) OnToolStart(_ context.Context, _ *agents.Agent, t agents.Tool) error {
	for range p.n {
		p.script.Hook(t.ToolName())
	}
	return nil
}

func (p pairs) OnToolEnd(_ context.Context, _ *agents.Agent, t agents.Tool, _ any) error {
	for range p.n {
		p.script.Hook(t.ToolName())
	}
	return nil
}

// scripted is the model. It receives the whole transcript and reads the last item. In the end it keeps the
// transcript.
type scripted struct {
	agents.Model // methods that are never called

	script *bench.Script
	shown  atomic.Pointer[agents.InputItems]
}

func (m *scripted) GetResponse(_ context.Context, params agents.ModelResponseParams) (*agents.ModelResponse, error) {
	shown, ok := params.Input.(agents.InputItems)
	if !ok {
		return nil, fmt.Errorf("read input: it is a %T", params.Input)
	}
	role, answers := bench.RoleUser, ""
	if out := shown[len(shown)-1].OfFunctionCallOutput; out != nil {
		role, answers = bench.RoleTool, out.CallID
	}
	ids, err := m.script.Reply(role, answers)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		m.shown.Store(&shown)
		return &agents.ModelResponse{Usage: usage.NewUsage(), Output: []agents.TResponseOutputItem{{
			ID: "answer", Type: "message", Role: "assistant", Status: "completed",
			Content: []responses.ResponseOutputMessageContentUnion{{Type: "output_text", Text: bench.Answer}},
		}}}, nil
	}
	calls := make([]agents.TResponseOutputItem, len(ids))
	for i, id := range ids {
		calls[i] = agents.TResponseOutputItem{
			ID: id, CallID: id, Type: "function_call", Name: bench.ToolName, Arguments: bench.Arguments,
		}
	}
	return &agents.ModelResponse{Usage: usage.NewUsage(), Output: calls}, nil
}

// fromBench gives every call its own item.
func fromBench(m bench.Message) []agents.TResponseInputItem {
	if m.Role == bench.RoleTool {
		return []agents.TResponseInputItem{responses.ResponseInputItemParamOfFunctionCallOutput(m.CallID, m.Content)}
	}
	if len(m.Calls) == 0 {
		return []agents.TResponseInputItem{
			responses.ResponseInputItemParamOfMessage(m.Content, responses.EasyInputMessageRole(m.Role)),
		}
	}
	var out []agents.TResponseInputItem
	for _, c := range m.Calls {
		out = append(out, responses.ResponseInputItemParamOfFunctionCall(c.Arguments, c.ID, c.Name))
	}
	return out
}

// toBench merges consecutive calls into one message.
func toBench(shown agents.InputItems, answer string) iter.Seq[bench.Message] {
	return func(yield func(bench.Message) bool) {
		var asks *bench.Message
		flush := func() bool {
			if asks == nil {
				return true
			}
			m := *asks
			asks = nil
			return yield(m)
		}
		for _, item := range shown {
			if call := item.OfFunctionCall; call != nil {
				if asks == nil {
					asks = &bench.Message{Role: bench.RoleAssistant}
				}
				asks.Calls = append(asks.Calls, bench.Call{ID: call.CallID, Name: call.Name, Arguments: call.Arguments})
				continue
			}
			if !flush() || !yield(plain(item)) {
				return
			}
		}
		if flush() {
			yield(bench.Message{Role: bench.RoleAssistant, Content: answer})
		}
	}
}

func plain(item agents.TResponseInputItem) bench.Message {
	if out := item.OfFunctionCallOutput; out != nil {
		return bench.Message{Role: bench.RoleTool, CallID: out.CallID, Content: text(out.Output)}
	}
	if said := item.OfMessage; said != nil {
		return bench.Message{Role: string(said.Role), Content: said.Content.OfString.Or("")}
	}
	return bench.Message{}
}

func text(s any) string {
	switch s := s.(type) {
	case string:
		return s
	case param.Opt[string]:
		return s.Or("")
	default:
		return fmt.Sprint(s)
	}
}
