//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package agents

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped drops unread input of a terminal.
func discardTyped(f *os.File) {
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, unix.TCIFLUSH) // a file that is not a terminal has nothing to drop
}
