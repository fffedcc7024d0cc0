//go:build !unix

package files

import (
	"io/fs"
	"os"
)

const nonblock = 0 // files cannot be pipes here

func keepOwner(*os.File, fs.FileInfo) {}
