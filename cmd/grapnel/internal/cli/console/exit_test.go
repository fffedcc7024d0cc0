package console

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

func TestExitCodes(t *testing.T) {
	ctrlC, term := &SignalError{os.Interrupt}, &SignalError{syscall.SIGTERM}
	for _, tc := range []struct {
		status agent.Status
		err    error
		cause  error
		want   int
	}{
		{agent.StatusDone, nil, nil, 0},
		{agent.StatusFailed, errors.New("x"), nil, 1},
		{agent.StatusStopped, nil, nil, 3},
		{agent.StatusDenied, nil, nil, 4},
		{agent.StatusInterrupted, nil, nil, 5},
		{agent.StatusParked, nil, nil, 7}, // nothing is waited for
		{agent.StatusCancelled, ctrlC, ctrlC, 130},
		{agent.StatusCancelled, term, term, 143},
		{agent.StatusCancelled, nil, nil, 130},
		{agent.StatusNew, fmt.Errorf("connecting: %w", term), nil, 143},
		{agent.StatusDone, nil, ctrlC, 0}, // it was done before the signal counted
	} {
		assert.Equal(t, tc.want, ExitCode(agent.Checkpoint(agent.NewState()).WithStatus(tc.status), tc.err, tc.cause), "%+v", tc)
	}
	empty := agent.NewState().WithStop(agent.Signal{Reason: agent.StopFinishReason, Details: map[string]any{"emptyReply": true}})
	assert.Equal(t, 1, ExitCode(agent.Checkpoint(empty).WithStatus(agent.StatusDone), nil, nil), "an empty answer")
}

func TestReport(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code int
		text string
	}{
		{nil, 0, ""},
		{&ExitError{3}, 3, ""},
		{errors.Join(&ExitError{4}), 4, ""},
		{&UsageError{errors.New("no\x1b[2J")}, 2, "grapnel: no␛[2J\n"},
		{fmt.Errorf("a: %w", &UsageError{errors.New("b")}), 2, "grapnel: a: b\n"},
		{errors.New("broken"), 1, "grapnel: broken\n"},
	} {
		var out strings.Builder
		assert.Equal(t, tc.code, ReportError(&out, tc.err))
		assert.Equal(t, tc.text, out.String())
	}
}

func TestPrompts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	from := func(text string) *os.File {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		f, err := os.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	for _, tc := range []struct {
		args  []string
		stdin string
		want  string
	}{
		{[]string{"mend", "it"}, "not read", "mend it"},
		{nil, "from a pipe\n", "from a pipe"},
		{[]string{"-"}, "  indented\n", "indented"},
		{[]string{"Review:", "-"}, "a\nb\n\n", "Review:\n\na\nb"},
		{[]string{"a", "-", "b"}, "not read", "a - b"},
		{nil, "", ""},
	} {
		got, err := PromptOf(tc.args, from(tc.stdin))
		require.NoError(t, err)
		assert.Equal(t, tc.want, got)
	}
	_, err := PromptOf(nil, from("\xff"))
	require.ErrorContains(t, err, "not UTF-8")
	_, err = PromptOf(nil, from(strings.Repeat("x", MostInput+1)))
	require.ErrorContains(t, err, "longer than 10 MiB")
}
