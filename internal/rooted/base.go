package rooted

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrLink is returned for a path that leads through a link, and for anything but a regular file where a file is
// expected.
var ErrLink = errors.New("not a plain file or directory: links and pipes are not followed here: remove it")

// Base is the path of a trusted directory. Its methods take absolute paths below it.
type Base string

// parent opens the directory of a path, and returns the path's last name. With makes set, it creates missing
// directories.
func (b Base) parent(path string, makes bool) (dir *os.Root, name string, err error) {
	below, err := filepath.Rel(string(b), path)
	if err != nil || below == "." || !filepath.IsLocal(below) {
		return nil, "", &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("not below %s", string(b))}
	}
	dir, err = os.OpenRoot(string(b))
	if makes && errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(string(b), 0o700); err == nil {
			dir, err = os.OpenRoot(string(b))
		}
	}
	if err != nil {
		return nil, "", err
	}
	names := strings.Split(below, string(filepath.Separator))
	at := string(b)
	for _, name := range names[:len(names)-1] {
		at = filepath.Join(at, name)
		next, err := enter(dir, name, makes)
		_ = dir.Close() // dir was only read
		if err != nil {
			return nil, "", &fs.PathError{Op: "open", Path: at, Err: innermostError(err)}
		}
		dir = next
	}
	return dir, names[len(names)-1], nil
}

// enter opens a directory in dir. A link is an error, even if it stays inside dir.
func enter(dir *os.Root, name string, makes bool) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if makes && errors.Is(err, fs.ErrNotExist) {
		if err = dir.Mkdir(name, 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			info, err = dir.Lstat(name)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, ErrLink
	}
	return dir.OpenRoot(name)
}

// innermostError returns err without the name that os.Root has added.
func innermostError(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// do calls f with the directory of a path and its last name.
func (b Base) do(path string, makes bool, f func(dir *os.Root, name string) error) error {
	dir, name, err := b.parent(path, makes)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err = f(dir, name); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: innermostError(err)}
	}
	return nil
}

// MkdirAll creates a directory and its parents.
func (b Base) MkdirAll(path string) error {
	if filepath.Clean(path) == string(b) {
		return os.MkdirAll(path, 0o700)
	}
	return b.do(path, true, func(dir *os.Root, name string) error {
		made, err := enter(dir, name, true)
		if err != nil {
			return err
		}
		return made.Close()
	})
}

// Lstat describes the file at a path.
func (b Base) Lstat(path string) (info fs.FileInfo, err error) {
	err = b.do(path, false, func(dir *os.Root, name string) error {
		info, err = dir.Lstat(name)
		return err
	})
	return info, err
}

// Remove removes a file, a link or an empty directory.
func (b Base) Remove(path string) error {
	return b.do(path, false, func(dir *os.Root, name string) error { return dir.Remove(name) })
}

// RemoveAll removes a file, or a directory with its content.
func (b Base) RemoveAll(path string) error {
	return b.do(path, false, func(dir *os.Root, name string) error { return dir.RemoveAll(name) })
}

// Rename moves a file or a directory to another path. It creates the new path's parent directories.
func (b Base) Rename(from, to string) error {
	if err := b.MkdirAll(filepath.Dir(to)); err != nil {
		return err
	}
	return b.do(from, false, func(*os.Root, string) error { // neither path leads through a link
		common := commonDir(from, to)
		dir, _, err := b.parent(filepath.Join(common, "-"), false)
		if err != nil {
			return err
		}
		defer dir.Close()
		before, _ := filepath.Rel(common, from) // from is below common
		after, _ := filepath.Rel(common, to)
		return dir.Rename(before, after)
	})
}

// commonDir returns the directory that contains two paths.
func commonDir(a, b string) string {
	for dir := filepath.Dir(a); ; dir = filepath.Dir(dir) {
		if below, err := filepath.Rel(dir, b); err == nil && filepath.IsLocal(below) || dir == filepath.Dir(dir) {
			return dir
		}
	}
}

// ReadDir returns a directory's entries, sorted by name.
func (b Base) ReadDir(path string) (entries []fs.DirEntry, err error) {
	err = b.do(path, false, func(dir *os.Root, name string) error {
		at, err := enter(dir, name, false)
		if err != nil {
			return err
		}
		defer at.Close()
		entries, err = fs.ReadDir(at.FS(), ".")
		return err
	})
	return entries, err
}

// Open opens a regular file. With os.O_CREATE in flag, it creates a missing file and its directories.
func (b Base) Open(path string, flag int) (file *os.File, err error) {
	err = b.do(path, flag&os.O_CREATE != 0, func(dir *os.Root, name string) error {
		info, err := dir.Lstat(name)
		if err == nil && !info.Mode().IsRegular() {
			return ErrLink
		}
		file, err = dir.OpenFile(name, flag&^os.O_TRUNC|syscall.O_NONBLOCK, 0o600)
		if err != nil {
			return err
		}
		if info, err = file.Stat(); err == nil && (!info.Mode().IsRegular() || flag&(os.O_WRONLY|os.O_RDWR) != 0 && hasOtherName(info)) {
			err = ErrLink
		}
		if err == nil && flag&os.O_TRUNC != 0 {
			err = file.Truncate(0)
		}
		if err != nil {
			_ = file.Close() // nothing was written
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// TooLargeError is returned for a file that exceeds the size limit.
type TooLargeError struct {
	Path string
	Most int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s has more than %d bytes", e.Path, e.Most)
}

// ReadFile returns a regular file's content. It returns a *TooLargeError for a file with more than most bytes.
func (b Base) ReadFile(path string, most int64) ([]byte, error) {
	file, err := b.Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		return data[:most], &TooLargeError{path, most}
	}
	return data, err
}

// WriteFile atomically replaces the file at a path and creates its directories. Only the user may read the file.
func (b Base) WriteFile(path string, data []byte) error { return b.write(path, data, 0o600) }

// WriteScript works like WriteFile for a file that the user may execute.
func (b Base) WriteScript(path string, data []byte) error { return b.write(path, data, 0o700) }

func (b Base) write(path string, data []byte, mode fs.FileMode) error {
	return b.do(path, true, func(dir *os.Root, name string) error {
		temporary := "." + name + "-" + rand.Text()
		file, err := dir.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		_, err = file.Write(data)
		if err = errors.Join(err, file.Close()); err == nil {
			err = dir.Rename(temporary, name)
		}
		if err != nil {
			_ = dir.Remove(temporary) // the first error is returned
		}
		return err
	})
}
