package files

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// target is a file to write. Its directory is held open, so that later tree changes have no effect.
type target struct {
	dir  *os.Root
	name string      // relative to the tree's root, without links
	info fs.FileInfo // of the existing file, or nil
}

// target resolves a name to its file. If create is set, it creates missing directories.
func (t *Tree) target(name string, create bool) (*target, error) {
	actual, err := t.resolve(name)
	if err != nil {
		return nil, err
	}
	if actual == "." {
		return nil, problem("", name, "it is a directory, not a file")
	}
	if hasNamedPart(name, t.config.Protect) || hasNamedPart(actual, t.config.Protect) {
		return nil, problem("", name, "writing to %s is not allowed", strings.Join(t.config.Protect, ", "))
	}
	parent := path.Dir(actual)
	if create && parent != "." {
		if err := t.root.MkdirAll(parent, 0o777); err != nil {
			return nil, err
		}
	}
	dir, err := t.root.OpenRoot(parent + "/.") // the dot prevents opening a pipe by that name
	if err != nil {
		return nil, err
	}
	return &target{dir: dir, name: actual}, nil
}

// readTarget checks that the existing file may be written, and reads it if wanted is set.
func (w *target) readTarget(most int, wanted bool) (text string, exists bool, err error) {
	base := path.Base(w.name)
	if link, err := w.dir.Lstat(base); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		return "", false, problem("", w.name, "it became a link during the check: try again")
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
		err = problem("", w.name, "it is a file of %s, and files of up to %d are edited", countNoun(info.Size(), "byte"), most)
	}
	return string(all), true, err
}

// put replaces the existing file with a new one if it is unchanged. The new file has a temporary name until it is
// complete.
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
		if err := f.Chmod(mode); err != nil { // bits that the umask removed
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
	if err := w.checkUnchanged(base); err != nil {
		return err
	}
	if err := w.dir.Rename(temporary, base); err != nil {
		return err
	}
	if d, err := w.dir.Open("."); err == nil { // the rename is durable only when the directory is synced
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

// checkUnchanged returns an error if the existing file differs from the checked one.
func (w *target) checkUnchanged(base string) error {
	now, err := w.dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist) && w.info == nil:
		return nil
	case err == nil && w.info != nil && os.SameFile(now, w.info) && now.Size() == w.info.Size() && now.ModTime().Equal(w.info.ModTime()):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return problem("", w.name, "another process changed it at the same time: read it again")
}
