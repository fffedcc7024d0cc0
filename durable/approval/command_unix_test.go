//go:build unix

package approval_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

func TestCommand(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-s3cret")
	t.Setenv("DESK", "3")
	var out bytes.Buffer
	require.NoError(t, approval.Command{
		Args: []string{"sh", "-c", `cat; echo; echo "$GRAPNEL_RUN $GRAPNEL_AGENT $GRAPNEL_TOOL $GRAPNEL_LINK $0"; env`, "a b; c"}, Links: links, Output: &out,
	}.Notify(t.Context(), waiting()))
	assert.True(t, strings.HasPrefix(out.String(), expected()+"\nr1 clerk pay https://desk.example.com/approvals/token-1 a b; c\n"), out.String())
	assert.NotContains(t, out.String(), "sk-s3cret")
	assert.NotContains(t, out.String(), "DESK=")
	var m approval.Message
	require.NoError(t, json.Unmarshal([]byte(strings.SplitN(out.String(), "\n", 2)[0]), &m))
	assert.Equal(t, "c3", m.Calls[1].Call)

	out.Reset()
	require.NoError(t, approval.Command{Args: []string{"/usr/bin/env"}, Links: links, Output: &out, Env: []string{"DESK"}}.Notify(t.Context(), waiting()))
	assert.Contains(t, out.String(), "DESK=3")
	assert.NotContains(t, out.String(), "PATH=")

	n := waiting()
	n.Run.Agent = "x\x00y"
	require.NoError(t, approval.Command{Args: []string{"true"}, Links: links}.Notify(t.Context(), n), "no name keeps it from being told")
	require.NoError(t, approval.Command{Args: []string{"true"}}.Notify(t.Context(), durable.Notice{Run: n.Run}))

	for want, args := range map[string][]string{
		"no program configured: set Command.Args":              nil,
		"running /no/such to announce that run r1 waits: fork": {"/no/such"},
		"exit status 3": {"sh", "-c", "echo $GRAPNEL_LINK >&2; exit 3"},
	} {
		err := approval.Command{Args: args, Links: links}.Notify(t.Context(), waiting())
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "token")
	}
}

// A program that does not end is killed with all that it started, and so is what a
// program leaves behind that holds its pipes open.
func TestCommandIsKilled(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	for name, script := range map[string]string{
		"hangs":  `sleep 600 & echo $! >>"$0"; echo $$ >>"$0"; wait`,
		"leaves": `sleep 600 & echo $! >>"$0"`,
	} {
		started := time.Now()
		err := approval.Command{Args: []string{"sh", "-c", script, pids}, Links: links, Timeout: 3 * time.Second, Output: io.Discard}.Notify(t.Context(), waiting())
		if name == "hangs" {
			require.ErrorContains(t, err, "killed after 3s")
		} else {
			require.NoError(t, err)
		}
		assert.Less(t, time.Since(started), time.Minute, name)
	}
	text, err := os.ReadFile(pids)
	require.NoError(t, err)
	for line := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(line)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return dead(pid) }, time.Minute, 10*time.Millisecond, "process %d lives", pid)
	}
}

// dead reports whether a process is gone, or a zombie that is not reaped yet.
func dead(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}
