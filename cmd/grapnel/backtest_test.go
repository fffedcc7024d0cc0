//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/policy/backtest"
)

const recordedRun = `{"id":"r","messages":[{"role":"user","content":"go"},` +
	`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"rm x\"}"}}]},` +
	`{"role":"tool","tool_call_id":"c1","content":"did it"},{"role":"assistant","content":"done"}]}`

// Rules that do actions are loaded without what their actions need, and tried with all others: none of them is done, and
// the report says which were not judged. With --actions, what they need must be there.
func TestBacktestDoesNoActions(t *testing.T) {
	t.Parallel()
	const rules = `policy: rules
hooks:
  PreToolUse:
    - {id: look, type: mcp_tool, server: all, tool: get-sum, arguments: {a: 1}}
    - {id: review, match: {tool: bash}, type: agent, agent_name: reviewer}
    - {id: person, when: 'args.command != ""', type: gate, by: person, reason: may it?}
    - {id: model, type: prompt, rule: nothing is deleted}
    - {id: touched, type: command, argv: [touch, made.txt]}
    - {id: told, type: command, argv: [touch, told.txt], observe: true}
    - {id: behind, when: 'actions.look.output == "" && args.command.startsWith("rm ")', decision: deny, reason: no}
    - {id: elsewhere, match: {tool: write}, type: gate, by: person, waiver: {owner: o, reason: r, expires: 2999-01-01}}
`
	undone := []string{"rules/elsewhere", "rules/elsewhere:waived", "rules/look", "rules/model", "rules/person", "rules/review", "rules/touched"}

	p := command(t, nil, "hooks", "backtest", "--json", "--html", "report.html", "--policy", "rules.yaml", "runs.jsonl").
		with("rules.yaml", rules).with("runs.jsonl", recordedRun)
	var told []byte
	out := filepath.Join(p.cmd.Dir, "report.json")
	file, err := os.Create(out)
	require.NoError(t, err)
	p.cmd.Stdout, p.cmd.Stderr = file, p
	require.NoError(t, p.cmd.Start())
	require.Zero(t, p.code(), p.written())
	told, err = os.ReadFile(out)
	require.NoError(t, err)
	var report backtest.Report
	require.NoError(t, json.Unmarshal(told, &report))
	marked := lo.FilterMap(report.Policies[0].Rules, func(r backtest.Rule, _ int) (string, bool) { return r.Name, r.Undone })
	assert.ElementsMatch(t, undone, marked)
	assert.Equal(t, 1, report.Policies[0].Total.Denied, "by the rule behind them")
	assert.Zero(t, report.Policies[0].Total.Failed)
	assert.Contains(t, p.written(), "the action of rule rules/person was not executed")
	assert.NotContains(t, p.written(), "rules/elsewhere", "it was never asked")
	assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
	assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "told.txt"))
	page, err := os.ReadFile(filepath.Join(p.cmd.Dir, "report.html"))
	require.NoError(t, err)
	assert.Contains(t, string(page), "not judged: a backtest does not perform its action")

	p = command(t, nil, "hooks", "backtest", "--policy", "rules.yaml", "runs.jsonl").with("rules.yaml", rules).with("runs.jsonl", recordedRun)
	require.Zero(t, p.ended(), p.written())
	assert.Contains(t, p.written(), "rules/person (not judged)")
	assert.Contains(t, p.written(), "not judged, because their actions are not performed in a backtest: ")

	p = command(t, nil, "hooks", "backtest", "--actions", "--policy", "rules.yaml", "runs.jsonl").with("rules.yaml", rules).with("runs.jsonl", recordedRun)
	assert.Equal(t, 2, p.ended())
	assert.Contains(t, p.written(), `rule "rules/look"`)
	assert.Contains(t, p.written(), `rule "rules/person"`)
}

// Rules that no call of the recordings reaches are counted and not listed, unless --all asks for them.
func TestBacktestHidesWhatWasNeverAsked(t *testing.T) {
	t.Parallel()
	rules := `policy: rules
hooks:
  PreToolUse:
    - {id: asked, match: {tool: bash}, when: 'args.command.startsWith("rm ")', decision: deny, reason: no}
    - {id: idle, match: {tool: write}, decision: deny, reason: no}
`
	backtest := func(flags ...string) string {
		p := command(t, nil, append(append([]string{"hooks", "backtest"}, flags...), "rules.yaml", "runs.jsonl")...).
			with("rules.yaml", rules).with("runs.jsonl", recordedRun)
		require.Zero(t, p.ended(), p.written())
		return p.written()
	}
	hidden := backtest()
	assert.Contains(t, hidden, "rules/asked")
	assert.NotContains(t, hidden, "rules/idle")
	assert.Contains(t, hidden, "1 rule was never asked: --all shows it")
	all := backtest("--all")
	assert.Contains(t, all, "rules/idle")
	assert.NotContains(t, all, "never asked")
}
