//go:build linux

package shell_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/toolexec/shell"
)

// pidsIn returns the process ids that commands wrote to a file, once it has as many lines.
func pidsIn(t *testing.T, file string, lines int) []int {
	t.Helper()
	var pids []int
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(file)
		pids = nil
		for field := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(field)
			require.NoError(t, err)
			pids = append(pids, pid)
		}
		return len(pids) == lines
	}, time.Minute, 2*time.Millisecond)
	return pids
}

func countLines(file string) int {
	text, _ := os.ReadFile(file)
	return strings.Count(string(text), "\n")
}

// assertGone asserts that none of the processes runs any more. The process that adopted it may not have reaped it yet.
func assertGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		assert.True(t, err != nil || strings.Contains(string(stat), ") Z "), "process %d is there: %s", pid, stat)
	}
}

func assertNoZombies(t *testing.T) {
	t.Helper()
	children, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
	if err == nil {
		assert.Empty(t, string(children), "children of this process")
	}
	var status syscall.WaitStatus
	_, err = syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	assert.ErrorIs(t, err, syscall.ECHILD)
}

// All that a command started ends with it, whatever it did to get away.
func TestNothingIsLeft(t *testing.T) {
	parts.Command(t, "setsid", "install util-linux")
	for name, tc := range map[string]struct {
		command  string // writes so many process ids to the file pids, its own first
		pids     int
		cutShort bool
	}{
		"a child in the background":      {`sleep 300 & echo $! >>pids`, 2, false},
		"with its output elsewhere":      {`sleep 300 >/dev/null 2>&1 & echo $! >>pids`, 2, false},
		"that ignores SIGHUP":            {`nohup sleep 300 >/dev/null & echo $! >>pids`, 2, false},
		"in a session of its own":        {`setsid sleep 300 & echo $! >>pids`, 2, false},
		"without environment and parent": {`(env -i setsid bash -c 'echo $$ >>pids; exec sleep 300' &) ; while [ $(wc -l <pids) -lt 2 ]; do :; done`, 2, false},
		"in a process group of its own":  {`set -m; sleep 300 & echo $! >>pids`, 2, false},
		"stopped":                        {`sleep 300 & kill -STOP $!; echo $! >>pids`, 2, false},
		"that traps SIGTERM":             {`(trap '' TERM; echo $BASHPID >>pids; while :; do sleep 1; done) & while [ $(wc -l <pids) -lt 2 ]; do :; done`, 2, false},
		"a grandchild at the timeout":    {`bash -c 'sleep 300 & echo $! >>pids; echo $$ >>pids; wait'`, 3, true},
		"a trap at the timeout":          {`trap '' TERM; bash -c 'trap "" TERM; echo $$ >>pids; while :; do sleep 1; done'; while :; do sleep 1; done`, 2, true},
		"a session at the timeout":       {`setsid sleep 300 & echo $! >>pids; wait`, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := newShell(t, func(c *shell.Config) { c.Dir = dir })
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tc.cutShort {
				go func() { // once all are there
					for ctx.Err() == nil && countLines(filepath.Join(dir, "pids")) < tc.pids {
						time.Sleep(time.Millisecond)
					}
					cancel(context.DeadlineExceeded)
				}()
			}
			r, err := s.Run(ctx, shell.Command{Text: "echo $$ >pids; echo begun; " + tc.command})
			if tc.cutShort {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, shell.Cancelled, r.Ended)
			} else {
				require.NoError(t, err)
				assert.Positive(t, r.Leftover)
			}
			assert.Equal(t, "begun\n", r.Stdout.Text)
			assert.Zero(t, r.Alive)
			assert.False(t, r.Held)
			assertGone(t, pidsIn(t, filepath.Join(dir, "pids"), tc.pids))
		})
	}
}

func TestNoZombies(t *testing.T) {
	s := newShell(t, nil)
	run(t, s, "sleep 300 & true")
	run(t, s, "false | true")
	_, err := s.Run(t.Context(), shell.Command{Text: "sleep 300", Timeout: 20 * time.Millisecond})
	require.NoError(t, err)
	assertNoZombies(t)
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	r, err := s.Run(t.Context(), shell.Command{Text: "echo before; sleep 300; echo after", Timeout: time.Second})
	require.NoError(t, err)
	assert.Equal(t, shell.TimedOut, r.Ended)
	assert.Equal(t, "timed out after 1s and was killed\nstdout:\nbefore", r.String())
	assert.Equal(t, "SIGTERM", r.Signal)
	assert.Equal(t, -1, r.ExitCode)
	assert.Less(t, r.Duration, time.Minute)
}

// SIGTERM comes first, and the program has time to clean up.
func TestATrapMayClearUp(t *testing.T) {
	t.Parallel()
	s := newShell(t, func(c *shell.Config) { c.Grace = 5 * time.Minute })
	r, err := s.Run(t.Context(), shell.Command{
		Text:    `trap 'echo clearing up; exit 7' TERM; while :; do sleep 0.01; done`,
		Timeout: time.Second,
	})
	require.NoError(t, err)
	assert.Equal(t, shell.TimedOut, r.Ended)
	assert.Equal(t, 7, r.ExitCode)
	assert.Equal(t, "clearing up\n", r.Stdout.Text)
	assert.Less(t, r.Duration, time.Minute)
}

func TestNoGrace(t *testing.T) {
	s := newShell(t, func(c *shell.Config) { c.Grace = -1 })
	r, err := s.Run(t.Context(), shell.Command{Text: `trap 'echo clearing up' TERM; while :; do sleep 0.01; done`, Timeout: 100 * time.Millisecond})
	require.NoError(t, err)
	assert.Equal(t, "SIGKILL", r.Signal)
	assert.Empty(t, r.Stdout.Text)
}

// A process that got away in spite of all, here one that is not ours, does not hold up the call when it holds the
// output.
func TestNobodyWaitsForAPipe(t *testing.T) {
	s := newShell(t, nil)
	dir := t.TempDir()
	fifo := filepath.Join(dir, "release")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	// The helper opens the shell's standard output by its name in /proc and keeps it.
	helper := exec.CommandContext(t.Context(), "bash", "-c", `until [ -s pid ]; do :; done; exec 5>/proc/$(cat pid)/fd/1; echo >held; read -r _ <release`)
	helper.Dir = dir
	require.NoError(t, helper.Start())
	r, err := s.Run(t.Context(), shell.Command{Text: "echo $$ >$DIR/.pid; mv $DIR/.pid $DIR/pid; until [ -e $DIR/held ]; do :; done; echo done", Vars: map[string]string{"DIR": dir}})
	require.NoError(t, err)
	assert.True(t, r.Held)
	assert.Equal(t, "exit code 0\nbackground processes: a process that could not be found holds on to the output\nstdout:\ndone", r.String())
	assert.Less(t, r.Duration, time.Minute)
	require.NoError(t, os.WriteFile(fifo, []byte("\n"), 0o600))
	require.NoError(t, helper.Wait())
}

// A command has nothing of this program open but its three streams; not even what this program was given.
func TestOpenFiles(t *testing.T) {
	inherited, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer inherited.Close()
	fd, err := syscall.Dup(int(inherited.Fd())) // without close-on-exec, as what comes from outside
	require.NoError(t, err)
	defer func() { assert.NoError(t, syscall.Close(fd)) }()
	s := newShell(t, nil)
	assert.Equal(t, "exit code 0\nstdout:\n0\n1\n2", run(t, s, "ls /proc/$$/fd; true").String())
	assert.Equal(t, "exit code 0\nstdout:\n/dev/null", run(t, s, "readlink /proc/$$/fd/0; true").String())
}

func TestAnotherShell(t *testing.T) {
	parts.Command(t, "dash", "install dash")
	s := newShell(t, func(c *shell.Config) { c.Shell = "dash" })
	assert.Equal(t, "exit code 3\nstdout:\ndash 0", run(t, s, `echo "$0 $#"; exit 3`).String())
}
