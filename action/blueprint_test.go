package action_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// startRun asks a hook at RunStart, as a coordinator does, and gives the parameters that it leaves.
func startRun(t *testing.T, a action.Action) (parameters string, denied error) {
	t.Helper()
	hook := hooks.On(hooks.AtRunStart, "validator", func(ctx context.Context, c hooks.RunStartContext) hooks.Result {
		return action.Apply(ctx, c, a, action.NewRequest(c, "validator"))
	})
	scope := hooks.NewSet(hook).Compile().MustGet().OpenScope(t.Context(), hooks.ScopeOptions{})
	run, _, denied, err := scope.Blueprint(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.RunStart}, hooks.BlueprintRun{Parameters: json.RawMessage(`{"report_id":"R123"}`)})
	require.NoError(t, err)
	return string(run.Parameters), denied
}

// Hooks of blueprints may speak as they were made to, or as all others do.
func TestBlueprintAnswers(t *testing.T) {
	bash(t)
	for text, want := range map[string][2]string{
		`{"action":"continue"}`:                           {`{"report_id":"R123"}`, ""},
		`{"action":"continue","parameters":{"a":1}}`:      {`{"a":1}`, ""},
		`{"action":"continue","parameters":{}}`:           {`{}`, ""},
		`{"action":"block","block_reason":"not allowed"}`: {"", "not allowed"},
		`{"action":"block"}`:                              {"", "no reason given"},
		`{"decision":"deny","reason":"not allowed"}`:      {"", "not allowed"},
		`{"decision":"rewrite","arguments":{"a":1}}`:      {`{"a":1}`, ""},
		`{}`:                                   {`{"report_id":"R123"}`, ""},
		`{"action":"maybe"}`:                   {"", "invalid decision"},
		`{"action":"continue","parameters":5}`: {"", "invalid decision"},
		`{"action":"continue","block_reason":"x"}`: {"", "invalid decision"},
		`{"action":"block","parameters":{}}`:       {"", "invalid decision"},
		`{"action":"continue","decision":"deny"}`:  {"", "invalid decision"},
		`{"action":"continue","parameter":{}}`:     {"", "invalid decision"},
		`all is well`:                              {"", "invalid decision"},
	} {
		t.Run(text, func(t *testing.T) {
			script := `request=$(cat); [[ $request == *'"parameters":{"report_id":"R123"}'* ]] || exit 3; printf %s "$TEXT"`
			parameters, denied := startRun(t, ready(t, action.Shell{Text: script, Env: map[string]string{"TEXT": text}}, action.Host{}))
			if want[1] != "" {
				require.ErrorContains(t, denied, want[1])
				return
			}
			require.NoError(t, denied)
			assert.JSONEq(t, want[0], parameters)
		})
	}
}
