package agents

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped drops unread input of a terminal.
func discardTyped(f *os.File) {
	_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) // a file that is not a terminal has nothing to drop
}
