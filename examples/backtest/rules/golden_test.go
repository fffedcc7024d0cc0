package rules_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/examples/backtest/rules"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// The golden list says, for 7,036 recorded runs, which calls two reference policies deny. Ours must deny the same calls
// and no others.
func TestRulesDenyExactlyTheGoldenCalls(t *testing.T) {
	dir := parts.Recordings(t)
	facts, err := rules.LoadFacts(filepath.Join(dir, "tools", "agentdojo-operator-facts.json"))
	require.NoError(t, err)
	golden := loadGolden(t, filepath.Join(dir, "golden-denials.jsonl.gz"))
	require.Len(t, golden, 7036)

	seen := map[string]bool{}
	denied := map[string]int{}
	for _, suite := range []string{"banking", "slack", "travel", "workspace"} {
		denyWrites, err := rules.DenyWrites(facts, suite)
		require.NoError(t, err)
		operatorStatic, err := rules.OperatorStatic(facts, suite)
		require.NoError(t, err)

		records, err := replay.Load(filepath.Join(dir, "agentdojo-"+suite+".jsonl.gz"))
		require.NoError(t, err)
		for _, record := range records {
			require.Equal(t, suite, record.Suite, record.ID)
			require.False(t, seen[record.ID], "run %q is recorded twice", record.ID)
			seen[record.ID] = true

			want, known := golden[record.ID]
			require.True(t, known, "run %q has no golden decisions", record.ID)
			for name, rule := range map[string]rules.Rule{"deny-writes": denyWrites, "operator-static": operatorStatic} {
				require.NotNil(t, want[name], record.ID)
				got := deniedCalls(t, rule, record)
				assert.Equal(t, want[name], got, "%s denies other calls of run %q", name, record.ID)
				denied[name] += len(got)
			}
		}
	}
	assert.Len(t, seen, len(golden), "runs with golden decisions that are not recorded")
	assert.Equal(t, map[string]int{"deny-writes": 7540, "operator-static": 2269}, denied)
}

// deniedCalls returns the IDs of the denied calls, in call order.
func deniedCalls(t *testing.T, rule rules.Rule, record *replay.Record) []string {
	t.Helper()
	ids := []string{}
	for _, call := range record.Calls() {
		args, err := rules.ParseArgs(call.Function.Arguments)
		require.NoError(t, err, "run %q, call %q", record.ID, call.ID)
		deny, reason := rule(call.Function.Name, args)
		require.Equal(t, deny, reason != "", "a denial has a reason, and nothing else has")
		if deny {
			ids = append(ids, call.ID)
		}
	}
	return ids
}

// loadGolden reads which calls each policy denies, by run and policy.
func loadGolden(t *testing.T, path string) map[string]map[string][]string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	require.NoError(t, err)

	golden := map[string]map[string][]string{}
	lines := bufio.NewScanner(unpacked)
	for lines.Scan() {
		var line struct {
			ID     string              `json:"id"`
			Denied map[string][]string `json:"denied"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		golden[line.ID] = line.Denied
	}
	require.NoError(t, lines.Err())
	return golden
}
