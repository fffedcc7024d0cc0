package kit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability/kit"
)

// What is written down in one session is told in the next.
func ExampleFileMemory() {
	root, _ := os.MkdirTemp("", "memory")
	defer os.RemoveAll(root)

	talk := func(input string, turns ...agenttest.Turn) {
		a := builder.New().WithDriver(agenttest.Script(turns...)).With(kit.FileMemory{Root: root}).Build().MustGet()
		fmt.Print(agenttest.Transcript(a.Run(context.Background(), agent.NewState(), agent.UserText(input)).MustGet()))
	}
	talk("I am Ada, and I like tea.",
		agenttest.Call("memory", `{"command":"create","path":"/memories/ada.md","file_text":"likes tea\n"}`),
		agenttest.Say("Noted."),
	)
	talk("Ada again: what do I like?",
		agenttest.Call("memory", `{"command":"view","path":"/memories/ada.md"}`),
		agenttest.Say("Tea."),
	)
	// Output:
	// user: I am Ada, and I like tea.
	// assistant calls memory {"command":"create","path":"/memories/ada.md","file_text":"likes tea\n"}
	// tool memory (executed): File created successfully at: /memories/ada.md
	// assistant: Noted.
	// user: Ada again: what do I like?
	// user: The files in your memory:
	// 10B	/memories/ada.md
	// assistant calls memory {"command":"view","path":"/memories/ada.md"}
	// tool memory (executed): Here's the content of /memories/ada.md with line numbers:
	//      1	likes tea
	// assistant: Tea.
}

// command returns a turn that calls the tool, with arguments by name.
func command(name string, args ...any) agenttest.Turn {
	members := map[string]any{"command": name}
	for i := 0; i < len(args); i += 2 {
		members[args[i].(string)] = args[i+1]
	}
	text, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return agenttest.Call("memory", string(text))
}

// answers returns a memory's answers to commands, one after the other.
func answers(t testing.TB, m kit.FileMemory, turns ...agenttest.Turn) []string {
	t.Helper()
	return told(done(t, built(t, agenttest.Script(append(turns, agenttest.Say("end"))...), m), agent.NewState(), "go"))
}

// written returns a directory with the files.
func written(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

func content(t testing.TB, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(text)
}

func TestMemoryCommands(t *testing.T) {
	three := map[string]string{"a.md": "one\ntwo\nthree\n", "sub/b.md": "b", "sub/deep/c.md": "cc", "sub/deep/deeper/d.md": "ddd", ".hidden": "h", "node_modules/x": "x"}
	for name, tc := range map[string]struct {
		turn agenttest.Turn
		want string
		file string // a.md afterwards, where it is still there
	}{
		"view": {command("view", "path", "/memories/a.md"), "Here's the content of /memories/a.md with line numbers:\n     1\tone\n     2\ttwo\n     3\tthree", three["a.md"]},
		"view some lines": {command("view", "path", "/memories/a.md", "view_range", []int{2, 2}),
			"Here's the content of /memories/a.md with line numbers:\n     2\ttwo\n[the file goes on: see view_range]", three["a.md"]},
		"view to the end":     {command("view", "path", "/memories/a.md", "view_range", []int{2, -1}), "Here's the content of /memories/a.md with line numbers:\n     2\ttwo\n     3\tthree", three["a.md"]},
		"view lines backward": {command("view", "path", "/memories/a.md", "view_range", []int{3, 2}), "Error: Invalid `view_range` parameter: [3, 2]. Lines are counted from 1, and the last is not before the first", three["a.md"]},
		"view lines there are not": {command("view", "path", "/memories/a.md", "view_range", []int{9, 10}),
			"Error: /memories/a.md: it has only 3 lines: there is no line 9", three["a.md"]},
		"view all": {command("view", "path", "/memories"), "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:\n" +
			"20B\t/memories\n14B\t/memories/a.md\n6B\t/memories/sub\n1B\t/memories/sub/b.md\n5B\t/memories/sub/deep", three["a.md"]},
		"view a directory": {command("view", "path", "/memories/sub/"), "Here're the files and directories up to 2 levels deep in /memories/sub, excluding hidden items and node_modules:\n" +
			"6B\t/memories/sub\n1B\t/memories/sub/b.md\n5B\t/memories/sub/deep\n2B\t/memories/sub/deep/c.md\n3B\t/memories/sub/deep/deeper", three["a.md"]},
		"view lines of a directory": {command("view", "path", "/memories/sub", "view_range", []int{1, 2}), "Error: /memories/sub is a directory: view_range is for files", three["a.md"]},
		"view what is not there":    {command("view", "path", "/memories/x.md"), "The path /memories/x.md does not exist. Please provide a valid path.", three["a.md"]},
		"view, but what":            {command("view"), "Error: view needs path", three["a.md"]},
		"create":                    {command("create", "path", "/memories/new/x.md", "file_text", "x"), "File created successfully at: /memories/new/x.md", three["a.md"]},
		"create what is there":      {command("create", "path", "/memories/a.md", "file_text", "x"), "Error: File /memories/a.md already exists", three["a.md"]},
		"create below a file":       {command("create", "path", "/memories/a.md/x", "file_text", "x"), "Error: /memories/a.md/x: not a directory", three["a.md"]},
		"create, but where":         {command("create", "file_text", "x"), "Error: create needs path", three["a.md"]},
		"create nothing":            {command("create"), "Error: create needs file_text and path", three["a.md"]},
		"replace": {command("str_replace", "path", "/memories/a.md", "old_str", "two\n", "new_str", "2\n2½\n"),
			"The memory file has been edited.\n     1\tone\n     2\t2\n     3\t2½\n     4\tthree", "one\n2\n2½\nthree\n"},
		"replace by nothing":         {command("str_replace", "path", "/memories/a.md", "old_str", "two\n"), "The memory file has been edited.\n     1\tone\n     2\tthree", "one\nthree\n"},
		"replace what is not there":  {command("str_replace", "path", "/memories/a.md", "old_str", "four", "new_str", "4"), "No replacement was performed, old_str `four` did not appear verbatim in /memories/a.md.", three["a.md"]},
		"replace what is there much": {command("str_replace", "path", "/memories/a.md", "old_str", "e\n", "new_str", "4"), "No replacement was performed. Multiple occurrences of old_str `e\n` in lines: 1, 3. Please ensure it is unique", three["a.md"]},
		"replace nothing":            {command("str_replace", "path", "/memories/a.md", "old_str", "", "new_str", "4"), "Error: old_str is empty: use insert to add text to a file", three["a.md"]},
		"replace in no file":         {command("str_replace", "path", "/memories/x.md", "old_str", "a", "new_str", "b"), "The path /memories/x.md does not exist. Please provide a valid path.", three["a.md"]},
		"replace in a directory":     {command("str_replace", "path", "/memories/sub", "old_str", "a", "new_str", "b"), "Error: /memories/sub: it is a directory, not a file", three["a.md"]},
		"insert":                     {command("insert", "path", "/memories/a.md", "insert_line", 1, "insert_text", "1½"), "The file /memories/a.md has been edited.", "one\n1½\ntwo\nthree\n"},
		"insert at the begin":        {command("insert", "path", "/memories/a.md", "insert_line", 0, "insert_text", "zero\n"), "The file /memories/a.md has been edited.", "zero\none\ntwo\nthree\n"},
		"insert at the end":          {command("insert", "path", "/memories/a.md", "insert_line", 3, "insert_text", "four\n"), "The file /memories/a.md has been edited.", "one\ntwo\nthree\nfour\n"},
		"insert behind the end":      {command("insert", "path", "/memories/a.md", "insert_line", 4, "insert_text", "x"), "Error: Invalid `insert_line` parameter: 4. It should be within the range of lines of the file: [0, 3]", three["a.md"]},
		"insert before the begin":    {command("insert", "path", "/memories/a.md", "insert_line", -1, "insert_text", "x"), "Error: Invalid `insert_line` parameter: -1. It should be within the range of lines of the file: [0, 3]", three["a.md"]},
		"delete a directory":         {command("delete", "path", "/memories/sub"), "Successfully deleted /memories/sub", three["a.md"]},
		"delete what is not there":   {command("delete", "path", "/memories/x"), "The path /memories/x does not exist. Please provide a valid path.", three["a.md"]},
		"delete all":                 {command("delete", "path", "/memories/"), "Error: /memories is the whole memory: name a file or directory in it", three["a.md"]},
		"rename":                     {command("rename", "old_path", "/memories/sub", "new_path", "/memories/other/place"), "Successfully renamed /memories/sub to /memories/other/place", three["a.md"]},
		"rename over another":        {command("rename", "old_path", "/memories/sub/b.md", "new_path", "/memories/a.md"), "Error: The destination /memories/a.md already exists", three["a.md"]},
		"rename what is not there":   {command("rename", "old_path", "/memories/x", "new_path", "/memories/y"), "The path /memories/x does not exist. Please provide a valid path.", three["a.md"]},
		"rename into itself":         {command("rename", "old_path", "/memories/sub", "new_path", "/memories/sub/x"), "Error: /memories/sub cannot be moved into itself", three["a.md"]},
		"rename all":                 {command("rename", "old_path", "/memories", "new_path", "/memories/x"), "Error: /memories is the whole memory: name a file or directory in it", three["a.md"]},
		"rename, but to what":        {command("rename", "old_path", "/memories/sub"), "Error: rename needs new_path", three["a.md"]},
	} {
		t.Run(name, func(t *testing.T) {
			root := written(t, three)
			assert.Equal(t, []string{tc.want}, answers(t, kit.FileMemory{Root: root}, tc.turn))
			assert.Equal(t, tc.file, content(t, root, "a.md"))
		})
	}
}

// A file without an end of its last line gets one where something follows.
func TestMemoryInsertsWholeLines(t *testing.T) {
	root := written(t, map[string]string{"a": "one", "b": ""})
	answers(t, kit.FileMemory{Root: root}, command("insert", "path", "/memories/a", "insert_line", 1, "insert_text", "two"),
		command("insert", "path", "/memories/b", "insert_line", 0, "insert_text", "first"))
	assert.Equal(t, "one\ntwo\n", content(t, root, "a"))
	assert.Equal(t, "first\n", content(t, root, "b"))
}

// Nothing leads out of the directory, whatever the path.
func TestMemoryIsConfined(t *testing.T) {
	outside := written(t, map[string]string{"secret": "s3cret"})
	root := filepath.Join(outside, "memory")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "sub", "a"), []byte("a"), 0o600))
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Symlink(outside, filepath.Join(root, "out")))
		require.NoError(t, os.Symlink("../secret", filepath.Join(root, "link")))
	}
	for _, path := range []string{
		"", "/", "secret", "../secret", "/memories/../secret", "/memories/sub/../../secret", "/memories/./sub/a", "/memories//sub", "/memoriesx",
		"/memories/..", "memories/sub/a", "/etc/passwd", "/memories/.hidden", "/memories/sub/.git/config", "/memories/sub\\a", "/memories/a\x00b",
		"/memories/a\nb", "/memories/out/secret", "/memories/link", "/memories/sub/a/..", outside + "/secret",
		"//memories/sub", "/MEMORIES/sub",
	} {
		got := answers(t, kit.FileMemory{Root: root},
			command("view", "path", path),
			command("str_replace", "path", path, "old_str", "s3cret", "new_str", "gone"),
			command("insert", "path", path, "insert_line", 0, "insert_text", "x"),
			command("rename", "old_path", "/memories/sub/a", "new_path", path+"/x"),
			command("rename", "old_path", path, "new_path", "/memories/mine"),
			command("view", "path", "/memories/mine"),
		)
		assert.NotContains(t, strings.Join(got, "\n"), "s3cret\n", path)
		for _, text := range got[:4] {
			assert.Regexp(t, "^(Error|The path|No replacement)", text, path)
		}
		assert.NotContains(t, got[5], "s3cret", path)
		assert.Equal(t, "s3cret", content(t, outside, "secret"), path)
		answers(t, kit.FileMemory{Root: root}, command("create", "path", path, "file_text", "x"), command("delete", "path", path))
		assert.Equal(t, "s3cret", content(t, outside, "secret"), path)
		entries, err := os.ReadDir(outside)
		require.NoError(t, err)
		assert.Len(t, entries, 2, path)
	}
	// What looks like a way out and is a plain name stays inside.
	answers(t, kit.FileMemory{Root: root}, command("create", "path", "/memories/%2e%2e/secret", "file_text", "x"))
	assert.Equal(t, "x", content(t, root, "%2e%2e/secret"))
	assert.Equal(t, "s3cret", content(t, outside, "secret"))
}

func TestMemoryHasLimits(t *testing.T) {
	root := written(t, map[string]string{"a": "aaaaaaaa"})
	m := kit.FileMemory{Root: root, FileBytes: 10, TotalBytes: 20, Files: 3}
	got := answers(t, m,
		command("create", "path", "/memories/b", "file_text", "12345678901"),
		command("create", "path", "/memories/b", "file_text", "1234567890"),
		command("create", "path", "/memories/c", "file_text", "123"),
		command("create", "path", "/memories/c", "file_text", "12"),
		command("create", "path", "/memories/d", "file_text", ""),
		command("insert", "path", "/memories/a", "insert_line", 0, "insert_text", "1"),
		command("str_replace", "path", "/memories/b", "old_str", "1234567890", "new_str", "12"),
		command("insert", "path", "/memories/a", "insert_line", 0, "insert_text", "1"),
		command("insert", "path", "/memories/a", "insert_line", 0, "insert_text", ""),
	)
	assert.Equal(t, []string{
		"Error: /memories/b would have 11 bytes, and a file of the memory has 10 at most: write less, or into several files",
		"File created successfully at: /memories/b",
		"Error: the memory would have 21 bytes, and it has 20 at most: delete files that you no longer need",
		"File created successfully at: /memories/c",
		"Error: the memory has 3 files, which is as many as it may have: delete files that you no longer need, or add to an existing one",
		"Error: /memories/a would have 11 bytes, and a file of the memory has 10 at most: write less, or into several files",
		"The memory file has been edited.\n     1\t12",
		"Error: /memories/a would have 11 bytes, and a file of the memory has 10 at most: write less, or into several files",
		"The file /memories/a has been edited.",
	}, got)
	// Where others wrote too much already, what makes it less is let through.
	root = written(t, map[string]string{"a": "aaaa", "b": strings.Repeat("b", 30)})
	got = answers(t, kit.FileMemory{Root: root, TotalBytes: 20},
		command("str_replace", "path", "/memories/a", "old_str", "aaaa", "new_str", "aa"),
		command("str_replace", "path", "/memories/a", "old_str", "aa", "new_str", "aaa"))
	assert.Contains(t, got[0], "has been edited")
	assert.Contains(t, got[1], "the memory would have 33 bytes, and it has 20 at most")
	// What others wrote may be larger than that.
	root = written(t, map[string]string{"big": strings.Repeat("x\n", 100), "bytes": "a\x80b", "dos": "a\r\nb\r\n"})
	got = answers(t, kit.FileMemory{Root: root, FileBytes: 100},
		command("view", "path", "/memories/big"), command("insert", "path", "/memories/big", "insert_line", 0, "insert_text", "x"),
		command("insert", "path", "/memories/bytes", "insert_line", 0, "insert_text", "x"), command("insert", "path", "/memories/dos", "insert_line", 0, "insert_text", "x"))
	assert.Contains(t, got[0], "[the file goes on: see view_range]")
	assert.Contains(t, got[1], "is too large to be changed")
	assert.Contains(t, got[2], "copy its text to a new file")
	assert.Contains(t, got[3], "copy its text to a new file")
}

// The model is told once what is there, and again when that has changed.
func TestMemoryTellsWhatIsThere(t *testing.T) {
	root := written(t, nil)
	say := agenttest.Say("ok")
	a := built(t, agenttest.Script(say, say, say, command("delete", "path", "/memories/b"), say, say), kit.FileMemory{Root: root})
	seen := func(s agent.State) (list []string) {
		for _, m := range s.Messages() {
			if m.Source() == "file-memory" {
				list = append(list, m.Text())
			}
		}
		return list
	}
	s := done(t, a, agent.NewState(), "one")
	assert.Empty(t, seen(s), "of nothing there is nothing to tell")
	require.NoError(t, os.WriteFile(filepath.Join(root, "a"), []byte("a"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "b"), []byte("bb"), 0o600))
	s = done(t, a, s, "two")
	s = through(t, done(t, a, s, "three"))
	s = done(t, a, s, "four")
	assert.Equal(t, []string{"The files in your memory:\n1B\t/memories/a\n2B\t/memories/b"}, seen(s))
	s = done(t, a, s, "five")
	assert.Equal(t, "The files in your memory:\n1B\t/memories/a", seen(s)[1])

	many := map[string]string{}
	for i := range 60 {
		many[fmt.Sprintf("%03d", i)] = "x"
	}
	s = done(t, built(t, agenttest.Script(say), kit.FileMemory{Root: written(t, many)}), agent.NewState(), "go")
	assert.Contains(t, seen(s)[0], "1B\t/memories/049\nand 10 more")
}

// A memory that cannot be read is no reason not to work; the tool says what is wrong.
func TestMemoryThatIsGone(t *testing.T) {
	root := filepath.Join(t.TempDir(), "memory")
	a := built(t, agenttest.Script(command("view", "path", "/memories"), agenttest.Say("ok")), kit.FileMemory{Root: root})
	require.NoError(t, os.Remove(root))
	s := done(t, a, agent.NewState(), "go")
	assert.Contains(t, told(s)[0], "failed")
	assert.Equal(t, "ok", s.Answer())
}

// Edits of parallel calls and runs do not get lost, and no file is ever half written.
func TestMemoryOfParallelRuns(t *testing.T) {
	root := written(t, map[string]string{"log": ""})
	line := command("insert", "path", "/memories/log", "insert_line", 0, "insert_text", "line")
	a, err := builder.New().WithParallel(4).WithDriver(agenttest.Script(
		line.Call("memory", `{"command":"insert","path":"/memories/log","insert_line":0,"insert_text":"line"}`), agenttest.Say("ok"),
	)).With(kit.FileMemory{Root: root}).Build().Get()
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			assert.NoError(t, err)
		})
	}
	all.Wait()
	assert.Equal(t, strings.Repeat("line\n", 20), content(t, root, "log"))
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing is left behind")
}

func TestMemoryThatMakesNoSense(t *testing.T) {
	assert.Contains(t, wrong(t, kit.FileMemory{}), `capability "file-memory": the root is empty`)
	assert.Contains(t, wrong(t, kit.FileMemory{Root: t.TempDir(), FileBytes: -1}), "they must not be negative")
	assert.Contains(t, wrong(t, kit.FileMemory{Root: filepath.Join(written(t, map[string]string{"a": ""}), "a")}), "making the root")
}
