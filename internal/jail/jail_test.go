package jail_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/jail"
)

func TestMain(m *testing.M) { jail.Main(m) }

// The jail reports a line's effects and leaves the machine unchanged.
func TestLinesHarmNothing(t *testing.T) {
	top := t.TempDir()
	beside := filepath.Join(t.TempDir(), "beside")
	require.NoError(t, os.WriteFile(beside, []byte("mine"), 0o600))
	cell := jail.Cell{
		Top: top, Files: map[string]string{"home/a": "one\n", "home/sub/": "", "out/secret": "canary\n"}, Links: map[string]string{"home/link": "../out"},
		Setup: "echo made >setup", Hosts: []string{"evil.example"}, Limit: 2 * time.Second,
	}
	lines := []string{
		"cat a setup ../out/secret", "echo two >a; echo b >b", "rm -rf ../out; mkdir ../out", "cat a " + top + "/out/secret", "touch link/secret",
		"exec 3<>/dev/tcp/evil.example/80", "echo x >/dev/udp/127.66.66.66/4444; until false; do :; done", "exec 3<>/dev/tcp/127.0.0.1/80 || echo refused", "cat " + beside + "; echo x >" + beside,
		"touch /usr/bin/x /etc/x /x; echo $?", "ls -A /root /home", "sleep 1000 & disown; exit 3", "kill -9 -1; ls /dev", "chmod 0 . ../out; id -u",
	}
	o := jail.Run(t, cell, lines)
	assert.Equal(t, "one\nmade\ncanary\n", o[0].Output)
	assert.False(t, o[0].Changed)
	assert.Equal(t, map[string]string{"a": "two\n", "b": "b\n"}, o[1].Made)
	assert.False(t, o[1].Changed)
	assert.True(t, o[2].Changed)
	assert.Equal(t, "one\ncanary\n", o[3].Output, "each line finds what was there first")
	assert.True(t, o[4].Changed, "a time counts, through a link, too")
	assert.Equal(t, []int{80}, o[5].Reached)
	assert.Equal(t, []int{4444}, o[6].Reached, "a line that does not end is stopped")
	assert.Contains(t, o[7].Output, "refused")
	assert.Empty(t, o[7].Reached)
	assert.NotContains(t, o[8].Output, "mine")
	assert.Contains(t, o[9].Output, "1\n")
	assert.NotContains(t, o[12].Output, "sd")
	assert.True(t, o[13].Changed)

	text, err := os.ReadFile(beside)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(text))
	entries, err := os.ReadDir(top)
	require.NoError(t, err)
	assert.Empty(t, entries)
}
