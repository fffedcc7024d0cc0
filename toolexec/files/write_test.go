package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/toolexec/files"
)

func TestWrite(t *testing.T) {
	dir, tree := tree(t, files.Config{MaxWriteBytes: 20}, "old.sh", "#!/bin/sh\n")
	require.NoError(t, os.Chmod(filepath.Join(dir, "old.sh"), 0o751))
	for path, want := range map[string]string{
		"new.txt":      "made new.txt: 3 bytes; hash 98ea6e4f216f2fb4",
		"a/b/c/d.txt":  "made a/b/c/d.txt: 3 bytes; hash 98ea6e4f216f2fb4",
		"old.sh":       "wrote old.sh: 3 bytes, were 10; hash 98ea6e4f216f2fb4",
		"a":            `write "a": it is a directory, not a file`,
		".":            `write ".": it is a directory, not a file`,
		"":             `write "": the path is empty: name a file`,
		"dir/":         `write "dir/": a path that ends in a slash is a directory: name a file`,
		"old.sh/x.txt": `write "old.sh/x.txt": a part of the path is a file, not a directory`,
	} {
		if path == "a" {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "a"), 0o755))
		}
		assert.Equal(t, want, call(t, tree, "write_file", fmt.Sprintf(`{"path": %q, "content": "hi\n"}`, path)).Text())
	}
	info, err := os.Stat(filepath.Join(dir, "old.sh"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o751), info.Mode().Perm())
	_, err = tree.Write(t.Context(), files.WriteArgs{Path: "x/big", Content: strings.Repeat("x", 21)})
	assert.EqualError(t, err, `write "x/big": it would be 21 bytes, and files of up to 20 are written`)
	assert.NoDirExists(t, filepath.Join(dir, "x"))
	_, err = tree.Edit(t.Context(), files.EditArgs{Path: "new.txt", OldText: "hi", NewText: strings.Repeat("x", 20)})
	assert.EqualError(t, err, `edit "new.txt": it would be 21 bytes, and files of up to 20 are written`)
	onlyKnownFiles(t, dir)
}

// onlyKnownFiles fails if a temporary file was left.
func onlyKnownFiles(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, ".grapnel-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestReadOnly(t *testing.T) {
	dir, tree := tree(t, files.Config{ReadOnly: true}, "a", "a")
	for _, tool := range tree.Tools() {
		assert.NotContains(t, []string{"write_file", "edit_file"}, tool.Spec().Name)
	}
	_, err := tree.Write(t.Context(), files.WriteArgs{Path: "a", Content: "b"})
	assert.EqualError(t, err, `write "a": the files are read-only`)
	_, err = tree.Edit(t.Context(), files.EditArgs{Path: "a", OldText: "a", NewText: "b"})
	assert.EqualError(t, err, `edit "a": the files are read-only`)
	assert.Equal(t, "a", get(t, filepath.Join(dir, "a")))
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), "")
	for root, want := range map[string]string{
		"":                            "opening files: Root is empty: set the directory of the files",
		filepath.Join(dir, "nowhere"): fmt.Sprintf("opening files: root %q: no such file or directory", filepath.Join(dir, "nowhere")),
		filepath.Join(dir, "file"):    fmt.Sprintf("opening files: root %q: not a directory", filepath.Join(dir, "file")),
	} {
		_, err := files.Open(files.Config{Root: root})
		assert.EqualError(t, err, want)
	}
	tree, err := files.Open(files.Config{Root: dir})
	require.NoError(t, err)
	require.NoError(t, tree.Close())
	assert.Equal(t, `read "file": the files were closed`, call(t, tree, "read_file", `{"path": "file"}`).Text())
}

// With a hash, a change by another process is noticed.
func TestIfHash(t *testing.T) {
	dir, tree := tree(t, files.Config{}, "a.txt", "one\n")
	e, err := tree.Read(t.Context(), files.ReadArgs{Path: "a.txt"})
	require.NoError(t, err)
	w, err := tree.Edit(t.Context(), files.EditArgs{Path: "a.txt", OldText: "one", NewText: "two", IfHash: e.Hash})
	require.NoError(t, err)
	_, err = tree.Write(t.Context(), files.WriteArgs{Path: "a.txt", Content: "three\n", IfHash: e.Hash})
	assert.EqualError(t, err, fmt.Sprintf("write \"a.txt\": the file was changed since it had the hash %q: read it again", e.Hash))
	put(t, filepath.Join(dir, "a.txt"), "another's\n")
	_, err = tree.Write(t.Context(), files.WriteArgs{Path: "a.txt", Content: "three\n", IfHash: w.Hash})
	assert.ErrorContains(t, err, "read it again")
	_, err = tree.Write(t.Context(), files.WriteArgs{Path: "new/a.txt", Content: "three\n", IfHash: w.Hash})
	require.Error(t, err)
	assert.NoDirExists(t, filepath.Join(dir, "new"))
	assert.Equal(t, "another's\n", get(t, filepath.Join(dir, "a.txt")))
}

func TestEdit(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		in      files.EditArgs
		leaves  string // empty: the content as it was
		says    string // a part of the answer
	}{
		"once":                 {"a b c\n", files.EditArgs{OldText: "b", NewText: "B"}, "a B c\n", "1 replacement, at line 1;"},
		"twice":                {"a\nb\na\n", files.EditArgs{OldText: "a", NewText: "x"}, "", "old_text is in the file 2 times, at lines 1, 3: include more"},
		"twice, all":           {"a\nb\na\n", files.EditArgs{OldText: "a", NewText: "x", ReplaceAll: true}, "x\nb\nx\n", "2 replacements, at lines 1, 3;"},
		"once, all":            {"a\n", files.EditArgs{OldText: "a", NewText: "x", ReplaceAll: true}, "x\n", "1 replacement"},
		"overlapping":          {"aaa", files.EditArgs{OldText: "aa", NewText: "x"}, "", "twice, overlapping, at lines 1, 1"},
		"overlapping, all":     {"aaa", files.EditArgs{OldText: "aa", NewText: "x", ReplaceAll: true}, "xa", "1 replacement"},
		"very often":           {strings.Repeat("a\n", 500), files.EditArgs{OldText: "a", NewText: "x"}, "", "500 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …: include"},
		"not there":            {"a\n", files.EditArgs{OldText: "b", NewText: "x"}, "", "old_text is not in the file: read the file"},
		"other white space":    {"func f() {\n\treturn 1\n}\n", files.EditArgs{OldText: "func f() {\n    return 1\n}", NewText: "x"}, "", `it is there with other white space, from line 1: "func f() {\n\treturn 1\n}"`},
		"only the first line":  {"a\nfunc f() {\n\treturn 1\n}\n", files.EditArgs{OldText: "func f() {\n\treturn 2", NewText: "x"}, "", `its first line is, at line 2, but what follows is different: "func f() {\n\treturn 1\n}"`},
		"empty old":            {"a\n", files.EditArgs{NewText: "x"}, "", "old_text is empty: write_file writes a whole file"},
		"nothing to do":        {"a\n", files.EditArgs{OldText: "a", NewText: "a"}, "", "old_text and new_text are the same"},
		"deleting":             {"a b c\n", files.EditArgs{OldText: " b"}, "a c\n", "1 replacement"},
		"no final newline":     {"a\nb", files.EditArgs{OldText: "b", NewText: "c"}, "a\nc", "line 2"},
		"CRLF stays":           {"a\r\nb\r\nc\r\n", files.EditArgs{OldText: "a\nb\n", NewText: "x\ny\nz\n"}, "x\r\ny\r\nz\r\nc\r\n", "line 1"},
		"CRLF given":           {"a\r\nb\r\n", files.EditArgs{OldText: "a\r\nb", NewText: "x\r\ny"}, "x\r\ny\r\n", "line 1"},
		"CRLF, all":            {"a\r\nb\r\na\r\nb\r\n", files.EditArgs{OldText: "a\nb", NewText: "x", ReplaceAll: true}, "x\r\nx\r\n", "2 replacements, at lines 1, 3"},
		"CRLF, only its end":   {"a\r\nb\r\n", files.EditArgs{OldText: "a\n", NewText: "a "}, "a b\r\n", "line 1"},
		"mixed stays mixed":    {"a\nb\r\nc\nd\r\n", files.EditArgs{OldText: "b\nc", NewText: "x"}, "a\nx\nd\r\n", "line 2"},
		"what is no UTF-8":     {"caf\xe9 a\n\xff\n", files.EditArgs{OldText: " a", NewText: " b"}, "caf\xe9 b\n\xff\n", "line 1"},
		"binary is only bytes": {"\x00a\x00", files.EditArgs{OldText: "a", NewText: "b"}, "\x00b\x00", "line 1"},
		"$ has no meaning":     {"a $1 c\n", files.EditArgs{OldText: "$1", NewText: "${0}\\1"}, "a ${0}\\1 c\n", "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, tree := tree(t, files.Config{}, "f", tc.content)
			tc.in.Path = "f"
			w, err := tree.Edit(t.Context(), tc.in)
			said := w.Content().Text()
			if err != nil {
				said = err.Error()
			}
			assert.Contains(t, said, tc.says)
			assert.Equal(t, tc.leaves == "", err != nil)
			if tc.leaves == "" {
				tc.leaves = tc.content
			}
			assert.Equal(t, tc.leaves, get(t, filepath.Join(dir, "f")))
		})
	}
}

// Parallel edits of one file all count, and a reader never sees half a file.
func TestParallelEdits(t *testing.T) {
	var content strings.Builder
	for i := range 30 {
		fmt.Fprintf(&content, "line %d.\n", i)
	}
	dir, tree := tree(t, files.Config{}, "f", content.String())
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			_, err := tree.Edit(t.Context(), files.EditArgs{Path: "f", OldText: fmt.Sprintf("line %d.", i), NewText: fmt.Sprintf("LINE %d.", i)})
			assert.NoError(t, err)
		})
		all.Go(func() {
			e, err := tree.Read(t.Context(), files.ReadArgs{Path: "f"})
			assert.NoError(t, err)
			assert.Equal(t, 30, e.Lines)
		})
	}
	all.Wait()
	assert.Equal(t, strings.ReplaceAll(content.String(), "line", "LINE"), get(t, filepath.Join(dir, "f")))
	onlyKnownFiles(t, dir)
}
