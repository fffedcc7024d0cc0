package files_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
	"github.com/grapnel-go/grapnel/toolexec/files"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("GRAPNEL_TEST_CRASH"); dir != "" {
		crash(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// tree opens a new directory with some files in it, given as name and content.
func tree(t *testing.T, c files.Config, contents ...string) (dir string, opened *files.Tree) {
	t.Helper()
	dir = t.TempDir()
	for i := 0; i < len(contents); i += 2 {
		put(t, filepath.Join(dir, contents[i]), contents[i+1])
	}
	c.Root = dir
	opened, err := files.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, opened.Close()) })
	return dir, opened
}

func put(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func get(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

var executors sync.Map // of trees: making one takes longer than using it

// call calls a tool of the tree as an agent would.
func call(t testing.TB, tree *files.Tree, tool, arguments string) *agent.ToolResult {
	t.Helper()
	made, ok := executors.Load(tree)
	if !ok {
		box, err := toolexec.NewToolbox(tree.Tools()...)
		require.NoError(t, err)
		made, _ = executors.LoadOrStore(tree, toolexec.NewExecutor(box, toolexec.Options{}))
	}
	x := made.(agent.Executor)
	p, err := x.Prepare(context.Background(), agent.State{}, &agent.ToolCall{ID: "1", Name: tool, Arguments: arguments}).Get()
	require.NoError(t, err)
	r, err := x.Execute(context.Background(), agent.State{}, p).Get()
	require.NoError(t, err)
	return r
}

// callers makes callers of the tools of a tree, which give the text of the answer.
func callers(tree *files.Tree) map[string]func(arguments string) string {
	return lo.SliceToMap(tree.Tools(), func(tool toolexec.Tool) (string, func(string) string) {
		return tool.Spec().Name, func(arguments string) string {
			body, err := tool.Prepare(arguments)
			if err != nil {
				return err.Error()
			}
			out, err := body.Run(context.Background(), toolexec.Call{})
			if err != nil {
				return err.Error()
			}
			return out.Content.Text()
		}
	})
}
