package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/internal/exampletest"
	"github.com/grapnel-go/grapnel/policy/backtest"
)

// backtestOf runs the program; there is no terminal, and no shared folder.
func backtestOf(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, said bytes.Buffer
	err = runProgram(t.Context(), args, "no such folder", &out, backtest.Look{}, &backtest.Bar{Out: &said})
	return out.String(), said.String(), err
}

func TestTheSample(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "report.html")
	stdout, stderr, err := backtestOf(t, "-html", page)
	require.NoError(t, err)
	assert.Empty(t, stderr)
	exampletest.Readme(t, stdout)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(text), "<title>Backtest: deny-writes and operator-static</title>")
}

func TestRecordingsOfYourOwn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mine")
	require.NoError(t, os.CopyFS(dir, os.DirFS("sample")))
	stdout, _, err := backtestOf(t, dir)
	require.NoError(t, err)
	assert.Contains(t, stdout, "6 runs and 12 plays in ")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "more.jsonl"), []byte(`{"id":"chess","suite":"chess","messages":[]}`+"\n{"), 0o600))
	stdout, stderr, err := backtestOf(t, dir)
	require.EqualError(t, err, "1 runs and lines could not be played")
	assert.Contains(t, stderr, `more.jsonl": line 2: `)
	assert.Contains(t, stdout, "runs left out because operator-static has no rules for their suite: chess 1\n")
}

func TestWhatIsMissing(t *testing.T) {
	t.Parallel()
	lone := filepath.Join(t.TempDir(), "runs.jsonl")
	require.NoError(t, os.WriteFile(lone, []byte(`{"id": "a", "messages": []}`), 0o600))
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"nothing.jsonl"}, "open recording: stat nothing.jsonl"},
		{[]string{lone}, "put it there, or name a file with -facts"},
		{[]string{"-facts", "nothing.json", lone}, "load facts: open nothing.json"},
		{[]string{"-colour"}, "flag provided but not defined: -colour"},
	} {
		_, _, err := backtestOf(t, tc.args...)
		require.ErrorContains(t, err, tc.want)
	}
}

// Without a policy, nothing in the sample differs from its recording, and its labels name existing calls.
func TestTheSampleIsSound(t *testing.T) {
	t.Parallel()
	found, _, err := sampleRecordings("")
	require.NoError(t, err)
	report, err := backtest.Run(t.Context(), found, backtest.Options{Policies: []backtest.Policy{backtest.Always("none")}})
	require.NoError(t, err)
	assert.Equal(t, 6, report.Policies[0].Total.Runs)
	assert.Empty(t, report.Policies[0].Total.Left)
	records, err := replay.Load(filepath.Join("sample", "banking.jsonl"))
	require.NoError(t, err)
	for _, record := range records {
		calls := map[string]bool{}
		for _, call := range record.Calls() {
			calls[call.ID] = true
		}
		for _, label := range record.Labels {
			assert.True(t, calls[label.Call], record.ID)
		}
	}
}
