//go:build unix

package sqlite_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/internal/parts"
)

func TestFilesAreTheOwnersAlone(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	path := tempFile(t)
	s := open(t, path, sqlite.Options{})
	park(t, s, "r")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "%s", info.Name())
	}
	require.NoError(t, s.Close())
	files, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	assert.Equal(t, []string{path}, files, "a store that is closed is one file")

	require.NoError(t, os.Chmod(path, 0o640))
	s = open(t, path, sqlite.Options{})
	park(t, s, "s")
	info, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm(), "a mode that the user chose stays")
	require.NoError(t, s.Close())
}

func TestAnyPath(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b.db", "what?mode=memory", "100%.db", "%41", "a#b", "it's", `"q"`, "ünï.db", "file:x", ":memory:", "a&_fk=0"} {
		path := filepath.Join(dir, name)
		s := open(t, path, sqlite.Options{})
		park(t, s, "r")
		require.NoError(t, s.Close())
		s = open(t, path, sqlite.Options{})
		_, err := s.Run(t.Context(), "r")
		require.NoError(t, err, name)
		require.NoError(t, s.Close())
		info, err := os.Stat(path)
		require.NoError(t, err, name)
		assert.NotZero(t, info.Size())
	}
	t.Chdir(dir)
	s := open(t, "relative.db", sqlite.Options{})
	defer s.Close()
	_, err := os.Stat(filepath.Join(dir, "relative.db"))
	require.NoError(t, err)
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	foreign := filepath.Join(dir, "foreign.db")
	raw(t, foreign, "CREATE TABLE accounts (id)")
	other := filepath.Join(dir, "other.db")
	require.NoError(t, open(t, other, sqlite.Options{}).Close())
	raw(t, other, "PRAGMA user_version = 8")
	older := filepath.Join(dir, "older.db") // as development versions made it
	raw(t, older, "PRAGMA application_id = 1198678384")
	raw(t, older, "CREATE TABLE goose_db_version (id INTEGER)")
	const otherSchema = `the file has the schema of another version of grapnel, and is left as it is: ` +
		`export its runs with the grapnel that wrote it ("grapnel runs export ID"), and use a new file`

	for name, c := range map[string]struct{ path, says string }{
		"no folder":         {filepath.Join(dir, "missing", "runs.db"), "no such folder " + filepath.Join(dir, "missing") + ": create it first"},
		"a folder":          {dir, "is a directory"},
		"text":              {write("text", strings.Repeat("this is no database\n", 100)), "the file is not a SQLite database: use another file"},
		"another program's": {foreign, "the file is a database of another program: use another file"},
		"another schema":    {other, otherSchema},
		"an older schema":   {older, otherSchema},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sqlite.Open(t.Context(), c.path, sqlite.Options{})
			require.ErrorContains(t, err, "sqlite store "+c.path+": opening it: ")
			require.ErrorContains(t, err, c.says)
		})
	}
	assert.Equal(t, "delete", raw(t, foreign, "PRAGMA journal_mode"), "a foreign database is left as it was")
	assert.Equal(t, "0", raw(t, foreign, "PRAGMA application_id"))
	assert.Equal(t, "delete", raw(t, older, "PRAGMA journal_mode"), "an older store is left as it was")
	assert.Equal(t, "8", raw(t, other, "PRAGMA user_version"))
}

func TestOpenWithAContextThatIsOver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := sqlite.Open(ctx, tempFile(t), sqlite.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// tmpfs returns a small disk of its own.
func tmpfs(t *testing.T) (dir string, remount func(options string)) {
	t.Helper()
	dir = t.TempDir()
	mount := func(options string) error {
		return exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).Run()
	}
	if err := mount("size=1m"); err != nil {
		t.Skip("this user cannot mount a disk: run the tests as root")
	}
	t.Cleanup(func() { assert.NoError(t, exec.Command("umount", dir).Run()) }) //nolint:noctx // the test's context is over by then
	return dir, func(options string) { require.NoError(t, mount("remount,"+options)) }
}

func TestReadOnlyDisk(t *testing.T) {
	dir, remount := tmpfs(t)
	path := filepath.Join(dir, "runs.db")
	s := open(t, path, sqlite.Options{})
	park(t, s, "r")
	require.NoError(t, s.Close())
	remount("ro")
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.ErrorContains(t, err, "sqlite store "+path+": opening it: ")
	require.ErrorContains(t, err, "read-only file system")
	remount("rw")
	require.NoError(t, open(t, path, sqlite.Options{}).Close())
}

// A file that this user may not write: as root, another user looks at it.
func TestReadOnlyFile(t *testing.T) {
	dir, err := os.MkdirTemp("", "readonly") //nolint:usetesting // t.TempDir is inside a folder that no other user may enter
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	path := filepath.Join(dir, "runs.db")
	require.NoError(t, open(t, path, sqlite.Options{}).Close())
	require.NoError(t, os.Chmod(path, 0o444))
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	if os.Getuid() == 0 {
		binary, err := os.ReadFile(os.Args[0])
		require.NoError(t, err)
		cmd.Path = filepath.Join(dir, "unprivileged")
		parts.WriteExecutable(t, cmd.Path, binary)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	cmd.Env = append(os.Environ(), roleVar+"=open", pathVar+"="+path)
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", out)
	assert.Contains(t, string(out), "sqlite store "+path+": opening it: this user must be able to read and write the file")
}

func TestDiskFull(t *testing.T) {
	dir, remount := tmpfs(t)
	path := filepath.Join(dir, "runs.db")
	s := open(t, path, sqlite.Options{})
	l := park(t, s, "r", wait("c"))
	e := entry(1)
	e.Data = make([]byte, 100<<10)
	var err error
	for ; err == nil && e.Seq < 100; e.Seq++ {
		err = commit(t.Context(), s, l, durable.Update{Status: "running", Steps: int(e.Seq)}, e)
	}
	e.Seq--
	require.ErrorContains(t, err, "sqlite store "+path+": writing to a journal: ")
	require.ErrorContains(t, err, "the disk is full, nothing was written: free some space and try again")

	r, err := s.Run(t.Context(), "r")
	require.NoError(t, err, "reading goes on")
	assert.Equal(t, []int{int(e.Seq) - 1, int(e.Seq) - 1}, []int{int(r.Entries), r.Steps}, "what failed is not there by halves")

	remount("size=4m")
	require.NoError(t, commit(t.Context(), s, l, durable.Update{}, e), "and so does writing, when there is space")
	entries, err := s.Entries(t.Context(), "r", 0)
	require.NoError(t, err)
	assert.Len(t, entries, int(e.Seq))
	require.NoError(t, s.Close())
	assert.Equal(t, "ok", raw(t, path, "PRAGMA integrity_check"))
}

func TestFileGoneForAWhile(t *testing.T) {
	path := tempFile(t)
	s := open(t, path, sqlite.Options{})
	l := park(t, s, "r")
	require.NoError(t, os.Rename(path, path+".away"))
	err := commit(t.Context(), s, l, durable.Update{}, entry(1))
	require.ErrorContains(t, err, "sqlite store "+path+": writing to a journal: the file was removed while it was open: restore it")
	_, err = s.Run(t.Context(), "r")
	require.ErrorContains(t, err, "the file was removed")

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	err = commit(t.Context(), s, l, durable.Update{}, entry(1))
	require.ErrorContains(t, err, "the file was replaced while it was open: open the store again")

	require.NoError(t, os.Rename(path+".away", path))
	require.NoError(t, commit(t.Context(), s, l, durable.Update{}, entry(1)), "it is back")
	require.NoError(t, s.Close())
}

func TestLockedByAnother(t *testing.T) {
	path := tempFile(t)
	s := open(t, path, sqlite.Options{Wait: time.Millisecond})
	l := park(t, s, "r")
	patient := open(t, path, sqlite.Options{Wait: time.Hour})
	unlock := locked(t, path)

	err := commit(t.Context(), s, l, durable.Update{}, entry(1))
	require.ErrorContains(t, err, "another process has kept it locked for 1ms")
	_, err = s.Run(t.Context(), "r")
	require.NoError(t, err, "who reads need not wait")

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begun := time.Now()
	require.ErrorIs(t, commit(ctx, patient, l, durable.Update{}, entry(1)), context.DeadlineExceeded)
	assert.Less(t, time.Since(begun), time.Minute, "a context is looked at while waiting")

	done := make(chan error)
	go func() { done <- commit(t.Context(), patient, l, durable.Update{}, entry(1)) }()
	unlock()
	require.NoError(t, <-done, "who waits gets its turn")
	require.NoError(t, s.Close())
	require.NoError(t, patient.Close())
}

func TestClose(t *testing.T) {
	path := tempFile(t)
	s := open(t, path, sqlite.Options{Wait: time.Hour})
	l := park(t, s, "r")
	unlock := locked(t, path)
	wrote, closed := make(chan error), make(chan error)
	go func() { wrote <- commit(t.Context(), s, l, durable.Update{}, entry(1)) }()
	for !s.InUse() { // until the write has begun
		runtime.Gosched()
	}
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		require.Fail(t, "closed while a write was running", "%v", err)
	case <-time.After(20 * time.Millisecond):
	}
	unlock()
	require.NoError(t, <-wrote)
	require.NoError(t, <-closed)
	require.NoError(t, s.Close(), "again")

	require.ErrorContains(t, commit(t.Context(), s, l, durable.Update{}, entry(2)), "writing to a journal: the store is closed")
	_, err := s.List(t.Context(), durable.Filter{})
	require.ErrorContains(t, err, "the store is closed")
	s = open(t, path, sqlite.Options{})
	entries, err := s.Entries(t.Context(), "r", 0)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
	require.NoError(t, s.Close())
}
