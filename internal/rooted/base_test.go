//go:build unix

package rooted_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/rooted"
)

// bench returns a base with files, and a folder outside of it.
func bench(t *testing.T) (base rooted.Base, in, outside func(name string) string) {
	t.Helper()
	dir, out := t.TempDir(), t.TempDir()
	in = func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	outside = func(name string) string { return filepath.Join(out, filepath.FromSlash(name)) }
	require.NoError(t, os.WriteFile(outside("precious"), []byte("precious"), 0o600))
	return rooted.Base(dir), in, outside
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestFiles(t *testing.T) {
	base, in, outside := bench(t)
	require.NoError(t, base.WriteFile(in("a/b/c"), []byte("one")))
	require.NoError(t, base.WriteFile(in("a/b/c"), []byte("two")))
	text, err := base.ReadFile(in("a/b/c"), 3)
	require.NoError(t, err)
	assert.Equal(t, "two", string(text))
	_, err = base.ReadFile(in("a/b/c"), 2)
	var large *rooted.TooLargeError
	require.ErrorAs(t, err, &large)
	require.ErrorContains(t, err, "more than 2 bytes")

	file, err := base.Open(in("a/b/log"), os.O_CREATE|os.O_RDWR)
	require.NoError(t, err)
	_, err = file.WriteString("log")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	entries, err := base.ReadDir(in("a/b"))
	require.NoError(t, err)
	require.Len(t, entries, 2, "no temporary file stays")
	assert.Equal(t, "c", entries[0].Name())

	require.NoError(t, base.Rename(in("a/b"), in("previous/run/b")))
	assert.Equal(t, "log", read(t, in("previous/run/b/log")))
	require.NoError(t, base.MkdirAll(in("a/b")))
	require.NoError(t, base.Remove(in("a/b")))
	_, err = base.Lstat(in("a/b"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, base.RemoveAll(in("previous")))
	for _, path := range []string{outside("precious"), string(base), in("../x")} {
		_, err = base.ReadFile(path, 10)
		require.ErrorContains(t, err, "not below")
	}
}

// A missing base is created when something is written in it.
func TestMissingBase(t *testing.T) {
	base := rooted.Base(filepath.Join(t.TempDir(), "new"))
	_, err := base.Lstat(filepath.Join(string(base), "a"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, base.WriteFile(filepath.Join(string(base), "a"), nil))
}

// No method follows a link, wherever it is in the path and wherever it leads.
func TestLinks(t *testing.T) {
	base, in, outside := bench(t)
	require.NoError(t, os.MkdirAll(in("real"), 0o700))
	require.NoError(t, os.WriteFile(in("real/file"), []byte("mine"), 0o600))
	for link, target := range map[string]string{
		"out": outside(""), "relative": "../" + filepath.Base(outside("")), "inside": "real", "file": outside("precious"), "dangling": outside("new"),
	} {
		require.NoError(t, os.Symlink(target, in(link)))
	}
	for _, link := range []string{"out", "relative", "inside"} {
		path := in(link + "/x/y")
		_, opened := base.Open(path, os.O_CREATE|os.O_RDWR)
		_, stat := base.Lstat(in(link + "/precious"))
		_, listed := base.ReadDir(in(link))
		for what, err := range map[string]error{
			"write": base.WriteFile(path, nil), "mkdir": base.MkdirAll(path), "rename": base.Rename(in("real/file"), path),
			"from": base.Rename(in(link+"/file"), in("taken")), "remove": base.Remove(in(link + "/precious")), "open": opened, "stat": stat, "list": listed,
		} {
			require.ErrorIs(t, err, rooted.ErrLink, "%s %s", what, link)
			require.ErrorContains(t, err, in(link), "%s %s", what, link)
		}
	}
	for _, link := range []string{"file", "dangling"} {
		_, err := base.ReadFile(in(link), 100)
		require.ErrorIs(t, err, rooted.ErrLink)
		_, err = base.Open(in(link), os.O_CREATE|os.O_RDWR)
		require.ErrorIs(t, err, rooted.ErrLink)
		require.NoError(t, base.WriteFile(in(link), []byte("x")), "the link is replaced")
		assert.Equal(t, "x", read(t, in(link)))
	}
	require.NoError(t, base.RemoveAll(in("out")), "the link is removed")
	left, err := os.ReadDir(outside(""))
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.Equal(t, "precious", read(t, outside("precious")))
	assert.Equal(t, "mine", read(t, in("real/file")))
}

// A pipe does not block, and a file with a second name is not written.
func TestPipesAndNames(t *testing.T) {
	base, in, outside := bench(t)
	if err := syscall.Mkfifo(in("pipe"), 0o600); err != nil {
		t.Skip("this system has no pipes with names: ", err)
	}
	_, err := base.ReadFile(in("pipe"), 1)
	require.ErrorIs(t, err, rooted.ErrLink)
	if err := os.Link(outside("precious"), in("second")); err != nil {
		t.Skip("this system has no second names: ", err)
	}
	_, err = base.Open(in("second"), os.O_RDWR)
	require.ErrorIs(t, err, rooted.ErrLink)
	_, err = base.Open(in("second"), os.O_WRONLY|os.O_TRUNC)
	require.ErrorIs(t, err, rooted.ErrLink)
	require.NoError(t, base.WriteFile(in("second"), []byte("x")))
	assert.Equal(t, "precious", read(t, outside("precious")))
}
