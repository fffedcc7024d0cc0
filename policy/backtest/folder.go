package backtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// folder is the files of a folder. Opening one does not wait: a pipe without a writer is empty.
type folder string

// Open opens a file of the folder, or of one within.
func (f folder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	file, err := os.OpenFile(filepath.Join(string(f), filepath.FromSlash(name)), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the path; and no *os.File that is nil
	}
	return file, nil
}
