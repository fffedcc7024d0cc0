package policy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/policy"
)

// A table's entries for unknown tools and arguments have no effect, and are reported.
func TestTablesOfToolsNameWhatExists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ours.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`policy: ours
include: [library:assistant]
tools:
  op_17: {effects: [pays], roles: {a1: payee, a9: amount}}
  op_18: {effects: [reads]}
`), 0o600))
	p, err := policy.Load([]policy.Layer{{Name: "run", Files: []string{path}}}, policy.Options{})
	require.NoError(t, err)
	specs := []agent.ToolSpec{{Name: "op_17", Parameters: `{"type":"object","properties":{"a1":{"type":"string"},"a2":{"type":"number"}}}`}}
	found := lo.Filter(p.CheckTools(specs...), func(w policy.Warning, _ int) bool { return w.Code == "tool" || w.Code == "argument" })
	require.Len(t, found, 2)
	texts := lo.Map(found, func(w policy.Warning, _ int) string { return w.Text })
	assert.Equal(t, []int{4, 5}, lo.Map(found, func(w policy.Warning, _ int) int { return w.Line }))
	assert.Contains(t, texts[0], `the tool "op_17" has no argument "a9"`)
	assert.Contains(t, texts[1], `"op_18"`)
}

// Every member of an entry is optional.
func TestTablesOfToolsAreSparse(t *testing.T) {
	for name, entry := range map[string]string{
		"effects": "{effects: [pays]}", "records": "{records: [contacts]}", "roles": "{roles: {a1: payee}}", "nothing": "{}",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ours.yaml")
			require.NoError(t, os.WriteFile(path, []byte("policy: ours\ninclude: [library:assistant]\ntools:\n  op_17: "+entry+"\n"), 0o600))
			p, err := policy.Load([]policy.Layer{{Name: "run", Files: []string{path}}}, policy.Options{})
			require.NoError(t, err)
			specs := []agent.ToolSpec{{Name: "op_17", Parameters: `{"type":"object","properties":{"a1":{"type":"string"}}}`}}
			found := lo.Filter(p.CheckTools(specs...), func(w policy.Warning, _ int) bool { return w.Code == "tool" || w.Code == "argument" })
			assert.Empty(t, found)
		})
	}
}
