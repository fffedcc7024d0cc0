package shell

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Conceal prevents commands that run as the same user from reading the memory and the initial environment of this
// program in /proc, which contain the keys that Config.Env keeps from them. Call it in main, because it affects the
// whole program: it disables core dumps, and debuggers of that user cannot attach. Root can still read everything.
func Conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("shell: concealing the program: %w", err)
	}
	return nil
}
