package hooks

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
)

const someTools = `[
 {"type": "function", "function": {"name": "op_17", "description": "Transfers money to an account.", "parameters": {"type": "object", "properties": {
  "a1": {"type": "string", "description": "IBAN of the receiver"}, "zz": {"type": "string"}}}}},
 {"type": "function", "function": {"name": "zorble", "parameters": {"type": "object", "properties": {"frob": {"type": "string"}}}}}
]`

// What is written can be corrected and included, and then counts more than what was inferred.
func TestHooksToolsAndBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	schemas, table, ours := filepath.Join(dir, "s.json"), filepath.Join(dir, "tools.yaml"), filepath.Join(dir, "ours.yaml")
	require.NoError(t, os.WriteFile(schemas, []byte(someTools), 0o600))
	var out bytes.Buffer
	f := &toolsFlags{write: table}
	err := f.run(t.Context(), &out, []string{schemas})
	var exit *console.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, console.ExitFailed, exit.Code)
	assert.Contains(t, out.String(), "a1=payee~ zz=?")
	assert.Contains(t, out.String(), `no rule is about "zorble", which does something unknown`)
	assert.Contains(t, out.String(), "rule library:assistant-deletions/delete can match none of these tools")

	written, err := os.ReadFile(table)
	require.NoError(t, err)
	assert.Contains(t, string(written), "without a role: zz")
	corrected := bytes.ReplaceAll(written, []byte(`"zorble": {}`), []byte(`"zorble": {"effects": ["reads"]}`))
	require.NotEqual(t, string(written), string(corrected), string(written))
	require.NoError(t, os.WriteFile(table, corrected, 0o600))
	require.NoError(t, os.WriteFile(ours, []byte("policy: ours\ninclude: [tools.yaml, 'library:assistant']\n"), 0o600))
	out.Reset()
	f = &toolsFlags{}
	require.NoError(t, f.run(t.Context(), &out, []string{ours, schemas}))
	assert.Contains(t, out.String(), "file, sure")

	out.Reset()
	check := checking{kind: "policy", tools: []string{schemas}}
	require.NoError(t, check.run(&out, []string{"library:assistant"}))
	assert.Contains(t, out.String(), `unguarded: no rule is about the tool "zorble"`)
	assert.Contains(t, out.String(), "effect: none of the tools does what this rule is about")
}
