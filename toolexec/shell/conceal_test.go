//go:build linux

package shell_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/toolexec/shell"
)

// TestConcealed is what TestConceal runs in a process of its own.
func TestConcealed(t *testing.T) {
	mode := os.Getenv("CONCEAL_TEST")
	if mode == "" {
		t.Skip("only in the process of TestConceal")
	}
	if mode == "concealed" {
		require.NoError(t, shell.Conceal())
	}
	r := run(t, newShell(t, nil), `tr '\0' '\n' </proc/$PPID/environ | grep -c sk-secret`)
	fmt.Println("seen:", r.OK())
}

func TestConceal(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	dir := t.TempDir()
	for _, name := range []string{dir, filepath.Dir(dir)} {
		require.NoError(t, os.Chmod(name, 0o777)) // for an unprivileged user
	}
	program := filepath.Join(dir, "shell.test")
	parts.WriteExecutable(t, program, self)
	for mode, want := range map[string]string{"open": "seen: true\n", "concealed": "seen: false\n"} {
		t.Run(mode, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestConcealed$")
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "CONCEAL_TEST=" + mode, "SERVICE_API_KEY=sk-secret"}
			if os.Getuid() == 0 { // from whom nothing can be concealed
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, string(out), want)
		})
	}
}
