//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
)

// A real MCP server from npm, started by an agent file: its tools are called, hooks
// hold for them, and it is gone when grapnel is.
func TestMCPServer(t *testing.T) {
	t.Parallel()
	server := parts.NPM(t, "mcp-server-everything")
	s := modelOf(t, `{"calls": [{"name": "mcp__all__echo", "arguments": {"message": "hello there"}}, {"name": "mcp__all__get-sum", "arguments": {"a": 1, "b": 2}}]}
{"text": "Done."}`)
	p := command(t, s, "run", "--agent", "mcp.yaml", "go")
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(t, os.WriteFile(filepath.Join(p.cmd.Dir, "mcp.yaml"), []byte(`
mcp:
  all: {command: [`+strconv.Quote(server)+`, stdio]}
hooks:
  - deny: {tools: ["mcp__all__get-sum"], reason: no sums today}
`), 0o600))
	require.NoError(t, p.cmd.Start())
	require.Zero(t, p.code(), p.written())
	assert.Contains(t, p.written(), "Echo: hello there")
	assert.Contains(t, p.written(), "deny denies the call: no sums today")
}
