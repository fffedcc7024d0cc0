//go:build unix

package files

import (
	"io/fs"
	"os"
	"syscall"
)

// nonblock makes opening a pipe return without waiting for a process at its other end. It has no effect on regular
// files.
const nonblock = syscall.O_NONBLOCK

// keepOwner gives a file the old file's owner, if the process is allowed to. Otherwise the process's user owns it.
func keepOwner(f *os.File, old fs.FileInfo) {
	if was, ok := old.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(was.Uid), int(was.Gid))
	}
}
