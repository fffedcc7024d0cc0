package files

import (
	"context"
	"io"
	"io/fs"
	"os"

	"github.com/samber/lo"
)

// openIn opens a regular file or a directory, and nothing else. It checks the file before opening it, because opening a
// device can have side effects. It checks again afterwards, because the file can have been replaced in between. It
// opens the file without waiting for another process, in case a pipe has replaced it.
func openIn(root *os.Root, name string, flag int, want fs.FileMode) (*os.File, fs.FileInfo, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if err := isA(want, info); err != nil {
		return nil, nil, err
	}
	f, err := root.OpenFile(name, flag|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = f.Stat()
	if err == nil {
		err = isA(want, info)
	}
	if err == nil && isKernelFile(f) {
		err = problem("", name, "it is one of the kernel's own files, which are not opened")
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func isA(want fs.FileMode, info fs.FileInfo) error {
	got := info.Mode().Type()
	switch {
	case got == want:
		return nil
	case got.IsDir():
		return problem("", info.Name(), "it is a directory, not a file")
	case got.IsRegular():
		return problem("", info.Name(), "it is a file, not a directory")
	}
	return problem("", info.Name(), "it is a %s: only regular files and directories are opened", describeMode(got))
}

// describeMode names the type of an entry that is neither a regular file nor a directory.
func describeMode(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// entries returns a directory's entries, unordered. more reports that there are more than most.
func (t *Tree) entries(ctx context.Context, dir string, most int) (list []fs.DirEntry, more bool, err error) {
	f, _, err := openIn(t.root, dir, os.O_RDONLY, fs.ModeDir)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	for len(list) <= most {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		some, err := f.ReadDir(256)
		list = append(list, some...)
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, false, err
		}
	}
	return lo.Slice(list, 0, most), len(list) > most, nil
}

// until is a reader that returns an error when ctx is done.
type until struct {
	ctx context.Context //nolint:containedctx // it lives as long as one call of a method
	r   io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
