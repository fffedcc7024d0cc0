package action_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
)

// LH-36, LH-37, LH-38, LH-39, X-05: what is not exactly a decision is an error, and never no opinion.
func TestParseDecision(t *testing.T) {
	for text, want := range map[string]string{
		``: "", ` `: "", `{}`: "", "\n{ }\n": "",
		`{"decision":"allow"}`:            "",
		`{"decision":"deny"}`:             "",
		`{"decision":"deny","reason":""}`: "",
		`{"decision":"deny","reason":"why","context":"c","metadata":{"k":[1]}}`: "",
		`{"decision":"ask","reason":"why","within":1.5,"on_timeout":"approve"}`: "",
		`{"decision":"rewrite","arguments":{}}`:                                 "",
		`{"decision":"rewrite","input":""}`:                                     "",
		`{"decision":"mock","result":"","is_error":true}`:                       "",
		`{"decision":"block"}`:                                                  `unknown decision "block"`,
		`{"decision":"Deny"}`:                                                   `unknown decision "Deny"`,
		`{"decision":"pass"}`:                                                   `unknown decision "pass"`,
		`{"decision":""}`:                                                       `unknown decision ""`,
		`{"decision":"defer"}`:                                                  `unknown decision "defer"`,
		`{"decision":null}`:                                                     `"decision" is null`,
		`{"decision":5}`:                                                        "invalid decision",
		`{"decision":["deny"]}`:                                                 "invalid decision",
		`{"reason":"why"}`:                                                      `no member "decision"`,
		`{"Decision":"deny"}`:                                                   "Decision",
		`{"decision":"deny","reason":5}`:                                        "invalid decision",
		`{"decision":"deny","reason":null}`:                                     `"reason" is null`,
		`{"decision":"deny","resaon":"why"}`:                                    "resaon",
		`{"decision":"allow","arguments":{"command":"rm"}}`:                     `allow does not take "arguments"`,
		`{"decision":"deny","result":"x"}`:                                      `deny does not take "result"`,
		`{"decision":"approve","context":"c"}`:                                  `approve does not take "context"`,
		`{"decision":"rewrite"}`:                                                "needs either arguments or input",
		`{"decision":"rewrite","arguments":{},"input":""}`:                      "needs either arguments or input",
		`{"decision":"rewrite","arguments":[]}`:                                 "arguments",
		`{"decision":"rewrite","arguments":{"a":1,"A":2}}`:                      "case",
		`{"decision":"mock"}`:                                                   "requires a result",
		`{"decision":"ask","within":-1}`:                                        "within",
		`{"decision":"ask","on_timeout":"maybe"}`:                               "on_timeout",
		`{"decision":"allow","decision":"deny"}`:                                "invalid decision",
		`{"decision":"allow"} {"decision":"deny"}`:                              "invalid decision",
		`{"decision":"allow"`:                                                   "invalid decision",
		`"allow"`:                                                               "invalid decision",
		`[]`:                                                                    "invalid decision",
		`null`:                                                                  "invalid decision",
		`allow`:                                                                 "invalid decision",
		"{\"decision\":\"deny\",\"reason\":\"\xff\"}":                           "invalid decision",
	} {
		t.Run(text, func(t *testing.T) {
			d, err := action.ParseDecision([]byte(text))
			if want != "" {
				require.ErrorContains(t, err, want)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, strings.Contains(text, "decision"), d != nil)
		})
	}
}

// Each decision does at each point what its word says, or fails.
func TestDecide(t *testing.T) {
	moments := map[string]hookstest.Moment{
		"call": hookstest.ToolCall("bash", `{"command":"ls"}`), "result": hookstest.ToolResult("bash", `{}`, "secret"),
		"input": hookstest.Input("hello"), "start": hookstest.Start("hello"), "step": hookstest.StepStart(), "end": hookstest.StepEnd("x"),
		"request": hookstest.Request(agent.Request{}), "reply": hookstest.Reply("said"), "stop": hookstest.Stop("done"),
		"compact": hookstest.Compact(hooks.Compaction{}), "subagent": hookstest.Subagent("a", "do"), "subresult": hookstest.SubagentResult("a", "do", "did"),
		"person": hookstest.Intervention("bash", `{"command":"ls"}`), "failure": hookstest.RunFailure(errors.New("broken")),
		"toolfailure": hookstest.ToolFailure("bash", `{}`, errors.New("broken")),
		"pipeline":    hookstest.Pipeline(hooks.IterationStart, hooks.Pipeline{}), "runstart": hookstest.Blueprint(hooks.RunStart, hooks.BlueprintRun{}),
		"runresult": hookstest.Blueprint(hooks.RunResult, hooks.BlueprintRun{}), "runfailed": hookstest.Blueprint(hooks.RunFailed, hooks.BlueprintRun{}),
	}
	texts := map[hooks.Decision]string{
		hooks.Allow: `{"decision":"allow"}`, hooks.Deny: `{"decision":"deny","reason":"r"}`, hooks.Ask: `{"decision":"ask","reason":"r","within":5}`,
		hooks.StopRun: `{"decision":"stop","reason":"r"}`, hooks.Rewrite: `{"decision":"rewrite","input":"other"}`,
		hooks.Mock: `{"decision":"mock","result":"other"}`, hooks.Replace: `{"decision":"replace","result":"other"}`,
		hooks.Withhold: `{"decision":"withhold","reason":"r"}`, hooks.Approve: `{"decision":"approve","reason":"r"}`,
		hooks.RejectAndEnd: `{"decision":"reject","reason":"r"}`, hooks.Continue: `{"decision":"continue","reason":"r"}`,
	}
	can := map[string]string{
		"call": "allow deny ask stop rewrite mock", "result": "allow stop replace withhold", "input": "allow deny rewrite",
		"start": "allow deny stop rewrite", "step": "allow stop", "end": "allow stop", "request": "allow stop", "reply": "allow replace",
		"stop": "allow stop continue", "compact": "allow deny", "subagent": "allow deny rewrite", "subresult": "allow replace withhold",
		"person": "allow deny rewrite approve reject", "failure": "allow", "toolfailure": "allow stop replace withhold",
		"pipeline": "allow stop", "runstart": "allow deny rewrite", "runresult": "allow replace withhold", "runfailed": "allow",
	}
	for name, at := range moments {
		for decision, text := range texts {
			if decision == hooks.Rewrite && (name == "call" || name == "person" || name == "runstart") {
				text = `{"decision":"rewrite","arguments":{"command":"true"}}`
			}
			t.Run(name+"/"+string(decision), func(t *testing.T) {
				d := lo.Must(action.ParseDecision([]byte(text)))
				f := hookstest.Fire(t, control(at.Point(), func(_ context.Context, c hooks.Context) hooks.Result { return action.Decide(c, d) }), at)
				if !lo.Contains(strings.Fields(can[name]), string(decision)) {
					require.ErrorContains(t, f.Err, "is not allowed at "+string(at.Point()))
					return
				}
				require.NoError(t, f.Err)
				assert.Equal(t, decision, f.Decision)
				if strings.Contains(text, `"reason"`) {
					assert.Equal(t, "r", f.Reason)
				}
			})
		}
	}
}

// What is put in the place of something is what the decision says; what it adds is in the state.
func TestDecisionsHaveContents(t *testing.T) {
	does := func(text string, at hookstest.Moment) hookstest.Fired {
		d := lo.Must(action.ParseDecision([]byte(text)))
		return hookstest.Fire(t, control(at.Point(), func(_ context.Context, c hooks.Context) hooks.Result { return action.Decide(c, d) }), at)
	}
	call := hookstest.ToolCall("bash", `{"command":"ls"}`)
	assert.JSONEq(t, `{"command":"true","n":12345678901234567890}`, does(`{"decision":"rewrite","arguments":{"command":"true","n":12345678901234567890}}`, call).Call.Arguments)
	assert.Equal(t, "other", does(`{"decision":"mock","result":"other"}`, call).Text())
	assert.True(t, does(`{"decision":"mock","result":"other","is_error":true}`, call).Result.IsError())
	assert.Equal(t, "other", does(`{"decision":"rewrite","input":"other"}`, hookstest.Input("hello")).Text())
	assert.Equal(t, "other", does(`{"decision":"replace","result":"other"}`, hookstest.Reply("said")).Text())
	f := does(`{"decision":"allow","context":"mind the gap","metadata":{"n":7,"s":"x","l":[1.5]}}`, call)
	assert.Equal(t, []string{"mind the gap"}, f.AddedTexts())
	for name, want := range map[string]any{"n": int64(7), "s": "x", "l": []any{json.Number("1.5")}} {
		got, _ := agent.SessionKey[any](name).From(f.State)
		assert.Equal(t, want, got)
	}
	require.ErrorContains(t, does(`{"decision":"allow","context":"c"}`, hookstest.Stop("x")).Err, "decision allow at Stop cannot add context or metadata")
}

// The error for a decision that lacks the point's required value lists the possible decisions.
func TestDecisionsThatLackWhatThePointNeeds(t *testing.T) {
	call, said := hookstest.ToolCall("bash", `{"command":"ls"}`), "other"
	for _, tc := range []struct {
		at   hookstest.Moment
		d    action.Decision
		want string
	}{
		{call, action.Decision{Decision: hooks.Rewrite, Input: &said}, "decision rewrite, as given, is not allowed at PreToolUse: expected one of allow, deny, ask, stop, rewrite, mock"},
		{hookstest.Input("x"), action.Decision{Decision: hooks.Rewrite, Arguments: []byte(`{}`)}, "decision rewrite, as given, is not allowed at InputSubmitted: expected one of allow, deny, rewrite"},
		{call, action.Decision{Decision: hooks.Mock}, "decision mock, as given, is not"},
		{hookstest.Reply("x"), action.Decision{Decision: hooks.Replace}, "decision replace, as given, is not"},
		{call, action.Decision{Decision: hooks.Ask, OnTimeout: "maybe"}, "on_timeout"},
		{hookstest.StepStart(), action.Decision{Decision: hooks.Deny, Context: "c"}, "decision deny, as given, is not allowed at StepStart: expected one of allow, stop"},
		{call, action.Decision{Decision: "maybe"}, "decision maybe, as given, is not"},
	} {
		f := hookstest.Fire(t, control(tc.at.Point(), func(_ context.Context, c hooks.Context) hooks.Result { return action.Decide(c, &tc.d) }), tc.at)
		require.ErrorContains(t, f.Err, tc.want)
	}
}

// LH-42: the answer of a service that is not asked for a decision decides nothing.
func TestObserversDecideNothing(t *testing.T) {
	bash(t)
	a := ready(t, action.Shell{Text: `echo '{"decision":"deny","reason":"no"}'`}, action.Host{})
	answer := lo.Must(a.Do(t.Context(), observed(t)))
	assert.Nil(t, answer.Decision)
	assert.Equal(t, `{"decision":"deny","reason":"no"}`+"\n", answer.Output)
}

func TestDecisionSchema(t *testing.T) {
	var schema struct {
		Properties map[string]struct{ Enum []string }
	}
	require.NoError(t, json.Unmarshal([]byte(action.DecisionSchema(hooks.Allow, hooks.StopRun)), &schema))
	assert.ElementsMatch(t, []string{"decision", "reason", "context", "metadata"}, lo.Keys(schema.Properties))
	assert.Equal(t, []string{"allow", "stop"}, schema.Properties["decision"].Enum)
	require.NoError(t, json.Unmarshal([]byte(action.DecisionSchema()), &schema))
	assert.Len(t, schema.Properties, 10)
	assert.Len(t, schema.Properties["decision"].Enum, 11)
}

// What is read is a decision that can be written, and reads the same; what is not is an error, and never an approval.
func FuzzParseDecision(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"decision":"deny","reason":"x"}`, `{"decision":"rewrite","arguments":{"a":1}}`, `{"decision":"allow","decision":"deny"}`,
		`{"decision":"ask","within":1e300}`, `{"decision":"mock","result":"x","metadata":{"a":{"b":null}}}`, `[]`, `{"decision":5}`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := action.ParseDecision(text)
		if err != nil {
			return
		}
		if d == nil {
			trimmed := strings.Join(strings.Fields(string(text)), "")
			require.Contains(t, []string{"", "{}"}, trimmed)
			return
		}
		again, err := json.Marshal(d)
		require.NoError(t, err)
		e, err := action.ParseDecision(again)
		require.NoError(t, err)
		require.Equal(t, d.Decision, e.Decision)
		require.Equal(t, d.Reason, e.Reason)
	})
}
