//go:build unix

package files

import (
	"io/fs"
	"os"
	"syscall"
)

// nonblock keeps opening a pipe from waiting for a process at its other end. It means nothing to regular files.
const nonblock = syscall.O_NONBLOCK

// keepOwner gives a file the owner of another, where the process may; else it stays the process's own.
func keepOwner(f *os.File, old fs.FileInfo) {
	if was, ok := old.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(was.Uid), int(was.Gid))
	}
}
