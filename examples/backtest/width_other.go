//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package main

import "os"

// terminalWidth is zero: what cannot be told is taken for no terminal.
func terminalWidth(*os.File) int { return 0 }
