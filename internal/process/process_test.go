//go:build unix

package process_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/internal/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs a bash script, without a gate.
func run(t *testing.T, text, stdin string) (process.Result, string) {
	t.Helper()
	var out bytes.Buffer
	r, err := process.Run(t.Context(), process.Command{
		Path: parts.Command(t, "bash", "install bash"), Args: []string{"bash", "-c", text}, Dir: t.TempDir(), Env: os.Environ(),
		Stdin: []byte(stdin), Stdout: &out, Timeout: 20 * time.Second, Grace: 100 * time.Millisecond,
	})
	require.NoError(t, err)
	return r, out.String()
}

// Input that is longer than a pipe's buffer arrives complete; the program need not read it.
func TestStdin(t *testing.T) {
	long := strings.Repeat("0123456789", 100_000)
	r, out := run(t, "cat", long)
	assert.Equal(t, long, out)
	assert.Zero(t, r.ExitCode())
	r, out = run(t, "head -c 3; exec <&-; exit 4", long)
	assert.Equal(t, "012", out)
	assert.Equal(t, 4, r.ExitCode())
	r, out = run(t, "echo nothing read", long)
	assert.Equal(t, "nothing read\n", out)
	assert.Zero(t, r.ExitCode())
}

// Processes that a program leaves behind end with it, in their own session or not.
func TestWhatIsLeftBehind(t *testing.T) {
	for name, text := range map[string]string{
		"in the background":   "sleep 1000 & echo $!",
		"deaf":                "(trap '' TERM; exec sleep 1000) & echo $!",
		"with its own reader": "sleep 1000 0<&0 & echo $!",
	} {
		t.Run(name, func(t *testing.T) {
			r, out := run(t, text, "x")
			assert.Equal(t, process.Exited, r.Ended)
			assert.Equal(t, 1, r.Leftover)
			assert.Zero(t, r.Alive)
			require.NotEmpty(t, strings.TrimSpace(out))
			stat, err := os.ReadFile("/proc/" + strings.TrimSpace(out) + "/stat")
			assert.True(t, err != nil || strings.Contains(string(stat), ") Z "), "process %s is still there", out) // init reaps zombies
		})
	}
}

func TestWhatDoesNotStart(t *testing.T) {
	_, err := process.Run(t.Context(), process.Command{Path: "/no/such/program", Args: []string{"x"}, Timeout: time.Second, Stdin: []byte("x")})
	require.ErrorIs(t, err, os.ErrNotExist)
}
