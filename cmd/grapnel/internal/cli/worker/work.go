package worker

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

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/command"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/registry"
)

// flags are the flags of a worker.
type flags struct {
	labels       []string
	capacity     int
	once, asJSON bool
	grace, poll  time.Duration
	lease        time.Duration
	retain       string
	health       string
	gates        gateFlags
}

// New returns the command work.
func New(r *storage.Command) *cobra.Command {
	var o flags
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
		Args: console.Takes(1, console.Unlimited, "needs a file that defines an agent or commands"),
		RunE: func(c *cobra.Command, args []string) error {
			return console.WithTelemetry(c.Context(), "", r.Std.Err, func(ctx context.Context) error { return work(ctx, r, &o, args) })
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

// Definitions are the agents and commands of files, by their names.
type Definitions struct {
	Agents   map[string]string // the path of the file
	Commands map[string]*registry.Command
	files    map[string]string // of a command
}

// Load reads files with agents and commands.
func Load(paths []string) (*Definitions, error) {
	d := &Definitions{Agents: map[string]string{}, Commands: map[string]*registry.Command{}, files: map[string]string{}}
	var wrong []error
	for _, path := range paths {
		if err := d.readFile(path); err != nil {
			wrong = append(wrong, err)
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, console.Usage(err)
	}
	return d, nil
}

func (d *Definitions) readFile(path string) error {
	text, err := registry.ReadFile(path)
	if err != nil {
		return err
	}
	if !registry.IsCommandFile(path, text) {
		file, err := agents.NewRegistry().Parse(path, text)
		if err != nil {
			return err
		}
		name := nameOfAgent(path, file)
		if other, twice := d.Agents[name]; twice {
			return fmt.Errorf("%s: agent %q is already defined in %s: give it another name", path, name, other)
		}
		d.Agents[name] = path
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
		d.Commands[name], d.files[name] = c, path
	}
	return nil
}

// nameOfAgent returns the name of the agent of a file.
func nameOfAgent(path string, file *registry.File) string {
	return cmp.Or(file.Name, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
}

// All returns the commands, by their names.
func (d *Definitions) All() map[string]command.Command {
	return lo.MapValues(d.Commands, func(c *registry.Command, _ string) command.Command { return c.Command() })
}

// Check returns an error for a name that the files do not define.
func (d *Definitions) Check(kind durable.Kind, name string) error {
	known := slices.Sorted(maps.Keys(d.Agents))
	if kind == durable.KindCommand {
		known = slices.Sorted(maps.Keys(d.Commands))
	}
	if slices.Contains(known, name) {
		return nil
	}
	if len(known) == 0 {
		return fmt.Errorf("no %s %q: the files define none", kind, name)
	}
	return errors.New(yamlfile.Unknown(string(kind), name, known))
}

// RetainOf returns the duration of the flag --retain; zero without it.
func RetainOf(flag string) (time.Duration, error) {
	if flag == "" {
		return 0, nil
	}
	retain, err := console.DurationOf(flag)
	if err != nil || retain == 0 {
		return 0, fmt.Errorf("--retain is %q: it must be a duration, such as 12h or 30d", flag)
	}
	return retain, nil
}

// work executes runs until the worker is stopped.
func work(ctx context.Context, r *storage.Command, o *flags, paths []string) error {
	labels, err := console.LabelsOf("--label", o.labels)
	switch {
	case err != nil:
	case o.capacity <= 0:
		err = fmt.Errorf("--capacity is %d: it must be above zero", o.capacity)
	case o.grace <= 0 || o.poll <= 0 || o.lease <= 0:
		err = errors.New("--grace, --poll and --lease must be above zero")
	}
	var retain time.Duration
	if err == nil {
		retain, err = RetainOf(o.retain)
	}
	if err != nil {
		return console.Usage(err)
	}
	d, err := Load(paths)
	if err != nil {
		return err
	}
	return r.WithDirect(ctx, true, func(k *storage.Store) (err error) {
		keeper := durable.Keep(k.Direct, durable.Options{Events: events.Stored, Lease: o.lease})
		job := &Job{Log: &Log{Std: r.Std, AsJSON: o.asJSON}, Once: o.once, Health: o.health}
		built, stopAgents, err := job.buildAgents(ctx, keeper, k.Direct, d)
		defer func() { err = errors.Join(err, stopAgents()) }()
		if err != nil {
			return err
		}
		runners := map[durable.Kind]durable.Runner{}
		if len(d.Agents) > 0 {
			runners[durable.KindAgent] = durable.AgentRunner(keeper, built)
		}
		if len(d.Commands) > 0 {
			if runners[durable.KindCommand], err = command.Runner(keeper, d.All()); err != nil {
				return console.Usage(err)
			}
		}
		var scheduler durable.Scheduler
		if !o.once { // which claims in the store
			var closeScheduler func() error
			if scheduler, closeScheduler, err = openScheduler(ctx, k.Direct, os.Getenv); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeScheduler()) }()
		}
		watch, stop, err := o.gates.watch(ctx, k.Direct, keeper.Owner(), o, job.Log)
		if err != nil {
			return console.Usage(err)
		}
		defer stop()
		return job.Run(ctx, k.Direct, durable.WorkerOptions{
			Watch: watch, Scheduler: scheduler, Runners: runners, Labels: labels, Capacity: o.capacity, Lease: o.lease,
			Poll: o.poll, Grace: o.grace, Retain: retain,
		})
	})
}

// Job is one execution of a worker.
type Job struct {
	Log    *Log
	Once   bool   // it ends when no run is ready
	Health string // the address where it serves its health; empty for none

	cut context.Context //nolint:containedctx // it is a signal, not of any call
}

// buildAgents builds the agents of files. Stop must be called, also after an error.
func (s *Job) buildAgents(
	ctx context.Context, keeper *durable.Keeper, waivers waiver.Source, d *Definitions,
) (all durable.AgentMap, stop func() error, err error) {
	all = durable.AgentMap{}
	var built []*agents.Built
	stop = func() error {
		return errors.Join(lo.Map(built, func(m *agents.Built, _ int) error { return m.Stop() })...)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Agents)) {
		o := &agents.Options{File: d.Agents[name], Color: "auto"}
		file, err := o.Resolve()
		if err != nil {
			return all, stop, err
		}
		file.Name = name
		m, err := agents.Build(ctx, file, agents.Watchers{
			Approver: agent.ParkApprover, Keeper: keeper, Rules: o.Rules, Parks: true, Waivers: waivers,
		})
		if err != nil {
			return all, stop, fmt.Errorf("agent %q: %w", name, err)
		}
		if m.Recording != nil {
			return all, stop, errors.Join(console.Usagef("agent %q: a worker cannot play a recording: name a model", name), m.Close())
		}
		built = append(built, m)
		for _, note := range m.Notes {
			s.Log.Note(name + ": " + note)
		}
		all[name] = m.Agent
	}
	return all, stop, nil
}

// Run runs a worker until it is stopped, or once until no run is ready, and logs what it does.
func (s *Job) Run(ctx context.Context, store durable.Holder, options durable.WorkerOptions) error {
	options.Observe = s.Log.Observe
	cut, cutOff := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cutOff(nil)
	s.cut = cut
	for kind, runner := range options.Runners {
		options.Runners[kind] = &Cuttable{runner, cut, s.Once}
	}
	w, err := durable.NewWorker(store, options)
	if err != nil {
		return console.Usage(err)
	}
	if s.Health != "" {
		stop, err := serveHealth(ctx, s.Health, w, s.Log)
		if err != nil {
			return console.Usage(err)
		}
		defer stop()
	}
	claiming, stopClaiming := context.WithCancel(ctx)
	defer stopClaiming()
	var by *console.SignalError
	var mu sync.Mutex
	release := console.OnSignal(func(before int, signal *console.SignalError) bool {
		switch before {
		case 0:
			stopClaiming()
			go s.Log.Note("Suspending: runs stop at the end of their steps. Interrupt again to cut them off.")
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
		s.Log.Note("Draining: the worker claims no more runs.")
		if s.Once {
			stopClaiming()
			return
		}
		w.Drain()
	})()
	s.Log.Note(fmt.Sprintf("Worker %s executes runs of %s.", w.Owner(), s.Log.describe(options)))
	if s.Once {
		err = s.once(claiming, cutOff, w, options)
	} else {
		err = w.Run(claiming)
	}
	mu.Lock()
	defer mu.Unlock()
	if err == nil && by != nil {
		return console.Exit(by.Code())
	}
	return err
}

// once executes the ready runs. When ctx is done, it suspends them.
func (s *Job) once(ctx context.Context, cutOff context.CancelCauseFunc, w *durable.Worker, options durable.WorkerOptions) error {
	defer context.AfterFunc(ctx, func() {
		for _, r := range options.Runners {
			r.Suspend()
		}
		late := time.AfterFunc(options.Grace, func() { cutOff(agent.ErrSuspended) })
		context.AfterFunc(s.cut, func() { late.Stop() })
	})()
	err := w.ExecuteReady(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Cuttable is a Runner whose runs are cut off when cut is done.
type Cuttable struct {
	durable.Runner

	Cut  context.Context //nolint:containedctx // it is a signal, not of any call
	Once bool            // the context of the worker ends only the claiming
}

// Execute executes a run.
func (c *Cuttable) Execute(ctx context.Context, r durable.Run) error {
	if c.Once {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.Cut, func() { cancel(context.Cause(c.Cut)) })()
	return c.Runner.Execute(ctx, r)
}

// Log writes what a worker does: lines for a person, or JSON Lines.
type Log struct {
	Std    console.Streams
	AsJSON bool

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

// Note writes a message for people.
func (l *Log) Note(text string) { l.Line(l.Std.Err, "grapnel: "+timeline.Clean(text)) }

// Line writes a line. It is safe for concurrent use.
func (l *Log) Line(w io.Writer, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(w, text)
}

// Observe reports an event.
func (l *Log) Observe(e durable.WorkerEvent) {
	if l.AsJSON {
		if text, err := json.Marshal(workEventOf(e)); err == nil { //nolint:musttag // the run has the form of "runs list"
			l.Line(l.Std.Out, string(text))
		}
		return
	}
	about := fmt.Sprintf("%s  %s %s", storage.Short(e.Run.ID), e.Run.Kind, e.Run.Name)
	switch e.Kind {
	case durable.WorkerClaimed:
		text := "claimed   " + about
		if e.Run.Attempts > 1 {
			text += fmt.Sprintf(", attempt %d", e.Run.Attempts)
		}
		l.Note(text)
	case durable.WorkerReleased:
		text := fmt.Sprintf("released  %s: %s after %s", about, e.Run.Status, e.Took.Round(time.Millisecond))
		if e.Err != nil {
			text += ": " + storage.ExplainError(e.Err).Error()
		}
		l.Note(text)
	case durable.WorkerReconciled:
		r := e.Reconciled
		l.Note(fmt.Sprintf("reconciled: %d expired leases, %d expired questions, %d due, %d late", r.Expired, r.Overdue, r.Due, r.Late))
	case durable.WorkerClockJumped:
		direction := "ahead"
		if e.Jump < 0 {
			direction = "back"
		}
		l.Note(fmt.Sprintf("the clock was set %s by %s: deadlines and leases follow it", direction, e.Jump.Abs().Round(time.Second)))
	case durable.WorkerFailed:
		l.Note(fmt.Sprintf("the worker tries again: %v", storage.ExplainError(e.Err)))
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
		out.Error = storage.ExplainError(e.Err).Error()
	}
	return out
}

// describe returns the kinds that a worker executes.
func (*Log) describe(o durable.WorkerOptions) string {
	text := strings.Join(console.TextsOf(slices.Sorted(maps.Keys(o.Runners))), " and ")
	if len(o.Labels) > 0 {
		text += ", with the labels " + console.LabelText(o.Labels)
	}
	return fmt.Sprintf("kind %s, at most %d at once", text, o.Capacity)
}
