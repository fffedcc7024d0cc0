package files_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/toolexec/files"
)

// jail returns a tree with a secret beside it and every kind of link that could lead there.
func jail(t *testing.T, c files.Config) (dir, secret string, tree *files.Tree) {
	t.Helper()
	outside := t.TempDir()
	secret = filepath.Join(outside, "secret.txt")
	put(t, secret, "TOP SECRET\n")
	dir = filepath.Join(outside, "root")
	put(t, filepath.Join(dir, "inside.txt"), "inside\n")
	put(t, filepath.Join(dir, "deep/er/a.txt"), "deep\n")
	for link, target := range map[string]string{
		"to-secret":       "../secret.txt",
		"to-secret-abs":   secret,
		"to-outside":      "..",
		"to-outside-abs":  outside,
		"to-self-abs":     dir,
		"chain":           "deep/chain",
		"deep/chain":      "../to-outside",
		"deep/er/over":    "../../../secret.txt",
		"loop":            "loop",
		"to-new-outside":  "../new.txt",
		"to-inside":       "inside.txt",
		"deep/to-inside":  "../inside.txt",
		"to-deep":         "deep/er",
		"to-missing-here": "later.txt",
		"to-proc":         "/proc/self/environ",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	c.Root = dir
	tree, err := files.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tree.Close()) })
	return dir, secret, tree
}

func TestNothingLeadsOut(t *testing.T) {
	dir, secret, tree := jail(t, files.Config{})
	outside := filepath.Dir(secret)
	for _, path := range []string{
		"..", "../", "../secret.txt", "../../../../../../etc/passwd", "deep/../../secret.txt", "./../secret.txt",
		"deep/er/../../../secret.txt", secret, outside, "/etc/passwd", "/", dir + "/../secret.txt", dir + "-not/x",
		"to-secret", "to-secret-abs", "to-outside/secret.txt", "to-outside-abs/secret.txt", "to-self-abs/inside.txt",
		"chain/secret.txt", "deep/chain/secret.txt", "deep/er/over", "to-outside/root/inside.txt", "to-proc",
		"loop", "loop/x", "to-new-outside", "to-outside/new.txt", "chain/new/new.txt",
		"inside.txt\x00/../../secret.txt", "~/secret.txt", "file://" + secret, "//etc/passwd", "inside.txt/../../secret.txt",
		strings.Repeat("../", 5000) + "etc/passwd", strings.Repeat("x", 100_000),
	} {
		for tool, arguments := range map[string]map[string]any{
			"read_file":  {"path": path},
			"edit_file":  {"path": path, "old_text": "SECRET", "new_text": "changed"},
			"grep":       {"path": path, "pattern": "SECRET|root:"},
			"list_files": {"path": path},
			"glob":       {"path": path, "pattern": "*"},
		} {
			text, err := json.Marshal(arguments)
			require.NoError(t, err)
			r := call(t, tree, tool, string(text))
			assert.True(t, r.IsError(), "%s %.80q: %s", tool, path, r.Text())
			assert.NotContains(t, r.Text(), "TOP", "%s %.80q", tool, path)
			assert.NotContains(t, r.Text(), "root:x:", "%s %.80q", tool, path)
			assert.Less(t, len(r.Text()), 1500, "%s %.80q", tool, path)
		}
		if strings.HasPrefix(path, "~") || strings.HasPrefix(path, "file:") {
			continue // plain names, below the root
		}
		r := call(t, tree, "write_file", fmt.Sprintf(`{"path": %q, "content": "owned"}`, strings.ReplaceAll(path, "\x00", "")))
		if !strings.Contains(path, "\x00") {
			assert.True(t, r.IsError(), "write %.80q: %s", path, r.Text())
		}
	}
	assert.Equal(t, "TOP SECRET\n", get(t, secret))
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	assert.Len(t, left, 2, "nothing was made beside the root: %v", left)
}

func TestLinksThatStayInside(t *testing.T) {
	dir, _, tree := jail(t, files.Config{})
	for _, path := range []string{"to-inside", "deep/to-inside", "inside.txt", "./inside.txt", "deep/../inside.txt", dir + "/inside.txt", "nowhere/../inside.txt"} {
		assert.Contains(t, call(t, tree, "read_file", fmt.Sprintf(`{"path": %q}`, path)).Text(), "inside\n[", path)
	}
	// Writing through a link leaves the link.
	w, err := tree.Write(t.Context(), files.WriteArgs{Path: "deep/to-inside", Content: "new\n"})
	require.NoError(t, err)
	assert.Equal(t, "inside.txt", w.Path)
	assert.Equal(t, "new\n", get(t, filepath.Join(dir, "inside.txt")))
	link, err := os.Readlink(filepath.Join(dir, "deep/to-inside"))
	require.NoError(t, err)
	assert.Equal(t, "../inside.txt", link)
	// A link to what is not there yet makes it.
	w, err = tree.Write(t.Context(), files.WriteArgs{Path: "to-missing-here", Content: "later\n"})
	require.NoError(t, err)
	assert.Equal(t, "later.txt", w.Path)
	// Walks do not follow links, inside neither.
	text := call(t, tree, "grep", `{"pattern": "deep|SECRET|new"}`).Text()
	assert.Equal(t, "deep/er/a.txt:1: deep\ninside.txt:1: new", text)
	text = call(t, tree, "glob", `{"pattern": "**/*.txt"}`).Text()
	assert.Equal(t, "deep/er/a.txt (5 bytes)\ninside.txt (4 bytes)\nlater.txt (6 bytes)", text)
	// But one may begin at a link.
	assert.Equal(t, "to-deep/a.txt (5 bytes)", call(t, tree, "glob", `{"pattern": "to-deep/*.txt"}`).Text())
	assert.Contains(t, call(t, tree, "list_files", `{}`).Text(), "to-secret -> ../secret.txt")
}

func TestGlobPatternsDoNotLeadOut(t *testing.T) {
	dir, secret, tree := jail(t, files.Config{})
	for _, pattern := range []string{
		"../*", "**/../../*", "to-outside/*", "to-outside/**", "chain/*", "*/secret.txt", "to-*/*.txt", "**/secret.txt", "/etc/*",
		filepath.Dir(secret) + "/*", dir + "/*", "{..,to-outside}/*", "[.][.]/*", `\.\./*`, "", "[", "{a", "a\\",
		strings.Repeat("{a,b}", 30), strings.Repeat("x", 2000),
	} {
		r := call(t, tree, "glob", fmt.Sprintf(`{"pattern": %q}`, pattern))
		assert.NotContains(t, r.Text(), "secret.txt (", "%.80q", pattern)
		assert.NotContains(t, r.Text(), "passwd", "%.80q", pattern)
	}
}

// Whatever a path is made of, no tool reads, lists or changes anything outside of the root.
func TestRandomPathsStayInside(t *testing.T) {
	_, secret, tree := jail(t, files.Config{})
	tools := callers(tree)
	part := rapid.OneOf(
		rapid.SampledFrom([]string{
			"..", ".", "", "/", "deep", "er", "to-outside", "to-outside-abs", "chain", "to-secret", "loop", "root", "secret.txt",
			"inside.txt", "~", "\\..\\", "..\\", "a\nb", "…", "to-deep", "over", "C:", "new.txt", filepath.Dir(secret), secret,
		}),
		rapid.StringN(0, 5, 12),
	)
	rapid.Check(t, func(t *rapid.T) {
		path := strings.Join(rapid.SliceOfN(part, 0, 7).Draw(t, "parts"), rapid.SampledFrom([]string{"/", "//", "/./", ""}).Draw(t, "between"))
		quoted, err := json.Marshal(path)
		require.NoError(t, err)
		for _, c := range [][2]string{
			{"read_file", `{"path": %s}`},
			{"list_files", `{"path": %s}`},
			{"grep", `{"path": %s, "pattern": "SECRET"}`},
			{"glob", `{"pattern": %s}`},
			{"glob", `{"pattern": "*", "path": %s}`},
			{"write_file", `{"path": %s, "content": "owned"}`},
			{"edit_file", `{"path": %s, "old_text": "TOP", "new_text": "owned"}`},
		} {
			r := tools[c[0]](fmt.Sprintf(c[1], quoted))
			if strings.Contains(strings.ReplaceAll(r, "to-secret -> ", ""), "TOP SECRET") || strings.Contains(r, "secret.txt (11") {
				t.Fatalf("%s %q told: %s", c[0], path, r)
			}
		}
		content, err := os.ReadFile(secret)
		require.NoError(t, err)
		require.Equal(t, "TOP SECRET\n", string(content))
		left, err := os.ReadDir(filepath.Dir(secret))
		require.NoError(t, err)
		require.Len(t, left, 2)
	})
}

// A hard link is the file itself: it is read, but what it names outside does not change with it.
func TestHardLinksAreNotWrittenThrough(t *testing.T) {
	dir, secret, tree := jail(t, files.Config{})
	require.NoError(t, os.Link(secret, filepath.Join(dir, "hard")))
	e, err := tree.Read(t.Context(), files.ReadArgs{Path: "hard"})
	require.NoError(t, err)
	assert.Equal(t, "TOP SECRET\n", e.Text)
	_, err = tree.Edit(t.Context(), files.EditArgs{Path: "hard", OldText: "TOP", NewText: "NO"})
	require.NoError(t, err)
	assert.Equal(t, "NO SECRET\n", get(t, filepath.Join(dir, "hard")))
	assert.Equal(t, "TOP SECRET\n", get(t, secret))
}

func TestGitIsNeitherWrittenNorSearched(t *testing.T) {
	dir, tree := tree(t, files.Config{}, ".git/config", "needle\n", "sub/.git/config", "needle\n", "a.txt", "needle\n")
	require.NoError(t, os.Symlink(".git", filepath.Join(dir, "innocent")))
	for _, path := range []string{".git/config", ".git/hooks/post-checkout", ".GIT/config", "sub/.git/config", "sub/.git", "innocent/config", "new/.git/config"} {
		_, err := tree.Write(t.Context(), files.WriteArgs{Path: path, Content: "x"})
		assert.ErrorContains(t, err, "writing to .git", path)
	}
	_, err := tree.Edit(t.Context(), files.EditArgs{Path: "innocent/config", OldText: "needle", NewText: "x"})
	assert.ErrorContains(t, err, "writing to .git")
	assert.Equal(t, "a.txt:1: needle", call(t, tree, "grep", `{"pattern": "needle"}`).Text())
	assert.Equal(t, "a.txt (7 bytes)\ninnocent -> .git", call(t, tree, "glob", `{"pattern": "**"}`).Text())
	// Who names it may look.
	assert.Equal(t, ".git/config:1: needle", call(t, tree, "grep", `{"pattern": "needle", "path": ".git"}`).Text())
	assert.Equal(t, ".git/config (7 bytes)", call(t, tree, "glob", `{"pattern": ".git/**"}`).Text())
	_, err = os.Stat(filepath.Join(dir, "new"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
