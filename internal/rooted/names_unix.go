//go:build unix

package rooted

import (
	"io/fs"
	"syscall"
)

// hasOtherName reports whether a file has a second name, which may be anywhere.
func hasOtherName(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Nlink > 1
}
