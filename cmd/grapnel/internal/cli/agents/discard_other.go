//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package agents

import "os"

func discardTyped(*os.File) {} // not supported here
