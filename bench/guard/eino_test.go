package guard_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	einoguard "github.com/grapnel-go/grapnel/adapters/eino"
)

type lister struct{}

func (lister) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: tool, Desc: "runs a command"}, nil
}

func (lister) InvokableRun(context.Context, string, ...einotool.Option) (string, error) {
	return result, nil
}

// caller is a model that calls the tool in each step but the last one.
type caller struct{ steps int }

func (m caller) Generate(_ context.Context, in []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	last := in[len(in)-1]
	if last.Role == schema.Tool && last.Content != result {
		return nil, errors.New("the tool's answer is " + last.Content)
	}
	if len(in) >= 2*m.steps {
		return schema.AssistantMessage("done", nil), nil
	}
	return schema.AssistantMessage("", []schema.ToolCall{
		{ID: "call-" + strconv.Itoa(len(in)), Type: "function", Function: schema.FunctionCall{Name: tool, Arguments: arguments}},
	}), nil
}

func (m caller) Stream(ctx context.Context, in []*schema.Message, o ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	out, err := m.Generate(ctx, in, o...)
	return schema.StreamReaderFromArray([]*schema.Message{out}), err
}

// einoNoop wraps all four kinds of tools, and calls them.
type einoNoop struct {
	*adk.BaseChatModelAgentMiddleware
}

func (einoNoop) WrapInvokableToolCall(_ context.Context, next adk.InvokableToolCallEndpoint, _ *adk.ToolContext) (adk.InvokableToolCallEndpoint, error) {
	return func(ctx context.Context, arguments string, o ...einotool.Option) (string, error) {
		return next(ctx, arguments, o...)
	}, nil
}

func (einoNoop) WrapStreamableToolCall(_ context.Context, next adk.StreamableToolCallEndpoint, _ *adk.ToolContext) (adk.StreamableToolCallEndpoint, error) {
	return next, nil
}

func (einoNoop) WrapEnhancedInvokableToolCall(
	_ context.Context, next adk.EnhancedInvokableToolCallEndpoint, _ *adk.ToolContext,
) (adk.EnhancedInvokableToolCallEndpoint, error) {
	return next, nil
}

func (einoNoop) WrapEnhancedStreamableToolCall(
	_ context.Context, next adk.EnhancedStreamableToolCallEndpoint, _ *adk.ToolContext,
) (adk.EnhancedStreamableToolCallEndpoint, error) {
	return next, nil
}

// einoRun returns a run with calls.
func einoRun(tb testing.TB, v variant) func(ctx context.Context) (answers int, err error) {
	tb.Helper()
	config := &adk.ChatModelAgentConfig{Name: "bench", Description: "an agent", Model: caller{calls}, MaxIterations: calls + 2}
	config.ToolsConfig.Tools = []einotool.BaseTool{lister{}}
	if v.noop {
		config.Handlers = append(config.Handlers, einoNoop{&adk.BaseChatModelAgentMiddleware{}})
	}
	if v.guard != nil {
		require.NoError(tb, einoguard.Install(v.guard, config))
	}
	a, err := adk.NewChatModelAgent(tb.Context(), config)
	require.NoError(tb, err)
	return func(ctx context.Context) (answers int, err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		events := adk.NewRunner(ctx, adk.RunnerConfig{Agent: a}).Query(ctx, input)
		for e, ok := events.Next(); ok; e, ok = events.Next() {
			if e.Err != nil {
				return answers, e.Err
			}
			if m := e.Output.MessageOutput.Message; m.Role == schema.Tool && m.Content == result {
				answers++
			}
		}
		return answers, nil
	}
}

func TestEino(t *testing.T) {
	for _, v := range variants(t) {
		answers, err := einoRun(t, v)(t.Context())
		require.NoError(t, err, v.name)
		assert.Equal(t, calls, answers, v.name)
	}
}

func BenchmarkEino(b *testing.B) {
	for _, v := range variants(b) {
		b.Run(v.name, func(b *testing.B) { measure(b, einoRun(b, v)) })
	}
}

// measure reports the time of a call in a run.
func measure(b *testing.B, run func(ctx context.Context) (int, error)) {
	b.Helper()
	for b.Loop() {
		if answers, err := run(b.Context()); err != nil || answers != calls {
			b.Fatal(answers, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/calls, "ns/call")
	b.ReportMetric(0, "ns/op")
}
