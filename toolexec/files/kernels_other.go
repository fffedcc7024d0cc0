//go:build !linux

package files

import "os"

func kernels(*os.File) bool { return false }
