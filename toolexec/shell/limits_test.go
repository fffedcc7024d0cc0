//go:build linux

package shell_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/toolexec/shell"
)

// Each of these makes processes until it is stopped, or has made as many as a machine can well bear: should the limit
// not hold, the test fails and nothing else does.
func TestForkBombsAreContained(t *testing.T) {
	parts.Command(t, "setsid", "install util-linux")
	for name, command := range map[string]string{
		"many children":          `for i in {1..300}; do sleep 306.25 & done; wait`,
		"a tree":                 `b() { (($1)) && { b $(($1-1)) & b $(($1-1)) & wait; sleep 306.25; }; }; b 8`,
		"left behind":            `b() { (($1)) && { b $(($1-1)) & b $(($1-1)) & }; sleep 306.25; }; b 8 >/dev/null & exit 0`,
		"sessions of their own":  `for i in {1..300}; do setsid sleep 306.25 & done; wait`,
		"that ignores SIGTERM":   `trap '' TERM; for i in {1..300}; do sleep 306.25 & done; wait`,
		"ignored and left alone": `trap '' TERM; (for i in {1..300}; do sleep 306.25 & done; wait) & exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, func(c *shell.Config) { c.Limits.Processes, c.Grace = 40, time.Hour })
			r := run(t, s, command)
			assert.Zero(t, r.Alive)
			assert.Less(t, r.Duration, time.Minute)
			assertNoSleep(t, s)
			if strings.HasSuffix(command, "exit 0") && r.Ended == shell.Exited {
				return // it had gone, and was cleaned up after, before there were so many
			}
			assert.Equal(t, shell.Overran, r.Ended)
			assert.Contains(t, r.String(), "killed: it had more than 40 processes at once")
		})
	}
}

// assertNoSleep asserts that no sleep of the bombs is left.
func assertNoSleep(t *testing.T, s *shell.Shell) {
	t.Helper()
	assert.Eventually(t, func() bool { return run(t, s, `! pgrep -x -f 'sleep 306.25' >/dev/null`).OK() }, time.Minute, 10*time.Millisecond)
}

// The real thing. The kernel's limit holds for it, since it does not run as root: it cannot grow past that even if
// nothing else worked.
func TestForkBomb(t *testing.T) {
	s := newShell(t, func(c *shell.Config) { c.Limits.Processes = 40 })
	bomb := `:() { : | : & }; :; while :; do sleep 1; done`
	if os.Getuid() == 0 {
		parts.Command(t, "setpriv", "install util-linux")
		bomb = `exec setpriv --reuid=65534 --regid=65534 --clear-groups bash -c '` + bomb + `'`
	}
	r := run(t, s, bomb)
	assert.Equal(t, shell.Overran, r.Ended)
	assert.Zero(t, r.Alive)
	assert.Less(t, r.Duration, time.Minute)
}

func TestFewProcessesAreFine(t *testing.T) {
	s := newShell(t, func(c *shell.Config) { c.Limits.Processes = 10 })
	assert.True(t, run(t, s, "for i in 1 2 3 4 5 6; do sleep 0.05 & done; wait").OK())
}

func TestLimitsOfAProcess(t *testing.T) {
	s := newShell(t, func(c *shell.Config) {
		c.Limits = shell.Limits{CPUTime: time.Second, FileBytes: 1 << 20, MemoryBytes: 64 << 20}
	})
	r := run(t, s, "while :; do :; done")
	assert.Equal(t, "SIGXCPU", r.Signal)

	r = run(t, s, "head -c 2000000 /dev/zero >file")
	assert.False(t, r.OK())
	assert.Equal(t, "1048576\n", run(t, s, "stat -c %s file").Stdout.Text)

	roomy := newShell(t, func(c *shell.Config) { c.Limits = shell.Limits{MemoryBytes: 64 << 20} }) // on a slow machine, a second is not enough
	r = run(t, roomy, `x=$(head -c 100000000 /dev/zero | tr '\0' x); echo ${#x}`)
	assert.False(t, r.OK())
	assert.Contains(t, r.Stderr.Text, "cannot allocate")

	assert.Equal(t, "exit code 0\nstdout:\n1 1024 65536", run(t, s, "echo $(ulimit -t) $(ulimit -f) $(ulimit -d)").String())
	assert.Equal(t, "2", run(t, s, "printf $(ulimit -H -t)").Stdout.Text)
}

func TestLimitsBindOnlyTheCommand(t *testing.T) {
	own, err := os.ReadFile("/proc/self/limits")
	require.NoError(t, err)
	s := newShell(t, func(c *shell.Config) {
		c.Limits = shell.Limits{Processes: 50, CPUTime: time.Minute, FileBytes: 1 << 20, MemoryBytes: 64 << 20}
	})
	require.True(t, run(t, s, "cat /proc/self/limits >limits").OK())
	after, err := os.ReadFile("/proc/self/limits")
	require.NoError(t, err)
	assert.Equal(t, string(own), string(after))
}
