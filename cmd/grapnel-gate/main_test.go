package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test's own program is the gate when it is started with this variable.
const asGate = "GRAPNEL_TEST_AS_GATE"

func TestMain(m *testing.M) {
	if os.Getenv(asGate) != "" {
		main()
	}
	os.Exit(m.Run())
}

// start runs the gate as a process, as a host does.
func start(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), asGate+"=1")
	c.Stdin = strings.NewReader(stdin)
	var out, failed bytes.Buffer
	c.Stdout, c.Stderr = &out, &failed
	if err := c.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return out.String(), failed.String(), c.ProcessState.ExitCode()
}

const event = `{"hook_event_name":"PreToolUse","session_id":"s","tool_use_id":%q,"tool_name":"Bash","tool_input":{"command":"ls"}}`

func TestGate(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`policy: p
hooks:
  PreToolUse:
    - {id: two, match: {tool: bash}, when: calls() >= 2, decision: deny, reason: two are enough}
`), 0o600))
	flags := []string{"--policy", file, "--state", filepath.Join(dir, "state")}

	for _, wrong := range [][]string{{"--polcy", file}, {"--deadline", "soon"}, append(flags, "more")} {
		out, failed, code := start(t, fmt.Sprintf(event, "1"), append([]string{"codex"}, wrong...)...)
		assert.Contains(t, out, `"permissionDecision":"deny","permissionDecisionReason":"grapnel gate: not executed: `)
		assert.Empty(t, failed)
		assert.Zero(t, code)
	}
	for _, wrong := range [][]string{nil, {"cdex"}, append(flags, "codex")} {
		out, failed, code := start(t, fmt.Sprintf(event, "1"), wrong...)
		assert.Empty(t, out)
		assert.Contains(t, failed, "usage: ")
		assert.Equal(t, 2, code, "with a text on standard error, hosts deny")
	}

	var wait sync.WaitGroup
	answers := make([]string, 5)
	for i := range answers {
		wait.Go(func() {
			out, failed, code := start(t, fmt.Sprintf(event, fmt.Sprint(i)), append([]string{"codex"}, flags...)...)
			answers[i] = fmt.Sprint(out, failed, code)
		})
	}
	wait.Wait()
	allowed := slices.DeleteFunc(slices.Clone(answers), func(a string) bool { return strings.Contains(a, "two are enough") })
	assert.Equal(t, []string{"0", "0"}, allowed, "%q", answers)
}
