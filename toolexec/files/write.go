package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
)

// WriteArgs says what to write.
type WriteArgs struct {
	Path    string `json:"path" jsonschema:"the file, relative to the root"`
	Content string `json:"content" jsonschema:"all that is to be in the file"`
	IfHash  string `json:"if_hash,omitempty" jsonschema:"write only if the file still has this hash, which read_file told"`
}

// Written is what became of a file.
type Written struct {
	// Path is the file, relative to the root and without links.
	Path string
	// Created says that there was no such file before.
	Created bool
	// Size is the file's, in bytes, and Before what it was.
	Size, Before int
	// Lines is where an edit replaced something, counted from 1 in the file as it was; nil for a file written whole.
	Lines []int
	// Hash is the file's.
	Hash string
}

// Write writes a whole file, and makes the directories that it is in.
func (t *Tree) Write(ctx context.Context, in WriteArgs) (Written, error) {
	if len(in.Content) > t.config.MaxWriteBytes {
		return Written{}, t.tooBig("write", in.Path, len(in.Content))
	}
	return t.change(ctx, "write", in.Path, in.IfHash, func(string, bool) (string, []int, error) { return in.Content, nil, nil })
}

// change puts into a file what make makes of its content. No other change of the tree goes on meanwhile.
func (t *Tree) change(
	ctx context.Context, op, given, ifHash string, make func(old string, exists bool) (string, []int, error),
) (Written, error) {
	name, err := t.fileName(op, given)
	if err != nil {
		return Written{}, err
	}
	if t.config.ReadOnly {
		return Written{}, problem(op, given, "the files are read-only")
	}
	t.writing.Lock()
	defer t.writing.Unlock()
	if ctx.Err() != nil {
		return Written{}, fmt.Errorf("%s %q: %w", op, given, context.Cause(ctx))
	}
	target, err := t.target(name, op == "write" && ifHash == "")
	if err != nil {
		return Written{}, t.missed(ctx, failed(op, given, err), name)
	}
	defer target.dir.Close()
	old, exists, err := target.content(t.config.MaxWriteBytes, op == "edit" || ifHash != "")
	if err != nil {
		return Written{}, failed(op, given, err)
	}
	if ifHash != "" && (!exists || hashOf(old) != ifHash) {
		return Written{}, problem(op, given, "the file was changed since it had the hash %q: read it again", ifHash)
	}
	content, lines, err := make(old, exists)
	if err != nil {
		return Written{}, t.missed(ctx, failed(op, given, err), name)
	}
	if len(content) > t.config.MaxWriteBytes {
		return Written{}, t.tooBig(op, given, len(content))
	}
	if err := target.put(content); err != nil {
		return Written{}, failed(op, given, err)
	}
	w := Written{Path: target.name, Created: !exists, Size: len(content), Lines: lines, Hash: hashOf(content)}
	if exists {
		w.Before = int(target.info.Size())
	}
	return w, nil
}

func (t *Tree) tooBig(op, given string, size int) error {
	return problem(op, given, "it would be %s, and files of up to %d are written", count(size, "byte"), t.config.MaxWriteBytes)
}

// target is a file that is to be written, in a directory that is held open: whatever the tree looks like later, all
// happens there.
type target struct {
	dir  *os.Root
	name string      // relative to the tree's root, without links
	info fs.FileInfo // of the file that is there; nil if none is
}

// target finds where a name leads, and makes the directories on the way there if create is set.
func (t *Tree) target(name string, create bool) (*target, error) {
	actual, err := t.resolve(name)
	if err != nil {
		return nil, err
	}
	if actual == "." {
		return nil, problem("", name, "it is a directory, not a file")
	}
	if named(name, t.config.Protect) || named(actual, t.config.Protect) {
		return nil, problem("", name, "nothing is written to %s", strings.Join(t.config.Protect, ", "))
	}
	parent := path.Dir(actual)
	if create && parent != "." {
		if err := t.root.MkdirAll(parent, 0o777); err != nil {
			return nil, err
		}
	}
	dir, err := t.root.OpenRoot(parent + "/.") // the dot keeps a pipe by that name from being opened
	if err != nil {
		return nil, err
	}
	return &target{dir: dir, name: actual}, nil
}

// content looks at the file that is there, makes sure that it may be written, and reads it if that is wanted.
func (w *target) content(most int, wanted bool) (text string, exists bool, err error) {
	base := path.Base(w.name)
	if link, err := w.dir.Lstat(base); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		return "", false, problem("", w.name, "it became a link while it was being looked at: try again")
	}
	f, info, err := openIn(w.dir, base, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	w.info = info
	if !wanted {
		return "", true, nil
	}
	all, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(all) > most {
		err = problem("", w.name, "it is a file of %s, and files of up to %d are edited", count(info.Size(), "byte"), most)
	}
	return string(all), true, err
}

// put puts a new file in the place of what is there, if that is still the same. Until it is whole it has another name.
func (w *target) put(content string) (err error) {
	base, temporary := path.Base(w.name), ".grapnel-"+rand.Text()+".tmp"
	mode := fs.FileMode(0o666)
	if w.info != nil {
		mode = w.info.Mode().Perm()
	}
	f, err := w.dir.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = w.dir.Remove(temporary)
		}
	}()
	if w.info != nil {
		keepOwner(f, w.info)
		if err := f.Chmod(mode); err != nil { // what the umask took
			return err
		}
	}
	if _, err := f.WriteString(content); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := w.unchanged(base); err != nil {
		return err
	}
	if err := w.dir.Rename(temporary, base); err != nil {
		return err
	}
	if d, err := w.dir.Open("."); err == nil { // the name is safe only when the directory is
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

// unchanged says what is wrong if what is there is not what was there when it was looked at.
func (w *target) unchanged(base string) error {
	now, err := w.dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist) && w.info == nil:
		return nil
	case err == nil && w.info != nil && os.SameFile(now, w.info) && now.Size() == w.info.Size() && now.ModTime().Equal(w.info.ModTime()):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return problem("", w.name, "somebody else changed it at the same time: read it again")
}

// Content is a line on what became of the file.
func (w Written) Content() agent.Content {
	name := shown(w.Path)
	switch {
	case w.Lines != nil:
		return agent.TextContent(fmt.Sprintf("edited %s: %s, at %s; %s, were %d; hash %s",
			name, count(len(w.Lines), "replacement"), linesText(w.Lines), count(w.Size, "byte"), w.Before, w.Hash))
	case w.Created:
		return agent.TextContent(fmt.Sprintf("made %s: %s; hash %s", name, count(w.Size, "byte"), w.Hash))
	}
	return agent.TextContent(fmt.Sprintf("wrote %s: %s, were %d; hash %s", name, count(w.Size, "byte"), w.Before, w.Hash))
}
