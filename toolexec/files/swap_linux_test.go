package files_test

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/grapnel-go/grapnel/toolexec/files"
)

// swapping swaps two names, and two others, again and again, each time in one go, until stop is called, which tells
// how often.
func swapping(t *testing.T, pairs ...[2]string) (stop func() int) {
	t.Helper()
	end := make(chan struct{})
	var swapper sync.WaitGroup
	n := 0
	swapper.Go(func() {
		for ; ; n += 2 {
			for range 2 { // in the end all is as it was
				for _, p := range pairs {
					assert.NoError(t, unix.Renameat2(unix.AT_FDCWD, p[0], unix.AT_FDCWD, p[1], unix.RENAME_EXCHANGE))
				}
			}
			select {
			case <-end:
				return
			default:
			}
		}
	})
	return func() int { close(end); swapper.Wait(); return n }
}

// While an attacker swaps a directory of the tree for a link out of it, and a file for a link, nothing gets out and
// nothing gets in.
func TestSwapsBetweenCheckAndUse(t *testing.T) {
	dir, secret, tree := jail(t, files.Config{})
	victim := filepath.Join(filepath.Dir(secret), "victim")
	put(t, filepath.Join(victim, "a.txt"), "TOP SECRET\n")
	put(t, filepath.Join(dir, "swap/a.txt"), "inside\n")
	require.NoError(t, os.Symlink("../victim", filepath.Join(dir, "bait")))

	swaps := swapping(t, [2]string{filepath.Join(dir, "swap"), filepath.Join(dir, "bait")})
	good, bad := 0, 0
	ctx := t.Context()
	for range 2000 {
		if e, err := tree.Read(ctx, files.ReadArgs{Path: "swap/a.txt"}); err == nil {
			good++
			assert.NotContains(t, e.Text, "SECRET")
		} else {
			bad++
		}
		_, _ = tree.Write(ctx, files.WriteArgs{Path: "swap/a.txt", Content: "inside again\n"})
		_, _ = tree.Edit(ctx, files.EditArgs{Path: "swap/a.txt", OldText: "SECRET", NewText: "x"})
		if found, err := tree.Grep(ctx, files.GrepArgs{Pattern: "SECRET", Path: "swap"}); err == nil {
			assert.Empty(t, found.Matches)
		}
		if found, err := tree.Glob(ctx, files.GlobArgs{Pattern: "swap/**/*.txt"}); err == nil {
			assert.LessOrEqual(t, len(found.Entries), 1)
		}
	}
	t.Logf("%d swaps, %d reads worked, %d were refused", swaps(), good, bad)
	assert.Positive(t, good)
	assert.Positive(t, bad, "the race was never met: the test shows nothing")
	assert.Equal(t, "TOP SECRET\n", get(t, filepath.Join(victim, "a.txt")))
	left, err := os.ReadDir(victim)
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing was written to where the link leads")
}

// A file that becomes a pipe between the look and the opening does not block either.
func TestPipesSwappedIn(t *testing.T) {
	dir, tree := tree(t, files.Config{}, "swap", "text\n", "d/x", "text\n")
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o666))
	swaps := swapping(t, [2]string{filepath.Join(dir, "swap"), pipe}, [2]string{filepath.Join(dir, "d"), pipe})
	soon(t, "reading what may be a pipe", func() {
		for range 1000 {
			_, _ = tree.Read(t.Context(), files.ReadArgs{Path: "swap"})
			_, _ = tree.List(t.Context(), files.ListArgs{Path: "d"})
			_, _ = tree.Edit(t.Context(), files.EditArgs{Path: "d/x", OldText: "text", NewText: "text"})
			_, _ = tree.Grep(t.Context(), files.GrepArgs{Pattern: "x"})
		}
	})
	t.Log(swaps(), "swaps")
}
