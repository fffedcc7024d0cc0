package action_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/samber/lo"
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
	scope := lo.Must(hooks.NewSet(hook).Compile()).OpenScope(t.Context(), hooks.ScopeOptions{})
	run, _, denied, err := scope.Blueprint(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.RunStart}, hooks.BlueprintRun{Parameters: json.RawMessage(`{"report_id":"R123"}`)})
	require.NoError(t, err)
	return string(run.Parameters), denied
}

// Hooks of blueprints may speak as they were made to, or as all others do. CO-04: what continue leaves out or sets to null stays as it
// was. CO-09: block blocks whatever else the answer says. CO-12: an answer without an action is invalid.
func TestBlueprintAnswers(t *testing.T) {
	bash(t)
	const kept = `{"report_id":"R123"}`
	for text, want := range map[string][2]string{
		`{"action":"continue"}`:                             {kept, ""},
		`{"action":"continue","parameters":{"a":1}}`:        {`{"a":1}`, ""},
		`{"action":"continue","parameters":{}}`:             {`{}`, ""},
		`{"action":"continue","parameters":null}`:           {kept, ""},
		`{"action":"continue","block_reason":"x"}`:          {kept, ""},
		`{"action":"continue","block_reason":null}`:         {kept, ""},
		`{"action":"continue","block_reason":5}`:            {kept, ""},
		`{"action":"continue","result_text":null}`:          {kept, ""},
		`{"action":"block","block_reason":"not allowed"}`:   {"", "denied by validator: not allowed"},
		`{"action":"block"}`:                                {"", "denied by validator: no reason given"},
		`{"action":"block","block_reason":null}`:            {"", "denied by validator: no reason given"},
		`{"action":"block","block_reason":" "}`:             {"", "denied by validator: no reason given"},
		`{"action":"block","block_reason":["E1"]}`:          {"", `denied by validator: ["E1"]`},
		`{"action":"block","parameters":{}}`:                {"", "denied by validator: no reason given"},
		`{"parameters":5,"action":"block"}`:                 {"", "denied by validator: no reason given"},
		`{"action":"block","parameters":null}`:              {"", "denied by validator: no reason given"},
		`{"action":"block","reason":"x","note":[1]}`:        {"", "denied by validator: no reason given"},
		`{"action":"block","block_reason":"a"} and more`:    {"", "denied by validator: a"},
		`{"action":"block","block_reason":"a"`:              {"", "denied by validator: a"},
		`{"action":"block","action":"continue"}`:            {"", "denied by validator: no reason given"},
		"\uFEFF" + ` {"action":"block","block_reason":"a"}`: {"", "denied by validator: a"},
		`{"decision":"deny","reason":"not allowed"}`:        {"", "denied by validator: not allowed"},
		`{"decision":"deny","reason":null}`:                 {"", "denied by validator: no reason given"},
		`{"decision":"withhold","reason":"a"}`:              {"", "denied by validator: a"},
		`{"decision":"deny","reason":"a","context":"b"}`:    {"", "denied by validator: a"},
		`{"decision":"rewrite","arguments":{"a":1}}`:        {`{"a":1}`, ""},
		`{"decision":"allow"}`:                              {kept, ""},
		` {} `:                                              {"", "not executed: validator"},
		``:                                                  {"", "not executed: validator"},
		`null`:                                              {"", "not executed: validator"},
		`{"action":null}`:                                   {"", "not executed: validator"},
		`{"action":"maybe"}`:                                {"", "not executed: validator"},
		`{"action":"Block"}`:                                {"", "not executed: validator"},
		`{"parameters":{"a":1}}`:                            {"", "not executed: validator"},
		`{"nested":{"action":"block"}}`:                     {"", "not executed: validator"},
		`[{"action":"block"}]`:                              {"", "not executed: validator"},
		`{"action":"continue","parameters":5}`:              {"", "not executed: validator"},
		`{"action":"continue","parameters":[]}`:             {"", "not executed: validator"},
		`{"action":"continue","decision":"allow"}`:          {"", "not executed: validator"},
		`{"action":"continue","parameter":{}}`:              {"", "not executed: validator"},
		`{"action":"continue","result_text":"a"}`:           {"", "not executed: validator"},
		`{"action":"continue"} and more`:                    {"", "not executed: validator"},
		`all is well`:                                       {"", "not executed: validator"},
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

// CO-09: a block whose rest is too long to read blocks, and a continue that is cut off is invalid.
func TestBlockThatIsTooLong(t *testing.T) {
	bash(t)
	answer := func(word string) action.Shell {
		return action.Shell{Text: `printf '{"action":"` + word + `","parameters":{"a":"'; head -c 200000 /dev/zero | tr '\0' x; printf '"}}'`}
	}
	_, denied := startRun(t, ready(t, answer("block"), action.Host{}))
	require.ErrorContains(t, denied, "denied by validator: no reason given")
	_, denied = startRun(t, ready(t, answer("continue"), action.Host{}))
	require.ErrorContains(t, denied, "not executed: validator")
}

// CO-09, CO-12: a Go function that denies blocks, whatever else it says, and one without a decision has failed.
func TestBlueprintFuncs(t *testing.T) {
	for name, c := range map[string]struct {
		decision *action.Decision
		want     string
	}{
		"deny":        {&action.Decision{Decision: hooks.Deny, Reason: "no"}, "denied by validator: no"},
		"deny and":    {&action.Decision{Decision: hooks.Deny, Reason: "no", Arguments: json.RawMessage(`{}`), Context: "x"}, "denied by validator: no"},
		"withhold":    {&action.Decision{Decision: hooks.Withhold, Reason: "no"}, "denied by validator: no"},
		"no decision": {nil, "not executed: validator"},
	} {
		t.Run(name, func(t *testing.T) {
			host := action.Host{Funcs: map[string]action.Body{"f": func(context.Context, *action.Request) (*action.Decision, error) { return c.decision, nil }}}
			_, denied := startRun(t, ready(t, action.Func{Name: "f"}, host))
			require.ErrorContains(t, denied, c.want)
		})
	}
}

// The same holds for results: block withholds, null is missing, and an answer without an action has failed.
func TestResultAnswers(t *testing.T) {
	bash(t)
	for text, want := range map[string]string{
		`{"action":"continue"}`: "the result",
		`{"action":"continue","result_text":"other","result_data":null,"parameters":null}`: "other",
		`{"action":"continue","result_data":{"a":1},"block_reason":5}`:                     `{"a":1}`,
		`{"action":"block","result_text":5,"block_reason":"secret"}`:                       "result withheld by filter: secret",
		`{"decision":"withhold","reason":"secret","result":5}`:                             "result withheld by filter: secret",
		`{"decision":"deny","reason":"secret"}`:                                            "result withheld by filter: secret",
		`{}`:                                                                               "result withheld by filter: the hook could not decide",
		``:                                                                                 "result withheld by filter: the hook could not decide",
		`{"action":"continue","result_text":"a","result_data":{}}`:                         "result withheld by filter: the hook could not decide",
		`{"action":"continue","parameters":{}}`:                                            "result withheld by filter: the hook could not decide",
		`{"action":"continue","result_text":{}}`:                                           "result withheld by filter: the hook could not decide",
	} {
		t.Run(text, func(t *testing.T) {
			a := ready(t, action.Shell{Text: `printf %s "$TEXT"`, Env: map[string]string{"TEXT": text}}, action.Host{})
			hook := hooks.On(hooks.AtRunResult, "filter", func(ctx context.Context, c hooks.RunResultContext) hooks.Result {
				return action.Apply(ctx, c, a, action.NewRequest(c, "filter"))
			})
			scope := lo.Must(hooks.NewSet(hook).Compile()).OpenScope(t.Context(), hooks.ScopeOptions{})
			run, _, _, err := scope.Blueprint(t.Context(), agent.NewState(), hooks.Firing{Point: hooks.RunResult}, hooks.BlueprintRun{ResultText: "the result"})
			require.NoError(t, err)
			assert.Contains(t, run.ResultText, want)
		})
	}
}
