package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

// A list says what a run waits for, which is not always an approval.
func TestDescribeWaits(t *testing.T) {
	t.Parallel()
	pay := listedCall{Call: "c1", Tool: "pay", Kind: durable.WaitApproval}
	for want, calls := range map[string][]listedCall{
		"waits for approval of pay (c1)":                  {pay},
		"waits for a decision whether to repeat pay (c1)": {{Call: "c1", Tool: "pay", Kind: durable.WaitDoubt}},
		"waits for input for order (c2)":                  {{Call: "c2", Tool: "order", Kind: durable.WaitInput}},
		"waits for a file about deploy (c3#window)":       {{Call: "c3#window", Tool: "deploy", Kind: durable.WaitFile}},
		"waits for the end of run r2":                     {{Call: "child", Tool: "x", Kind: durable.WaitChild, Child: "r2"}},
		"waits for approval of gate":                      {{Call: "gate", Kind: durable.WaitApproval}},
		"waits for moon x (c)":                            {{Call: "c", Tool: "x", Kind: "moon"}},
		"waits for approval of pay (c1), pay (c4), and for a decision whether to repeat send (c2)": {
			pay, {Call: "c2", Tool: "send", Kind: durable.WaitDoubt}, {Call: "c4", Tool: "pay", Kind: durable.WaitApproval},
		},
	} {
		assert.Equal(t, want, describeWaits(calls))
	}
}

// A word after a bare --durable that names a store is a mistake; other words are the prompt.
func TestIsStoreName(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "runs"), sqlite.Options{})
	require.NoError(t, err)
	require.NoError(t, store.Close())
	require.NoError(t, os.WriteFile("notes.txt", []byte("SQLite"), 0o600))
	for word, want := range map[string]bool{
		"runs.db": true, "work/x.sqlite": true, "sqlite:runs": true, "postgres://db/runs": true, "runs": true,
		"pay": false, "notes.txt": false, ".": false, "fix runs.db": false, "": false, "postgres": false,
	} {
		assert.Equal(t, want, isStoreName(word), word)
	}
}
