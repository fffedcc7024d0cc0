//go:build unix

package verify_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/hooks/verify"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// script returns a command that bash reads from its arguments.
func script(t testing.TB, text string) verify.Command {
	t.Helper()
	return verify.Command{Dir: t.TempDir(), Args: []string{parts.Command(t, "bash", "install bash"), "-c", text}}
}

func TestCommands(t *testing.T) {
	t.Setenv("SERVICE_API_KEY", "sk-secret")
	for text, want := range map[string]verify.Verdict{
		"echo ok":                      {Passed: true, Output: "ok\n"},
		"echo out; echo err >&2; exit": {Passed: true, Output: "out\nerr\n"},
		"echo red; exit 1":             {Output: "red\nCMD: exit status 1"},
		"kill -9 $$":                   {Output: "\nCMD: signal: killed"},
		"read -r x; echo $x; exit 1":   {Output: "\nCMD: exit status 1"},
		"echo ${SERVICE_API_KEY-none}": {Passed: true, Output: "none\n"},
		"sleep 300 & echo left behind": {Passed: true, Output: "left behind\n"},
	} {
		t.Run(text, func(t *testing.T) {
			cmd := script(t, text)
			got, err := cmd.Check(t.Context(), agent.NewState())
			require.NoError(t, err)
			want.Output = strings.ReplaceAll(want.Output, "CMD", strings.Join(cmd.Args, " "))
			assert.Equal(t, want, got)
		})
	}
}

func TestEnvironmentThatIsGiven(t *testing.T) {
	cmd := script(t, `echo "$A ${HOME-none}"`)
	cmd.Env = []string{"A=1"}
	got, err := cmd.Check(t.Context(), agent.NewState())
	require.NoError(t, err)
	assert.Equal(t, "1 none\n", got.Output)
}

func TestMuchOutput(t *testing.T) {
	got, err := script(t, "yes | head -c 10000000; echo; echo the end; exit 1").Check(t.Context(), agent.NewState())
	require.NoError(t, err)
	assert.Less(t, len(got.Output), 70<<10)
	assert.Contains(t, got.Output, "\nthe end\n")
}

func TestCommandsThatCannotRun(t *testing.T) {
	_, err := verify.Command{}.Check(t.Context(), agent.NewState())
	require.EqualError(t, err, "there is no program: set Command.Args")
	_, err = verify.Command{Args: []string{"no-such-program"}}.Check(t.Context(), agent.NewState())
	require.ErrorContains(t, err, "running no-such-program")
	cmd := script(t, "true")
	cmd.Dir = "/no/such/dir"
	_, err = cmd.Check(t.Context(), agent.NewState())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "Command.Dir: stat /no/such/dir", "the program is not to blame")
	hookstest.Cases{
		"closed": {At: hookstest.Stop("done"), Want: hooks.StopRun, Saying: "could not decide"},
	}.Test(t, verify.Hook(cmd.Check, verify.Options{}))
}

// Its children go with a program whose time is up.
func TestCommandThatHangs(t *testing.T) {
	cmd := script(t, `echo begun; sleep 300 & echo $! >pid; wait`)
	hook := verify.Hook(cmd.Check, verify.Options{Timeout: 3 * time.Second})
	fired := hookstest.Fire(t, hook, hookstest.Stop("done"))
	assert.Equal(t, hooks.Continue, fired.Decision)
	assert.Contains(t, fired.Reason, "begun")
	assert.Contains(t, fired.Reason, "The check did not end within 3s.")
	text, err := os.ReadFile(filepath.Join(cmd.Dir, "pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	assert.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return syscall.Kill(pid, 0) != nil || err == nil && strings.Contains(string(stat), ") Z ")
	}, time.Minute, 5*time.Millisecond, "the child lives")
}
