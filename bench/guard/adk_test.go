package guard_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	adkmodel "google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	adktool "google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	adkguard "github.com/grapnel-go/grapnel/adapters/adk"
)

type command struct {
	Command string `json:"command"`
	Target  string `json:"target"`
}

// adkCaller is a model that calls the tool in each step but the last one.
type adkCaller struct{}

func (adkCaller) Name() string { return "caller" }

func (adkCaller) GenerateContent(_ context.Context, r *adkmodel.LLMRequest, _ bool) iter.Seq2[*adkmodel.LLMResponse, error] {
	return func(yield func(*adkmodel.LLMResponse, error) bool) {
		part := genai.NewPartFromText("done")
		if len(r.Contents) < 2*calls {
			part = genai.NewPartFromFunctionCall(tool, map[string]any{"command": "ls -l src", "target": "src"})
			part.FunctionCall.ID = fmt.Sprint("call-", len(r.Contents))
		}
		yield(&adkmodel.LLMResponse{Content: genai.NewContentFromParts([]*genai.Part{part}, genai.RoleModel)}, nil)
	}
}

// adkRun returns an invocation with calls.
func adkRun(tb testing.TB, v variant) func(ctx context.Context) (answers int, err error) {
	tb.Helper()
	bash, err := functiontool.New(functiontool.Config{Name: tool, Description: "runs a command"},
		func(agent.Context, command) (string, error) { return result, nil })
	require.NoError(tb, err)
	config := llmagent.Config{Name: "bench", Model: adkCaller{}, Tools: []adktool.Tool{bash}}
	var plugins runner.PluginConfig
	if v.noop {
		config.BeforeToolCallbacks = append(config.BeforeToolCallbacks,
			func(agent.Context, adktool.Tool, map[string]any) (map[string]any, error) { return nil, nil })
	}
	if v.guard != nil {
		guarded := adkguard.New(v.guard)
		require.NoError(tb, guarded.Install(&config))
		plugins = guarded.PluginConfig()
	}
	a, err := llmagent.New(config)
	require.NoError(tb, err)
	return func(ctx context.Context) (answers int, err error) {
		r, err := runner.New(runner.Config{
			AppName: "bench", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true,
			PluginConfig: plugins,
		})
		if err != nil {
			return 0, err
		}
		for e, err := range r.Run(ctx, "user", "s", genai.NewContentFromText(input, genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				return answers, err
			}
			if answer := e.Content.Parts[0].FunctionResponse; answer != nil && answer.Response["result"] == result {
				answers++
			}
		}
		return answers, nil
	}
}

func TestADK(t *testing.T) {
	for _, v := range variants(t) {
		answers, err := adkRun(t, v)(t.Context())
		require.NoError(t, err, v.name)
		assert.Equal(t, calls, answers, v.name)
	}
}

func BenchmarkADK(b *testing.B) {
	for _, v := range variants(b) {
		b.Run(v.name, func(b *testing.B) { measure(b, adkRun(b, v)) })
	}
}
