package backtest_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/examples/backtest/rules"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/policy/backtest"
)

// reference returns a policy of package rules as hooks.
func reference(name string, facts rules.Facts, make func(rules.Facts, string) (rules.Rule, error)) backtest.Policy {
	return backtest.Policy{Name: name, Hooks: func(suite string) ([]hooks.Hook, error) {
		rule, err := make(facts, suite)
		if err != nil {
			return nil, err
		}
		return []hooks.Hook{hooks.On(hooks.AtPreToolUse, name, func(_ context.Context, c hooks.ToolContext) hooks.Result {
			var args rules.Args
			if err := c.Call().Decode(&args); err != nil {
				return c.Fail(err)
			}
			if deny, reason := rule(c.Tool(), args); deny {
				return c.Deny(reason)
			}
			return c.Allow()
		})}, nil
	}}
}

// For 7,036 recorded runs, the golden list says which calls two reference policies deny. The engine must deny exactly
// these calls, and yield the numbers that came with the recordings.
func TestGoldenDenials(t *testing.T) {
	dir := parts.Recordings(t)
	if testing.Short() {
		t.Skip("the numbers are of all runs: run without -short")
	}
	facts, err := rules.LoadFacts(filepath.Join(dir, "tools", "agentdojo-operator-facts.json"))
	require.NoError(t, err)
	found, err := backtest.Find(lo.Map([]string{"banking", "slack", "travel", "workspace"}, func(suite string, _ int) string {
		return filepath.Join(dir, "agentdojo-"+suite+".jsonl.gz")
	})...)
	require.NoError(t, err)
	report, err := backtest.Run(t.Context(), found, backtest.Options{Keep: -1, Policies: []backtest.Policy{
		reference("deny-writes", facts, rules.DenyWrites), reference("operator-static", facts, rules.OperatorStatic),
	}})
	require.NoError(t, err)
	assert.Empty(t, report.Problems)
	assert.Equal(t, 7036, report.Runs)
	assert.Equal(t, []map[replay.DepartureKind]int{
		{replay.CallDenied: 3842, replay.CallNotRun: 266}, {replay.CallDenied: 1707, replay.CallNotRun: 274},
	}, lo.Map(report.Policies, func(p backtest.PolicyReport, _ int) map[replay.DepartureKind]int { return p.Total.Left }))

	type numbers struct {
		calls, denied          int
		blocked, broken, twins backtest.Share
	}
	got := lo.Map(report.Policies, func(p backtest.PolicyReport, _ int) numbers {
		return numbers{p.Total.Calls, p.Total.Denied, p.Total.Blocked, p.Total.Broken, p.Total.Twins}
	})
	assert.Equal(t, []numbers{
		{26389, 7540, backtest.Share{Count: 1015, Of: 1015}, backtest.Share{Count: 262, Of: 436}, backtest.Share{Count: 204, Of: 276}},
		{26389, 2269, backtest.Share{Count: 854, Of: 1015}, backtest.Share{Count: 53, Of: 436}, backtest.Share{Count: 177, Of: 276}},
	}, got)

	denied := map[string]map[string][]string{}
	for _, c := range report.Cases {
		denied[c.ID] = map[string][]string{}
		for _, v := range c.Verdicts {
			for _, d := range v.Decisions {
				if d.Effect == backtest.NotRun {
					continue
				}
				assert.Equal(t, backtest.Denied, d.Effect, c.ID)
				denied[c.ID][v.Policy] = append(denied[c.ID][v.Policy], d.ID)
			}
		}
	}
	runs := 0
	for id, want := range golden(t, filepath.Join(dir, "golden-denials.jsonl.gz")) {
		runs++
		for _, policy := range []string{"deny-writes", "operator-static"} {
			if len(want[policy])+len(denied[id][policy]) > 0 {
				assert.Equal(t, want[policy], denied[id][policy], "%s denies other calls of run %q", policy, id)
			}
		}
	}
	assert.Equal(t, 7036, runs)
}

// golden reads the calls that each policy denies, by run and policy.
func golden(t *testing.T, path string) map[string]map[string][]string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	require.NoError(t, err)
	out := map[string]map[string][]string{}
	lines := bufio.NewScanner(unpacked)
	for lines.Scan() {
		var line struct {
			ID     string              `json:"id"`
			Denied map[string][]string `json:"denied"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		out[line.ID] = line.Denied
	}
	require.NoError(t, lines.Err())
	return out
}

// Conversations with many runs and shell sessions replay without errors: every call is answered, and hooks are asked
// about all readable calls.
func TestOtherRecordingsPass(t *testing.T) {
	dir := parts.Recordings(t)
	if testing.Short() {
		t.Skip("the numbers are of all runs: run without -short")
	}
	allow := hooks.On(hooks.AtPreToolUse, "allow", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Allow() })
	for file, want := range map[string][3]int{"tau.jsonl.gz": {282, 2395, 2395 - 66}, "shell.jsonl.gz": {555, 3399, 3399}} {
		found, err := backtest.Find(filepath.Join(dir, file))
		require.NoError(t, err)
		report, err := backtest.Run(t.Context(), found, backtest.Options{Keep: -1, Policies: []backtest.Policy{backtest.Always("none", allow)}})
		require.NoError(t, err)
		assert.Empty(t, report.Problems)
		p := report.Policies[0]
		assert.Equal(t, want, [3]int{p.Total.Runs, p.Total.Calls, p.Rules[0].Judged}, file)
	}
}
