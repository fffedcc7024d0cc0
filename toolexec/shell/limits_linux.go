package shell

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/grapnel-go/grapnel/internal/process"
)

// starter waits until the limits are set, and closes the file descriptors that this program inherited from its parent.
// Then it becomes the shell that runs the command. A shell other than bash does not close them, because it may not
// support descriptors with several digits.
const starter = `read -r _ <&3 || exit
if [ -n "$BASH_VERSION" ]; then
	for fd in /proc/self/fd/*; do
		fd=${fd##*/}
		[ "$fd" -lt 3 ] || eval "exec $fd<&-"
	done
fi
exec "$0" -c -- "$1" "${0##*/}" 3<&-`

// command returns the process that runs text with the shell, under its limits.
func (s *Shell) command(text string) process.Command {
	return process.Command{
		Args:  []string{s.config.Shell, "-c", starter, s.config.Shell, text},
		Gated: true, Prepare: s.config.Limits.set,
	}
}

// set sets the shell's limits before the shell runs anything.
func (l Limits) set(pid int) error {
	cpu, tasks := uint64(ceilSeconds(l.CPUTime)), l.tasks() //nolint:gosec // New checked the sign
	for _, limit := range []struct {
		name      string
		resource  int
		soft, max uint64
	}{
		{"CPUTime", unix.RLIMIT_CPU, cpu, cpu + 1},
		{"FileBytes", unix.RLIMIT_FSIZE, uint64(l.FileBytes), uint64(l.FileBytes)},      //nolint:gosec // the same
		{"MemoryBytes", unix.RLIMIT_DATA, uint64(l.MemoryBytes), uint64(l.MemoryBytes)}, //nolint:gosec // the same
		{"Processes", unix.RLIMIT_NPROC, tasks, tasks},
	} {
		if limit.soft == 0 {
			continue
		}
		var old unix.Rlimit
		err := unix.Prlimit(pid, limit.resource, nil, &old)
		if err == nil {
			now := unix.Rlimit{Cur: min(limit.soft, old.Max), Max: min(limit.max, old.Max)}
			err = unix.Prlimit(pid, limit.resource, &now, nil)
		}
		if err != nil {
			return fmt.Errorf("limit %s: %w", limit.name, err)
		}
	}
	return nil
}

// tasks returns the kernel limit that enforces Processes. The kernel counts all of the user's threads, so the limit
// includes the existing threads and several threads for each allowed process. It does not apply to root.
func (l Limits) tasks() uint64 {
	if l.Processes == 0 {
		return 0
	}
	n := 64 + 16*l.Processes
	owner := fmt.Sprintf("\nUid:\t%d\t", os.Getuid())
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		status, err := os.ReadFile("/proc/" + entry.Name() + "/status")
		if err != nil || !bytes.Contains(status, []byte(owner)) {
			continue
		}
		_, threads, _ := bytes.Cut(status, []byte("\nThreads:\t"))
		digits := bytes.IndexByte(threads, '\n')
		count, _ := strconv.Atoi(string(threads[:max(0, digits)]))
		n += count
	}
	return uint64(n) //nolint:gosec // a sum of counts
}
