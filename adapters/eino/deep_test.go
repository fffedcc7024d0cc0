package einoguard_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/adk/filesystem"
	"github.com/cloudwego/eino/adk/prebuilt/deep"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	einoguard "github.com/grapnel-go/grapnel/adapters/eino"
	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/hooks"
)

// shell remembers its commands.
type shell struct{ ran []string }

func (x *shell) Execute(_ context.Context, r *filesystem.ExecuteRequest) (*filesystem.ExecuteResponse, error) {
	x.ran = append(x.ran, r.Command)
	return &filesystem.ExecuteResponse{Output: "main.go sk-123"}, nil
}

// obedient is a model that makes the call that the user's message names, "tool arguments", and then quotes the result.
type obedient struct{}

func (obedient) Generate(_ context.Context, in []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	last := in[len(in)-1]
	if last.Role == schema.Tool {
		return schema.AssistantMessage("Done: "+last.Content, nil), nil
	}
	name, arguments, _ := strings.Cut(last.Content, " ")
	return schema.AssistantMessage("", []schema.ToolCall{
		{ID: "call-1", Type: "function", Function: schema.FunctionCall{Name: name, Arguments: arguments}},
	}), nil
}

func (m obedient) Stream(ctx context.Context, in []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	out, err := m.Generate(ctx, in, opts...)
	return schema.StreamReaderFromArray([]*schema.Message{out}), err
}

// The agent that eino's authors wrote, with its own tools and sub-agent, is guarded by three lines.
func TestDeepAgent(t *testing.T) {
	t.Parallel()
	g, err := guard.New(guard.Config{Name: "deep", Hooks: []hooks.Hook{
		hooks.On(hooks.AtPreToolUse, "no-rm", func(_ context.Context, c hooks.ToolContext) hooks.Result {
			if command, _ := c.Call().Text("command"); c.Call().Name == "execute" && command != "ls" {
				return c.Deny(command + " is not ls")
			}
			return c.Pass()
		}),
		hooks.AlwaysFilter("secrets", func(text string) string { return strings.ReplaceAll(text, "sk-123", "[secret]") }),
	}})
	require.NoError(t, err)
	ask := func(guarded bool, input string) (answer string, ran []string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		x := &shell{}
		config := &deep.Config{Name: "deep", Description: "an agent", ChatModel: obedient{}, Shell: x, Backend: filesystem.NewInMemoryBackend()}
		if guarded {
			var c adk.ChatModelAgentConfig
			require.NoError(t, einoguard.Install(g, &c))
			config.Handlers = c.Handlers
		}
		a, err := deep.New(ctx, config)
		require.NoError(t, err)
		events := adk.NewRunner(ctx, adk.RunnerConfig{Agent: a}).Query(ctx, input)
		for e, ok := events.Next(); ok; e, ok = events.Next() {
			require.NoError(t, e.Err)
			message, err := e.Output.MessageOutput.GetMessage()
			require.NoError(t, err)
			answer = message.Content
		}
		return answer, x.ran
	}
	const list, wipe = `execute {"command":"ls"}`, `execute {"command":"rm -rf /"}`
	delegated := fmt.Sprintf(`task {"subagent_type":"general-purpose","description":%q}`, wipe)

	answer, ran := ask(true, list)
	assert.Equal(t, []string{"ls"}, ran)
	assert.Contains(t, answer, "main.go [secret]")
	for _, input := range []string{wipe, delegated} {
		_, ran := ask(false, input)
		assert.Equal(t, []string{"rm -rf /"}, ran, "without the guard")
		answer, ran := ask(true, input)
		assert.Empty(t, ran, input)
		assert.Contains(t, answer, "denied by no-rm: rm -rf / is not ls", input)
	}
}
