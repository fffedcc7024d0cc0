//go:build unix

package recorded_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/policy/recorded"
)

// Opening a pipe without a writer would wait forever and ignore signals.
func TestAPipeIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.jsonl")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	in, err := recorded.Open(path)
	require.NoError(t, err)
	defer in.Close()
	for run, err := range in.Runs() {
		assert.Failf(t, "there is nothing in it", "%v %v", run, err)
	}
}
