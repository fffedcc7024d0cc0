package kit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/toolexec/files"
)

// view shows a file with numbered lines, or the entries of a directory.
func (d *memoryDir) view(ctx context.Context, name string, lines []int) (string, error) {
	info, err := d.dir.Stat(name)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		if lines != nil {
			return "", refuse("Error: %s is a directory: view_range is for files", shownPath(name))
		}
		return d.viewDir(ctx, name)
	}
	args := files.ReadArgs{Path: name}
	if lines != nil {
		first, last := lines[0], lines[1]
		if first < 1 || last != -1 && last < first {
			return "", refuse("Error: Invalid `view_range` parameter: [%d, %d]. Lines are counted from 1, and the last is not before the first", first, last)
		}
		args.Offset = first
		args.Limit = lo.Ternary(last == -1, 0, last-first+1)
	}
	e, err := d.tree.Read(ctx, args)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Here's the content of %s with line numbers:", shownPath(name))
	for i, line := range linesOf(e.Text) {
		fmt.Fprintf(&b, "\n%6d\t%s", e.First+i, strings.TrimSuffix(line, "\n"))
	}
	switch {
	case e.Last == 0:
		b.WriteString("\n[the file is empty]")
	case e.More || e.Cut:
		fmt.Fprintf(&b, "\n[the file goes on: see view_range]")
	}
	return b.String(), nil
}

func (d *memoryDir) viewDir(ctx context.Context, name string) (string, error) {
	all, err := d.entries(ctx, name)
	if err != nil {
		return "", err
	}
	prefix := lo.Ternary(name == ".", "", name+"/")
	near := lo.Filter(all, func(e memoryEntry, _ int) bool {
		return strings.Count(strings.TrimPrefix(e.name, prefix), "/") < 2
	})
	near = append([]memoryEntry{{name, totalSize(all, prefix), true}}, near...)
	lines := lo.Map(near, func(e memoryEntry, _ int) string { return e.String() })
	return fmt.Sprintf("Here're the files and directories up to 2 levels deep in %s, excluding hidden items and node_modules:\n%s",
		shownPath(name), strings.Join(lines, "\n")), nil
}

// linesOf returns a text's lines, each with a line end. It adds a missing line end to the last line.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n")+"\n", "\n")
	return lines[:len(lines)-1] // without the empty text after the last line end
}

func (d *memoryDir) create(ctx context.Context, name, text string) (string, error) {
	switch _, err := d.dir.Lstat(name); {
	case err == nil:
		return "", refuse("Error: File %s already exists", shownPath(name))
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if err := d.put(ctx, name, text, files.Excerpt{}); err != nil {
		return "", err
	}
	return "File created successfully at: " + shownPath(name), nil
}

// put writes or replaces a file, within the limits.
func (d *memoryDir) put(ctx context.Context, name, text string, old files.Excerpt) error {
	if len(text) > d.fileBytes {
		return refuse("Error: %s would have %d bytes, and a file of the memory has %d at most: write less, or into several files",
			shownPath(name), len(text), d.fileBytes)
	}
	all, err := d.entries(ctx, ".")
	if err != nil {
		return err
	}
	count := lo.CountBy(all, func(e memoryEntry) bool { return !e.dir })
	switch size := totalSize(all, "") - old.Size + int64(len(text)); {
	case old.Hash == "" && count >= d.files:
		return refuse("Error: the memory has %d files, which is as many as it may have: delete files that you no longer need, or add to an existing one", count)
	case size > d.totalBytes && int64(len(text)) > old.Size:
		return refuse("Error: the memory would have %d bytes, and it has %d at most: delete files that you no longer need", size, d.totalBytes)
	}
	_, err = d.tree.Write(ctx, files.WriteArgs{Path: name, Content: text, IfHash: old.Hash})
	return err
}

// load reads a whole file that is to be changed.
func (d *memoryDir) load(ctx context.Context, name string) (files.Excerpt, error) {
	e, err := d.tree.Read(ctx, files.ReadArgs{Path: name})
	switch {
	case err != nil:
		return e, err
	case e.More || e.Cut || e.Hash == "":
		return e, refuse("Error: %s is too large to be changed: it has %d bytes, and a file of the memory has %d at most",
			shownPath(name), e.Size, d.fileBytes)
	case e.CRLF > 0 || e.Strange > 0:
		return e, refuse("Error: %s was not written by this tool and contains bytes that cannot be shown: copy its text to a new file", shownPath(name))
	}
	return e, nil
}

func (d *memoryDir) replace(ctx context.Context, name, from, to string) (string, error) {
	if from == "" {
		return "", refuse("Error: old_str is empty: use insert to add text to a file")
	}
	e, err := d.load(ctx, name)
	if err != nil {
		return "", err
	}
	at := strings.Index(e.Text, from)
	if at < 0 {
		return "", refuse("No replacement was performed, old_str `%s` did not appear verbatim in %s.", from, shownPath(name))
	}
	if lines := linesWith(e.Text, from); len(lines) > 1 {
		return "", refuse("No replacement was performed. Multiple occurrences of old_str `%s` in lines: %s. Please ensure it is unique",
			from, strings.Join(lines, ", "))
	}
	text := e.Text[:at] + to + e.Text[at+len(from):]
	if err := d.put(ctx, name, text, e); err != nil {
		return "", err
	}
	return "The memory file has been edited.\n" + showAround(text, strings.Count(text[:at], "\n"), strings.Count(to, "\n")), nil
}

// linesWith returns the lines in which a text begins, one for each occurrence. It includes overlapping occurrences, up
// to the number that is shown.
func linesWith(text, part string) (lines []string) {
	const told = 20
	for from := 0; len(lines) < told; {
		i := strings.Index(text[from:], part)
		if i < 0 {
			break
		}
		lines = append(lines, strconv.Itoa(strings.Count(text[:from+i], "\n")+1))
		from += i + 1
	}
	return lines
}

// showAround shows a text's lines around a position.
func showAround(text string, line, more int) string {
	const margin = 3
	lines := linesOf(text)
	first, last := max(0, line-margin), min(len(lines), line+more+margin+1)
	return strings.Join(lo.Map(lines[first:max(first, last)], func(l string, i int) string {
		return fmt.Sprintf("%6d\t%s", first+i+1, strings.TrimSuffix(l, "\n"))
	}), "\n")
}

func (d *memoryDir) insert(ctx context.Context, name string, line int, text string) (string, error) {
	e, err := d.load(ctx, name)
	if err != nil {
		return "", err
	}
	lines := linesOf(e.Text)
	if line < 0 || line > len(lines) {
		return "", refuse("Error: Invalid `insert_line` parameter: %d. It should be within the range of lines of the file: [0, %d]", line, len(lines))
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	whole := strings.Join(lines[:line], "") + text + strings.Join(lines[line:], "")
	if err := d.put(ctx, name, whole, e); err != nil {
		return "", err
	}
	return fmt.Sprintf("The file %s has been edited.", shownPath(name)), nil
}

func (d *memoryDir) remove(name string) (string, error) {
	if _, err := d.dir.Lstat(name); err != nil { // RemoveAll does not report a missing file
		return "", err
	}
	if err := d.dir.RemoveAll(name); err != nil {
		return "", err
	}
	return "Successfully deleted " + shownPath(name), nil
}

func (d *memoryDir) rename(from, given string) (string, error) {
	to, err := placeOf(given)
	if err != nil {
		return "", err
	}
	if _, err := d.dir.Lstat(from); err != nil {
		return "", err
	}
	switch _, err := d.dir.Lstat(to); {
	case err == nil:
		return "", refuse("Error: The destination %s already exists", shownPath(to))
	case strings.HasPrefix(to, from+"/"):
		return "", refuse("Error: %s cannot be moved into itself", shownPath(from))
	case !errors.Is(err, fs.ErrNotExist):
		return "", describeFileError(to, err)
	}
	if parent := path.Dir(to); parent != "." {
		if err := d.dir.MkdirAll(parent, 0o700); err != nil {
			return "", describeFileError(to, err)
		}
	}
	if err := d.dir.Rename(from, to); err != nil {
		return "", describeFileError(to, err)
	}
	return fmt.Sprintf("Successfully renamed %s to %s", shownPath(from), shownPath(to)), nil
}
