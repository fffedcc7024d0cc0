package files_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/toolexec/files"
)

var project = []string{
	"README.md", "# Project\n", "go.mod", "module x\n", "src/main.go", "package main\n\nfunc main() {}\n",
	"src/main_test.go", "package main\n", "src/a/b/deep.go", "package b\n// TODO: main\n", "src.go", "package x\n", "empty/.keep", "",
}

func TestList(t *testing.T) {
	dir, tree := tree(t, files.Config{}, project...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "odd\nname (1 bytes)"), nil, 0o644))
	for arguments, want := range map[string]string{
		`{}`:                             "README.md (10 bytes)\nempty/\ngo.mod (9 bytes)\n\"odd\\nname (1 bytes)\" (0 bytes)\nsrc.go (10 bytes)\nsrc/",
		`{"path": "src"}`:                "src/a/\nsrc/main.go (29 bytes)\nsrc/main_test.go (13 bytes)",
		`{"path": "./src/", "depth": 9}`: "src/a/\nsrc/a/b/\nsrc/a/b/deep.go (24 bytes)\nsrc/main.go (29 bytes)\nsrc/main_test.go (13 bytes)",
		`{"path": "go.mod"}`:             `list "go.mod": it is a file, not a directory`,
		`{"path": "scr"}`:                `list "scr": there is no such file or directory; did you mean "src"?`,
		`{"depth": -1}`:                  `list "": depth must be 1 or more, or omitted`,
	} {
		assert.Equal(t, want, call(t, tree, "list_files", arguments).Text(), arguments)
	}
	_, err := tree.List(t.Context(), files.ListArgs{Path: "empty/.keep"})
	require.Error(t, err)
}

func TestGlob(t *testing.T) {
	_, tree := tree(t, files.Config{}, project...)
	for arguments, want := range map[string]string{
		`{"pattern": "*.go"}`:                        "src.go (10 bytes)",
		`{"pattern": "**/*.go"}`:                     "src.go (10 bytes)\nsrc/a/b/deep.go (24 bytes)\nsrc/main.go (29 bytes)\nsrc/main_test.go (13 bytes)",
		`{"pattern": "**/main{,_test}.go"}`:          "src/main.go (29 bytes)\nsrc/main_test.go (13 bytes)",
		`{"pattern": "src/*/*/*.go"}`:                "src/a/b/deep.go (24 bytes)",
		`{"pattern": "src/*/*.go"}`:                  "[nothing found]",
		`{"pattern": "a/**", "path": "src"}`:         "src/a/b/deep.go (24 bytes)",
		`{"pattern": "go.mod"}`:                      "go.mod (9 bytes)",
		`{"pattern": "go\\.m?d"}`:                    "go.mod (9 bytes)",
		`{"pattern": "[A-Z]*"}`:                      "README.md (10 bytes)",
		`{"pattern": "{src,empty}/{main.go,.keep}"}`: "empty/.keep (0 bytes)\nsrc/main.go (29 bytes)",
		`{"pattern": "[a"}`:                          `glob "[a": invalid pattern: a bracket or brace is not closed, or a backslash ends it; \ escapes the next character`,
		`{"pattern": "/etc/*"}`:                      `glob "/etc/*": a pattern must be relative to the searched path, and must not contain ..`,
		`{"pattern": "nowhere/*"}`:                   `glob "nowhere/*": there is no such file or directory`,
	} {
		assert.Equal(t, want, call(t, tree, "glob", arguments).Text(), arguments)
	}
}

func TestGrep(t *testing.T) {
	_, tree := tree(t, files.Config{MaxWriteBytes: 3000}, append(project,
		"crlf.txt", "alpha\r\nbeta\r\n", "image.png", "\x89PNG\x00main", "large.txt", strings.Repeat("main\n", 1000),
		"long.js", strings.Repeat("x", 1000)+"NEEDLE"+strings.Repeat("ö", 500), "odd.txt", "caf\xe9 needles\n",
		"steps.txt", "1\n2\nhit a\n4\nhit b\n6\n7\n8\nhit c\n")...)
	for arguments, want := range map[string]string{
		`{"pattern": "main"}`: "src/a/b/deep.go:2: // TODO: main\nsrc/main.go:1: package main\nsrc/main.go:3: func main() {}\n" +
			"src/main_test.go:1: package main\n[1 file of more than 3000 bytes not searched; 1 binary file not searched]",
		`{"pattern": "main", "glob": "*_test.go"}`:                      "src/main_test.go:1: package main",
		`{"pattern": "main", "glob": "src/*.go"}`:                       "src/main.go:1: package main\nsrc/main.go:3: func main() {}\nsrc/main_test.go:1: package main",
		`{"pattern": "^alpha$"}`:                                        "crlf.txt:1: alpha\n[1 file of more than 3000 bytes not searched; 1 binary file not searched]",
		`{"pattern": "PACKAGE", "ignore_case": true, "path": "src.go"}`: "src.go:1: package x",
		`{"pattern": "NEEDLE", "path": "long.js"}`:                      "long.js:1: …" + strings.Repeat("x", 100) + "NEEDLE" + strings.Repeat("ö", 147) + "…",
		`{"pattern": "needle", "path": "odd.txt"}`:                      "odd.txt:1: caf� needles",
		`{"pattern": "hit", "path": "steps.txt", "context": 1}`:         "steps.txt-2- 2\nsteps.txt:3: hit a\nsteps.txt-4- 4\n--\nsteps.txt:5: hit b\nsteps.txt-6- 6\n--\nsteps.txt-8- 8\nsteps.txt:9: hit c",
		`{"pattern": "hit", "path": "steps.txt", "max_matches": 1}`:     "steps.txt:3: hit a\n[and 2 more: use a path, glob or pattern that matches fewer]",
		`{"pattern": "nowhere to be found", "path": "src"}`:             "[nothing found in 3 files]",
		`{"pattern": "a(b", "path": "src"}`:                             "grep \"a(b\": invalid regular expression (RE2 syntax): missing closing ): `a(b`",
		`{"pattern": "(?=a)"}`:                                          "grep \"(?=a)\": invalid regular expression (RE2 syntax): invalid or unsupported Perl syntax: `(?=`",
		`{"pattern": ""}`:                                               `grep "": the pattern is empty`,
		`{"pattern": "x", "path": "image.png"}`:                         `grep "image.png": it is binary, or larger than 3000 bytes: it is not searched`,
		`{"pattern": "x", "path": "nowhere"}`:                           `grep "nowhere": there is no such file or directory`,
		`{"pattern": "x", "context": -1}`:                               `grep "x": context and max_matches are not negative`,
	} {
		assert.Equal(t, want, call(t, tree, "grep", arguments).Text(), arguments)
	}
}

// Walks leave out what Skip names, and begin inside of it where they are told to.
func TestWalksSkip(t *testing.T) {
	contents := append(slices.Clone(project), "vendor/x.go", "package vendor\n", ".git/config", "package git\n", "src/vendor/y.go", "package vendor\n")
	for name, tc := range map[string]struct {
		skip []string
		want string
	}{
		"without a word": {nil, "src/vendor/y.go:1: package vendor\nvendor/x.go:1: package vendor"},
		"named":          {[]string{"vendor", ".git"}, "[nothing found in 7 files]"},
		"nothing at all": {[]string{}, ".git/config:1: package git\nsrc/vendor/y.go:1: package vendor\nvendor/x.go:1: package vendor"},
	} {
		t.Run(name, func(t *testing.T) {
			_, tree := tree(t, files.Config{Skip: tc.skip}, contents...)
			assert.Equal(t, tc.want, call(t, tree, "grep", `{"pattern": "package (git|vendor)"}`).Text())
			assert.Equal(t, "vendor/x.go:1: package vendor", call(t, tree, "grep", `{"pattern": "package (git|vendor)", "path": "vendor"}`).Text())
		})
	}
}

// An expression that takes long for each byte does not hold up a caller whose time is up.
func TestASlowGrepEndsWithItsContext(t *testing.T) {
	_, tree := tree(t, files.Config{}, "one-line", strings.Repeat("a", 100_000), "lines", strings.Repeat(strings.Repeat("a", 500)+"\n", 200))
	for _, path := range []string{"", "one-line", "lines"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := tree.Grep(ctx, files.GrepArgs{Pattern: "(?:a?){1000}z", Path: path})
		assert.ErrorIs(t, err, context.DeadlineExceeded, path)
		cancel()
	}
	_, err := tree.Grep(t.Context(), files.GrepArgs{Pattern: strings.Repeat("a", 1001)})
	assert.ErrorContains(t, err, "the pattern is longer than 1000 bytes: use several simpler ones")
}

// A model can make a search slow, so a search has its own time limit.
func TestSearchesAreLimitedInTime(t *testing.T) {
	_, tree := tree(t, files.Config{SearchTimeout: 20 * time.Millisecond}, "f", strings.Repeat("a", 100_000))
	assert.Contains(t, call(t, tree, "grep", `{"pattern":"(?:a?){1000}z"}`).Text(), "no answer within 20ms")
}

// What does not fit is counted and said, and nothing is looked at for ever.
func TestResultsAreCapped(t *testing.T) {
	contents := []string{}
	for i := range 50 {
		contents = append(contents, fmt.Sprintf("d%d/f%02d.txt", i%5, i), "needle\nneedle\n")
	}
	_, few := tree(t, files.Config{MaxMatches: 2}, contents...)
	assert.Equal(t, "d0/f00.txt (14 bytes)\nd0/f05.txt (14 bytes)\n[and 48 more: use a path or pattern that matches fewer]",
		call(t, few, "glob", `{"pattern": "**"}`).Text())
	assert.Equal(t, "d0/\nd1/\n[and 3 more: use a path or pattern that matches fewer]", call(t, few, "list_files", `{}`).Text())
	assert.Equal(t, "d0/f00.txt:1: needle\nd0/f00.txt:2: needle\n[and 98 more: use a path, glob or pattern that matches fewer]",
		call(t, few, "grep", `{"pattern": "n", "max_matches": 1000}`).Text())

	_, short := tree(t, files.Config{MaxReadBytes: 100}, contents...)
	for tool, arguments := range map[string]string{"glob": `{"pattern": "**"}`, "list_files": `{"depth": 3}`, "grep": `{"pattern": "n", "context": 5}`} {
		text := call(t, short, tool, arguments).Text()
		assert.Less(t, len(text), 300, tool)
		assert.Regexp(t, `\[and \d\d more`, text, tool)
	}

	_, lazy := tree(t, files.Config{MaxWalk: 12}, contents...)
	for tool, arguments := range map[string]string{"glob": `{"pattern": "**/f49.txt"}`, "list_files": `{"depth": 3}`, "grep": `{"pattern": "n"}`} {
		assert.Contains(t, call(t, lazy, tool, arguments).Text(), "stopped after looking at 12 files and directories: use a deeper path]", tool)
	}
}

// A tree that is deeper than any path may be long is walked as far as is sensible.
func TestVeryDeepTrees(t *testing.T) {
	dir, tree := tree(t, files.Config{}, "a.txt", "x")
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	for range 400 {
		require.NoError(t, root.Mkdir("deeper", 0o755))
		next, err := root.OpenRoot("deeper")
		require.NoError(t, err)
		require.NoError(t, root.Close())
		root = next
	}
	require.NoError(t, root.Close())
	found, err := tree.Glob(t.Context(), files.GlobArgs{Pattern: "**"})
	require.NoError(t, err)
	assert.Len(t, found.Entries, 1)
	assert.Contains(t, found.Content().Text(), "128 levels")
}
