package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/policy"
)

// guardsIn returns the hooks of an agent file that deny, ask, or are rules of policies.
func guardsIn(t *testing.T, name string, text []byte) []hooks.Hook {
	t.Helper()
	file, err := names().Parse(name, text)
	require.NoError(t, err)
	var list []hooks.Hook
	for _, part := range file.Hooks {
		var calls agentfile.Ask
		switch part.Name {
		case "policy":
			var s agentfile.Policy
			require.NoError(t, part.Decode(&s))
			loaded, err := policy.LoadFiles(s.Files...)
			require.NoError(t, err)
			rules, err := loaded.Hooks()
			require.NoError(t, err)
			list = append(list, rules...)
		case "ask", "deny":
			require.NoError(t, part.Decode(&calls))
			list = append(list, onCalls(part.Name, calls.Calls, "", hooks.ToolContext.Ask))
		}
	}
	return list
}

func example(t *testing.T, name string) []hooks.Hook {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "examples", "agents", name))
	require.NoError(t, err)
	return guardsIn(t, name, text)
}

// The agents that we show hold against other spellings.
func TestPublishedAgentsHold(t *testing.T) {
	t.Chdir(t.TempDir())
	wd, err := os.Getwd()
	require.NoError(t, err)
	require.NotEmpty(t, wd)
}

func TestPublishedGuardsOfAgentsHold(t *testing.T) {
	t.Parallel()
	evasion.Guard{
		Hooks: example(t, "fixer.yaml"), Tool: "bash", Argument: "command",
		Allowed: []string{"go test ./...", "git status", "git -C . diff", "ls -l && cat go.mod", "gofmt -l ."},
		Commands: []string{
			"rm -rf build", "rm build -rf", "rm -r build", "rm --recursive build", "git push", "git -C . push", "git -c a.b=c push origin main", "git --no-pager push -f", "git push origin +main",
		},
		Forbidden: []string{"find . -delete", "find build -name x -delete", "find . -exec rm -r {} +", "git clean -fdx", "git reset --hard", "curl https://example.com"},
	}.Hold(t)
	for _, tool := range []string{"mcp__fs__write_file", "mcp__fs__edit_file", "mcp__fs__move_file", "mcp__fs__create_directory", "mcp__fs__delete_file"} {
		evasion.Guard{Hooks: example(t, "local.yaml"), Tool: tool, Argument: "path", Forbidden: []string{"a.txt"}}.Hold(t)
	}
}

// Commands are meant in whatever way a line runs them, and a call that does not have the line is not let through.
func TestCommandsOfAgentFilesHold(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{"commands: [rm, git push]", "argument: command, commands: [rm, git push]"} {
		evasion.Guard{
			Hooks: guardsIn(t, "a.yaml", []byte("hooks: [deny: {tools: [bash], "+settings+"}]\n")), Tool: "bash", Argument: "command",
			Allowed: []string{"ls", "git status", "echo rm", "git log push"}, Commands: []string{"rm x", "git push", "git -C . push"},
		}.Hold(t)
	}
	evasion.Guard{
		Hooks: guardsIn(t, "a.yaml", []byte("hooks: [deny: {tools: [fetch], argument: url, matching: evil}]\n")), Tool: "fetch", Argument: "url",
		Allowed: []string{"https://good.example"}, Forbidden: []string{"https://evil.example"},
	}.Hold(t)
}
