package hostgate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What ToClaude says, Decode understands; and a hook's input comes back as our arguments.
func TestToClaude(t *testing.T) {
	for _, x := range []struct{ tool, ours, name, theirs string }{
		{"bash", `{"command":"ls","timeout_seconds":3}`, "Bash", `{"command":"ls","timeout":3000}`},
		{"read_file", `{"path":"a.txt","limit":3}`, "Read", `{"file_path":"/w/a.txt","limit":3}`},
		{"write_file", `{"content":"c","path":"/x/a.txt"}`, "Write", `{"content":"c","file_path":"/x/a.txt"}`},
		{"edit_file", `{"new_text":"n","old_text":"o","path":"a"}`, "Edit", `{"file_path":"/w/a","new_string":"n","old_string":"o"}`},
		{"grep", `{"ignore_case":true,"path":"sub","pattern":"x"}`, "Grep", `{"-i":true,"path":"/w/sub","pattern":"x"}`},
		{"task", `{"agent":"a","instruction":"i"}`, "Agent", `{"prompt":"i","subagent_type":"a"}`},
		{"mcp__s__t", `{"path":"a"}`, "mcp__s__t", `{"path":"a"}`},
	} {
		c, err := ToClaude(x.tool, x.ours, "/w")
		require.NoError(t, err)
		assert.Equal(t, x.name, c.Tool)
		assert.JSONEq(t, x.theirs, string(c.Input))
		back, err := c.Arguments(c.Input)
		require.NoError(t, err)
		assert.JSONEq(t, x.ours, string(back))
		if known, ok := tools[ClaudeCode][x.name]; ok && x.tool != "task" {
			assert.Equal(t, x.tool, known.name)
		}
	}
	c, err := ToClaude("bash", `{"command":"ls"}`, "/w")
	require.NoError(t, err)
	back, err := c.Arguments([]byte(`{"command":"pwd","description":"d","timeout":1500}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{"command":"pwd","timeout_seconds":2}`, string(back))
	_, err = c.Arguments([]byte(`{"command":"pwd","run_in_background":true}`))
	require.Error(t, err)
}

func TestClaudeResults(t *testing.T) {
	was := ClaudeResult("Bash", []byte(`{}`), "exit code 0\nstdout:\nhello\nstderr:\noops")
	assert.Equal(t, map[string]any{"stdout": "hello", "stderr": "oops", "interrupted": false, "isImage": false}, was)
	for raw, want := range map[string]string{`{"stdout":"a","stderr":"b"}`: "a\nb", `"a"`: "", `{"stdout":"a"}`: ""} {
		got, ok := ClaudeResultText(was, []byte(raw))
		assert.Equal(t, want, got)
		assert.Equal(t, want != "", ok)
	}
	got, ok := ClaudeResultText(ClaudeResult("mcp__s__t", nil, "x"), []byte(`[{"type":"text","text":"y"}]`))
	assert.True(t, ok)
	assert.Equal(t, "y", got)
	got, ok = ClaudeResultText(ClaudeResult("Read", []byte(`{"file_path":"/a"}`), "x"), []byte(`{"type":"text","file":{"content":"y"}}`))
	assert.True(t, ok)
	assert.Equal(t, "y", got)
}
