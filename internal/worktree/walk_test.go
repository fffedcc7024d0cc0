package worktree

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
)

// alone isolates the test from the settings of the user who runs it.
func alone(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	return home
}

// put writes files, given as alternating names and contents.
func put(t *testing.T, dir string, files ...string) {
	t.Helper()
	for pair := range slices.Chunk(files, 2) {
		at := filepath.Join(dir, pair[0])
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
		require.NoError(t, os.WriteFile(at, []byte(pair[1]), 0o600))
	}
}

// found returns the names of the files that Walk visits.
func found(dir string) (names []string) {
	Walk(dir, func(string) bool { return false }, func(name string, _ fs.FileInfo) bool {
		names = append(names, name)
		return true
	})
	slices.Sort(names)
	return names
}

// git runs git in dir.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), parts.Command(t, "git", "install git"), append([]string{
		"-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false",
	}, args...)...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestWithoutRepository(t *testing.T) {
	alone(t)
	dir := t.TempDir()
	put(t, dir, "a", "", "b/c", "", ".gitignore", "a\n", "nested/.git/HEAD", "", "nested/.gitignore", "*.log\n", "nested/x.log", "", "nested/y", "")
	assert.Equal(t, []string{".gitignore", "a", "b/c", "nested/.gitignore", "nested/y"}, found(dir), "only a repository ignores files")
}

func TestRules(t *testing.T) {
	for pattern, want := range map[string]string{ // the expected files for each pattern
		"a":             "b c/d d/x.txt x.txt",
		"/a":            "b c/a c/d d/x.txt x.txt",
		"c/":            "a b d/x.txt x.txt",
		"b/":            "a b c/a c/d d/x.txt x.txt", // b is not a directory
		"*.txt":         "a b c/a c/d",
		"d/*.txt":       "a b c/a c/d x.txt",
		"**/x.txt":      "a b c/a c/d",
		"c/**":          "a b d/x.txt x.txt",
		"**/c/d":        "a b c/a d/x.txt x.txt",
		"*\n!c":         "", // * also matches the files in c
		"[ab]":          "c/d d/x.txt x.txt",
		"[!ab]":         "a b x.txt", // c and d are one letter long, too
		"[[:alpha:]]":   "x.txt",
		"?.txt":         "a b c/a c/d",
		"# a":           "a b c/a c/d d/x.txt x.txt",
		`\a`:            "b c/d d/x.txt x.txt",
		"a   ":          "b c/d d/x.txt x.txt",
		"a\r":           "b c/d d/x.txt x.txt",
		"[a":            "a b c/a c/d d/x.txt x.txt",
		"c\n!c/d":       "a b d/x.txt x.txt", // c/d is in an ignored directory
		"*.txt\n!x.txt": "a b c/a c/d d/x.txt x.txt",
	} {
		t.Run(pattern, func(t *testing.T) {
			alone(t)
			dir := t.TempDir()
			put(t, dir, ".git/HEAD", "", ".git/info/exclude", ".gitignore\n", ".gitignore", pattern, "a", "", "b", "", "c/a", "", "c/d", "", "d/x.txt", "", "x.txt", "")
			assert.Equal(t, want, strings.Join(found(dir), " "))
		})
	}
}

// A directory below the repository's top has the rules above it.
func TestBelowTheTop(t *testing.T) {
	alone(t)
	dir := t.TempDir()
	put(t, dir, ".git/HEAD", "", ".gitignore", "*.log\n/work/tmp\n", "work/.gitignore", "!keep.log\n", "work/a.log", "", "work/keep.log", "", "work/tmp/x", "", "work/y", "")
	assert.Equal(t, []string{".gitignore", "keep.log", "y"}, found(filepath.Join(dir, "work")))
	assert.Empty(t, found(filepath.Join(dir, "work", "tmp")), "an ignored directory")
}

// The user's ignore file is used, but not one that the repository's settings name.
func TestUserRules(t *testing.T) {
	home, dir := alone(t), t.TempDir()
	put(t, dir, ".git/HEAD", "", ".git/config", "[core]\n\texcludesFile = ../mine\n", "a.tmp", "", "b.bak", "", "c", "", "mine", "c\n")
	put(t, home, ".config/git/ignore", "*.tmp\n", "mine", "*.bak\n")
	assert.Equal(t, []string{"b.bak", "c", "mine"}, found(dir))
	put(t, home, ".gitconfig", "[user]\n\tname = x\n[Core]\n\texcludesfile = \"~/mine\"\n")
	assert.Equal(t, []string{"a.tmp", "c", "mine"}, found(dir))
}

// Submodules, worktrees and nested repositories have their own rules, and tracked files are never ignored.
func TestRepositories(t *testing.T) {
	for _, version := range []string{"2", "4"} {
		t.Run(version, func(t *testing.T) {
			alone(t)
			lib, dir := t.TempDir(), t.TempDir()
			put(t, lib, "lib", "", ".gitignore", "*.o\n")
			git(t, lib, "init", "-q")
			git(t, lib, "add", ".")
			git(t, lib, "commit", "-qm", "a")
			put(t, dir, ".gitignore", "*.txt\nout/\nvendored\n", "kept.txt", "", "out/kept", "", "src/a", "")
			git(t, dir, "init", "-q")
			git(t, dir, "add", "-f", ".")
			git(t, dir, "submodule", "add", "-q", "--force", lib, "vendored")
			git(t, dir, "commit", "-qm", "a")
			git(t, dir, "update-index", "--index-version", version)
			git(t, dir, "worktree", "add", "-q", "../tree"+version)
			t.Cleanup(func() { _ = os.RemoveAll(filepath.Join(dir, "..", "tree"+version)) })
			put(t, dir, "new.txt", "", "out/new", "", "out/nested/.git/HEAD", "", "out/nested/x", "",
				"vendored/x.txt", "", "vendored/x.o", "", "nested/.git/HEAD", "", "nested/y.txt", "")
			assert.Equal(t, []string{
				".gitignore", ".gitmodules", "kept.txt", "nested/y.txt", "out/kept", "src/a", "vendored/.gitignore", "vendored/lib", "vendored/x.txt",
			}, found(dir))
			tree := filepath.Join(dir, "..", "tree"+version)
			put(t, tree, "new.txt", "", "new", "")
			assert.Equal(t, []string{".gitignore", ".gitmodules", "kept.txt", "new", "out/kept", "src/a"}, found(tree))
		})
	}
}

// No file in a repository makes Walk wait, run something or leave the directory.
func TestHostileRepository(t *testing.T) {
	alone(t)
	dir, outside := t.TempDir(), t.TempDir()
	put(t, outside, "ignore", "a\n", "secret", "")
	put(t, dir, ".git/HEAD", "", ".git/config", "[core]\n\tfsmonitor = touch "+outside+"/ran\n", ".git/index", "DIRC\x00\x00\x00\x02\xff\xff\xff\xffdamaged", "a", "")
	require.NoError(t, os.Symlink(filepath.Join(outside, "ignore"), filepath.Join(dir, ".gitignore")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
	assert.Equal(t, []string{".gitignore", "a", "link"}, found(dir))
	assert.NoFileExists(t, filepath.Join(outside, "ran"))
}

func TestWalkStops(t *testing.T) {
	alone(t)
	dir := t.TempDir()
	put(t, dir, "a/b", "", "a/c", "", "d", "", "skipped/e", "")
	var names []string
	Walk(dir, func(name string) bool { return name == "skipped" }, func(name string, _ fs.FileInfo) bool {
		names = append(names, name)
		return len(names) < 2
	})
	assert.Equal(t, []string{"a/b", "a/c"}, names)
}

// Git lists the same files for random trees with random ignore files.
func TestLikeGit(t *testing.T) {
	parts.Command(t, "git", "install git")
	alone(t)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	name := func() string { return pick("a", "b", "ab", "a.b", "b.a", "aa", "\xff", "a\xfe") }
	pattern := func() (p string) {
		for range 1 + random.IntN(4) {
			p += pick("a", "b", "*", "?", ".", "/", "**", "[ab]", "[!a]", "[^b-z]", `\a`, "[]a]", "[a", "!", " ", "/**/", "[[:alpha:]]", "\xff", "[\xfe-\xff]")
		}
		return p + "\n"
	}
	for i := range 12 {
		dir := t.TempDir()
		git(t, dir, "init", "-q")
		var dirs []string
		for range 25 {
			at := lo.Ternary(len(dirs) > 0 && random.IntN(2) == 0, pick(append(dirs, "")...), "")
			if random.IntN(3) == 0 {
				at = filepath.Join(at, name()+"d")
				dirs = append(dirs, at)
			}
			if random.IntN(4) == 0 {
				put(t, dir, filepath.Join(at, ".gitignore"), pattern()+pattern()+pattern())
			}
			put(t, dir, filepath.Join(at, name()), "")
			if random.IntN(6) == 0 {
				git(t, dir, "add", "-f", filepath.Join(at, "."))
			}
		}
		for _, at := range append(dirs, "") {
			c := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
			c.Dir = filepath.Join(dir, at)
			out, err := c.Output()
			require.NoError(t, err)
			want := lo.Uniq(lo.Compact(strings.Split(string(out), "\x00")))
			slices.Sort(want)
			if !assert.Equal(t, fmt.Sprintf("%q", want), fmt.Sprintf("%q", found(c.Dir)), "tree %d, %q", i, at) {
				_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
					if text, err := os.ReadFile(path); err == nil && filepath.Base(path) == ignoreFile {
						t.Logf("%q: %q", path, text)
					}
					return nil
				})
				return
			}
		}
	}
}
