package otelsetup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/telemetry/otelsetup"
	"github.com/grapnel-go/grapnel/toolexec"
)

var took = regexp.MustCompile(`  [0-9.]+(ns|µs|ms|s)`)

// grown returns a tree with the times taken out.
func grown(t *testing.T, tree *otelsetup.Tree) string {
	t.Helper()
	var b strings.Builder
	n, err := tree.WriteTo(&b)
	require.NoError(t, err)
	assert.Equal(t, int64(b.Len()), n)
	assert.Len(t, took.FindAllString(b.String(), -1), strings.Count(b.String(), "\n"), "each line says how long it took")
	return took.ReplaceAllString(b.String(), "")
}

func TestTree(t *testing.T) {
	for name, tc := range map[string]struct {
		reasons bool
		want    string
	}{
		"names": {false, `
invoke_agent helper  done by agent (completed) 110 → 7 tokens
├─ chat small  100 → 5 tokens
├─ execute_tool push  denied by no-push (denied)
│  └─ hook PreToolUse no-push  deny
├─ execute_tool fail  failed (error) ERROR error
└─ chat small  10 → 2 tokens
`},
		"reasons": {true, `
invoke_agent helper  done by agent (completed) 110 → 7 tokens
├─ chat small  100 → 5 tokens
├─ execute_tool push  denied by no-push (denied) "tool \"push\": denied by no-push: not on a Friday"
│  └─ hook PreToolUse no-push  deny "not on a Friday"
├─ execute_tool fail  failed (error) ERROR "tool \"fail\": failed: out of paper"
└─ chat small  10 → 2 tokens
`},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t)
			tree := &otelsetup.Tree{}
			stop := start(t, otelsetup.Config{Spans: []sdktrace.SpanProcessor{tree}})
			tool := func(name string, err error) toolexec.Tool {
				return toolexec.Func(name, "A tool.", func(context.Context, struct{}) (string, error) { return "", err })
			}
			deny := hooks.On(hooks.AtPreToolUse, "no-push", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				return c.Deny("not on a Friday")
			}, hooks.ToolNamed("push"))
			a, err := builder.New().WithName("helper").WithModel("small").
				WithDriver(agenttest.Script(agenttest.Call("push", `{}`).Call("fail", `{}`).WithTokens(100, 5), agenttest.Say("well").WithTokens(10, 2))).
				With(capability.UseTools(tool("push", nil), tool("fail", errors.New("out of paper"))), capability.UseHooks(deny),
					capability.UseTelemetry{Reasons: tc.reasons}).
				Build().Get()
			require.NoError(t, err)
			require.NoError(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error())
			stop()
			assert.Equal(t, strings.TrimPrefix(tc.want, "\n"), grown(t, tree))
		})
	}
}

// Tool names from a model, and texts from a service or a tool, neither harm nor flood the terminal that shows the tree.
func TestATreeIsHarmless(t *testing.T) {
	environment(t)
	tree := &otelsetup.Tree{}
	stop := start(t, otelsetup.Config{Spans: []sdktrace.SpanProcessor{tree}})
	evil := "\x1b[2J\x1b]0;owned\a\u202e\x9b31m\nexecute_tool fine  executed"
	a, err := builder.New().WithName("helper").WithModel("small").
		WithDriver(agenttest.Script(agenttest.Call("no"+evil, `{}`).Call("long", `{}`), agenttest.Fail(errors.New("it said "+evil)))).
		With(capability.UseTelemetry{Reasons: true}, capability.UseTools(
			toolexec.Func("long", "A tool.", func(context.Context, struct{}) (string, error) {
				return "", errors.New(strings.Repeat("much ", 10_000))
			}))).
		Build().Get()
	require.NoError(t, err)
	require.Error(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error())
	stop()
	text := grown(t, tree)
	assert.Equal(t, 5, strings.Count(text, "\n"), "a line for each span:\n%q", text)
	assert.True(t, utf8.ValidString(text))
	for _, r := range text {
		assert.True(t, r == '\n' || unicode.IsPrint(r), "%q", r)
	}
	for line := range strings.Lines(text) {
		assert.Less(t, utf8.RuneCountInString(line), 700)
	}
	assert.Contains(t, text, `it said \x1b[2J`)
	assert.Contains(t, text, "much much")
}

func TestAnEmptyTree(t *testing.T) { assert.Empty(t, grown(t, &otelsetup.Tree{})) }

// A program that shows the trace of what it did.
func ExampleTree() {
	tree := &otelsetup.Tree{}
	shutdown, err := otelsetup.Start(context.Background(), otelsetup.Config{Spans: []sdktrace.SpanProcessor{tree}})
	if err != nil {
		fmt.Println(err)
		return
	}
	// … run agents …
	_ = shutdown(context.Background())
	_, _ = tree.WriteTo(os.Stdout)
	// Output:
}
