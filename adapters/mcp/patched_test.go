package mcpguard_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/patched"
)

// The memory server that the SDK's authors wrote, with ten more lines.
func TestServerOfTheSDK(t *testing.T) {
	t.Parallel()
	program := patched.Build(t, "github.com/modelcontextprotocol/go-sdk/examples/server/memory", "testdata/memory.patch", 10, 0)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(`
policy: memory
hooks:
  PreToolUse:
    - {id: keep, match: {tool: delete_*}, decision: deny, reason: memories stay}
  PostToolUse:
    - {id: secrets, decision: redact, secrets: true}
`), 0o600))
	server := exec.CommandContext(t.Context(), program)
	server.Dir = dir
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: server}, nil)
	require.NoError(t, err)
	defer func() { assert.NoError(t, client.Close()) }()
	call := func(tool string, arguments map[string]any) *mcp.CallToolResult {
		t.Helper()
		r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
		require.NoError(t, err)
		return r
	}
	const secret = "AKIA" + "IOSFODNN7EXAMPLQ"
	call("create_entities", map[string]any{"entities": []any{
		map[string]any{"name": "Ann", "entityType": "person", "observations": []string{"her key is " + secret}},
	}})
	denied := call("delete_entities", map[string]any{"entityNames": []string{"Ann"}})
	assert.True(t, denied.IsError)
	assert.Contains(t, textOf(denied), "denied by memory/keep: memories stay")
	read := textOf(call("read_graph", map[string]any{}))
	assert.Contains(t, read, "Ann", "the denied call did not run")
	assert.NotContains(t, read, secret)
}
