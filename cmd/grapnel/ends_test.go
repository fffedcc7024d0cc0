//go:build linux

package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// processIn waits for a file with the id of a process.
func (p *program) processIn(name string) int {
	p.t.Helper()
	id := 0
	require.Eventually(p.t, func() bool {
		text, err := os.ReadFile(filepath.Join(p.cmd.Dir, name))
		id, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil && id > 0
	}, patience, 5*time.Millisecond, "waiting for %s", name)
	return id
}

func assertGone(t *testing.T, process int) {
	t.Helper()
	assert.Eventually(t, func() bool { return syscall.Kill(process, 0) != nil }, patience, 5*time.Millisecond,
		"the process %d outlives grapnel", process)
}

// A terminal that is closed leaves no command behind.
func TestSIGHUPEndsTools(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"calls": [{"name": "bash", "arguments": {"command": "echo $$ > tool; sleep 60"}}]}`)
	p := piped(t, s, "run", "--tool", "shell", "hello")
	tool := p.processIn("tool")
	p.signal(syscall.SIGHUP)
	assert.Equal(t, 129, p.code())
	assertGone(t, tool)
}

// A run that is killed leaves the spans that had ended.
func TestAKilledRunLeavesItsTrace(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"calls": [{"name": "bash", "arguments": {"command": "echo $$ > tool; exec sleep 60"}}]}`)
	p := piped(t, s, "run", "--tool", "shell", "--trace", "spans.jsonl", "hello")
	tool := p.processIn("tool")
	p.signal(syscall.SIGKILL)
	_ = syscall.Kill(tool, syscall.SIGKILL)
	p.code()
	text, err := os.ReadFile(filepath.Join(p.cmd.Dir, "spans.jsonl"))
	require.NoError(t, err)
	assert.Contains(t, string(text), `"Name":"chat test-model"`)
}

// A signal at the prompt of a conversation, or while it ends, leaves no MCP server
// behind, and none of its children.
func TestASignalAtThePromptEndsServers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code   int
		closes bool
	}{"at the prompt": {143, false}, "while it ends": {0, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := talkToStubborn(t)
			child := p.processIn("child")
			p.expect("> ")
			if tc.closes {
				p.press("/quit\r")
				p.processIn("closing")
			}
			p.signal(syscall.SIGTERM)
			assert.Equal(t, tc.code, p.code())
			assertGone(t, child)
		})
	}
}

// talkToStubborn begins a conversation with an MCP server that does not end by itself.
func talkToStubborn(t *testing.T) *program {
	t.Helper()
	p := command(t, modelOf(t, `{"text": "Done."}`), "chat", "--agent", "mcp.yaml")
	server := filepath.Join(p.cmd.Dir, "server")
	require.NoError(t, os.WriteFile(server, []byte(`#!/bin/sh
sleep 60 & echo $! > child
read line
echo '{"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}'
read line; read line
echo '{"jsonrpc": "2.0", "id": 2, "result": {"tools": []}}'
cat
echo 1 > closing
wait
`), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(p.cmd.Dir, "mcp.yaml"), []byte("mcp: {s: {command: ["+strconv.Quote(server)+"]}}\n"), 0o600))
	p.atTerminal()
	return p
}

// A reader that closes the pipe ends the output, not the run and its tools. The command says
// nothing about it; the exit code says that not all was written.
func TestAReaderGoesAway(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"calls": [{"name": "bash", "arguments": {"command": "echo 1 > tool; until test -e gone; do sleep 0.01; done"}}]}
{"calls": [{"name": "bash", "arguments": {"command": "echo 2 > tool"}}]}
{"text": "Done."}`)
	p := command(t, s, "run", "--tool", "shell", "--json", "hello")
	p.cmd.Stderr = p
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	p.processIn("tool")
	require.NoError(t, out.Close())
	require.NoError(t, os.WriteFile(filepath.Join(p.cmd.Dir, "gone"), nil, 0o600))
	assert.Equal(t, 1, p.code())
	assert.Equal(t, 2, p.processIn("tool"))
	assert.NotContains(t, p.written(), "grapnel: ")
}

// Where no process reads standard error, and its pipe is full, two Ctrl-C
// still end the program.
func TestCtrlCWhereNobodyReads(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"text": "`+strings.Repeat("word ", 40_000)+`"}`)
	p := command(t, s, "run", "hello")
	unread, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	waiting, before := 0, -1
	require.Eventually(t, func() bool {
		before = waiting
		waiting, err = unix.IoctlGetInt(int(unread.(*os.File).Fd()), unix.TIOCINQ)
		return err == nil && waiting > 60_000 && waiting == before
	}, patience, 50*time.Millisecond, "waiting for a full pipe")
	p.signal(syscall.SIGINT)
	p.signal(syscall.SIGTERM)
	assert.Contains(t, []int{130, 143}, p.code(), "which of two that come at once is the second, the system says")
}
