package agents

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
)

// Settings of Claude Code run after an approval of their content, and a resumed run has the settings with which it began.
func TestClaudeHooks(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "settings.json")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"echo not today >&2; exit 2"}]}]}}`)
	o, c := &Options{Color: "auto"}, &cobra.Command{}
	o.Register(c)
	require.NoError(t, c.ParseFlags([]string{"--claude-hooks", path, "--claude-compat"}))
	_, err := o.Resolve()
	require.NoError(t, err)
	_, err = NewShippedAgent(t.Context(), Watchers{Rules: o.Rules})
	require.ErrorContains(t, err, "grapnel hooks approve "+path)
	_, err = ApproveClaudeHooks([]string{path})
	require.NoError(t, err)

	definition, err := DefinitionOf(o, c, agentfile.Model{Provider: "openai", Name: "x"})
	require.NoError(t, err)
	write(`{"hooks":{}}`)
	resumed, err := definition.Options()
	require.NoError(t, err)
	_, err = resumed.Resolve()
	require.NoError(t, err)
	m, err := NewShippedAgent(t.Context(), Watchers{Rules: resumed.Rules})
	require.NoError(t, err)
	final, err := m.Agent.Run(m.Recording.Into(t.Context()), m.Recording.Start(), m.Recording.Input(0)...).Get()
	require.NoError(t, err)
	denied := 0
	for _, message := range final.Messages() {
		if message.Role() == agent.RoleTool && message.Reason() == agent.ReasonDenied {
			denied++
		}
	}
	assert.Equal(t, 8, denied)
	require.NoError(t, m.Close())

	write(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"agent","prompt":"x"}]}]}}`)
	o, c = &Options{Color: "auto"}, &cobra.Command{}
	o.Register(c)
	require.NoError(t, c.ParseFlags([]string{"--claude-hooks", path}))
	_, err = o.Resolve()
	require.ErrorContains(t, err, "settings.json:1:35")
}
