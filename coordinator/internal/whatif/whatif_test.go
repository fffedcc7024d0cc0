package whatif_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/internal/whatif"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/storedruns"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/backtest"
	"github.com/grapnel-go/grapnel/policy/policytest"
	"github.com/grapnel-go/grapnel/toolexec"
)

// limit is a policy that denies payments above an amount.
func limit(amount int) string {
	return fmt.Sprintf(`policy: payments
hooks:
  PreToolUse:
    - id: limit
      match: {tool: pay}
      when: args.amount > %d
      decision: deny
      reason: '${args.amount} is too much'
`, amount)
}

// storedDecision is the form in which decisions are stored.
func storedDecision(e agent.Event) (durable.EventForm, bool) {
	h, ok := e.(hooks.Event)
	if !ok || h.Kind == hooks.HookStart {
		return durable.EventForm{}, false
	}
	data, err := json.Marshal(map[string]any{
		"run": h.Run.ID, "hook": h.Hook, "point": h.Point, "call_id": h.Call.ID, "decision": h.Decision, "reason": h.Reason, "origin": h.Origin, "shadow": h.Shadow,
	})
	return durable.EventForm{Name: h.EventName(), Data: data}, err == nil
}

// pays stores a run of an agent that pays amounts under rules.
func pays(t testing.TB, store durable.Store, rules string, amounts ...int) agent.RunID {
	t.Helper()
	var all []agenttest.Turn
	for i, n := range amounts {
		all = append(all, agenttest.Reply(agent.Step{Message: agent.Assistant("", agent.ToolCall{
			ID: fmt.Sprint("c", i), Name: "pay", Arguments: fmt.Sprintf(`{"amount": %d}`, n),
		})}))
	}
	pay := toolexec.CallFunc(agent.ToolSpec{Name: "pay"}, func(_ context.Context, _ toolexec.Call, in struct {
		Amount int `json:"amount"`
	},
	) (string, error) {
		return fmt.Sprint("paid ", in.Amount), nil
	})
	path := filepath.Join(t.TempDir(), "payments.yaml")
	require.NoError(t, os.WriteFile(path, []byte(rules), 0o600))
	p, err := policy.Load([]policy.Layer{{Name: "run", Files: []string{path}}}, policy.Options{})
	require.NoError(t, err)
	list, err := p.Hooks()
	require.NoError(t, err)
	a, err := builder.New().WithName("clerk").WithDriver(agenttest.Script(append(all, agenttest.Say("done"))...)).With(
		capability.UseTools(pay), capability.UseHooks(list...), capability.UseDurability{Keeper: durable.Keep(store, durable.Options{Events: storedDecision})},
	).Build().Get()
	require.NoError(t, err)
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("pay the bills")).Get()
	require.NoError(t, err)
	return s.Run().ID
}

// ask asks a coordinator on a store.
func ask(t testing.TB, ctx context.Context, store durable.Store, in wire.WhatIfRequest, progress func(wire.WhatIfProgress)) (wire.WhatIf, error) { //nolint:revive // ctx is not the test's
	t.Helper()
	c, err := coordinator.New(coordinator.Options{Store: store, AllRuns: true})
	require.NoError(t, err)
	return whatif.Ask(ctx, c, in, progress)
}

// Each difference between two sets of rules is counted once, as "grapnel hooks backtest" counts it.
func TestAsk(t *testing.T) {
	store := memory.New()
	pays(t, store, limit(1000), 50, 300, 2000)
	pays(t, store, limit(1000), 400)
	pays(t, store, limit(1000), 20)

	stricter, err := ask(t, t.Context(), store, wire.WhatIfRequest{Before: limit(1000), Policy: limit(100)}, nil)
	require.NoError(t, err)
	assert.Equal(t, []int{3, 5, 2, 0, 0, 3, 2, 0}, []int{
		stricter.Runs, stricter.Calls, stricter.NewlyDenied, stricter.NewlyAsked, stricter.NewlyAllowed, stricter.Good, stricter.Broken, stricter.Mended,
	})
	assert.Equal(t, []int{1, 3}, []int{stricter.Before.Denied, stricter.After.Denied})
	require.Len(t, stricter.Groups, 1)
	g := stricter.Groups[0]
	assert.Equal(t, []any{"allowed", "denied", "pay", "payments/limit", 2, 2, 2}, []any{g.From, g.To, g.Tool, g.Rule, g.Calls, g.Runs, g.Worked})
	assert.NotEmpty(t, g.RunID)
	assert.Contains(t, lo.Map(stricter.NotJudged, func(n wire.NotJudged, _ int) string { return n.Why }),
		"Stored runs do not have the system prompt, the tools, and the calls of sub-agents: rules cannot see them.")

	otherRules := func(w wire.WhatIf) int {
		n, _ := lo.Find(w.NotJudged, func(n wire.NotJudged) bool { return strings.HasPrefix(n.Why, "Other rules were in force") })
		return n.Runs
	}
	assert.Zero(t, otherRules(stricter))
	others, err := ask(t, t.Context(), store, wire.WhatIfRequest{Before: limit(350), Policy: limit(350)}, nil)
	require.NoError(t, err)
	assert.Equal(t, 1, otherRules(others), "one run pays 400, which was allowed then")

	looser, err := ask(t, t.Context(), store, wire.WhatIfRequest{Before: limit(1000), Policy: limit(5000), Limit: 3}, nil)
	require.NoError(t, err)
	assert.Equal(t, []int{0, 1, 0}, []int{looser.NewlyDenied, looser.NewlyAllowed, looser.Broken}, "what was denied did not succeed")
	fresh, err := ask(t, t.Context(), store, wire.WhatIfRequest{Policy: limit(100), Limit: 2}, nil)
	require.NoError(t, err)
	assert.Equal(t, []any{2, 1, true}, []any{fresh.Runs, fresh.NewlyDenied, fresh.Cut})

	own, err := coordinator.New(coordinator.Options{Store: store})
	require.NoError(t, err)
	none, err := whatif.Ask(t.Context(), own, wire.WhatIfRequest{Policy: limit(1)}, nil)
	require.NoError(t, err)
	assert.Zero(t, none.Runs, "a coordinator shows only its runs")

	found, _, _, err := storedruns.Find(t.Context(), store, storedruns.Filter{})
	require.NoError(t, err)
	p, err := policy.Load([]policy.Layer{{Name: "run", Files: []string{"p.yaml"}, Read: func(string) ([]byte, error) { return []byte(limit(100)), nil }}}, policy.Options{})
	require.NoError(t, err)
	list, err := p.Hooks()
	require.NoError(t, err)
	report, err := backtest.Run(t.Context(), found, backtest.Options{Policies: []backtest.Policy{backtest.Always("p", list...)}})
	require.NoError(t, err)
	assert.Equal(t, stricter.After.Denied, report.Policies[0].Total.Denied)
}

// Rules that cannot be loaded are reported with their places; a run that does not exist, one of another kind and an agent without runs are told apart.
func TestAskWrongly(t *testing.T) {
	store := memory.New()
	_, err := ask(t, t.Context(), store, wire.WhatIfRequest{Policy: "policy: x\nhooks:\n  PreToolUse:\n    - id: a\n      when: args.\n      decision: deny\n", Before: "policy: [\n"}, nil)
	invalid := &coordinator.InvalidError{}
	require.ErrorAs(t, err, &invalid)
	fields := lo.Map(invalid.Fields, func(f coordinator.FieldError, _ int) string { return f.Field })
	assert.Contains(t, fields, "policy")
	assert.Contains(t, fields, "before")
	assert.Contains(t, err.Error(), "policy: line 6, column 7: when: ")
	_, err = ask(t, t.Context(), store, wire.WhatIfRequest{Policy: " "}, nil)
	require.ErrorContains(t, err, "missing")
	_, err = ask(t, t.Context(), store, wire.WhatIfRequest{Policy: limit(1), RunID: "run_x"}, nil)
	require.ErrorIs(t, err, durable.ErrNotFound)
	none, err := ask(t, t.Context(), store, wire.WhatIfRequest{Policy: limit(1), AgentName: "other"}, nil)
	require.NoError(t, err)
	assert.Zero(t, none.Runs)
	for _, name := range []string{"library:assistant", "library:secrets"} {
		_, err = ask(t, t.Context(), store, wire.WhatIfRequest{Policy: name}, nil)
		require.NoError(t, err)
	}
	_, err = ask(t, t.Context(), store, wire.WhatIfRequest{Policy: "library:nothing"}, nil)
	require.ErrorAs(t, err, &invalid)
}

// The hooks of a blueprint that are asked about tool calls are tried; those around the run are named.
func TestAskAboutABlueprint(t *testing.T) {
	store := memory.New()
	id := pays(t, store, limit(1000), 50, 300)
	blueprint := `
name: clerk
type: autonomous
hooks:
  on_run_start: {type: http, url: https://example.com, on_error: block}
  on_tool_call: {id: limit, match: {tool: pay}, when: args.amount > 100, decision: deny, reason: too much}
`
	out, err := ask(t, t.Context(), store, wire.WhatIfRequest{Policy: blueprint, RunID: id}, nil)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1}, []int{out.Runs, out.NewlyDenied})
	around, ok := lo.Find(out.NotJudged, func(n wire.NotJudged) bool { return n.Why == "Hooks around a run are not asked when it is replayed." })
	assert.True(t, ok)
	assert.Len(t, around.Rules, 1)
}

// A replay reports how far it is, and stops with its context; only one runs at a time.
func TestProgressAndCancel(t *testing.T) {
	store := memory.New()
	for range 300 {
		pays(t, store, limit(1000), 50)
	}
	ctx, stop := context.WithCancel(t.Context())
	seen := wire.WhatIfProgress{}
	out, err := ask(t, ctx, store, wire.WhatIfRequest{Policy: limit(10)}, func(p wire.WhatIfProgress) {
		if seen.Runs == 0 {
			_, err := ask(t, t.Context(), store, wire.WhatIfRequest{Policy: limit(1)}, nil)
			assert.ErrorIs(t, err, coordinator.ErrBusy)
		}
		seen = p
		stop()
	})
	require.NoError(t, err)
	if seen.Runs > 0 { // a fast machine may be done first
		assert.True(t, out.Interrupted)
		assert.Equal(t, 300, seen.Of)
	}
	_, err = ask(t, t.Context(), store, wire.WhatIfRequest{Policy: limit(1), Limit: 1}, nil)
	require.NoError(t, err)
}

// A test case of a call is one that "grapnel hooks test" runs, and that fails when the policy decides otherwise.
func TestCase(t *testing.T) {
	store := memory.New()
	id := pays(t, store, limit(1000), 50, 2000)
	r, err := store.Run(t.Context(), id)
	require.NoError(t, err)
	dir := t.TempDir()
	text, err := storedruns.Case(t.Context(), store, r, storedruns.Expected{Call: "c1", Decision: "deny", Rule: "limit", Reason: "2000 is too much", Policy: "payments.yaml"})
	require.NoError(t, err)
	path := filepath.Join(dir, storedruns.CaseName("x/payments.yaml"))
	assert.Equal(t, "payments.test.yaml", filepath.Base(path))
	require.NoError(t, os.WriteFile(path, text, 0o600))
	for amount, failed := range map[int]int{1000: 0, 5000: 1} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "payments.yaml"), []byte(limit(amount)), 0o600))
		suite, err := policytest.Open(path)
		require.NoError(t, err, string(text))
		result, err := suite.Run(t.Context(), policytest.Options{})
		require.NoError(t, err)
		assert.Equal(t, failed, result.FailedCases(), "%+v", result.Cases)
	}
	_, err = storedruns.Case(t.Context(), store, r, storedruns.Expected{Call: "c9", Decision: "deny"})
	require.ErrorContains(t, err, "c9")
}

// Each decision about a call becomes a test case, before it and after it, in force and in shadow; of others the error says why not.
func TestCaseOfADecision(t *testing.T) {
	store := memory.New()
	rules := limit(1000) + `    - {id: watch, mode: shadow, match: {tool: pay}, when: args.amount == 50, decision: deny, reason: small}
  PostToolUse:
    - {id: notice, mode: shadow, match: {tool: pay}, when: 'result.text.contains("50")', decision: withhold, reason: secret}
    - {id: hide, match: {tool: pay}, when: 'result.text.contains("60")', decision: withhold, reason: secret}
`
	id := pays(t, store, rules, 2000, 50, 60)
	c, err := coordinator.New(coordinator.Options{Store: store, AllRuns: true})
	require.NoError(t, err)
	events, err := store.Events(t.Context(), id, 0, 100)
	require.NoError(t, err)
	made := map[string]string{}
	for _, e := range events {
		call, ok := coordinator.HookCallOf(e.Name, e.At, e.Data)
		if !ok || call.Decision == "" || call.Decision == string(hooks.Pass) {
			continue
		}
		name, text, err := api.Local{Coordinator: c}.Case(t.Context(), id, wire.CaseRequest{Decision: e.Seq})
		if call.Origin.Rule == "hide" {
			require.ErrorContains(t, err, "is not stored")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, "payments.test.yaml", name)
		made[call.Origin.Rule] = string(text)
	}
	assert.ElementsMatch(t, []string{"limit", "watch", "notice"}, lo.Keys(made))
	for rule, text := range made {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "payments.yaml"), []byte(rules), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "payments.test.yaml"), []byte(text), 0o600))
		suite, err := policytest.Open(filepath.Join(dir, "payments.test.yaml"))
		require.NoError(t, err, text)
		result, err := suite.Run(t.Context(), policytest.Options{})
		require.NoError(t, err)
		assert.Zero(t, result.FailedCases(), "%s: %s\n%+v", rule, text, result.Cases)
	}
	for _, in := range []wire.CaseRequest{{Decision: 999}, {Decision: -1}, {}, {Call: "c9"}} {
		_, _, err := api.Local{Coordinator: c}.Case(t.Context(), id, in)
		invalid := &coordinator.InvalidError{}
		require.ErrorAs(t, err, &invalid, "%+v", in)
	}
}

// Without the key of an encrypted store, the runs that cannot be read are counted, with the reason.
func TestEncryptedStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	for _, o := range []sqlite.Options{{Encryption: &durable.Encryption{Key: []byte(strings.Repeat("k", 32))}}, {}} {
		store, err := sqlite.Open(t.Context(), path, o)
		require.NoError(t, err)
		if o.Encryption != nil {
			pays(t, store, limit(1000), 50)
		}
		out, err := ask(t, t.Context(), store, wire.WhatIfRequest{Policy: limit(10)}, nil)
		require.NoError(t, err)
		if o.Encryption != nil {
			assert.Equal(t, []int{1, 1}, []int{out.Runs, out.NewlyDenied})
		} else {
			assert.Zero(t, out.Runs)
			require.NotEmpty(t, out.NotJudged)
			assert.Contains(t, out.NotJudged[0].Why, "encrypted")
			assert.Equal(t, 1, out.NotJudged[0].Runs)
		}
		require.NoError(t, store.Close())
	}
}
