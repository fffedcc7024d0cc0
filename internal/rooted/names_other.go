//go:build !unix

package rooted

import "io/fs"

// hasOtherName returns false: the names of a file are not known here.
func hasOtherName(fs.FileInfo) bool { return false }
