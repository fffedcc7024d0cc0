package shell

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Conceal hides this program's memory and initial environment in /proc from commands that run as the same user. They
// contain the keys that Config.Env keeps from commands. Call Conceal in main, because it affects the whole program: it
// disables core dumps, and that user's debuggers cannot attach. Root can still read everything.
func Conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("shell: concealing the program: %w", err)
	}
	return nil
}
