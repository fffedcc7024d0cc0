package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

// sessionDemand is the demand of the runs of a session, so that only workers of its folder claim them.
const sessionDemand = "pipeline.session.key"

func (p *pipelines) newStart() *cobra.Command {
	var session string
	var inputs []string
	var look sessionLook
	c := &cobra.Command{
		Use:   "start FILE",
		Short: "Run a pipeline, or continue a session of it",
		Long: `Run a pipeline in this process until it has ended. Its session is stored, and its files are in
.grapnel/pipelines/SESSION. Starting a session that has begun and not ended continues it, with the files as they were when it
began: nothing that is done is done again.

At a gate the session waits in its store. The command watches for the file, the command or the callback that the gate waits
for. Callbacks arrive on this machine at the first callback_port of a webhook, at 8765 if there is none, or at another port if that
is taken. "grapnel pipeline approve" and "reject" answer the gates of people. The deadline of a gate passes also while nothing runs.

At a terminal the command shows the stages, the current iteration, the last hooks and what the session waits for, and asks about gates
of people. Elsewhere, or with TERM=dumb, it writes a line for each event.

With --server, the pipeline is stored in a blueprint of its name, unless the same files are there, and the coordinator runs it. The command
follows the run; interrupting it does not end the run.

The first SIGINT or SIGTERM suspends the session: agents stop after their step, commands end. The second cuts them off.
Without an end the exit code is 7, or 6 when the session waits for a gate.`,
		Example: `  grapnel pipeline start pipeline.yaml
  grapnel pipeline start pipeline.yaml --session friday --json
  grapnel pipeline start pipeline.yaml --server http://127.0.0.1:8420 --input topic=cats`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return console.WithTelemetry(c.Context(), "", p.Std.Err, func(ctx context.Context) error {
				if at, err := storage.AddressOf(p.At); err == nil && at.Server() {
					return p.startServed(ctx, args[0], session, inputs, look)
				}
				return p.start(ctx, args[0], session, inputs, look)
			})
		},
	}
	c.Flags().StringVar(&session, "session", "", "the `name` of the session; the default is the name of the pipeline")
	c.Flags().StringArrayVar(&inputs, "input", nil, "an input of the session, as `NAME=VALUE`: ${inputs.NAME} in prompts (may be repeated)")
	look.register(c)
	return c
}

// inputsOf returns the inputs of flags as a JSON object; nil for none.
func inputsOf(flags []string) (json.RawMessage, error) {
	if len(flags) == 0 {
		return nil, nil
	}
	values := map[string]string{}
	for _, flag := range flags {
		name, value, ok := strings.Cut(flag, "=")
		if _, twice := values[name]; !ok || name == "" || twice {
			return nil, fmt.Errorf("--input is %q: it must be NAME=VALUE, each name once", flag)
		}
		values[name] = value
	}
	return json.Marshal(values)
}

// start runs a session until it has ended or is suspended.
func (p *pipelines) start(ctx context.Context, path, session string, inputs []string, look sessionLook) error {
	loaded, err := loadPipeline(path)
	if err != nil {
		return err
	}
	name := sessionName(session, loaded)
	dir, err := sessionDir(name)
	if err != nil {
		return err
	}
	given, err := inputsOf(inputs)
	if err != nil {
		return console.Usage(err)
	}
	if look.port, err = callbackPort(loaded); err != nil {
		return err
	}
	folder, err := folderKey()
	if err != nil {
		return err
	}
	job, err := loaded.Job(pipeline.SessionOptions{
		Inputs: given, Name: name, Dir: dir, Demands: map[string]string{sessionDemand: sessionKey(dir)}, By: console.IdentityName(),
		DetachedDemands: map[string]string{folderDemand: folder}, IdempotencyKey: "session " + sessionKey(dir),
	})
	if err != nil {
		return console.Usage(err)
	}
	if err := sessionBase().MkdirAll(dir); err != nil {
		return console.Usagef("making the directory of the session: %w", err)
	}
	unlock, err := lockSession(dir)
	if err != nil {
		return console.Usagef("session %q: %w", name, err)
	}
	defer unlock()
	return p.WithDirect(ctx, true, func(k *storage.Store) error {
		stored, err := k.Direct.Submit(ctx, job)
		if err != nil {
			return err
		}
		about := stored[0]
		switch {
		case about.Status.Ended():
			return endedError(ctx, k, about, name)
		case about.Paused:
			return console.Usagef(`session %q is paused: "grapnel pipeline resume %s%s" continues it`, name, name, k.Address.Flag())
		case about.Version != job.Version:
			fmt.Fprintln(p.Std.Err, "grapnel: The files have changed since the session began: it continues with those it began with.")
		}
		look.dir = dir
		return p.runSession(ctx, k, about, look)
	})
}

// endedError says that a session has ended, and names the pipelines that it has left behind.
func endedError(ctx context.Context, k *storage.Store, about durable.Run, name string) error {
	left, err := leftBehind(ctx, k, about.ID)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, `session %q has ended as %s: give another one with --session, or remove it with "grapnel runs delete %s%s"`,
		name, about.Status, storage.Short(about.ID), k.Address.Flag())
	for _, child := range left {
		fmt.Fprintf(&text, `; pipeline %s, which it has started, has not ended: "grapnel pipeline resume %s%s" continues it`,
			child.Name, child.Labels[pipeline.LabelSession], k.Address.Flag())
	}
	return console.Usage(errors.New(text.String()))
}

// leftBehind returns the pipelines of this folder that hooks have started without awaiting them, that have not ended, and that were
// started by a session that has. With a run that is not empty, it returns only those that this session has started.
func leftBehind(ctx context.Context, k *storage.Store, run agent.RunID) (left []durable.Run, err error) {
	detached := durable.Filter{Kind: durable.KindPipeline, Label: durable.Label{Name: pipeline.LabelDetached, Value: "true"}, Status: open}
	for child, err := range k.Runs(ctx, detached) {
		if err != nil {
			return nil, err
		}
		here, err := isOfFolder(child)
		if err != nil {
			return nil, err
		}
		if !here || run != "" && child.Root != run {
			continue
		}
		parent, err := k.Store.Run(ctx, child.Parent)
		if err == nil && !parent.Status.Ended() {
			continue
		}
		if err != nil && !errors.Is(err, durable.ErrNotFound) {
			return nil, err
		}
		left = append(left, child)
	}
	return left, nil
}

// lock locks the directory of a session, and returns it. A pipeline that a hook has started without awaiting it may be executed without
// that lock, by the process of another session.
func lock(ctx context.Context, k *storage.Store, about durable.Run) (dir string, unlock func(), err error) {
	status, err := pipeline.StatusOf(ctx, k.Store, about)
	if err != nil {
		return "", nil, err
	}
	elsewhere, err := isExecuted(ctx, k, about.ID)
	if err == nil && elsewhere {
		err = errors.New("another process runs it")
	}
	if err == nil {
		err = sessionBase().MkdirAll(status.Dir)
	}
	if err == nil {
		unlock, err = lockSession(status.Dir)
	}
	return status.Dir, unlock, err
}

// sessionLook is what the commands that run a session set.
type sessionLook struct {
	dir            string
	asJSON, noWait bool
	redo           bool
	port           int // where callbacks should arrive; zero for the default
}

func (l *sessionLook) register(c *cobra.Command) {
	c.Flags().BoolVar(&l.noWait, "no-wait", false, "exit when the session waits for a gate, instead of watching the gate")
	c.Flags().BoolVar(&l.asJSON, "json", false, "write each event as a JSON object (docs/pipelines.md)")
	c.Flags().BoolVar(&l.redo, "redo-actions", false, "repeat the actions of hooks that were already executed since the last iteration or its start")
}

func (p *pipelines) newResume() *cobra.Command {
	var look sessionLook
	var text string
	var restart bool
	c := &cobra.Command{
		Use:   "resume SESSION",
		Short: "Continue a session that is paused or suspended",
		Long: `End the pause of a session, and run it in this process until it has ended, unless another process runs it. The
pipeline is the one that the session began with. The text of --context goes to the next iteration.`,
		Example: `  grapnel pipeline resume friday
  grapnel pipeline resume friday --context "Leave the database alone."`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return console.WithTelemetry(c.Context(), "", p.Std.Err, func(ctx context.Context) error {
				return p.withOpen(ctx, args[0], func(k *storage.Store, about durable.Run) error {
					return p.resume(ctx, k, about, args[0], text, restart, look)
				})
			})
		},
	}
	c.Flags().StringVar(&text, "context", "", "a `text` for the next iteration")
	c.Flags().BoolVar(&restart, "restart-stage", false, "begin the current stage again, with its first iteration")
	look.register(c)
	return c
}

// resume ends the pause of a session, and runs it unless another process does.
func (p *pipelines) resume(ctx context.Context, k *storage.Store, about durable.Run, name, text string, restart bool, look sessionLook) (err error) {
	if isServed(about) && restart {
		return console.Usagef("--restart-stage: the coordinator executes the session: abort it, and start another one")
	}
	if about.Paused || text != "" {
		kind := durable.SignalResume
		if !about.Paused {
			kind = durable.SignalContext
		}
		if err := k.Control.Signal(ctx, about.ID, durable.Signal{Kind: kind, Text: text, By: console.UserName()}); err != nil {
			return err
		}
	}
	if isServed(about) {
		return p.confirm(ctx, k, about, nil, "continues", "continues")
	}
	if err := k.RequireDirect(); err != nil {
		return err
	}
	dir, unlock, locked := lock(ctx, k, about)
	look.dir = dir
	if locked != nil && restart {
		return console.Usagef("--restart-stage: session %q: %w: pause it first", name, locked)
	}
	if locked != nil {
		fmt.Fprintf(p.Std.Err, "grapnel: session %q: %v\n", name, locked)
		return nil
	}
	defer unlock()
	if restart {
		if err := pipeline.RestartStage(ctx, k.Direct, k.Keeper, about); err != nil {
			return err
		}
	}
	if about, err = k.Store.Run(ctx, about.ID); err != nil {
		return err
	}
	return p.runSession(ctx, k, about, look)
}

// freeSession releases the runs of a session that a process has left behind. The caller has the lock of the session.
func freeSession(ctx context.Context, k *storage.Store, about durable.Run) error {
	if about.Owner != "" {
		lease, err := k.Direct.Acquire(ctx, about.ID, k.Keeper.Owner(), time.Minute, durable.TakeOver)
		if err == nil {
			err = k.Direct.Release(ctx, lease, 0)
		}
		if err != nil && !errors.Is(err, durable.ErrEnded) {
			return err
		}
	}
	for below, err := range k.Runs(ctx, durable.Filter{Parent: about.ID, Status: []durable.Status{durable.StatusRunning, durable.StatusWaiting}}) {
		if err == nil {
			err = freeSession(ctx, k, below)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lockFile is the name of the file that the process of a session locks.
const lockFile = "lock"

func lockPath(dir string) string { return filepath.Join(dir, lockFile) }
