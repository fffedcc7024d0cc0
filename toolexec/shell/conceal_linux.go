package shell

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Conceal keeps commands that run as the same user from reading the memory of this program, and the environment that it
// was started with, in /proc: keys that Config.Env keeps from them are there, too. It is for main, since it concerns the
// whole program: no core is dumped any more, and no debugger of that user can attach. Root reads all the same.
func Conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("shell: concealing the program: %w", err)
	}
	return nil
}
