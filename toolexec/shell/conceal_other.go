//go:build !linux

package shell

import (
	"fmt"
	"runtime"
)

// Conceal prevents commands that run as the same user from reading data of this program in /proc. It works on Linux
// only, and returns an error elsewhere.
func Conceal() error {
	return fmt.Errorf("shell: concealing the program: %s cannot do that", runtime.GOOS)
}
