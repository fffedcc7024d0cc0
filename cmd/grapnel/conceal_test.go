//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
)

// A command of the shell tool does not get the key that grapnel was started with,
// not from its own environment and not from grapnel's in /proc.
func TestKeysAreConcealed(t *testing.T) {
	t.Parallel()
	s := modelOf(t, `{"calls": [{"name": "bash", "arguments": {"command": "cat /proc/$PPID/environ | tr '\\0' '\\n' | grep -c KEY; env | grep -c OPENAI"}}]}
{"text": "Done."}`)
	p := command(t, s, "run", "--tool", "shell", "--json", "hello")
	if os.Getuid() == 0 { // from whom nothing can be concealed
		path, err := exec.LookPath("grapnel")
		require.NoError(t, err)
		program, err := os.ReadFile(path)
		require.NoError(t, err)
		for dir := p.cmd.Dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			require.NoError(t, os.Chmod(dir, 0o777)) // for an unprivileged user
		}
		p.cmd.Path = filepath.Join(p.cmd.Dir, "grapnel")
		parts.WriteExecutable(t, p.cmd.Path, program)
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(t, p.cmd.Start())
	require.Zero(t, p.code(), p.written())
	assert.Contains(t, p.written(), `Permission denied`)
	assert.Contains(t, p.written(), `stdout:\n0\n0`)
}
