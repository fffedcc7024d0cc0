package shell

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// family is all processes that came of a command. A process belongs to it that is in the session of the shell, or
// bears the mark: a limit (RLIMIT_RTTIME, for processes of real-time priority) of a random height that nobody reaches.
// Children inherit limits, and nobody but root can raise them.
type family struct {
	leader int
	mark   uint64
	cmd    *exec.Cmd
	// exited is closed when the shell has exited. It stays a zombie until wait, so that its process group is its own.
	exited chan struct{}
	// most is how many processes there may be; zero is no limit. bred says that there were more.
	most int
	bred bool
}

// starter waits until the limits are set, closes what this program was given open by whoever started it, and becomes
// the shell that runs the command. A shell other than bash, which may not know numbers of several digits, closes nothing.
const starter = `read -r _ <&3 || exit
if [ -n "$BASH_VERSION" ]; then
	for fd in /proc/self/fd/*; do
		fd=${fd##*/}
		[ "$fd" -lt 3 ] || eval "exec $fd<&-"
	done
fi
exec "$0" -c -- "$1" "${0##*/}" 3<&-`

// start starts a command under its limits.
func (s *Shell) start(cmd *exec.Cmd, text string) (*family, error) {
	cmd.Args = []string{s.config.Shell, "-c", starter, s.config.Shell, text}
	ready, goAhead, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer goAhead.Close()
	cmd.ExtraFiles = []*os.File{ready}
	err = cmd.Start()
	_ = ready.Close()
	if err != nil {
		return nil, err
	}
	f := &family{leader: cmd.Process.Pid, cmd: cmd, exited: make(chan struct{}), most: s.config.Limits.Processes}
	go f.watch()
	f.setMark()
	if err = s.config.Limits.set(f.leader); err == nil {
		_, err = goAhead.WriteString("\n")
	}
	if err != nil {
		f.end(0)
		f.reap()
		return nil, err
	}
	return f, nil
}

// watch notices the exit of the shell and leaves it to wait to be reaped.
func (f *family) watch() {
	defer close(f.exited)
	for unix.Waitid(unix.P_PID, f.leader, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		continue
	}
}

// wait reaps the shell.
func (f *family) wait() *os.ProcessState {
	_ = f.cmd.Wait() // the state says more
	return f.cmd.ProcessState
}

// setMark marks the shell, where that is possible: not where somebody has set that limit before.
func (f *family) setMark() {
	var random [8]byte
	_, _ = rand.Read(random[:])
	mark := 1<<62 | binary.NativeEndian.Uint64(random[:])>>2
	if unix.Prlimit(f.leader, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: mark, Max: mark}, nil) == nil {
		f.mark = mark
	}
}

// members are the processes of the family that have not exited, the shell included.
func (f *family) members() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && f.has(pid) && !exited(name) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// has reports whether a process belongs to the family.
func (f *family) has(pid int) bool {
	if session, err := unix.Getsid(pid); err == nil && session == f.leader {
		return true
	}
	var limit unix.Rlimit
	return f.mark != 0 && unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &limit) == nil && limit.Max == f.mark
}

// exited reports whether a process has exited and waits for its parent to notice.
func exited(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return true
	}
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return len(state) > 0 && (state[0] == 'Z' || state[0] == 'X')
}

// signal sends a signal to all: to the group at once, such that no fork is missed, then to those who left it.
func (f *family) signal(sig unix.Signal) {
	_ = unix.Kill(-f.leader, sig)
	for _, pid := range f.members() {
		if group, err := unix.Getpgid(pid); err != nil || group == f.leader {
			continue
		}
		process, err := os.FindProcess(pid) // a handle, so that the signal cannot reach a stranger of the same number
		if err != nil {
			continue
		}
		if f.has(pid) {
			_ = process.Signal(sig)
		}
		_ = process.Release()
	}
}

// set sets the limits of the shell before it runs anything.
func (l Limits) set(pid int) error {
	cpu, tasks := uint64(seconds(l.CPUTime)), l.tasks() //nolint:gosec // New checked the sign
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

// tasks is the limit that the kernel keeps behind Processes. It counts all threads of the user, so that those which are
// there come on top, and some for each process. It does not hold for root.
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
