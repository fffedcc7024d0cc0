//go:build unix && !linux

package process

import (
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// family is a program's process group.
type family struct {
	leader int
	cmd    *exec.Cmd
	// exited is closed when the first process has exited.
	exited chan struct{}
	// most is the maximum number of processes; zero means no limit. bred reports that it was exceeded.
	most int
	bred bool
}

func startProgram(cmd *exec.Cmd, c Command) (*family, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	f := &family{leader: cmd.Process.Pid, cmd: cmd, exited: make(chan struct{}), most: c.Most}
	go func() {
		defer close(f.exited)
		_ = cmd.Wait() // the process state has the details
	}()
	return f, nil
}

// wait returns the state of the first process, which has exited.
func (f *family) wait() *os.ProcessState { return f.cmd.ProcessState }

// members returns the first process in place of the whole group, whose size is unknown.
func (f *family) members() []int {
	if unix.Kill(-f.leader, 0) != nil {
		return nil
	}
	return []int{f.leader}
}

// signal sends a signal to the group.
func (f *family) signal(sig unix.Signal) { _ = unix.Kill(-f.leader, sig) }
