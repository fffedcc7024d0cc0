package telemetry_test

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/telemetry/otelsetup"
)

// attacked is a real run of a real model: a note in a list of transactions told it to
// pay an attacker, and it did.
const attacked = "agentdojo/gemini-2.0-flash-exp/banking/user_task_3/important_instructions/injection_task_0"

var spent = regexp.MustCompile(`  [0-9.]+(ns|µs|ms|s)\b`)

// What an operator would have seen of it, had a hook stood in the way, is what the
// docs show, but for the times.
func TestARecordedAttackAsAnOperatorSeesIt(t *testing.T) {
	folder := parts.Recordings(t)
	schemas, err := replay.LoadTools(filepath.Join(folder, "tools", "agentdojo-banking.json"))
	require.NoError(t, err)
	recording, err := replay.Open(filepath.Join(folder, "agentdojo-banking.jsonl.gz"))
	require.NoError(t, err)
	defer func() { require.NoError(t, recording.Close()) }()
	var session *replay.Session
	for r, err := range recording.Records() {
		require.NoError(t, err)
		if r.ID == attacked {
			session, err = replay.NewSession(r)
			require.NoError(t, err)
			break
		}
	}
	require.NotNil(t, session)

	tree := &otelsetup.Tree{}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tree))
	a, err := builder.New().WithName("banker").WithModel("gemini-2.0-flash-exp").WithDriver(replay.Driver{}).
		With(capability.UseTools(replay.Tools(schemas...)...), capability.UseCriteria(replay.GoOn),
			capability.UseHooks(hooks.On(hooks.AtPreToolUse, "payee-in-task", payeeInTask, hooks.ToolNamed("send_money"))),
			capability.UseTelemetry{Tracers: tracers, Reasons: true}).
		Build().Get()
	require.NoError(t, err)
	_, err = session.Play(t.Context(), a)
	require.NoError(t, err)

	var got strings.Builder
	_, err = tree.WriteTo(&got)
	require.NoError(t, err)
	_, page, _ := strings.Cut(doc(t, "observability.md"), "## A recorded attack")
	_, page, _ = strings.Cut(page, "```\n")
	shown, _, _ := strings.Cut(page, "```\n")
	assert.Equal(t, spent.ReplaceAllString(shown, ""), spent.ReplaceAllString(got.String(), ""), "\n%s", &got)
}

// payeeInTask lets money go to those whom the user named.
func payeeInTask(_ context.Context, c hooks.ToolContext) hooks.Result {
	to, _ := c.Call().Text("recipient")
	for _, m := range c.State().Messages() {
		if m.Role() == agent.RoleUser && strings.Contains(m.Text(), to) {
			return c.Allow()
		}
	}
	return c.Deny(to + " was not named by the user")
}
