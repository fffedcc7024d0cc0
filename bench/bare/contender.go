package bare

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/grapnel-go/grapnel/bench"
)

// Instrumented returns the loop with instrumentation around its parts.
func Instrumented(name string, watch Instrument) bench.Contender {
	return bench.Contender{
		Name: name, Telemetry: &bench.Telemetry{Without: Contender().Name},
		Prepare: func(job bench.Job) (bench.Run, error) { return build(job, watch) },
	}
}

func prepare(job bench.Job) (bench.Run, error) { return build(job, nil) }

func build(job bench.Job, watch Instrument) (bench.Run, error) {
	script, err := bench.NewScript(job)
	if err != nil {
		return nil, err
	}
	a := &agent{model: scripted{script}, tools: map[string]tool{bench.ToolName: add(script)}, watch: watch}
	if watch != nil {
		a.model = watched{a.model, watch}
	}
	for range job.HookPairs {
		a.before = append(a.before, func(_ context.Context, c *toolCall) { script.Hook(c.Function.Name) })
		a.after = append(a.after, func(_ context.Context, c *toolCall) { script.Hook(c.Function.Name) })
	}
	input := script.Input()
	var past []message
	if job.History > 0 {
		// A long conversation appends to its slice, and the cost of growing it is spread over all earlier turns. So
		// the slice has enough room.
		past = make([]message, job.History, job.Proof().Messages)
		for i, m := range input[:job.History] {
			past[i] = fromBench(m)
		}
	}
	asked := fromBench(input[job.History])

	return func(ctx context.Context) (bench.Outcome, error) {
		if watch != nil {
			ctx = watch.StartRun(ctx)
		}
		transcript, err := a.run(ctx, append(past, asked))
		if watch != nil {
			watch.EndRun(ctx, len(transcript))
		}
		return script.Outcome(toBench(transcript)), err
	}, nil
}

// scripted is the model. It receives the whole transcript and reads the last message.
type scripted struct{ script *bench.Script }

func (m scripted) Chat(_ context.Context, transcript []message) (message, error) {
	last := &transcript[len(transcript)-1]
	ids, err := m.script.Reply(last.Role, last.ToolCallID)
	if err != nil {
		return message{}, err
	}
	if len(ids) == 0 {
		return message{Role: "assistant", Content: bench.Answer}, nil
	}
	calls := make([]toolCall, len(ids))
	for i, id := range ids {
		calls[i] = toolCall{ID: id, Type: "function", Function: function{bench.ToolName, bench.Arguments}}
	}
	return message{Role: "assistant", ToolCalls: calls}, nil
}

// watched is a model with instrumentation.
type watched struct {
	model model
	watch Instrument
}

func (m watched) Chat(ctx context.Context, transcript []message) (message, error) {
	ctx = m.watch.StartChat(ctx)
	reply, err := m.model.Chat(ctx, transcript)
	finish := "stop"
	if len(reply.ToolCalls) > 0 {
		finish = "tool_calls"
	}
	m.watch.EndChat(ctx, len(transcript), finish)
	return reply, err
}

func add(script *bench.Script) tool {
	return func(_ context.Context, args json.RawMessage) (string, error) {
		var in struct {
			A int `json:"a"`
			B int `json:"b"`
		}
		if err := json.Unmarshal(args, &in); err != nil {
			return "", fmt.Errorf("read arguments of tool %q: %w", bench.ToolName, err)
		}
		out, err := json.Marshal(script.Add(in.A, in.B))
		return string(out), err
	}
}

func fromBench(m bench.Message) message {
	out := message{Role: m.Role, Content: m.Content, ToolCallID: m.CallID}
	for _, c := range m.Calls {
		out.ToolCalls = append(out.ToolCalls,
			toolCall{ID: c.ID, Type: "function", Function: function{c.Name, c.Arguments}})
	}
	return out
}

func toBench(transcript []message) iter.Seq[bench.Message] {
	return func(yield func(bench.Message) bool) {
		for _, m := range transcript {
			out := bench.Message{Role: m.Role, Content: m.Content, CallID: m.ToolCallID}
			for _, c := range m.ToolCalls {
				out.Calls = append(out.Calls, bench.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
			}
			if !yield(out) {
				return
			}
		}
	}
}
