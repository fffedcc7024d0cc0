//go:build unix

package files_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/toolexec/files"
)

// soon fails if f does not return: a tool must not wait for the other end of a pipe.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		require.Fail(t, "it hangs", what)
	}
}

func TestSpecialFilesAreRefused(t *testing.T) {
	dir, tree := tree(t, files.Config{}, "a.txt", "needle\n")
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666))
	socket, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, os.Symlink("pipe", filepath.Join(dir, "link")))
	want := map[string]string{"pipe": "named pipe", "link": "named pipe", "s": "socket"}
	if os.Getuid() == 0 && runtime.GOOS == "linux" {
		if err := syscall.Mknod(filepath.Join(dir, "null"), syscall.S_IFCHR|0o666, 1<<8|3); err == nil {
			want["null"] = "device"
		}
	}
	for name, kind := range want {
		soon(t, name, func() {
			_, err := tree.Read(t.Context(), files.ReadArgs{Path: name})
			assert.ErrorContains(t, err, kind, name)
			_, err = tree.Write(t.Context(), files.WriteArgs{Path: name, Content: "x"})
			assert.ErrorContains(t, err, kind, name)
			_, err = tree.Edit(t.Context(), files.EditArgs{Path: name, OldText: "x", NewText: "y"})
			assert.ErrorContains(t, err, kind, name)
			_, err = tree.Grep(t.Context(), files.GrepArgs{Path: name, Pattern: "x"})
			assert.ErrorContains(t, err, kind, name)
			_, err = tree.List(t.Context(), files.ListArgs{Path: name})
			assert.ErrorContains(t, err, kind, name)
			_, err = tree.Write(t.Context(), files.WriteArgs{Path: name + "/x", Content: "x"})
			assert.Error(t, err, name)
		})
	}
	soon(t, "a walk", func() {
		found, err := tree.Grep(t.Context(), files.GrepArgs{Pattern: "needle"})
		assert.NoError(t, err)
		assert.Len(t, found.Matches, 1)
	})
	assert.Contains(t, call(t, tree, "list_files", `{}`).Text(), "pipe (named pipe)")
}
