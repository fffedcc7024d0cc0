package guard_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/hooks"
)

// A func gets the arguments that were judged, or it does not run: no number is rounded, and nothing that a hook adds is lost.
func TestToolRunsWithWhatWasJudged(t *testing.T) {
	t.Parallel()
	ctx := guard.WithSession(t.Context(), open(t, guard.Config{Hooks: []hooks.Hook{
		hooks.On(hooks.AtPreToolUse, "dry", func(_ context.Context, c hooks.ToolContext) hooks.Result {
			if c.Tool() == "dry" {
				return c.Rewrite(map[string]any{"to": "Bob", "dry_run": true})
			}
			return c.Pass()
		}),
	}}))
	var got []any
	tool := guard.Tool("pay", func(_ context.Context, in map[string]any) (string, error) {
		got = append(got, in["account"])
		return "paid", nil
	})
	for _, account := range []any{int64(9007199254740993), "7", 1.5, json.Number("10.50"), json.Number("0.12345678901234567890123"), nil} {
		_, err := tool(ctx, map[string]any{"account": account})
		if err != nil {
			require.ErrorContains(t, err, "arguments")
		}
	}
	assert.Equal(t, []any{"7", 1.5, 10.5, nil}, got)

	for _, in := range []any{`{"b": 1.0, "a": 2}`, map[string]any{"raw": json.RawMessage(`{"b":1.0,"a":2}`)}, (*payment)(nil), nil} {
		_, err := guard.Tool("any", func(context.Context, any) (string, error) { return "", nil })(ctx, in)
		require.NoError(t, err, in)
	}
	_, err := guard.Tool("pay", func(context.Context, *payment) (string, error) { return "", nil })(ctx, nil)
	require.NoError(t, err)

	text, err := guard.Tool("dry", func(context.Context, payment) (string, error) { panic("it pays") })(ctx, payment{To: "Bob"})
	require.ErrorContains(t, err, "dry_run", text)
}
