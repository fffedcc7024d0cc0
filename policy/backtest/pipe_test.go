//go:build unix

package backtest_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/policy/backtest"
)

// Opening a pipe without a writer would wait forever and ignore signals.
func TestAPipeIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.jsonl")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	found, err := backtest.Find(path)
	require.NoError(t, err)
	require.Len(t, found, 1)
	file, err := found[0].Files.Open(found[0].Path)
	require.NoError(t, err)
	defer file.Close()
	n, _ := file.Read(make([]byte, 1))
	assert.Zero(t, n)
	for _, name := range []string{"../x", "none"} {
		none, err := found[0].Files.Open(name)
		require.Error(t, err)
		if none != nil { // compare as an interface: assert.Nil also accepts a nil *os.File
			assert.Fail(t, "there is a file", name)
		}
	}
}
