package confirm_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/exampletest"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/backtest"
)

// confirm tries the policy on recordings.
func confirm(t *testing.T, path string) backtest.Report {
	t.Helper()
	loaded, err := policy.LoadFiles("confirm.yaml")
	require.NoError(t, err)
	list, err := loaded.Hooks()
	require.NoError(t, err)
	found, err := backtest.Find(path)
	require.NoError(t, err)
	report, err := backtest.Run(t.Context(), found, backtest.Options{Keep: -1, Policies: []backtest.Policy{backtest.Always("confirm.yaml", list...)}})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	return *report
}

func TestTheSample(t *testing.T) {
	t.Parallel()
	report := confirm(t, "sample.jsonl")
	p := report.Policies[0]
	assert.Equal(t, []int{3, 1, 1}, []int{p.Total.Runs, p.Total.Hit, p.Total.Denied})
	var out bytes.Buffer
	require.NoError(t, report.WriteText(&out, backtest.Look{}))
	exampletest.Readme(t, out.String())
}

// The numbers in docs/backtesting.md about recorded customers of airlines and shops.
func TestTheNumbersOfTau(t *testing.T) {
	t.Parallel()
	p := confirm(t, filepath.Join(parts.Recordings(t), "tau.jsonl.gz")).Policies[0]
	assert.Equal(t, []string{
		"Nemotron-Orchestrator-8B+gpt-5 true 3/74",
		"Nemotron-Orchestrator-8B+gpt-5 false 1/24",
		"gpt-4o true 1/19",
		"gpt-4o false 12/45",
		"unknown (OpenAI, redacted by authors) true 15/88",
		"unknown (OpenAI, redacted by authors) false 4/32",
	}, lo.Map(p.Results, func(r backtest.Result, _ int) string {
		return fmt.Sprintf("%s %t %d/%d", r.Model, r.Done, r.Hit, r.Runs)
	}))
}
