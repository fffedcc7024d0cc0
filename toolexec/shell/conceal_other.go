//go:build !linux

package shell

import (
	"fmt"
	"runtime"
)

// Conceal keeps commands that run as the same user from reading what this program keeps from them in /proc. It works on
// Linux only, and is an error elsewhere.
func Conceal() error {
	return fmt.Errorf("shell: concealing the program: %s cannot do that", runtime.GOOS)
}
