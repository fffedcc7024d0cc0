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

// with writes a file for the program.
func (p *program) with(name, text string) *program {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(filepath.Join(p.cmd.Dir, name), []byte(text), 0o600))
	return p
}

// ended runs it without a terminal and returns its exit code.
func (p *program) ended() int {
	p.t.Helper()
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(p.t, p.cmd.Start())
	return p.code()
}

// A rule asks a tool of the agent's MCP server, a real one from npm, and the next goes by
// what it said.
func TestRulesAskMCPTools(t *testing.T) {
	t.Parallel()
	server := parts.NPM(t, "mcp-server-everything")
	agent := "mcp:\n  all: {command: [" + strconv.Quote(server) + ", stdio]}\n"
	rules := `policy: rules
hooks:
  StepStart:
    - {id: add, type: mcp_tool, server: all, tool: get-sum, arguments: {a: 40, b: 2}, await: true}
    - {id: stop, when: 'actions.add.output.contains("42")', decision: stop, reason: it adds up}
`
	p := command(t, modelOf(t, `{"text": "Done."}`), "run", "--agent", "mcp.yaml", "--policy", "rules.yaml", "go")
	assert.Equal(t, 3, p.with("mcp.yaml", agent).with("rules.yaml", rules).ended())
	assert.Contains(t, p.written(), "rules/stop")
	assert.Contains(t, p.written(), "it adds up")

	// A tool that it has not is told before anything runs.
	p = command(t, modelOf(t, `{"text": "Done."}`), "run", "--tool", "shell", "--policy", "rules.yaml", "go")
	assert.Equal(t, 2, p.with("rules.yaml", rules).ended())
	assert.Contains(t, p.written(), `rules.yaml:4:8: rule "rules/add": tool: unknown tool "mcp__all__get-sum": available: bash`)
}

// A rule starts an agent, which decides; the rules hold for it, too, and it starts no
// other.
func TestRulesStartAgents(t *testing.T) {
	t.Parallel()
	const touch = `{"calls": [{"name": "bash", "arguments": {"command": "touch made.txt"}}]}`
	reviewer := modelOf(t, touch+"\n"+`{"text": "{\"decision\": \"deny\", \"reason\": \"not on a Friday\"}"}`)
	const rules = `policy: rules
hooks:
  PreToolUse:
    - {id: review, match: {tool: bash}, type: agent, agent_name: reviewer, input: {command: '${args.command}'}}
    - {id: alone, match: {agent: reviewer}, decision: deny, reason: look and do not touch}
`
	p := command(t, modelOf(t, touch+"\n"+`{"text": "Very well."}`),
		"run", "--tool", "shell", "--policy", "rules.yaml", "--rule-agent", "reviewer=reviewer.yaml", "go")
	p.with("rules.yaml", rules).with("reviewer.yaml", "model: openai/judge\nbase_url: "+reviewer.URL+"/v1\ntools: [shell]\n")
	assert.Equal(t, 0, p.ended(), p.written())
	assert.Contains(t, p.written(), "rules/review denies the call: not on a Friday")
	assert.Contains(t, p.written(), "Very well.")
	assert.NoFileExists(t, filepath.Join(p.cmd.Dir, "made.txt"))
	assert.Len(t, reviewer.taken, 2, "it was asked once, and again after the denial")

	for flag, wrong := range map[string]string{
		"":                       `rules.yaml:4:8: rule "rules/review": agent: unknown agent "reviewer": the program has not registered any agent`,
		"review":                 `--rule-agent "review": expected NAME=FILE`,
		"other=reviewer.yaml":    `agent: unknown agent "reviewer": available: other`,
		"reviewer=none.yaml":     "open none.yaml: no such file",
		"reviewer=bad.yaml":      `bad.yaml:1:1: unknown key "modell"`,
		"reviewer=recorded.yaml": "--rule-agent reviewer=recorded.yaml: an agent that a rule starts needs a model, not a recording",
	} {
		args := []string{"run", "--tool", "shell", "--policy", "rules.yaml", "go"}
		if flag != "" {
			args = append(args, "--rule-agent", flag)
		}
		p := command(t, modelOf(t, `{"text": "Done."}`), args...)
		p.with("rules.yaml", rules).with("reviewer.yaml", "tools: [shell]\n").with("bad.yaml", "modell: x\n").with("recorded.yaml", "model: replay:x.jsonl\n")
		assert.Equal(t, 2, p.ended(), flag)
		assert.Contains(t, p.written(), wrong)
	}
}

// A gate of a rule asks the person at the terminal; where there is none, it is a no.
func TestRulesAskPersons(t *testing.T) {
	t.Parallel()
	const rules = `policy: rules
hooks:
  ExecutionStart: {id: begin, type: gate, by: person, reason: shall it begin?}
`
	args := []string{"run", "--policy", "rules.yaml", "go"}
	for answer, says := range map[string]string{"y\r": "Here we go.", "n\r": "rules/begin", "not today\r": "not today"} {
		p := command(t, modelOf(t, `{"text": "Here we go."}`), args...).with("rules.yaml", rules)
		p.atTerminal()
		p.expect("y = yes")
		assert.Contains(t, p.written(), "shall it begin?")
		p.press(answer)
		p.expect(says)
		assert.Equal(t, map[bool]int{true: 0, false: 4}[answer == "y\r"], p.code())
	}
	p := command(t, modelOf(t, `{"text": "Here we go."}`), args...).with("rules.yaml", rules)
	assert.Equal(t, 4, p.ended())
	assert.Contains(t, p.written(), "no terminal to ask a person")
}
