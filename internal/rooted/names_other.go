//go:build !unix

package rooted

import "io/fs"

// hasOtherName returns false: this system does not tell a file's other names.
func hasOtherName(fs.FileInfo) bool { return false }
