package files

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
)

// deepest is the maximum depth of a walk. The cost of opening a path grows with its length.
const deepest = 128

// walk visits everything below a directory, without following links.
type walk struct {
	tree       *Tree
	left       int  // how many entries it can still visit
	unreadable int  // directories and files that could not be read
	cut        bool // the walk stopped before all entries were visited
	bottomless bool // the walk has no limit but the maximum depth
	deeper     bool // there were entries below the maximum depth
}

func (t *Tree) walk() *walk { return &walk{tree: t, left: t.config.MaxWalk} }

// below calls visit for a directory's entries in path order, down to depth levels. 0 means all levels. It stops at the
// first error from visit, or when ctx is done. It counts subdirectories that cannot be read.
func (w *walk) below(ctx context.Context, dir string, depth int, visit func(name string, d fs.DirEntry) error) error {
	list, err := w.listDir(ctx, dir)
	if err != nil {
		return err
	}
	if depth <= 0 || depth > deepest {
		depth, w.bottomless = deepest, true
	}
	return w.through(ctx, dir, list, depth, visit)
}

func (w *walk) through(
	ctx context.Context, dir string, list []fs.DirEntry, depth int, visit func(name string, d fs.DirEntry) error,
) error {
	for _, d := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.left == 0 {
			w.cut = true
			return nil
		}
		w.left--
		if hasNamedPart(d.Name(), w.tree.config.Skip) {
			continue
		}
		name := path.Join(dir, d.Name())
		if err := visit(name, d); err != nil {
			return err
		}
		if !d.IsDir() {
			continue
		}
		if depth <= 1 {
			w.deeper = w.bottomless
			continue
		}
		inner, err := w.listDir(ctx, name)
		if err != nil {
			w.unreadable++ // or ctx is done, which the next iteration finds
			continue
		}
		if err := w.through(ctx, name, inner, depth-1, visit); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// listDir returns a directory's entries. They are sorted so that all paths come in order: a.txt before a/b.
func (w *walk) listDir(ctx context.Context, dir string) ([]fs.DirEntry, error) {
	list, more, err := w.tree.entries(ctx, dir, w.left)
	w.cut = w.cut || more
	key := func(d fs.DirEntry) string { return d.Name() + lo.Ternary(d.IsDir(), "/", "") }
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(key(a), key(b)) })
	return list, err
}

// notes returns the limits that the walk reached, for a reader of the results.
func (w *walk) notes() []string {
	var notes []string
	if w.cut {
		notes = append(notes, "stopped after looking at "+strconv.Itoa(w.tree.config.MaxWalk)+" files and directories: use a deeper path")
	}
	if w.deeper {
		notes = append(notes, "files more than "+strconv.Itoa(deepest)+" levels down were not searched: use a deeper path")
	}
	if w.unreadable > 0 {
		notes = append(notes, strconv.Itoa(w.unreadable)+" could not be read")
	}
	return notes
}
