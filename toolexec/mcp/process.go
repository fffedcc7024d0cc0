package mcp

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	groups "github.com/grapnel-go/grapnel/internal/process"
)

// drainTime is how long an ended process's pipes are read, because its children may hold them open.
const drainTime = 250 * time.Millisecond

// process is a started server. When it ends, its whole process group is ended.
type process struct {
	cmd   *exec.Cmd
	in    *os.File // its standard input
	out   *os.File // its standard output
	said  *tail    // its output outside of the protocol
	grace time.Duration

	stopping sync.Once
	broken   chan struct{} // closed when its input is no longer written
	exited   chan struct{} // closed when it has ended; how is set before
	how      string
	ended    chan struct{} // closed when its whole process group has ended
}

// startCommand starts a server's command.
func startCommand(s Server) (*process, error) {
	p := &process{
		said: &tail{}, grace: s.CloseGrace,
		broken: make(chan struct{}), exited: make(chan struct{}), ended: make(chan struct{}),
	}
	p.cmd = exec.Command(s.Command[0], s.Command[1:]...) //nolint:noctx,gosec // it outlives the call that started it, and running it is the point
	p.cmd.Dir, p.cmd.Env = s.Dir, serverEnvironment(s)
	groups.OwnGroup(p.cmd)

	var theirs [3]*os.File
	var stderr *os.File
	var err error
	for i, open := range []func() error{
		func() (err error) { theirs[0], p.in, err = os.Pipe(); return err },
		func() (err error) { p.out, theirs[1], err = os.Pipe(); return err },
		func() (err error) { stderr, theirs[2], err = os.Pipe(); return err },
	} {
		if err = open(); err != nil {
			err = fmt.Errorf("opening pipe %d: %w", i, err)
			break
		}
	}
	if err == nil {
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1], theirs[2]
		err = p.cmd.Start()
	}
	for _, file := range theirs {
		file.Close() // also nil
	}
	if err != nil {
		p.in.Close()
		p.out.Close()
		stderr.Close()
		return nil, fmt.Errorf("starting %q: %w", s.Command[0], err)
	}
	go p.watch(stderr)
	return p, nil
}

// serverEnvironment returns a server's environment.
func serverEnvironment(s Server) []string {
	env := []string{} // not nil, which would mean the environment of this process
	for _, name := range s.Inherit {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range s.Env {
		env = append(env, name+"="+value) // the last value of a name takes effect
	}
	return env
}

// watch collects the process's stderr, and waits for its end.
func (p *process) watch(stderr *os.File) {
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(p.said, stderr)
	}()
	_ = p.cmd.Wait()
	groups.KillGroup(p.cmd)
	deadline := time.Now().Add(drainTime)
	_ = stderr.SetReadDeadline(deadline)
	_ = p.out.SetReadDeadline(deadline)
	<-copied
	p.how = p.cmd.ProcessState.String()
	close(p.exited)
	p.stopping.Do(p.shut) // its output is still read
	stderr.Close()
	close(p.ended)
}

// shut closes the process's input.
func (p *process) shut() {
	close(p.broken)
	p.in.Close()
}

// stop starts to end the process, without waiting. It closes the input, then asks the group to end, then kills it, with
// the grace between.
func (p *process) stop() {
	p.stopping.Do(func() {
		p.shut()
		_ = p.out.SetReadDeadline(time.Now())
		go func() {
			for _, harder := range []func(*exec.Cmd){groups.EndGroup, groups.KillGroup} {
				if closesWithin(p.exited, p.grace) {
					break
				}
				harder(p.cmd)
			}
		}()
	})
}

// closesWithin waits for a channel to be closed.
func closesWithin(c <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return isClosed(c)
	}
}
