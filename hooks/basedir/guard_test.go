package basedir_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/basedir"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/toolexec"
	"github.com/grapnel-go/grapnel/toolexec/files"
)

// base makes a directory with links in it that lead out, and one beside it.
func base(t *testing.T) (dir string) {
	t.Helper()
	outside, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir = filepath.Join(outside, "base")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub/sub"), 0o755))
	for name, content := range map[string]string{"base/a.txt": "a", "secret.txt": "SECRET"} {
		require.NoError(t, os.WriteFile(filepath.Join(outside, name), []byte(content), 0o644))
	}
	for link, target := range map[string]string{
		"out": "..", "out-abs": outside, "secret": "../secret.txt", "in": "sub/sub", "in-abs": filepath.Join(dir, "sub"),
		"new-out": "../new.txt", "loop": "loop", "sub/up": "../../", "new-in": "sub/new.txt",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	return dir
}

func guard(t *testing.T, dir string, o basedir.Options) hooks.Hook {
	t.Helper()
	hook, err := basedir.Guard(dir, o)
	require.NoError(t, err)
	return hook
}

func TestPaths(t *testing.T) {
	dir := base(t)
	t.Chdir(dir)
	t.Setenv("HOME", filepath.Dir(dir))
	t.Setenv("USERPROFILE", filepath.Dir(dir))
	for want, paths := range map[hooks.Decision][]string{
		hooks.Allow: {
			"", ".", "a.txt", "./a.txt", "sub/../a.txt", "new/dir/file.txt", dir, dir + "/", dir + "/a.txt", dir + "/new.txt", "in/x",
			"in-abs/x", "new-in", "..a", "a..b/..c", "file://" + dir + "/a.txt", "file:a.txt", "https://example.com/a?b=c", "a%20b",
			"sub\\x", "C:\\Users", "production", "bob@example.com", "./~a", "./$id.tsx", "a b", "[id].tsx", "~/base/a.txt", "sub/up/base/a.txt",
			"naïve.txt", "a~", "100%",
		},
		hooks.Deny: {
			"..", "../", "../secret.txt", "sub/../../secret.txt", "/etc/passwd", "/", dir + "/../secret.txt", dir + "x", dir + "-2/a.txt",
			"out", "out/secret.txt", "out-abs/secret.txt", "secret", "new-out", "out/not/there/yet", "in/../../../secret.txt", "loop", "loop/x",
			"sub/up", "sub/up/secret.txt", "sub/up/../x", "~", "~/x", "~root/x", "$HOME/x", "${HOME}/x", "%USERPROFILE%/x",
			"file:///etc/passwd", "FILE:///etc/passwd", "file://localhost/etc/passwd", "file:/etc/passwd", "file:../secret.txt",
			"file:///" + strings.ReplaceAll(dir, "/", "%2F") + "/../secret.txt", "file:///%2e%2e/x", "file://%zz/x", "%2e%2e/secret.txt", "..%2fsecret.txt",
			"..\\secret.txt", "sub\\..\\..\\secret.txt", "\\etc\\passwd", " /etc/passwd", "\"/etc/passwd\"", "'../secret.txt'",
			"a.txt\x00", "a.txt\n/etc/passwd", "//etc/passwd", "https://x/../../../../etc", "a.txt/x", strings.Repeat("a/", 40_000), strings.Repeat("n", 300),
			"\u00a0/etc/passwd", "\ufeff/etc/passwd", "../secret.txt\u2003", "..%2fsecret%zz.txt", "100%/%2e%2e/%2e%2e/x",
			"/proc/self/root/etc/passwd", "/proc/self/cwd/a.txt", "/dev/fd/0", "/proc/self/cwd/../../etc",
		},
	} {
		for _, path := range paths {
			arguments, err := json.Marshal(map[string]any{"path": path, "content": "/etc/passwd"})
			require.NoError(t, err)
			f := hookstest.Fire(t, guard(t, dir, basedir.Options{}), hookstest.ToolCall("write_file", string(arguments)))
			assert.Equal(t, want, f.Decision, "%.100q: %s", path, f)
			assert.NoError(t, f.Err, "%.100q", path)
			assert.Less(t, len(f.Reason), 1000)
		}
	}
}

func TestFields(t *testing.T) {
	deny := func(arguments, saying string) hookstest.Case {
		return hookstest.Case{At: hookstest.ToolCall("any", arguments), Want: hooks.Deny, Saying: saying}
	}
	allow := func(arguments string) hookstest.Case {
		return hookstest.Case{At: hookstest.ToolCall("any", arguments), Want: hooks.Allow}
	}
	cases := hookstest.Cases{
		"none":              allow(`{}`),
		"no path":           allow(`{"command":"cat /etc/passwd","query":"../x","text":"/x","file_text":"/* x */","path_type":"/"}`),
		"numbers":           allow(`{"path":12,"file":null,"dir":true}`),
		"a list":            deny(`{"paths":["a.txt","/etc/passwd"]}`, `argument "paths.1": the path "/etc/passwd" is outside of`),
		"deep":              deny(`{"ops":[{"to":{"filePath":"../x"}}]}`, `argument "ops.0.to.filePath"`),
		"names as paths":    deny(`{"files":{"a.txt":"x","../x":"y"}}`, `argument "files.../x"`),
		"a file's name":     deny(`{"file":{"name":"/etc/passwd","content":"/x"}}`, `argument "file.name"`),
		"a person's name":   allow(`{"name":"/x","user":{"name":"/y"}}`),
		"no paths":          allow(`{"xpath":"//div[@id='x']","jsonpath":"$.a","profile":{"$ref":1},"profiles":["~me"]}`),
		"contents of files": allow(`{"files":[{"path":"a.txt","content":"/* x */\n../y"}]}`),
		"an escaped name":   deny(`{"\u0070ath":"/etc/passwd"}`, `argument "path"`),
		"an escaped value":  deny(`{"path":"\u002e\u002e/x"}`, `the path "../x"`),
	}
	for _, name := range []string{
		"path", "Path", "PATH", "file", "filename", "fileName", "file_name", "FILE-PATH", "dir", "targetDirectory", "cwd", "root_dir", "working_dir",
		"source", "destination", "src", "dst", "uri", "file_uri", "repo_path", "oldFilename", "folder", "directories", "path2", "outputFile", "from", "to",
		"outfile", "logfiles", "tmpdir", "outdir2", "log_basedir", "logpath", "SUBFOLDER",
	} {
		cases["called "+name] = deny(fmt.Sprintf(`{%q:"/etc/passwd"}`, name), fmt.Sprintf("argument %q", name))
	}
	cases.Test(t, guard(t, base(t), basedir.Options{}))

	hookstest.Cases{
		"named":     deny(`{"where":{"here":"../x"}}`, `argument "where.here"`),
		"any case":  deny(`{"Where":{"HERE":"../x"}}`, `argument "Where.HERE"`),
		"not named": allow(`{"path":"../x"}`),
	}.Test(t, guard(t, base(t), basedir.Options{Fields: []string{"here"}}))
}

func TestOptions(t *testing.T) {
	dir, tmp := base(t), base(t)
	hookstest.Cases{
		"also":     {At: hookstest.ToolCall("t", fmt.Sprintf(`{"path":%q}`, tmp+"/x")), Want: hooks.Allow},
		"no other": {At: hookstest.ToolCall("t", `{"path":"/x"}`), Want: hooks.Deny},
	}.Test(t, guard(t, dir, basedir.Options{Also: []string{tmp}}))

	var after map[string]any
	f := hookstest.Fire(t, guard(t, dir, basedir.Options{Absolute: true, Fields: []string{"path"}}),
		hookstest.ToolCall("t", `{"path":["a.txt","./in/b",`+fmt.Sprintf("%q", dir+"/c")+`],"n":12345678901234567890,"file":"a"}`))
	require.Equal(t, hooks.Rewrite, f.Decision, "%s", f)
	require.NoError(t, hooks.Call{ToolCall: f.Call}.Decode(&after))
	assert.Equal(t, []any{dir + "/a.txt", dir + "/in/b", dir + "/c"}, after["path"])
	assert.Equal(t, json.Number("12345678901234567890"), after["n"])
	assert.Equal(t, "a", after["file"])

	// A tool in another working directory may read a value as a path. The guard rewrites it to a path below the
	// directory.
	for path, want := range map[string]hooks.Decision{
		"ab:/../new.txt": hooks.Rewrite, "ab://x/../../new.txt": hooks.Rewrite, "ab://x/%2e%2e/new.txt": hooks.Rewrite, "ab:x": hooks.Rewrite,
		"https://example.com/a": hooks.Allow, "file://" + dir + "/a.txt": hooks.Allow,
	} {
		f := hookstest.Fire(t, guard(t, dir, basedir.Options{Absolute: true, Fields: []string{"path"}}), hookstest.ToolCall("t", fmt.Sprintf(`{"path":%q}`, path)))
		require.Equal(t, want, f.Decision, path)
		if want == hooks.Rewrite {
			var after map[string]string
			require.NoError(t, hooks.Call{ToolCall: f.Call}.Decode(&after))
			assert.True(t, strings.HasPrefix(after["path"], dir+"/"), "%s became %s", path, after["path"])
		}
	}

	for _, tc := range []struct {
		dir  string
		o    basedir.Options
		want string
	}{
		{"", basedir.Options{}, `guarding base directory "": the name is empty: set the directory`},
		{dir + "/nowhere", basedir.Options{}, "no such file or directory"},
		{dir + "/a.txt", basedir.Options{}, "it is not a directory"},
		{dir, basedir.Options{Also: []string{dir + "/nowhere"}}, "no such file or directory"},
		{dir, basedir.Options{Absolute: true}, "Absolute requires Fields"},
	} {
		_, err := basedir.Guard(tc.dir, tc.o)
		assert.ErrorContains(t, err, tc.want)
	}
}

// Where the guard cannot look, it says no.
func TestWhatCannotBeJudgedIsDenied(t *testing.T) {
	dir := base(t)
	name := strings.Repeat("n", 300) // longer than any name may be: looking at it is an error
	f := hookstest.Fire(t, guard(t, dir, basedir.Options{}), hookstest.ToolCall("t", fmt.Sprintf(`{"path":%q}`, name)))
	assert.Equal(t, hooks.Deny, f.Decision)
	assert.Contains(t, f.Reason, "cannot be judged: ")
}

// What the guard lets through is inside, as the system sees it.
func TestWhatIsAllowedIsInside(t *testing.T) {
	dir := base(t)
	hook := guard(t, dir, basedir.Options{})
	part := rapid.SampledFrom([]string{
		"..", ".", "", "a.txt", "sub", "up", "in", "in-abs", "out", "out-abs", "secret", "secret.txt", "new-out", "new-in", "loop", "base", "x",
		"%2e%2e", "~", "file:", dir, filepath.Dir(dir), "\\", "..\\..",
	})
	rapid.Check(t, func(rt *rapid.T) {
		path := strings.Join(rapid.SliceOfN(part, 1, 6).Draw(rt, "parts"), "/")
		arguments, err := json.Marshal(map[string]string{"path": path})
		require.NoError(rt, err)
		f := hookstest.ToolCall("t", string(arguments)).Fire(t.Context(), hooks.NewSet(hook)).MustGet()
		if f.Decision != hooks.Allow {
			require.Equal(rt, hooks.Deny, f.Decision)
			return
		}
		opened := path
		if !filepath.IsAbs(path) {
			opened = dir + "/" + path // not cleaned: the system goes through links before it goes up
		}
		actual, err := filepath.EvalSymlinks(opened)
		if err == nil && actual != dir && !strings.HasPrefix(actual, dir+"/") {
			rt.Fatalf("%q leads to %s", path, actual)
		}
	})
}

// In a real agent, the guard keeps tools that know no bounds inside.
func TestInAnAgent(t *testing.T) {
	dir := base(t)
	type file struct {
		Path string `json:"path"`
	}
	anywhere := toolexec.Func("cat", "Reads any file.", func(_ context.Context, in file) (string, error) {
		content, err := os.ReadFile(filepath.Join(dir, in.Path))
		return string(content), err
	})
	tree, err := files.Open(files.Config{Root: dir})
	require.NoError(t, err)
	defer tree.Close()
	model := agenttest.Script(
		agenttest.Say("").Call("cat", `{"path":"a.txt"}`).Call("cat", `{"path":"out/secret.txt"}`).Call("read_file", `{"path":"../secret.txt"}`),
		agenttest.Say("done"),
	)
	a := builder.New().WithDriver(model).
		With(capability.UseTools(append(tree.Tools(), anywhere)...), capability.UseHooks(guard(t, dir, basedir.Options{}))).
		Build().MustGet()
	final := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
	var told []string
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			told = append(told, m.Text())
		}
	}
	require.Len(t, told, 3)
	assert.Equal(t, "a", told[0])
	assert.Contains(t, told[1], `tool "cat": denied by base-dir: argument "path": the path "out/secret.txt" is outside of `+dir+": it leads to ")
	assert.Contains(t, told[2], `tool "read_file": denied by base-dir`)
	assert.NotContains(t, strings.Join(told, ""), "SECRET")
}
