package kit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/toolexec/files"
)

// memoryError is a problem that the model can act on.
type memoryError struct{ text string }

func (e *memoryError) Error() string { return e.text }

func refuse(format string, args ...any) error { return &memoryError{fmt.Sprintf(format, args...)} }

// memoryDir is the directory, open for one command.
type memoryDir struct {
	*memory
	tree *files.Tree
	dir  *os.Root
}

func (m *memory) open() (*memoryDir, error) {
	tree, err := files.Open(files.Config{
		Root: m.root, MaxReadBytes: m.fileBytes, MaxWriteBytes: m.fileBytes, Protect: []string{},
	})
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(m.root)
	if err != nil {
		_ = tree.Close()
		return nil, err
	}
	return &memoryDir{m, tree, dir}, nil
}

func (d *memoryDir) close() { _, _ = d.tree.Close(), d.dir.Close() }

// run runs a command that has all its arguments.
func (d *memoryDir) run(ctx context.Context, in memoryArgs) (string, error) {
	given := lo.FromPtr(in.Path)
	if in.Command == "rename" {
		given = *in.OldPath
	}
	name, err := placeOf(given)
	if err != nil {
		return "", err
	}
	if name == "." && in.Command != "view" {
		return "", refuse("Error: %s is the whole memory: name a file or directory in it", memoryRoot)
	}
	var text string
	switch in.Command {
	case "view":
		text, err = d.view(ctx, name, in.ViewRange)
	case "create":
		text, err = d.create(ctx, name, *in.FileText)
	case "str_replace":
		text, err = d.replace(ctx, name, *in.OldStr, lo.FromPtr(in.NewStr))
	case "insert":
		text, err = d.insert(ctx, name, *in.InsertLine, *in.InsertText)
	case "delete":
		text, err = d.remove(name)
	case "rename":
		text, err = d.rename(name, *in.NewPath)
	}
	return text, describeFileError(name, err)
}

// memoryRoot is the name of the directory in paths.
const memoryRoot = "/memories"

// placeOf returns a path relative to the directory.
func placeOf(given string) (string, error) {
	plain := strings.TrimSuffix(given, "/")
	if plain == memoryRoot {
		return ".", nil
	}
	name, ok := strings.CutPrefix(plain, memoryRoot+"/")
	if !ok {
		return "", refuse("Error: the path %q is not in the memory: paths begin with %s/", given, memoryRoot)
	}
	odd := func(r rune) bool { return r == '\\' || r == unicode.ReplacementChar || unicode.IsControl(r) }
	hidden := func(part string) bool { return strings.HasPrefix(part, ".") }
	if path.Clean(name) != name || !filepath.IsLocal(filepath.FromSlash(name)) ||
		strings.ContainsFunc(name, odd) || slices.ContainsFunc(strings.Split(name, "/"), hidden) {
		return "", refuse("Error: the path %q is not allowed: plain names with slashes between them, none of which begins with a dot", given)
	}
	return name, nil
}

// shownPath returns the model's path for a name.
func shownPath(name string) string { return path.Join(memoryRoot, name) }

// describeFileError returns a file error whose text helps the model.
func describeFileError(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return refuse("The path %s does not exist. Please provide a valid path.", shownPath(name))
	}
	if e, ok := errors.AsType[*files.Error](err); ok {
		return refuse("Error: %s: %s", shownPath(name), e.Problem)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return refuse("Error: %s: %v", shownPath(name), e.Err)
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return refuse("Error: %s: %v", shownPath(name), e.Err)
	}
	return err
}

// memoryEntry is a file or directory.
type memoryEntry struct {
	name string
	size int64 // for a directory, the size of all its files
	dir  bool
}

// String returns a line that describes the entry, its size first.
func (e memoryEntry) String() string { return bytesText(e.size) + "\t" + shownPath(e.name) }

func bytesText(n int64) string {
	const k = 1 << 10
	switch {
	case n < k:
		return fmt.Sprintf("%dB", n)
	case n < k*k:
		return fmt.Sprintf("%.1fK", float64(n)/k)
	}
	return fmt.Sprintf("%.1fM", float64(n)/(k*k))
}

// mostEntries limits how many files and directories a command visits. If the directory has more, the command fails, so
// that it does not become slow.
const mostEntries = 10_000

// entries returns everything below a directory except hidden files, sorted by path. Links are not followed.
func (d *memoryDir) entries(ctx context.Context, name string) (all []memoryEntry, err error) {
	err = fs.WalkDir(d.dir.FS(), name, func(at string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case at == name:
			return nil
		case strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules":
			return lo.Ternary(e.IsDir(), fs.SkipDir, nil)
		case len(all) == mostEntries:
			return refuse("Error: there are more than %d files and directories in the memory: a person must make room in %s", mostEntries, memoryRoot)
		case e.IsDir():
			all = append(all, memoryEntry{name: at, dir: true})
		case e.Type().IsRegular():
			info, err := d.dir.Lstat(at)
			if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
				return nil
			} else if err != nil {
				return err
			}
			all = append(all, memoryEntry{name: at, size: info.Size()})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].dir {
			all[i].size = totalSize(all, all[i].name+"/")
		}
	}
	slices.SortFunc(all, func(a, b memoryEntry) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

// totalSize returns the total size of the files whose names have the prefix.
func totalSize(all []memoryEntry, prefix string) int64 {
	return lo.SumBy(all, func(e memoryEntry) int64 {
		return lo.Ternary(!e.dir && strings.HasPrefix(e.name, prefix), e.size, 0)
	})
}

func sortedAnd(words []string) string {
	slices.Sort(words)
	return strings.Join(words, " and ")
}
