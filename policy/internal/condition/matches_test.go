package condition_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/policy/internal/condition"
)

// A pattern is followed by the files that it matches in any shell.
func TestFilesOfPatterns(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "work")
	for _, folder := range []string{"a/deep", "b", "many", "dash"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
	}
	for _, name := range []string{"x.go", "Y.GO", ".env", "a/one.go", "a/deep/two.go", "b/one.go", "dash/-e"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.Symlink(top, filepath.Join(dir, "out")))
	require.NoError(t, os.WriteFile(filepath.Join(top, "secret"), nil, 0o600))
	for i := range 300 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "many", strconv.Itoa(i)), nil, 0o600))
	}
	require.NoError(t, os.Symlink(top, filepath.Join(dir, "many", "z")))
	l := languageOf(t, condition.Options{Workspace: dir, Home: dir})
	in := callOf(t, `{}`)
	conditions := map[string]bool{
		`shell.files("cat many/*").exists(f, f.more) && shell.files("cat many/*").filter(f, f.known).size() == 202`: true,
		`shell.files("cat many/*").exists(f, f.path.endsWith("many/z"))`:                                            true,
		`shell.files("cat many/1*").exists(f, f.more || !f.known)`:                                                  false,
		`shell.files("cat /dev/../**").exists(f, f.more && !f.known)`:                                               true,
		`shell.files("cat missing*/x").exists(f, f.more || !f.known || !path.within(f.path, workspace))`:            false,
		`shell.files("cat @(out|x/y)/secret").exists(f, !f.known)`:                                                  true,
		`shell.files("sort dash/*").exists(f, !f.known)`:                                                            false,
		`shell.files("cd dash && sort *").exists(f, !f.known) && shell.files("cat d*").all(f, f.known)`:             true,
		`shell.files("cat x.go/*/*").exists(f, f.more || !f.known)`:                                                 false,
	}
	for pattern, want := range map[string][]string{
		"*.go": {"x.go", "Y.GO"}, "[!a]*.go": {"x.go", "Y.GO"}, "?.go": {"x.go", "Y.GO"}, "+(x|y).go": {"x.go", "Y.GO"}, "~/x*": {"x.go"},
		"*/one.go": {"a/one.go", "b/one.go", "out/one.go"}, "**/two.go": {"a/deep/two.go", "out/two.go", "many/z/two.go"}, "a/*/two.go": {"a/deep/two.go"},
		"./[ab]/o*": {"a/one.go", "b/one.go", "out/o*"}, "o[[:alpha:]]t/new": {"out/new"}, "many/[x\"]\"z]/x": {"many/z/x"}, "*/z": {"out/z", "many/z"}, "@(.)env": {".env"}, "?(.)env": {".env"},
		"*env": nil, ".e*": {".env"}, "o*t/secret": {"out/secret"}, "**/secret": {"out/secret", "many/z/secret"}, "[ab]/../x.go": {"a/../x.go", "b/../x.go", "many/../x.go", "dash/../x.go", "out/../x.go"}, ".*": {".env", ".."}, "no*": nil,
	} {
		files := fmt.Sprintf("shell.files(%q)", "cat "+pattern)
		conditions[fmt.Sprintf("%s.size() == %d", files, len(want)+1)] = true
		conditions[fmt.Sprintf("%s.exists(f, !f.known || f.more || f.access != 'read' || f.command != 0)", files)] = false
		for _, name := range want {
			conditions[fmt.Sprintf("%s.exists(f, f.path == %q)", files, dir+"/"+name)] = true
		}
	}
	hold(t, l, in, conditions)
}
