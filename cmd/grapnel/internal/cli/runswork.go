package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/command"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/registry"
)

// working are the flags of a worker.
type working struct {
	labels       []string
	capacity     int
	once, asJSON bool
	grace, poll  time.Duration
	lease        time.Duration
	retain       string
	health       string
	gates        gateFlags
}

func newWork(r *storeCommand) *cobra.Command {
	var o working
	c := &cobra.Command{
		Use:   "work FILE...",
		Short: "Execute submitted runs as a worker",
		Long: `Claim and execute the ready runs of the store whose agent or command is defined by one of the
files, and whose demands are among the labels of the worker. A file defines one agent (docs/agent-file.md),
or, under the key commands, any number of commands. An agent has the name of its file, unless the file
has the key name.

The first SIGINT or SIGTERM suspends the runs: agents stop after their step, and another worker
continues them. A command runs to its end unless that takes longer than --grace. The second signal cuts
off all of them. SIGUSR1 drains the worker: it claims nothing more and exits when its runs have
ended or wait. The exit code is then 0.

When a person must be asked, the run waits in the store: "grapnel runs approve" answers. The worker
watches the gates of policies for which runs wait: files and commands of this host and, with
--callback-url, callbacks.

Workers find ready runs in the store. If TEMPORAL_ADDRESS names a Temporal server, they get them through
its task queues (docs/workers.md).`,
		Example: `  grapnel runs work clerk.yaml commands.yaml --label gpu=a100 --capacity 4
  grapnel runs work clerk.yaml --once
  grapnel runs work commands.yaml --health localhost:8080 --json`,
		Args: takes(1, unlimited, "needs a file that defines an agent or commands"),
		RunE: func(c *cobra.Command, args []string) error {
			return withTelemetry(c.Context(), "", r.std.err, func(ctx context.Context) error { return work(ctx, r, &o, args) })
		},
	}
	f := c.Flags()
	f.StringArrayVarP(&o.labels, "label", "l", nil,
		"a label of the worker, as `NAME=VALUE`: it executes runs whose demands are among its labels (may be repeated)")
	f.IntVar(&o.capacity, "capacity", 8, "the maximum number of concurrent runs")
	f.BoolVar(&o.once, "once", false, "execute the runs that are ready, and exit when there are none")
	f.DurationVar(&o.grace, "grace", 10*time.Second, "how long runs may take to suspend before they are cut off")
	f.DurationVar(&o.poll, "poll", time.Second, "how often the worker looks for runs when the store reports no change")
	f.DurationVar(&o.lease, "lease", 30*time.Second, "how long runs of a worker that has died stay with it")
	f.StringVar(&o.retain, "retain", "", "delete runs that ended longer ago than this `time`, such as 30d")
	f.StringVar(&o.health, "health", "", "serve GET /healthz at this loopback `address`, such as localhost:8080")
	o.gates.register(c)
	f.BoolVar(&o.asJSON, "json", false, "write what the worker does to standard output, as JSON Lines")
	return c
}

// definitions are the agents and commands of files, by their names.
type definitions struct {
	agents   map[string]string // the path of the file
	commands map[string]*registry.Command
	files    map[string]string // of a command
}

// loadDefinitions reads files with agents and commands.
func loadDefinitions(paths []string) (*definitions, error) {
	d := &definitions{agents: map[string]string{}, commands: map[string]*registry.Command{}, files: map[string]string{}}
	var wrong []error
	for _, path := range paths {
		if err := d.load(path); err != nil {
			wrong = append(wrong, err)
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, &usageError{err}
	}
	return d, nil
}

func (d *definitions) load(path string) error {
	text, err := registry.ReadFile(path)
	if err != nil {
		return err
	}
	if !registry.IsCommandFile(path, text) {
		file, err := newRegistry().Parse(path, text)
		if err != nil {
			return err
		}
		name := nameOfAgent(path, file)
		if other, twice := d.agents[name]; twice {
			return fmt.Errorf("%s: agent %q is already defined in %s: give it another name", path, name, other)
		}
		d.agents[name] = path
		return nil
	}
	commands, err := registry.ParseCommands(path, text)
	if err != nil {
		return err
	}
	for name, c := range commands {
		if other, twice := d.files[name]; twice {
			return fmt.Errorf("%s: command %q is already defined in %s: give it another name", path, name, other)
		}
		d.commands[name], d.files[name] = c, path
	}
	return nil
}

// nameOfAgent returns the name of the agent of a file.
func nameOfAgent(path string, file *registry.File) string {
	return cmp.Or(file.Name, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
}

// check returns an error for a name that the files do not define.
func (d *definitions) check(kind durable.Kind, name string) error {
	known := slices.Sorted(maps.Keys(d.agents))
	if kind == durable.KindCommand {
		known = slices.Sorted(maps.Keys(d.commands))
	}
	if slices.Contains(known, name) {
		return nil
	}
	if len(known) == 0 {
		return fmt.Errorf("no %s %q: the files define none", kind, name)
	}
	return errors.New(yamlfile.Unknown(string(kind), name, known))
}

// work executes runs until the worker is stopped.
func work(ctx context.Context, r *storeCommand, o *working, paths []string) error {
	labels, err := labelsOf("--label", o.labels)
	switch {
	case err != nil:
	case o.capacity <= 0:
		err = fmt.Errorf("--capacity is %d: it must be above zero", o.capacity)
	case o.grace <= 0 || o.poll <= 0 || o.lease <= 0:
		err = errors.New("--grace, --poll and --lease must be above zero")
	}
	var retain time.Duration
	if err == nil && o.retain != "" {
		if retain, err = durationOf(o.retain); err != nil || retain == 0 {
			err = fmt.Errorf("--retain is %q: it must be a duration, such as 12h or 30d", o.retain)
		}
	}
	if err != nil {
		return &usageError{err}
	}
	d, err := loadDefinitions(paths)
	if err != nil {
		return err
	}
	return r.with(ctx, true, func(k *openedStore) (err error) {
		keeper := durable.Keep(k.direct, durable.Options{Events: events.Stored, Lease: o.lease})
		job := &workCommand{log: &workLog{std: r.std, asJSON: o.asJSON}, grace: o.grace}
		built, err := job.buildAgents(ctx, keeper, k.direct, d)
		defer func() { err = errors.Join(err, built.close()) }()
		if err != nil {
			return err
		}
		runners := map[durable.Kind]durable.Runner{}
		if len(d.agents) > 0 {
			runners[durable.KindAgent] = durable.AgentRunner(keeper, built)
		}
		if len(d.commands) > 0 {
			commands := map[string]command.Command{}
			for name, c := range d.commands {
				commands[name] = c.Command()
			}
			if runners[durable.KindCommand], err = command.Runner(keeper, commands); err != nil {
				return &usageError{err}
			}
		}
		var scheduler durable.Scheduler
		if !o.once { // which claims in the store
			var closeScheduler func() error
			if scheduler, closeScheduler, err = openScheduler(ctx, k.direct, os.Getenv); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeScheduler()) }()
		}
		watch, stop, err := o.gates.watch(ctx, k.direct, keeper.Owner(), o, job.log)
		if err != nil {
			return &usageError{err}
		}
		defer stop()
		return job.run(ctx, k.direct, o, durable.WorkerOptions{
			Watch:     watch,
			Scheduler: scheduler, Runners: runners, Labels: labels, Capacity: o.capacity, Lease: o.lease,
			Poll: o.poll, Grace: o.grace, Retain: retain, Observe: job.log.observe,
		})
	})
}

// builtAgents are the agents of a worker. Its zero value has none.
type builtAgents struct {
	durable.AgentMap

	parts []*made
}

// close waits for background work of the agents and closes their parts.
func (b *builtAgents) close() error {
	if b == nil {
		return nil
	}
	var wrong []error
	for _, m := range b.parts {
		draining, cancel := context.WithTimeout(context.Background(), drainTime)
		_ = m.agent.Drain(draining) // what has not finished is cancelled
		cancel()
		m.agent.Cancel()
		wrong = append(wrong, m.close())
	}
	return errors.Join(wrong...)
}

// workCommand is one execution of the command "runs work".
type workCommand struct {
	log   *workLog
	grace time.Duration
	cut   context.Context //nolint:containedctx // it is a signal, not of any call
}

// buildAgents builds the agents of files. The result must be closed, also after an error.
func (s *workCommand) buildAgents(ctx context.Context, keeper *durable.Keeper, waivers durable.Audits, d *definitions) (*builtAgents, error) {
	all := &builtAgents{AgentMap: durable.AgentMap{}}
	for _, name := range slices.Sorted(maps.Keys(d.agents)) {
		o := &options{file: d.agents[name], color: "auto"}
		file, err := o.resolve()
		if err != nil {
			return all, err
		}
		file.Name = name
		m, err := build(ctx, file, watchers{
			approver: agent.ParkApprover, keeper: keeper, reasons: tracesRuns(ctx), rules: o.rules, parks: true, waivers: waivers,
		})
		if err != nil {
			return all, fmt.Errorf("agent %q: %w", name, err)
		}
		if m.recording != nil {
			return all, errors.Join(&usageError{fmt.Errorf("agent %q: a worker cannot play a recording: name a model", name)}, m.close())
		}
		all.parts = append(all.parts, m)
		for _, note := range m.notes {
			s.log.note(name + ": " + note)
		}
		all.AgentMap[name] = m.agent
	}
	return all, nil
}

// run runs a worker until it is stopped, or with --once until no run is ready.
func (s *workCommand) run(ctx context.Context, store durable.Holder, o *working, options durable.WorkerOptions) error {
	cut, cutOff := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cutOff(nil)
	s.cut = cut
	for kind, runner := range options.Runners {
		options.Runners[kind] = &cuttable{runner, cut, o.once}
	}
	w, err := durable.NewWorker(store, options)
	if err != nil {
		return &usageError{err}
	}
	if o.health != "" {
		stop, err := serveHealth(ctx, o.health, w, s.log)
		if err != nil {
			return &usageError{err}
		}
		defer stop()
	}
	claiming, stopClaiming := context.WithCancel(ctx)
	defer stopClaiming()
	var by *signalError
	var mu sync.Mutex
	release := onSignal(func(before int, signal *signalError) bool {
		switch before {
		case 0:
			stopClaiming()
			go s.log.note("Suspending: runs stop at the end of their steps. Interrupt again to cut them off.")
		case 1:
			mu.Lock()
			by = signal
			mu.Unlock()
			cutOff(agent.ErrSuspended)
		default:
			return false
		}
		return true
	}, func() {})
	defer release()
	defer onDrain(func() {
		s.log.note("Draining: the worker claims no more runs.")
		if o.once {
			stopClaiming()
			return
		}
		w.Drain()
	})()
	s.log.note(fmt.Sprintf("Worker %s executes runs of %s.", w.Owner(), s.log.describe(options)))
	if o.once {
		err = s.once(claiming, cutOff, w, options)
	} else {
		err = w.Run(claiming)
	}
	mu.Lock()
	defer mu.Unlock()
	if err == nil && by != nil {
		return &exitError{by.code()}
	}
	return err
}

// once executes the ready runs. When ctx is done, it suspends them.
func (s *workCommand) once(ctx context.Context, cutOff context.CancelCauseFunc, w *durable.Worker, options durable.WorkerOptions) error {
	defer context.AfterFunc(ctx, func() {
		for _, r := range options.Runners {
			r.Suspend()
		}
		late := time.AfterFunc(s.grace, func() { cutOff(agent.ErrSuspended) })
		context.AfterFunc(s.cut, func() { late.Stop() })
	})()
	err := w.ExecuteReady(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// cuttable is a Runner whose runs are cut off when cut is done.
type cuttable struct {
	durable.Runner

	cut  context.Context //nolint:containedctx // it is a signal, not of any call
	once bool            // the context of the worker ends only the claiming
}

// Execute executes a run.
func (c *cuttable) Execute(ctx context.Context, r durable.Run) error {
	if c.once {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.cut, func() { cancel(context.Cause(c.cut)) })()
	return c.Runner.Execute(ctx, r)
}

// workLog writes what a worker does: lines for a person, or JSON Lines.
type workLog struct {
	std    streams
	asJSON bool

	mu sync.Mutex
}

// workEvent is the JSON form of a durable.WorkerEvent.
type workEvent struct {
	Time  time.Time               `json:"time"`
	Event durable.WorkerEventKind `json:"event"`
	Run   *durable.Run            `json:"run,omitempty"`
	// DurationMS is how long the run was executed.
	DurationMS int64               `json:"duration_ms,omitempty"`
	Reconciled *durable.Reconciled `json:"reconciled,omitempty"`
	// JumpMS is by how much the clock was set.
	JumpMS int64  `json:"jump_ms,omitempty"`
	Error  string `json:"error,omitempty"`
}

func (l *workLog) note(text string) { l.line(l.std.err, "grapnel: "+timeline.Clean(text)) }

func (l *workLog) line(w io.Writer, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(w, text)
}

// observe reports an event.
func (l *workLog) observe(e durable.WorkerEvent) {
	if l.asJSON {
		if text, err := json.Marshal(workEventOf(e)); err == nil { //nolint:musttag // the run has the form of "runs list"
			l.line(l.std.out, string(text))
		}
		return
	}
	about := fmt.Sprintf("%s  %s %s", short(e.Run.ID), e.Run.Kind, e.Run.Name)
	switch e.Kind {
	case durable.WorkerClaimed:
		text := "claimed   " + about
		if e.Run.Attempts > 1 {
			text += fmt.Sprintf(", attempt %d", e.Run.Attempts)
		}
		l.note(text)
	case durable.WorkerReleased:
		text := fmt.Sprintf("released  %s: %s after %s", about, e.Run.Status, e.Took.Round(time.Millisecond))
		if e.Err != nil {
			text += ": " + explainError(e.Err).Error()
		}
		l.note(text)
	case durable.WorkerReconciled:
		r := e.Reconciled
		l.note(fmt.Sprintf("reconciled: %d expired leases, %d expired questions, %d due, %d late", r.Expired, r.Overdue, r.Due, r.Late))
	case durable.WorkerClockJumped:
		direction := "ahead"
		if e.Jump < 0 {
			direction = "back"
		}
		l.note(fmt.Sprintf("the clock was set %s by %s: deadlines and leases follow it", direction, e.Jump.Abs().Round(time.Second)))
	case durable.WorkerFailed:
		l.note(fmt.Sprintf("the worker tries again: %v", explainError(e.Err)))
	}
}

func workEventOf(e durable.WorkerEvent) workEvent {
	out := workEvent{Time: time.Now().UTC(), Event: e.Kind, DurationMS: e.Took.Milliseconds(), JumpMS: e.Jump.Milliseconds()}
	if e.Run.ID != "" {
		out.Run = &e.Run
	}
	if e.Reconciled.Changed() {
		out.Reconciled = &e.Reconciled
	}
	if e.Err != nil {
		out.Error = explainError(e.Err).Error()
	}
	return out
}

// describe returns the kinds that a worker executes.
func (*workLog) describe(o durable.WorkerOptions) string {
	text := strings.Join(textsOf(slices.Sorted(maps.Keys(o.Runners))), " and ")
	if len(o.Labels) > 0 {
		text += ", with the labels " + labelText(o.Labels)
	}
	return fmt.Sprintf("kind %s, at most %d at once", text, o.Capacity)
}
