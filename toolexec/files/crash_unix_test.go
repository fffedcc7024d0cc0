//go:build unix

package files_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/toolexec/files"
)

const crashSize = 1 << 20

// crash is a child process of the tests. With a limit on file sizes, as on a full disk, it writes a file that does not
// fit and prints the result. Without a limit, it writes until it is killed.
func crash(dir string) {
	tree, err := files.Open(files.Config{Root: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	write := func(letter string) error {
		_, err := tree.Write(context.Background(), files.WriteArgs{Path: "f", Content: strings.Repeat(letter, crashSize)})
		return err
	}
	if os.Getenv("GRAPNEL_TEST_FULL") != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: crashSize / 2, Max: crashSize / 2}); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(write("b"))
		return
	}
	fmt.Println("writing")
	for i, start := 0, time.Now(); time.Since(start) < 20*time.Second; i++ { // if no signal comes
		if err := write(string("ab"[i%2])); err != nil {
			fmt.Println(err)
			return
		}
	}
}

func child(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), append(env, "GRAPNEL_TEST_CRASH="+dir)...)
	return cmd
}

func TestAKilledWriterLeavesAWholeFile(t *testing.T) {
	for range 3 {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "f"), strings.Repeat("a", crashSize))
		cmd := child(t, dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "writing\n", line)
		// A reader always sees a whole file, at any moment of the write.
		for range 50 {
			content := get(t, filepath.Join(dir, "f"))
			require.Len(t, content, crashSize)
			require.Equal(t, crashSize, strings.Count(content, content[:1]))
		}
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
		content := get(t, filepath.Join(dir, "f"))
		require.Len(t, content, crashSize)
		require.Equal(t, crashSize, strings.Count(content, content[:1]))
	}
}

func TestAFullDiskLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "f"), "old")
	out, err := child(t, dir, "GRAPNEL_TEST_FULL=1").Output()
	require.NoError(t, err)
	assert.Equal(t, "write \"f\": file too large\n", string(out))
	assert.Equal(t, "old", get(t, filepath.Join(dir, "f")))
	onlyKnownFiles(t, dir)
}
