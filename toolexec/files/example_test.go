package files_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/toolexec/files"
)

func Example() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	tree, err := files.Open(files.Config{Root: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tree.Close()

	model := agenttest.Script(
		agenttest.Call("write_file", `{"path": "src/greet.txt", "content": "Good morning, Ada.\nGood morning, Bo.\n"}`),
		agenttest.Call("edit_file", `{"path": "src/greet.txt", "old_text": "Good morning", "new_text": "Good evening"}`),
		agenttest.Call("edit_file", `{"path": "src/greet.txt", "old_text": "Good morning", "new_text": "Good evening", "replace_all": true}`),
		agenttest.Call("grep", `{"pattern": "B.\\.$"}`),
		agenttest.Call("read_file", `{"path": "src/great.txt"}`),
		agenttest.Call("read_file", `{"path": "src/greet.txt", "limit": 1}`),
		agenttest.Call("read_file", `{"path": "../../etc/passwd"}`),
		agenttest.Say("done"),
	)
	a := builder.New().WithDriver(model).With(capability.UseTools(tree.Tools()...)).Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("Greet them.")).MustGet()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Println(m.Text())
		}
	}
	// Output:
	// made src/greet.txt: 37 bytes; hash 6f7eae301f1473b6
	// edit "src/greet.txt": old_text is in the file 2 times, at lines 1, 2: include more of the surrounding text, or set replace_all
	// edited src/greet.txt: 2 replacements, at lines 1, 2; 37 bytes, were 37; hash 1f43db0d491a9097
	// src/greet.txt:2: Good evening, Bo.
	// read "src/great.txt": there is no such file or directory; did you mean "src/greet.txt"?
	// Good evening, Ada.
	// [src/greet.txt: lines 1 to 1 of 2, 37 bytes; read on with offset 2; hash 1f43db0d491a9097]
	// read "../../etc/passwd": it is outside of the root: paths are relative to the root, such as "dir/file.txt"
}

// The methods of a Tree are the tools' Go form.
func ExampleTree_Grep() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	source := "package main\n\nfunc main() {\n\tprintln(\"hello\")\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	tree, err := files.Open(files.Config{Root: dir, ReadOnly: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tree.Close()

	found, err := tree.Grep(context.Background(), files.GrepArgs{Pattern: `^func`, Glob: "*.go", Context: 1})
	fmt.Println(found.Content().Text())
	fmt.Println(err)
	for _, m := range found.Matches {
		fmt.Println(m.Path, m.Line)
	}
	// Output:
	// main.go-2-
	// main.go:3: func main() {
	// main.go-4- 	println("hello")
	// <nil>
	// main.go 3
}
