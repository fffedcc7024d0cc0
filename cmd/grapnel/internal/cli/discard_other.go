//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package cli

import "os"

func discardTyped(*os.File) {} // not supported here
