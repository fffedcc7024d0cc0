package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/process"
)

// grace is the time between SIGTERM and SIGKILL.
const grace = 2 * time.Second

// program is a process to run for an action.
type program struct {
	kind    string
	argv    []string
	dir     string
	env     map[string]string
	inherit []string
	timeout time.Duration
	most    int
}

// outcome is the result of a process that exited by itself.
type outcome struct {
	code      int
	output    string
	truncated bool
	complaint string // the end of standard error
}

// run runs the process with the request on its standard input. The error is an *Error: the process did not start, timed
// out, was cancelled, or was killed by a signal.
func (p program) run(ctx context.Context, r *Request) (outcome, error) {
	ctx, cancel := withLimit(ctx, p.timeout)
	defer cancel()
	if ctx.Err() != nil {
		return outcome{}, contextError(ctx, p.kind)
	}
	deadline, _ := ctx.Deadline()
	stdin, err := r.until(deadline).encodeForAction()
	if err != nil {
		return outcome{}, &Error{Type: p.kind, Fault: FaultSetup, Err: err}
	}
	path, err := p.look()
	if info, missing := os.Stat(cmp.Or(p.dir, ".")); missing != nil || !info.IsDir() {
		err = fmt.Errorf("running in %s: no such directory", p.dir)
	}
	if err != nil {
		return outcome{}, &Error{Type: p.kind, Fault: FaultStart, Err: err}
	}
	variables := lo.Assign(p.env, process.TraceVars(ctx))
	env, secrets := environ(r, variables, p.inherit)
	out, complaint := &process.Head{Max: cmp.Or(p.most, DefaultMaxBytes)}, &process.Tail{Max: 1 << 10}
	done, err := process.Run(ctx, process.Command{
		Path: path, Args: p.argv, Dir: p.dir, Env: env, Stdin: stdin, Stdout: out, Stderr: complaint,
		Timeout: p.timeout + ending, Grace: grace, // ctx usually ends it earlier
	})
	if err != nil {
		return outcome{}, newFault(p.kind, FaultStart, "starting %s: %w", p.argv[0], innermostError(err))
	}
	complained := hideSecrets(string(complaint.Kept), secrets)
	switch {
	case done.Ended != process.Exited:
		return outcome{}, withComplaint(contextError(ctx, p.kind), complained)
	case done.Signal != "":
		return outcome{}, withComplaint(newFault(p.kind, FaultSignal, "%s was killed by %s", p.argv[0], done.Signal), complained)
	}
	return outcome{done.ExitCode(), hideSecrets(string(out.Kept), secrets), out.Cut, complained}, nil
}

// runOnce runs the process and converts its output into an answer.
func (p program) runOnce(ctx context.Context, r *Request) (*Answer, error) {
	o, err := p.run(ctx, r)
	if err != nil {
		return nil, err
	}
	if o.code != 0 {
		return nil, withComplaint(newFault(p.kind, FaultExit, "%s ended with exit code %d", p.argv[0], o.code), o.complaint)
	}
	return r.answer(p.kind, o.output, o.truncated)
}

// look resolves the program's path.
func (p program) look() (string, error) {
	name := p.argv[0]
	if filepath.Base(name) != name && !filepath.IsAbs(name) {
		name = filepath.Join(p.dir, name)
		var err error
		if name, err = filepath.Abs(name); err != nil {
			return "", fmt.Errorf("finding %s: %w", p.argv[0], err)
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", p.argv[0], innermostError(err))
	}
	return filepath.Abs(path)
}

// innermostError returns the innermost cause of err, without outer context.
func innermostError(err error) error {
	if missing, ok := errors.AsType[*exec.Error](err); ok {
		err = missing.Err
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return err
}

// withComplaint adds a process's standard error to an action's error.
func withComplaint(err error, complaint string) error {
	failed, ok := errors.AsType[*Error](err)
	if !ok || complaint == "" {
		return err
	}
	return &Error{Type: failed.Type, Fault: failed.Fault, Err: fmt.Errorf("%w; stderr: %s", failed.Err, quote(complaint))}
}
