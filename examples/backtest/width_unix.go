//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"cmp"
	"os"
	"syscall"
	"unsafe"
)

// terminalWidth is how many columns the terminal behind f has, 80 when it does not say; zero when f is no terminal.
func terminalWidth(f *os.File) int {
	var size struct{ rows, columns, x, y uint16 }
	_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if failed != 0 {
		return 0
	}
	return cmp.Or(int(size.columns), 80)
}
