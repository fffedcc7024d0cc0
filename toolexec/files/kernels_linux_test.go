package files_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/toolexec/files"
)

// Even where the root is /, the kernel's files are not opened: they tell of processes, and some never end or block.
func TestTheKernelsFilesAreRefused(t *testing.T) {
	for root, paths := range map[string][]string{
		"/":     {"proc/self/environ", "/proc/self/environ", "proc/self/mem", "proc/kmsg", "proc/self/fd/0", "proc/self/root/etc/passwd", "sys/kernel/mm/transparent_hugepage/enabled", "dev/zero", "dev/null"},
		"/proc": {"self/environ", "1/environ", "self/root/etc/passwd", "self/cwd/doc.go"},
	} {
		tree, err := files.Open(files.Config{Root: root})
		require.NoError(t, err)
		for _, path := range paths {
			soon(t, path, func() {
				_, err := tree.Read(t.Context(), files.ReadArgs{Path: path})
				assert.Error(t, err, path)
				t.Log(err)
				_, err = tree.Write(t.Context(), files.WriteArgs{Path: path, Content: "x"})
				assert.Error(t, err, path)
				_, err = tree.List(t.Context(), files.ListArgs{Path: path})
				assert.Error(t, err, path)
			})
		}
		require.NoError(t, tree.Close())
	}
}

// asNobody runs f with the rights on files of a user who owns none of them.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, syscall.Setfsgid(65534))
	require.NoError(t, syscall.Setfsuid(65534))
	defer func() {
		require.NoError(t, syscall.Setfsuid(0))
		require.NoError(t, syscall.Setfsgid(0))
	}()
	f()
}

func TestPermissions(t *testing.T) {
	dir, tree := tree(t, files.Config{}, "closed.txt", "needle\n", "fixed.txt", "needle\n", "shut/a.txt", "needle\n", "open/a.txt", "needle\n", "ro/a.txt", "needle\n")
	for name, mode := range map[string]os.FileMode{"closed.txt": 0, "fixed.txt": 0o444, "shut": 0, "ro": 0o555, "ro/a.txt": 0o666} {
		require.NoError(t, os.Chmod(dir+"/"+name, mode))
	}
	t.Cleanup(func() { _ = os.Chmod(dir+"/shut", 0o755); _ = os.Chmod(dir+"/ro", 0o755) })
	asNobody(t, func() {
		_, err := tree.Read(t.Context(), files.ReadArgs{Path: "closed.txt"})
		assert.EqualError(t, err, `read "closed.txt": the system does not permit it`)
		assert.ErrorIs(t, err, os.ErrPermission)
		_, err = tree.Edit(t.Context(), files.EditArgs{Path: "fixed.txt", OldText: "needle", NewText: "x"})
		assert.EqualError(t, err, `edit "fixed.txt": the system does not permit it`)
		_, err = tree.Write(t.Context(), files.WriteArgs{Path: "ro/a.txt", Content: "x"})
		assert.EqualError(t, err, `write "ro/a.txt": the system does not permit it`)
		_, err = tree.List(t.Context(), files.ListArgs{Path: "shut"})
		assert.EqualError(t, err, `list "shut": the system does not permit it`)
		found, err := tree.Grep(t.Context(), files.GrepArgs{Pattern: "needle"})
		assert.NoError(t, err)
		assert.Len(t, found.Matches, 3)
		assert.Equal(t, []string{"2 could not be read"}, found.Notes)
	})
	assert.Equal(t, "needle\n", get(t, dir+"/fixed.txt"))
	assert.Equal(t, "needle\n", get(t, dir+"/ro/a.txt"))
	left, err := os.ReadDir(dir + "/ro")
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file stays")
}
