package process

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// family is a program with all its descendants. A process belongs to it if it is in the first process's session or
// has the mark: a limit (RLIMIT_RTTIME, for real-time processes) with a random value that is never reached. Children
// inherit limits, and only root can raise them.
type family struct {
	leader int
	mark   uint64
	cmd    *exec.Cmd
	// exited is closed when the first process has exited. That process stays a zombie until wait, so that its process
	// group ID is not reused.
	exited chan struct{}
	// most is the maximum number of processes; zero means no limit. bred reports that it was exceeded.
	most int
	bred bool
}

// startProgram starts a program, marks it, and lets it continue.
func startProgram(cmd *exec.Cmd, c Command) (*family, error) {
	var ready, goAhead *os.File
	if c.Gated {
		var err error
		if ready, goAhead, err = os.Pipe(); err != nil {
			return nil, err
		}
		defer goAhead.Close()
		cmd.ExtraFiles = []*os.File{ready}
	}
	err := cmd.Start()
	ready.Close() // ready may be nil
	if err != nil {
		return nil, err
	}
	f := &family{leader: cmd.Process.Pid, cmd: cmd, exited: make(chan struct{}), most: c.Most}
	go f.watch()
	f.setMark()
	if c.Prepare != nil {
		err = c.Prepare(f.leader)
	}
	if err == nil && c.Gated {
		_, err = goAhead.WriteString("\n")
	}
	if err != nil {
		f.end(0)
		f.reap()
		return nil, err
	}
	return f, nil
}

// watch detects the exit of the first process, but leaves it for wait to reap.
func (f *family) watch() {
	defer close(f.exited)
	for unix.Waitid(unix.P_PID, f.leader, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		continue
	}
}

// wait reaps the first process.
func (f *family) wait() *os.ProcessState {
	_ = f.cmd.Wait() // the process state has the details
	return f.cmd.ProcessState
}

// setMark marks the first process, unless the limit is already set.
func (f *family) setMark() {
	var random [8]byte
	_, _ = rand.Read(random[:])
	mark := 1<<62 | binary.NativeEndian.Uint64(random[:])>>2
	if unix.Prlimit(f.leader, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: mark, Max: mark}, nil) == nil {
		f.mark = mark
	}
}

// members returns the processes of the family that have not exited, including the first one.
func (f *family) members() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && f.has(pid) && !hasExited(name) {
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

// hasExited reports whether a process has exited and has not been reaped.
func hasExited(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return true
	}
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return len(state) > 0 && (state[0] == 'Z' || state[0] == 'X')
}

// signal sends a signal to all processes: first to the whole group in one call, to reach new forks, then to processes
// outside the group.
func (f *family) signal(sig unix.Signal) {
	_ = unix.Kill(-f.leader, sig)
	for _, pid := range f.members() {
		if group, err := unix.Getpgid(pid); err != nil || group == f.leader {
			continue
		}
		process, err := os.FindProcess(pid) // a handle, so that the signal cannot reach a process that reuses the ID
		if err != nil {
			continue
		}
		if f.has(pid) {
			_ = process.Signal(sig)
		}
		_ = process.Release()
	}
}
