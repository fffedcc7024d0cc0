//go:build unix

package yamlfile_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Opening a pipe without a writer would wait forever.
func TestReadAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.yaml")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, err := yamlfile.Read(path)
	require.ErrorContains(t, err, "pipe.yaml: it is a pipe without a writer")

	writer, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = writer.WriteString("policy: p\n")
	require.NoError(t, err)
	// As with a shell's <(…), the writer finishes before the reader has read everything.
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer reader.Close()
	require.NoError(t, writer.Close())
	text, err := yamlfile.Read(path)
	require.NoError(t, err)
	assert.Equal(t, "policy: p\n", string(text))
}
