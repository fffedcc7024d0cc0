package guard_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/audit"
	"github.com/grapnel-go/grapnel/policy/recorded"
)

// An audit log of a guard's calls can be backtested, whatever the framework is.
func TestAuditLogIsARecording(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(file, audit.Options{Content: true})
	require.NoError(t, err)
	deny := hooks.AlwaysDeny("closed", "the till is closed", hooks.ToolNamed("steal"))
	s := open(t, guard.Config{Hooks: append(log.CallHooks(), deny)})
	x := &tool{answer: "receipt 4711"}
	for _, name := range []string{"pay", "steal"} {
		_, err := guard.Do(t.Context(), s, guard.Call{ID: name, Tool: name, Arguments: `{"to":"Bob"}`}, x.run, guard.Text)
		require.NoError(t, err)
	}
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, log.Close())

	read, err := recorded.Open(file)
	require.NoError(t, err)
	defer func() { assert.NoError(t, read.Close()) }()
	var calls []string
	for run, err := range read.Runs() {
		require.NoError(t, err)
		for _, c := range run.Calls() {
			calls = append(calls, c.Function.Name+" "+c.Function.Arguments)
		}
	}
	assert.Equal(t, []string{`pay {"to":"Bob"}`, `steal {"to":"Bob"}`}, calls)
}
