//go:build unix

package mcp_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

// npm's server-filesystem writes and reads in the directory that it was given, and in no other.
func TestFilesystemThroughAnAgent(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	c := connect(t, mcp.Server{
		Name: "files", Command: []string{parts.NPM(t, "mcp-server-filesystem"), dir}, Except: []string{"read_file"},
	})
	arguments := func(path, more string) string { return `{"path":` + strconv.Quote(path) + more + `}` }
	file := filepath.Join(dir, "a.txt")
	script := agenttest.Script(
		agenttest.Call("mcp__files__write_file", arguments(file, `,"content":"one\ntwo\n"`)),
		agenttest.Call("mcp__files__edit_file", arguments(file, `,"edits":[{"oldText":"two","newText":"2"}]`)),
		agenttest.Call("mcp__files__read_text_file", arguments(file, "")).
			Call("mcp__files__read_text_file", arguments(filepath.Join(outside, "secret"), "")).
			Call("mcp__files__read_text_file", arguments(filepath.Join(dir, "..", filepath.Base(outside), "secret"), "")).
			Call("mcp__files__read_file", arguments(file, "")).
			Call("mcp__files__list_directory", arguments(dir, "")),
		agenttest.Say("done"),
	)
	a, err := builder.New().WithDriver(script).With(capability.UseTools(c.Tools()...)).Build().Get()
	require.NoError(t, err)
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "one\n2\n", string(written))
	var results []agent.ToolResult
	for _, step := range final.Steps() {
		for _, r := range step.Results() {
			results = append(results, r)
		}
	}
	require.Len(t, results, 7)
	assert.Equal(t, "one\n2\n", results[2].Text())
	for _, denied := range results[3:5] {
		assert.Equal(t, agent.ToolExecuted, denied.Status)
		assert.True(t, denied.IsError())
		assert.Contains(t, denied.Text(), "Access denied")
	}
	assert.Equal(t, agent.ReasonUnknownTool, results[5].Reason, "the tool was left out")
	assert.Contains(t, results[6].Text(), "[FILE] a.txt")
}
