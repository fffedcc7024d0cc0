package claudehooks

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMatchers(t *testing.T) {
	for _, x := range []struct {
		event, matcher, value string
		want                  bool
	}{
		{preToolUse, "", "Bash", true},
		{preToolUse, "*", "Bash", true},
		{preToolUse, "Bash", "Bash", true},
		{preToolUse, "bash", "Bash", false},
		{preToolUse, "ead", "Read", false},
		{preToolUse, "Rea|Wri", "Read", false},
		{preToolUse, "Edit|Write", "Write", true},
		{preToolUse, "Edit, Write", "Write", true},
		{preToolUse, "mcp__memory", "mcp__memory__store", false},
		{preToolUse, "mcp__memory__.*", "mcp__memory__store", true},
		{preToolUse, "mcp__my-server__x", "mcp__my-server__x", true},
		{preToolUse, "^Ba", "Bash", true},
		{preToolUse, "as.", "Bash", true},
		{preToolUse, "as.$", "Basher", false},
		{preToolUse, "^bash", "Bash", false},
		{stopFailure, "rate_limit|overloaded", "overloaded", true},
		{stopFailure, "rate-limit", "xrate-limitx", true},
		{subagentStart, "code-reviewer", "code-reviewer", true},
	} {
		m, err := newMatcher(x.event, x.matcher)
		require.NoError(t, err)
		assert.Equal(t, x.want, m.matches(x.value), "%q on %q", x.matcher, x.value)
	}
	_, err := newMatcher(preToolUse, "(?!Bash)")
	require.Error(t, err)
}

func TestConditions(t *testing.T) {
	bash := func(command string) string {
		text, _ := json.Marshal(map[string]string{"command": command})
		return string(text)
	}
	for _, x := range []struct {
		rule, tool, input string
		want              bool
	}{
		{"Bash", "Bash", bash("ls"), true},
		{"Bash", "Read", `{}`, false},
		{"Bash(git *)", "Bash", bash("git status"), true},
		{"Bash(git *)", "Bash", bash("git"), true},
		{"Bash(git *)", "Bash", bash("gitk x"), false},
		{"Bash(git:*)", "Bash", bash("git status"), true},
		{"Bash(git push *)", "Bash", bash("git status"), false},
		{"Bash(git push *)", "Bash", bash("FOO=1 git push origin"), true},
		{"Bash(git push *)", "Bash", bash("ls && git push; pwd"), true},
		{"Bash(git push *)", "Bash", bash("cat x | git push"), true},
		{"Bash(git push *)", "Bash", bash("echo $(git push)"), true},
		{"Bash(git push *)", "Bash", bash("$CMD"), true},
		{"Bash(rm *)", "Bash", bash("echo $HOME"), false},
		{"Bash(rm *)", "Bash", bash("echo `rm x`"), true},
		{"Bash(rm *)", "Bash", bash("echo 'oops"), true},
		{"Bash(npm run test)", "Bash", bash("npm run test"), true},
		{"Bash(npm run test)", "Bash", bash("npm run tests"), false},
		{"Edit(*.ts)", "Edit", `{"file_path":"/p/src/a.ts"}`, true},
		{"Edit(*.ts)", "Write", `{"file_path":"/p/src/a.ts"}`, true},
		{"Edit(*.ts)", "Edit", `{"file_path":"/p/src/a.go"}`, false},
		{"Edit(src/**)", "Edit", `{"file_path":"/p/src/a/b.go"}`, true},
		{"Edit(src/**)", "Edit", `{"file_path":"/p/lib/src/b.go"}`, false},
		{"Read(//etc/**)", "Read", `{"file_path":"/etc/passwd"}`, true},
		{"Read(/docs/*)", "Read", `{"file_path":"/p/docs/x.md"}`, true},
		{"WebFetch(domain:example.com)", "WebFetch", `{"url":"https://example.com/x"}`, true},
		{"WebFetch(domain:example.com)", "WebFetch", `{"url":"https://example.org/x"}`, false},
		{"mcp__memory", "mcp__memory__store", `{}`, true},
		{"mcp__memory__*", "mcp__memory__store", `{}`, true},
		{"mcp__memory", "mcp__other__store", `{}`, false},
		{"Agent(Explore)", "Agent", `{"subagent_type":"Explore"}`, true},
	} {
		c, err := newCondition(x.rule)
		require.NoError(t, err, x.rule)
		assert.Equal(t, x.want, c.holds(x.tool, json.RawMessage(x.input), "/p", "/p"), "%s on %s %s", x.rule, x.tool, x.input)
	}
	_, err := newCondition("Bash(a) Bash(b")
	require.Error(t, err)
}
