//go:build !linux

package shell

import (
	"fmt"
	"runtime"
)

// Conceal hides this program's data in /proc from commands that run as the same user. It works only on Linux and
// returns an error elsewhere.
func Conceal() error {
	return fmt.Errorf("shell: concealing the program: %s cannot do that", runtime.GOOS)
}
