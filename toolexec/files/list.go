package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
)

// ListArgs are the arguments of List.
type ListArgs struct {
	Path  string `json:"path,omitempty" jsonschema:"the directory, relative to the root; the root itself if left out"`
	Depth int    `json:"depth,omitempty" jsonschema:"how many levels to list; 1 if left out"`
}

// Entry describes a file, directory, link or other entry of a directory.
type Entry struct {
	// Path is relative to the root.
	Path string
	// Mode is the type: directory, link, regular file or a special file.
	Mode fs.FileMode
	// Size is the size of a regular file in bytes.
	Size int64
	// Target is a link's target, as written in the link.
	Target string
}

// Listing holds the entries that were found, in path order, with notes on the search.
type Listing struct {
	// Entries are the entries that fit into an answer. More is the number of further entries.
	Entries []Entry
	More    int
	// Notes describe what was not searched.
	Notes []string

	bytes int
}

// List lists a directory.
func (t *Tree) List(ctx context.Context, in ListArgs) (Listing, error) {
	if in.Depth < 0 {
		return Listing{}, problem("list", in.Path, "depth must be 1 or more, or omitted")
	}
	return t.find(ctx, "list", in.Path, max(1, in.Depth), func(string, fs.DirEntry) bool { return true })
}

// find lists the entries below a directory for which wanted returns true.
func (t *Tree) find(ctx context.Context, op, dir string, depth int, wanted func(name string, d fs.DirEntry) bool) (Listing, error) {
	name, err := t.name(op, dir)
	if err != nil {
		return Listing{}, err
	}
	found, w := Listing{bytes: t.config.MaxReadBytes}, t.walk()
	err = w.below(ctx, name, depth, func(name string, d fs.DirEntry) error {
		switch {
		case !wanted(name, d):
		case len(found.Entries) == t.config.MaxMatches || found.bytes < 0:
			found.More++
		default:
			e := t.entry(name, d)
			found.bytes -= len(e.String()) + 1
			found.Entries = append(found.Entries, e)
		}
		return nil
	})
	if err != nil {
		return Listing{}, t.searchError(ctx, op, dir, name, err)
	}
	found.Notes = w.notes()
	return found, nil
}

// searchError returns a search's error.
func (t *Tree) searchError(ctx context.Context, op, given, name string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %q: %w", op, given, context.Cause(ctx))
	}
	e := systemError(op, given, err)
	if errors.Is(err, fs.ErrNotExist) {
		return t.suggestName(ctx, e, name)
	}
	return e
}

func (t *Tree) entry(name string, d fs.DirEntry) Entry {
	e := Entry{Path: name, Mode: d.Type()}
	if d.Type()&fs.ModeSymlink != 0 {
		e.Target, _ = t.root.Readlink(name)
	} else if info, err := t.root.Lstat(name); err == nil { // through the root, because d.Info does not use it in every Go version
		e.Size = info.Size()
	}
	return e
}

// String returns a line that describes the entry.
func (e Entry) String() string {
	switch {
	case e.Mode.IsDir():
		return showPath(e.Path) + "/"
	case e.Mode&fs.ModeSymlink != 0:
		return showPath(e.Path) + " -> " + showPath(e.Target)
	case e.Mode.IsRegular():
		return fmt.Sprintf("%s (%s)", showPath(e.Path), countNoun(e.Size, "byte"))
	}
	return fmt.Sprintf("%s (%s)", showPath(e.Path), describeMode(e.Mode))
}

// Content returns a line for each entry, and a note about missing entries.
func (l Listing) Content() agent.Content {
	var b strings.Builder
	for _, e := range l.Entries {
		b.WriteString(e.String() + "\n")
	}
	notes := l.Notes
	switch {
	case l.More > 0:
		notes = append([]string{fmt.Sprintf("and %d more: use a path or pattern that matches fewer", l.More)}, notes...)
	case len(l.Entries) == 0:
		notes = append([]string{"nothing found"}, notes...)
	case len(notes) == 0:
		return agent.TextContent(strings.TrimSuffix(b.String(), "\n"))
	}
	return withNotes(b.String(), notes...)
}
