package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/process"
)

// Command describes a program.
type Command struct {
	// Argv is the program and its arguments. No shell reads them. A program without a slash is looked up
	// in PATH when the worker starts.
	Argv []string
	// Dir is the working directory; empty means that of the worker.
	Dir string
	// Env is the environment of the program.
	Env map[string]string
	// Timeout is the maximum duration. Zero means ten minutes.
	Timeout time.Duration
	// Grace is the time between SIGTERM and SIGKILL. Zero means two seconds.
	Grace time.Duration
	// MaxOutput is the maximum number of bytes of the standard output that are stored. Zero means 1 MiB.
	MaxOutput int
	// MaxProcesses is the maximum number of simultaneous processes. Zero means no limit.
	MaxProcesses int
	// Repeat says that the program may run again when it is unknown what it has done.
	Repeat bool
	// Check, unless nil, reports what is wrong with the parameters of a job. It is called before the
	// program starts.
	Check func(params json.RawMessage) error
	// CheckOutput, unless nil, reports what is wrong with the output of a program that has exited with code 0. Data is nil when the
	// output is not JSON. The run then fails.
	CheckOutput func(data json.RawMessage) error
}

// The defaults of a Command.
const (
	defaultTimeout = 10 * time.Minute
	defaultGrace   = 2 * time.Second
	defaultOutput  = 1 << 20
	maxErrorOutput = 4 << 10
)

// Job returns a job for a command. Params is written as JSON; nil means an empty object.
func Job(name string, params any) (durable.Job, error) {
	if params == nil {
		params = struct{}{}
	}
	data, err := json.Marshal(params)
	if err != nil {
		return durable.Job{}, fmt.Errorf("making a job for command %q: %w", name, err)
	}
	return durable.Job{Kind: durable.KindCommand, Name: name, Input: data}, nil
}

// Runner returns the runner of commands whose runs a keeper records. It returns an error for a command
// whose program is not found.
func Runner(k *durable.Keeper, commands map[string]Command) (durable.Runner, error) {
	if err := process.CheckSupport(); err != nil {
		return nil, fmt.Errorf("running commands: %w", err)
	}
	r := &runner{k, map[string]Command{}}
	for name, c := range commands {
		if len(c.Argv) == 0 || c.Argv[0] == "" {
			return nil, fmt.Errorf("command %q: Argv is empty: name a program", name)
		}
		path, err := exec.LookPath(c.Argv[0])
		if err != nil {
			return nil, fmt.Errorf("command %q: %w", name, err)
		}
		c.Argv = slices.Concat([]string{path}, c.Argv[1:])
		if c.Timeout <= 0 {
			c.Timeout = defaultTimeout
		}
		if c.Grace <= 0 {
			c.Grace = defaultGrace
		}
		if c.MaxOutput <= 0 {
			c.MaxOutput = defaultOutput
		}
		r.commands[name] = c
	}
	return r, nil
}

type runner struct {
	keeper   *durable.Keeper
	commands map[string]Command
}

// Has reports whether there is a command with the name.
func (r *runner) Has(name string) bool {
	_, ok := r.commands[name]
	return ok
}

// Owner returns the owner of the keeper.
func (r *runner) Owner() string { return r.keeper.Owner() }

// Suspend lets programs run to their ends: the worker cuts off those that take too long.
func (*runner) Suspend() {}

// Execute runs the command of a run once.
func (r *runner) Execute(ctx context.Context, about durable.Run) error {
	c := r.commands[about.Name]
	ctx, x := r.keeper.Open(ctx, about)
	defer x.Close()
	entries, err := x.Entries(ctx, 0)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if cancelled, ok := errors.AsType[*durable.CancelledError](context.Cause(ctx)); ok {
		return end(ctx, x, durable.StatusCancelled, agent.StopUser, durable.Result{Error: cancelled.Error()})
	}
	if ctx.Err() != nil {
		return nil // suspended, or another process has the run
	}
	entries = slices.DeleteFunc(entries, func(e durable.Entry) bool { return e.Kind != durable.EntryCall }) // others are of hooks around the run
	if len(entries) > 0 && !c.Repeat {
		return end(ctx, x, durable.StatusFailed, agent.StopError, durable.Result{Error: inDoubt})
	}
	params, limits, err := x.Input(ctx)
	if err != nil {
		return err
	}
	if c.Check != nil {
		if err := c.Check(params); err != nil {
			return end(ctx, x, durable.StatusFailed, agent.StopError, durable.Result{Error: fmt.Sprintf("the parameters are invalid: %v", err)})
		}
	}
	allowed := allowance{limit: limits.Time, left: limits.Time}
	if len(entries) > 0 { // the program has run before
		allowed.left -= time.Since(entries[0].At)
	}
	if allowed.isUsed() {
		return end(ctx, x, durable.StatusStopped, agent.StopTimeLimit, durable.Result{Error: allowed.message()})
	}
	if err := x.Commit(ctx, durable.Commit{Entries: []durable.Entry{{Kind: durable.EntryCall}}}); err != nil {
		return nil // the run is lost to another process, or the store fails: the lease expires
	}
	return r.run(ctx, x, about, c, params, allowed)
}

// allowance is the time that Job.Limits allow a run.
type allowance struct {
	limit time.Duration // zero means no limit
	left  time.Duration // of the limit, when the program starts
}

// isUsed reports whether no time is left.
func (a allowance) isUsed() bool { return a.limit != 0 && a.left <= 0 }

// isShorter reports whether the allowance ends before a time limit of the command.
func (a allowance) isShorter(timeout time.Duration) bool { return a.limit != 0 && a.left < timeout }

func (a allowance) message() string {
	return fmt.Sprintf("the time limit of the job, %s, has passed", max(a.limit, 0))
}

const inDoubt = "the worker ended while the command ran, so it is unknown what the command did: " +
	"it was not repeated, because its definition does not say that it may be"

// run runs the program and records how it ended.
func (r *runner) run(ctx context.Context, x *durable.Execution, about durable.Run, c Command, params []byte, allowed allowance) error {
	timeout, ofJob := c.Timeout, allowed.isShorter(c.Timeout)
	if ofJob {
		timeout = allowed.left
	}
	stdout, stderr := &process.Head{Max: c.MaxOutput}, &process.Tail{Max: maxErrorOutput}
	done, err := process.Run(ctx, process.Command{
		Path: c.Argv[0], Args: c.Argv, Dir: c.Dir, Env: newEnvironment(c.Env, about), Stdin: params,
		Stdout: stdout, Stderr: stderr, Timeout: timeout, Grace: c.Grace, Most: c.MaxProcesses,
	})
	result := durable.Result{Cut: stdout.Cut}
	if data := bytes.TrimSpace(stdout.Kept); !stdout.Cut && json.Valid(data) {
		result.Data = data
	} else {
		result.Text = strings.ToValidUTF8(string(stdout.Kept), "\uFFFD")
	}
	status, reason := durable.StatusFailed, agent.StopError
	switch code := done.ExitCode(); {
	case err != nil:
		result.Error = err.Error()
	case done.Ended == process.Cancelled:
		cause := context.Cause(ctx)
		cancelled, ok := errors.AsType[*durable.CancelledError](cause)
		switch {
		case ok:
			status, reason, result.Error = durable.StatusCancelled, agent.StopUser, cancelled.Error()
		case c.Repeat:
			return nil // another worker runs it again
		case errors.Is(cause, agent.ErrSuspended):
			result.Error = "the worker was stopped while the command ran"
		default:
			return nil // another process has the run
		}
	case done.Ended == process.TimedOut && ofJob:
		status, reason, result.Error = durable.StatusStopped, agent.StopTimeLimit, allowed.message()
	case done.Ended == process.TimedOut:
		reason, result.Error = agent.StopTimeLimit, fmt.Sprintf("the command ran longer than %s", c.Timeout)
	case done.Ended == process.Overran:
		result.Error = fmt.Sprintf("the command had more than %d processes", c.MaxProcesses)
	case done.Signal != "":
		result.Error = withOutput("the command was ended by "+done.Signal, stderr)
	default:
		result.ExitCode = &code
		if status, reason = durable.StatusCompleted, agent.StopCompleted; code != 0 {
			status, reason = durable.StatusFailed, agent.StopError
			result.Error = withOutput(fmt.Sprintf("the command exited with code %d", code), stderr)
		} else if c.CheckOutput != nil {
			if err := c.CheckOutput(result.Data); err != nil {
				status, reason, result.Error = durable.StatusFailed, agent.StopError, fmt.Sprintf("the output is invalid: %v", err)
			}
		}
	}
	return end(ctx, x, status, reason, result)
}

// end ends the run. When its end cannot be stored, the run is left to the next process.
func end(ctx context.Context, x *durable.Execution, status durable.Status, reason agent.StopReason, result durable.Result) error {
	_ = x.End(ctx, status, reason, result, durable.Entry{Kind: durable.EntryResult})
	return nil
}

// withOutput appends the end of the standard error to an error text.
func withOutput(text string, stderr *process.Tail) string {
	if output := strings.TrimSpace(strings.ToValidUTF8(string(stderr.Kept), "\uFFFD")); output != "" {
		return text + ": " + output
	}
	return text
}

// newEnvironment returns the environment of a program, in the order of the names.
func newEnvironment(declared map[string]string, about durable.Run) []string {
	all := maps.Clone(declared)
	if all == nil {
		all = map[string]string{}
	}
	all["GRAPNEL_RUN"] = string(about.ID)
	all["GRAPNEL_IDEMPOTENCY_KEY"] = string(about.ID) + "/command"
	var env []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env
}
