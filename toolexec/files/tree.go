package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

const (
	// defaultMaxReadBytes keeps an answer below an executor's default limit.
	defaultMaxReadBytes = 48 << 10
	// defaultMaxWriteBytes is 4 MiB.
	defaultMaxWriteBytes = 4 << 20
	// defaultMaxMatches is the maximum number of matching lines, or paths, in an answer.
	defaultMaxMatches = 200
	// defaultMaxWalk is the maximum number of files and directories that a call visits.
	defaultMaxWalk = 100_000
	// defaultSearchTimeout is how long the tools glob and grep may take.
	defaultSearchTimeout = time.Minute
)

// Config configures a Tree. Only Root is required. Limits that are zero or less mean the default.
type Config struct {
	// Root is the directory that contains all files. It must exist.
	Root string
	// ReadOnly omits the tools that write.
	ReadOnly bool
	// MaxReadBytes limits the text of one answer, without notes: 48 KiB by default.
	MaxReadBytes int
	// MaxWriteBytes is the maximum size for a file to write, edit or grep: 4 MiB by default.
	MaxWriteBytes int
	// MaxMatches limits the lines that grep returns in one answer, and the paths that glob and list_files return: 200
	// by default.
	MaxMatches int
	// MaxWalk is the number of files and directories that one call visits before it stops with a note: 100,000 by
	// default.
	MaxWalk int
	// SearchTimeout is the time limit for the tools glob and grep, because a model can write an expression that takes
	// hours. The default is one minute.
	SearchTimeout time.Duration
	// Skip names directories and files that walks skip, unless a walk begins inside one. Letter case is ignored. Nil
	// means .git; an empty list means none.
	Skip []string
	// Protect names directories and files, at any depth, that the tools do not write into. Letter case is ignored. Nil
	// means .git; an empty list means none.
	Protect []string
}

// A Tree gives access to the files below one directory. Create one with Open.
type Tree struct {
	config  Config
	root    *os.Root
	names   []string // the names of the root in absolute paths
	writing sync.Mutex
}

// Open opens the root.
func Open(c Config) (*Tree, error) {
	if c.Root == "" {
		return nil, errors.New("opening files: Root is empty: set the directory of the files")
	}
	abs, err := filepath.Abs(c.Root)
	if err != nil {
		return nil, fmt.Errorf("opening files: %w", err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("opening files: root %q: %w", c.Root, systemCause(err))
	}
	names := []string{abs}
	if actual, err := filepath.EvalSymlinks(abs); err == nil {
		names = lo.Uniq(append(names, actual))
	}
	limit := func(n *int, otherwise int) { *n = lo.Ternary(*n > 0, *n, otherwise) }
	limit(&c.MaxReadBytes, defaultMaxReadBytes)
	limit(&c.MaxWriteBytes, defaultMaxWriteBytes)
	limit(&c.MaxMatches, defaultMaxMatches)
	limit(&c.MaxWalk, defaultMaxWalk)
	c.SearchTimeout = lo.Ternary(c.SearchTimeout > 0, c.SearchTimeout, defaultSearchTimeout)
	list := func(l *[]string) { *l = lo.Ternary(*l == nil, []string{".git"}, slices.Clone(*l)) }
	list(&c.Skip)
	list(&c.Protect)
	return &Tree{config: c, root: root, names: names}, nil
}

// Close closes the root. Later calls fail.
func (t *Tree) Close() error { return t.root.Close() }

// Tools returns the tools for the tree: read_file, list_files, glob, grep and, unless the tree is read-only, write_file
// and edit_file. If a run is cut off during a call, the call can run again when the run is resumed. A repeated edit
// then reports that its text is not in the file.
func (t *Tree) Tools() []toolexec.Tool {
	return lo.Map(t.newTools(), func(tool toolexec.Tool, _ int) toolexec.Tool {
		return toolexec.WithPolicy(tool, toolexec.Policy{Doubt: toolexec.DoubtRepeat})
	})
}

func (t *Tree) newTools() []toolexec.Tool {
	search := toolexec.Policy{Timeout: t.config.SearchTimeout}
	tools := []toolexec.Tool{
		toolexec.Func("read_file", "Reads a text file, or some lines of it. What follows in brackets is not part of the file: "+
			"how much of it was shown, how to read on, and its hash.", toolFunc(t.Read)),
		toolexec.Func("list_files", "Lists a directory: paths, sizes, and where links lead. Directories end in a slash.", toolFunc(t.List)),
		toolexec.WithPolicy(toolexec.Func("glob", "Finds files by a pattern on their paths: * and ? within a name, [a-z], {a,b}, "+
			"and ** as a whole part of the path for any number of directories, as in **/*_test.go.", toolFunc(t.Glob)), search),
		toolexec.WithPolicy(toolexec.Func("grep", "Searches files line by line for a regular expression (RE2).", toolFunc(t.Grep)), search),
	}
	if t.config.ReadOnly {
		return tools
	}
	return append(tools,
		toolexec.Func("write_file", "Writes a whole file: makes it, with the directories it is in, or replaces it.", toolFunc(t.Write)),
		toolexec.Func("edit_file", "Replaces a text in a file. The text must be in the file exactly once, including white space, "+
			"unless replace_all is set.", toolFunc(t.Edit)),
	)
}

// content is a method's result that can be shown to a model.
type content interface{ Content() agent.Content }

// toolFunc converts a method to a tool's func. A problem that the model can fix becomes an answer. Only other problems
// are errors.
func toolFunc[In any, Out content](f func(context.Context, In) (Out, error)) func(context.Context, In) (toolexec.Output, error) {
	return func(ctx context.Context, in In) (toolexec.Output, error) {
		out, err := f(ctx, in)
		if bad, ok := errors.AsType[*Error](err); ok {
			return toolexec.Output{Content: agent.TextContent(bad.Error()), Failed: true}, nil
		}
		if err != nil {
			return toolexec.Output{}, err
		}
		return toolexec.Output{Content: out.Content()}, nil
	}
}
