package agents

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
)

// guardsOf returns the hooks of an agent file that deny and ask, and the rules of the policies that it names.
func guardsOf(t *testing.T, text string) []hooks.Hook {
	t.Helper()
	file, err := NewRegistry().Parse("agent.yaml", []byte(text))
	require.NoError(t, err)
	var list []hooks.Hook
	for i, part := range file.Hooks {
		name := fmt.Sprintf("%s-%d", part.Name, i)
		switch part.Name {
		case "deny":
			var s agentfile.Deny
			require.NoError(t, part.Decode(&s))
			list = append(list, onCalls(name, s.Calls, "", hooks.ToolContext.Deny))
		case "ask":
			var s agentfile.Ask
			require.NoError(t, part.Decode(&s))
			list = append(list, onCalls(name, s.Calls, "", hooks.ToolContext.Ask))
		}
	}
	files, err := policiesOf(file.Definition)
	require.NoError(t, err)
	if len(files) > 0 {
		p, err := LoadPolicies(files, "", nil)
		require.NoError(t, err)
		rules, err := p.Hooks()
		require.NoError(t, err)
		list = append(rules, list...)
	}
	return list
}

// published returns an agent file that we show.
func published(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(text)
}

// The agents that we show stop other spellings of what their hooks are against, too.
func TestPublishedAgentsHold(t *testing.T) {
	t.Parallel()
	examples := filepath.Join("..", "..", "..", "..", "..", "examples", "agents")
	evasion.Guard{
		Hooks: guardsOf(t, published(t, examples, "fixer.yaml")), Tool: "bash", Argument: "command",
		Allowed: []string{"go test ./...", "git status", "git -C . diff", "ls -l && cat go.mod", "gofmt -l .", "git commit -m 'git push'", "git log --grep push"},
		Commands: []string{
			"rm -rf build", "rm build -rf", "rm --recursive build", "find build -delete", "find . -exec rm -r {} +",
			"git push", "git push origin +main", "git send-pack x",
		},
		Forbidden: []string{
			"find . -delete", "find build -name x -delete", "git clean -fdx", "git reset --hard", "curl https://example.com", "git -C . push",
			"git -c a.b=c push origin main", "/usr/lib/git-core/git-push origin main", "GIT push",
		},
	}.Hold(t)
	for _, tool := range []string{"mcp__fs__write_file", "mcp__fs__edit_file", "mcp__fs__move_file", "mcp__fs__create_directory", "mcp__fs__delete_file", "mcp__fs__Read_file"} {
		evasion.Guard{Hooks: guardsOf(t, published(t, examples, "local.yaml")), Tool: tool, Argument: "path", Forbidden: []string{"a.txt"}}.Hold(t)
	}
	for _, tool := range []string{"mcp__fs__read_text_file", "mcp__fs__list_directory", "mcp__fs__get_file_info"} {
		evasion.Guard{Hooks: guardsOf(t, published(t, examples, "local.yaml")), Tool: tool, AllowedCalls: []string{`{"path":"a.txt"}`, `{}`}}.Hold(t)
	}
	manual := guardsOf(t, evasion.Block(t, filepath.Join("..", "..", "..", "..", "..", "docs", "agent-file.md"), "- ask: {tools"))
	evasion.Guard{
		Hooks: manual, Tool: "bash", Argument: "command",
		Allowed: []string{"ls", "git status"}, Commands: []string{"git push", "rm x"}, Forbidden: []string{"find . -delete", "sudo git push", "x=push; git $x"},
	}.Hold(t)
	evasion.Guard{Hooks: manual, Tool: "mcp__fs__create_directory", Argument: "path", Forbidden: []string{"a"}}.Hold(t)
	shipped := guardsOf(t, string(shippedAgent))
	evasion.Guard{
		Hooks: shipped, Tool: "bash", Argument: "command",
		Allowed: []string{"go test ./...", "ls -l"}, Commands: []string{"rm -rf x", "rm x -rf", "find . -delete", "git clean -fd"},
	}.Hold(t)
	for _, tool := range []string{"read_file", "edit_file"} {
		evasion.Guard{
			Hooks: shipped, Tool: tool, Argument: "path",
			Allowed: []string{"greet.go", "a/b.go", "a..b"}, Forbidden: []string{"/etc/passwd", "../x", "a/../../x", "..", "./../x"},
		}.Hold(t)
	}
}

// A hook of an agent file judges commands however a line runs them, and denies a call without the text that it judges.
func TestHooksOfAgentFilesHold(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{"commands: [rm, git push, npm run deploy]", "argument: command, commands: [rm, git push, npm run deploy]"} {
		for _, kind := range []string{"deny", "ask"} {
			evasion.Guard{
				Hooks: guardsOf(t, "hooks: ["+kind+": {tools: [bash], "+settings+"}]\n"), Tool: "bash", Argument: "command",
				Allowed:  []string{"ls", "git status", "echo rm", "git log push", "npm run test", "npm test"},
				Commands: []string{"rm x", "git push", "git push origin main", "npm run deploy", "npm run --silent deploy"}, Forbidden: []string{"RM x", "git-push", "npm run $x", "$x"},
			}.Hold(t)
		}
	}
	evasion.Guard{
		Hooks: guardsOf(t, "hooks: [deny: {tools: [fetch], argument: url, matching: evil}]\n"), Tool: "fetch", Argument: "url",
		Allowed: []string{"https://good.example"}, Forbidden: []string{"https://evil.example"},
	}.Hold(t)
	evasion.Guard{
		Hooks: guardsOf(t, "hooks: [deny: {tools: [bash], argument: line, matching: '^#!', commands: [rm]}]\n"), Tool: "bash", Argument: "line",
		Allowed: []string{"ls"}, Commands: []string{"rm x"}, Forbidden: []string{"#!/bin/sh"},
	}.Hold(t)
}

// What an agent file names must be there: a hook for an argument or a tool that the agent lacks is an error, and so is a policy
// that cannot be loaded.
func TestHooksForWhatThereIsNot(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tools: [shell]\nhooks: [deny: {tools: [bash], argument: comand, matching: x}]\n":      `no call of "bash" has an argument at "comand": did you mean "command"?`,
		"tools: [shell]\nhooks: [ask: {tools: [bsah], commands: [rm]}]\n":                      `"bsah" matches no tool: did you mean "bash"?`,
		"tools: [files]\nhooks: [deny: {tools: [read_file], commands: [rm]}]\n":                `no call of "read_file" has an argument at "command"`,
		"tools: [shell]\nhooks: [deny: {tools: [bash], commands: [rm -rf]}]\n":                 "expected a program",
		"tools: [shell]\nhooks: [deny: {tools: [bash], commands: [/bin/rm]}]\n":                "expected a program",
		"tools: [shell]\nhooks: [deny: {tools: [bash], argument: command}]\n":                  "argument and matching go together",
		"tools: [shell]\nhooks: [policy: {files: [library:safe-shel]}]\n":                      "safe-shel",
		"tools: [shell]\nhooks: [policy: {files: []}]\n":                                       "files is empty",
		"tools: [shell]\nhooks: [policy]\n":                                                    "files",
		"tools: [files]\nhooks: [rate-limit: {tools: [mcp__nowhere__*], calls: 3}]\n":          `"mcp__nowhere__*" matches no tool`,
		"tools: [shell]\nhooks: [deny: {tools: [bash, '/^(sh|zsh)$/'], commands: [rm]}]\n":     `"/^(sh|zsh)$/" matches no tool`,
		"tools: [shell]\nhooks: [base-dir: {tools: [write_file]}]\n":                           `"write_file" matches no tool`,
		"tools: [shell]\nhooks: [deny: {tools: ['^bash$'], reason: x}]\n":                      "agent.yaml:4:24: expected the name of a tool",
		"tools: [shell]\nhooks: [deny: {tools: [bash], argument: 'to.*.e', commands: [rm]}]\n": "without *: use a rule",
	} {
		path := filepath.Join(t.TempDir(), "agent.yaml")
		require.NoError(t, os.WriteFile(path, []byte("model: openai/x\nbase_url: http://127.0.0.1:1\n"+text), 0o600))
		o := &Options{File: path, Color: "auto"}
		file, err := o.Resolve()
		if err == nil {
			var m *Built
			if m, err = Build(t.Context(), file, Watchers{Rules: o.Rules}); err == nil {
				require.NoError(t, m.Close())
			}
		}
		assert.ErrorContains(t, err, want, text)
	}
}

// A run that goes on has the policies that its agent file named when it began, whatever became of the files.
func TestPoliciesOfAgentFilesAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rulesFile, agentFile := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "agent.yaml")
	require.NoError(t, os.WriteFile(rulesFile, []byte("policy: ours\nhooks:\n  PreToolUse:\n    - {id: one, match: {tool: bash}, decision: deny}\n"), 0o600))
	require.NoError(t, os.WriteFile(agentFile, []byte("model: openai/x\ntools: [shell]\nhooks: [policy: {files: ["+rulesFile+"]}]\n"), 0o600))
	began := &Options{File: agentFile, Color: "auto"}
	_, err := began.Resolve()
	require.NoError(t, err)
	require.NoError(t, os.Remove(rulesFile))
	resumed := &Options{File: agentFile, Color: "auto", Texts: began.Texts}
	_, err = resumed.Resolve()
	require.NoError(t, err)
	assert.Contains(t, resumed.Rules.Policy.Names(), "ours")
}

// The policies that an agent file names are in force, and those of an agent that a rule starts are refused.
func TestPoliciesOfAgentFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	require.NoError(t, os.WriteFile(path, []byte("model: openai/x\nbase_url: http://127.0.0.1:1\ntools: [shell]\npolicies: [library:secrets@1]\nhooks: [policy: {files: [library:safe-shell]}]\n"), 0o600))
	o := &Options{File: path, Color: "auto"}
	file, err := o.Resolve()
	require.NoError(t, err)
	assert.Equal(t, []string{"library:secrets", "library:safe-shell"}, o.Rules.Policy.Names())
	m, err := Build(t.Context(), file, Watchers{Rules: o.Rules})
	require.NoError(t, err)
	require.NoError(t, m.Close())
	_, err = ruleAgent{path, file}.buildAgent(t.Context(), Watchers{})
	assert.ErrorContains(t, err, "an agent that a rule starts cannot have a policy")
}

// The policies of an agent file are kept with it: the texts of files, and hashes of those of the library, whose versions they name.
func TestPoliciesOfAgentFilesAreHashed(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	require.NoError(t, os.WriteFile("ours.yaml", []byte("policy: ours\nhooks: {PreToolUse: {id: one, match: {tool: bash}, decision: deny}}\n"), 0o600))
	require.NoError(t, os.WriteFile("agent.yaml", []byte("model: openai/x\ntools: [shell]\npolicies: [ours.yaml, library:safe-shell@1]\n"), 0o600))
	o := &Options{File: "agent.yaml", Color: "auto"}
	_, err := o.Resolve()
	require.NoError(t, err)
	c := &cobra.Command{}
	(&Options{}).registerAgent(c)
	d, err := DefinitionOf(o, c, agentfile.Model{Provider: "openai", Name: "x"})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"agent.yaml", "ours.yaml"}, slices.Collect(maps.Keys(d.Files)))
	assert.ElementsMatch(t, []string{"library:safe-shell@1", "library:git-safety@1"}, slices.Collect(maps.Keys(d.Library)))
	assert.Empty(t, d.ChangedFiles("openai/x", o.Rules.Policy))
	require.NoError(t, os.WriteFile("ours.yaml", []byte("policy: ours\n"), 0o600))
	d.Library["library:git-safety@1"] = "of an older program"
	assert.Equal(t, []string{
		"ours.yaml has changed since the run began: it continues with the original.",
		"library:git-safety@1 has changed since the run began: it applies as it is now.",
	}, d.ChangedFiles("openai/x", o.Rules.Policy))
}

func TestWrongPoliciesOfAgentFiles(t *testing.T) {
	for text, want := range map[string]string{
		"policies: [library:secrets@9]": `unknown version "9"; known: 1`,
		"policies: [none.yaml]":         "none.yaml",
	} {
		path := filepath.Join(t.TempDir(), "agent.yaml")
		require.NoError(t, os.WriteFile(path, []byte("model: openai/x\n"+text+"\n"), 0o600))
		_, err := (&Options{File: path, Color: "auto"}).Resolve()
		require.ErrorContains(t, err, want)
	}
}
