package policy_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/policy"
)

// readers are programs with which scripts read a request.
var readers = []string{"jq", "yq", "python3", "python", "node", "ruby", "perl", "sed", "awk", "grep", "cat", "head", "tail", "tr", "cut"}

// interpreter matches the first line of a script.
var interpreter = regexp.MustCompile(`^#!.*`)

// scriptsShown returns the scripts in the pages of the repository that may decide about a call, by page.
func scriptsShown(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		for _, block := range evasion.Blocks(t, path) {
			if interpreter.MatchString(block) && strings.Contains(block, "echo") {
				found[path+" "+strings.Fields(block)[1]] = block
			}
		}
		return nil
	}))
	return found
}

// brokenPlaces are machines on which a script cannot read its request, as the value of PATH.
func brokenPlaces(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"no reader":                                t.TempDir(),
		"a reader that fails":                      placeOf(t, "exit 1"),
		"a reader that prints nothing":             placeOf(t, "exit 0"),
		"a reader that is killed":                  placeOf(t, "kill -9 $$"),
		"a reader that fails after it has printed": placeOf(t, "echo ls; exit 1"),
	}
}

// placeOf returns a folder in which each reader is a script.
func placeOf(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	for _, reader := range readers {
		require.NoError(t, os.WriteFile(filepath.Join(dir, reader), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	return dir
}

// A script that a page shows as a guard denies every call when it cannot read the request: without the program that reads
// it, with one that fails or prints nothing, without its interpreter, and for a command that is no text.
func TestPublishedScriptsFailClosed(t *testing.T) {
	t.Parallel()
	scripts := scriptsShown(t)
	require.NotEmpty(t, scripts)
	for name, script := range scripts {
		if strings.Contains(script, "tool_input") {
			continue // for Claude Code: see TestPublishedScriptsForClaudeFailClosed
		}
		answer := func(script, path, arguments string) string {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "check.sh"), []byte(script), 0o700))
			text := strings.Replace(evasion.Block(t, "../docs/moving.md", "policy: house"), "argv: [./check.sh]", "argv: [./check.sh], env: {PATH: '"+path+"'}", 1)
			require.Contains(t, text, path)
			p, err := policy.Parse("house.yaml", []byte(text), policy.Options{Host: action.Host{Dir: dir}})
			require.NoError(t, err)
			final, _ := run(t, p, []string{"bash"}, agenttest.Call("bash", arguments), agenttest.Say("done"))
			for _, m := range final.Messages() {
				if m.Role() == agent.RoleTool {
					return m.Text()
				}
			}
			return ""
		}
		const harmless = `{"command":"ls"}`
		assert.Contains(t, answer(script, placeOf(t, "echo ls"), harmless), "ran ", name)
		assert.Contains(t, answer(script, placeOf(t, "echo git push"), harmless), "denied", name)
		if _, err := exec.LookPath("jq"); err == nil {
			assert.Contains(t, answer(script, os.Getenv("PATH"), harmless), "ran ", name)
			assert.Contains(t, answer(script, os.Getenv("PATH"), `{"command":"git push origin main"}`), "denied", name)
			for _, arguments := range []string{`{"command":["git","push"]}`, `{"command":null}`, `{"command":{"a":"ls"}}`, `{"command":7}`, `{"command":""}`, `{}`} {
				assert.NotContains(t, answer(script, os.Getenv("PATH"), arguments), "ran ", "%s: %s", name, arguments)
			}
		}
		for how, path := range brokenPlaces(t) {
			assert.Contains(t, answer(script, path, harmless), "not executed", "%s: %s", name, how)
		}
		assert.Contains(t, answer(interpreter.ReplaceAllString(script, "#!/no/such/interpreter"), os.Getenv("PATH"), harmless), "not executed", name)
	}
}

// The scripts for Claude Code that pages show block, with exit code 2, when they cannot read the request.
func TestPublishedScriptsForClaudeFailClosed(t *testing.T) {
	t.Parallel()
	tried := false
	for name, script := range scriptsShown(t) {
		if !strings.Contains(script, "tool_input") {
			continue
		}
		for how, path := range brokenPlaces(t) {
			cmd := exec.CommandContext(t.Context(), "/bin/bash", "-c", script)
			cmd.Env, cmd.Stdin = []string{"PATH=" + path}, strings.NewReader(`{"tool_input":{"command":"ls"}}`)
			_ = cmd.Run()
			assert.Equal(t, 2, cmd.ProcessState.ExitCode(), "%s: %s", name, how)
			tried = true
		}
	}
	assert.True(t, tried)
}
