package files

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/samber/lo"
)

// name converts a path to a name for os.Root: clean, relative, with slashes.
func (t *Tree) name(op, given string) (string, error) {
	if strings.ContainsRune(given, 0) {
		return "", problem(op, given, "a path has no NUL bytes")
	}
	p := filepath.Clean(given)
	if filepath.IsAbs(p) {
		for _, root := range t.names {
			if rel, err := filepath.Rel(root, p); err == nil && filepath.IsLocal(rel) {
				return filepath.ToSlash(rel), nil
			}
		}
	}
	if !filepath.IsLocal(p) {
		return "", problem(op, given, "it is outside of the root: paths are relative to the root, such as %q", "dir/file.txt")
	}
	return filepath.ToSlash(p), nil
}

// fileName works like name, for a path that must be a file.
func (t *Tree) fileName(op, given string) (string, error) {
	switch {
	case given == "":
		return "", problem(op, given, "the path is empty: name a file")
	case strings.HasSuffix(filepath.ToSlash(given), "/"):
		return "", problem(op, given, "a path that ends in a slash is a directory: name a file")
	}
	return t.name(op, given)
}

// resolve returns a name without links: it follows the links in the name's existing part. The result is used only for
// checks. os.Root confines access regardless of it.
func (t *Tree) resolve(name string) (string, error) {
	done, todo := ".", strings.Split(name, "/")
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		if part == ".." && done == "." {
			return "", problem("", name, "it leads out of the root: only files below the root can be reached")
		}
		at := path.Join(done, part)
		target, err := t.root.Readlink(at)
		if part == ".." || err != nil { // not a link, or missing
			done = at
			continue
		}
		if links++; links > 40 {
			return "", problem("", name, "it leads through too many links")
		}
		if filepath.IsAbs(target) || strings.HasPrefix(target, "/") {
			return "", problem("", name, "it leads through a link with an absolute target, %q: that is out of the root", target)
		}
		todo = append(strings.Split(filepath.ToSlash(target), "/"), todo...)
	}
	return done, nil
}

// hasNamedPart reports whether a part of the path is one of the names, ignoring letter case.
func hasNamedPart(p string, names []string) bool {
	return lo.SomeBy(strings.Split(p, "/"), func(part string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(part, name) })
	})
}

// suggestName adds existing files with similar names to an error about a missing file.
func (t *Tree) suggestName(ctx context.Context, err error, name string) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || !errors.Is(e, fs.ErrNotExist) {
		return err
	}
	parent, base := path.Split(name)
	parent = path.Clean(parent)
	list, _, dirErr := t.entries(ctx, parent, 1000)
	if dirErr != nil && parent != "." {
		e.Problem += "; nor is there a directory " + quoteText(parent)
	}
	near := lo.FilterMap(list, func(d fs.DirEntry, _ int) (string, bool) {
		return path.Join(parent, d.Name()), isAlike(base, d.Name())
	})
	if len(near) == 0 { // look for the same name in other directories
		w := &walk{tree: t, left: 2000}
		_ = w.below(ctx, ".", 0, func(name string, _ fs.DirEntry) error {
			if strings.EqualFold(path.Base(name), base) {
				near = append(near, name)
			}
			return nil
		})
	}
	if len(near) > 0 {
		near = lo.Map(near[:min(3, len(near))], func(name string, _ int) string { return quoteText(name) })
		e.Problem += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return e
}

// isAlike reports whether one name is probably a misspelling of the other. One contains the other, or they differ in up
// to a third of their letters. Two swapped letters count as one difference.
func isAlike(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if min(len(a), len(b)) >= 3 && (strings.Contains(a, b) || strings.Contains(b, a)) {
		return true
	}
	if len(a) > 64 || len(b) > 64 {
		return false
	}
	rows := [][]int{nil, lo.Range(len(b) + 1)}
	for i := range len(a) {
		above, row := rows[i+1], []int{i + 1}
		for j := range len(b) {
			slips := min(above[j]+lo.Ternary(a[i] == b[j], 0, 1), row[j]+1, above[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				slips = min(slips, rows[i][j-1]+1)
			}
			row = append(row, slips)
		}
		rows = append(rows, row)
	}
	return rows[len(a)+1][len(b)] <= len(a)/3
}

// showPath returns a path for display: quoted if it could be misread.
func showPath(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}
