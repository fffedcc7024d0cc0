package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/command"
	"github.com/grapnel-go/grapnel/internal/firing"
	"github.com/grapnel-go/grapnel/telemetry"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Options configure a worker's runners.
type Options struct {
	// Pipelines are the names of the pipelines whose sessions the worker executes.
	Pipelines []string
	// Agents builds a stage's agent for one iteration. The agent must use the keeper. CloseAgent, unless nil, is called when the
	// iteration has ended or waits. Without Agents, iterations by agents fail.
	Agents func(ctx context.Context, s AgentStage) (a *agent.Agent, closeAgent func() error, err error)
	// Host performs the hooks' actions. Its Dir is the session's workspace. If it parks gates, workers must watch them: see package
	// durable/gate.
	Host action.Host
	// GateHost, unless nil, returns the host name in the waits for a session's gates. Only watchers with this name among their hosts
	// watch them. An empty name means the worker's host for files and commands, and any watcher for callbacks.
	GateHost func(session durable.Run) string
	// Events returns the stored form of hook events: see durable.Options. Nil stores none.
	Events func(e agent.Event) (durable.EventForm, bool)
	// Again, unless nil, reports whether work that a session's journal records as done, such as a hook's action, is done again when
	// the worker first takes the session: see durable.Options.Again and action.Kept. It must be safe for concurrent use.
	Again func(name string) bool
}

// AgentStage is a stage whose agent is needed.
type AgentStage struct {
	Pipeline, Stage string
	// Agent is the agent as the stage names it. Path is its file's path, and Text the file's content when the session began. Both
	// are empty for an agent without a file. If the pipeline file defines the agent, Path ends in .json and names that file.
	Agent      string
	Path, Text string
	// Workspace is the directory of the session's work.
	Workspace string
	// Tools are tools that the agent must have besides its own.
	Tools []toolexec.Tool
}

// Runners returns the runners that a worker needs for pipelines: for sessions, and for iterations, which are agent runs and command
// runs.
func Runners(store durable.Store, k *durable.Keeper, o Options) map[durable.Kind]durable.Runner {
	all := &runners{store: store, keeper: k, options: o, observer: telemetry.New(telemetry.Config{})}
	return map[durable.Kind]durable.Runner{
		durable.KindPipeline: &sessionRunner{all}, durable.KindAgent: &agentRunner{all}, durable.KindCommand: &commandRunner{all},
	}
}

// runners is the part that a worker's runners share.
type runners struct {
	store     durable.Store
	keeper    *durable.Keeper
	options   Options
	observer  agent.Observer // receives hook events
	suspended atomic.Bool
	repeated  sync.Map // the IDs of the runs for which Options.Again was asked
}

// again returns the function that decides which work a session repeats. After the first call for a session, it repeats none.
func (r *runners) again(id agent.RunID) func(name string) bool {
	if r.options.Again != nil {
		if _, before := r.repeated.LoadOrStore(id, true); !before {
			return r.options.Again
		}
	}
	return func(string) bool { return false }
}

// Owner returns the keeper's owner.
func (r *runners) Owner() string { return r.keeper.Owner() }

// Suspend suspends the keeper and all sessions.
func (r *runners) Suspend() {
	r.suspended.Store(true)
	r.keeper.Suspend()
}

// hasStage reports whether a name is a pipeline and a stage with a slash between them.
func (r *runners) hasStage(name string) bool {
	of, _, ok := strings.Cut(name, "/")
	return ok && slices.Contains(r.options.Pipelines, of)
}

// sessionRunner executes sessions.
type sessionRunner struct{ *runners }

// Has reports whether the worker executes the pipeline's sessions.
func (r *sessionRunner) Has(name string) bool { return slices.Contains(r.options.Pipelines, name) }

// Execute executes a session until it waits or has ended.
func (r *sessionRunner) Execute(ctx context.Context, about durable.Run) error {
	ctx, x := r.keeper.Open(ctx, about)
	defer x.Close()
	anyway := context.WithoutCancel(ctx) // for a cancelled run, too
	m, err := r.newMachine(anyway, x, about)
	if broken, ok := errors.AsType[*brokenError](err); ok {
		_ = x.End(anyway, durable.StatusFailed, agent.StopError, durable.Result{Error: broken.Error()})
		return nil // without its end, the lease expires
	}
	if err != nil {
		return err
	}
	return m.inSpan(ctx, func(ctx context.Context) error {
		err := m.run(ctx)
		if cancelled, ok := errors.AsType[*durable.CancelledError](context.Cause(ctx)); ok && m.at.Phase != "" {
			text := cancelled.Reason
			if text == string(Cancelled) { // no reason was given
				text = ""
			}
			return errors.Join(m.cancelChildren(anyway, cancelled.Reason), m.end(anyway, ending{Cancelled, text}))
		}
		if errors.Is(err, durable.ErrStale) {
			return nil
		}
		return err
	})
}

// replayAfterOf returns the last entry that a session's replay skips, given the session's waits: see machine.replayAfter.
func replayAfterOf(waits []durable.Wait) int64 {
	for _, w := range waits {
		var data waitData
		if w.Kind == durable.WaitChild && json.Unmarshal(w.Data, &data) == nil {
			return data.After
		}
	}
	return 0
}

// newMachine reads the session and its position.
func (r *sessionRunner) newMachine(ctx context.Context, x *durable.Execution, about durable.Run) (*machine, error) {
	s, err := readSession(ctx, r.store, about.ID)
	if err != nil {
		return nil, err
	}
	waits, err := x.Waits(ctx)
	if err != nil {
		return nil, err
	}
	after := replayAfterOf(waits)
	entries, err := x.Entries(ctx, after)
	if err != nil {
		return nil, err
	}
	at, _, err := lastPosition(entries)
	if err != nil {
		return nil, err
	}
	if at.Stage >= len(s.Stages) {
		return nil, &brokenError{fmt.Errorf("the position is in stage %d of %d", at.Stage+1, len(s.Stages))}
	}
	since, again := lastTransition(entries), r.again(about.ID)
	m := &machine{
		session: s, store: r.store, options: r.options, about: about, x: x,
		journal: firing.NewJournal(x, about.ID, about.Entries, entries, func(e durable.Entry) bool { return e.Seq >= since && again(e.Key) }),
		events:  &eventLog{session: s.name, form: r.options.Events, observer: r.observer}, files: &sessionFiles{projected: -1},
		suspended: func() bool { return r.suspended.Load() || x.Paused() }, at: at, last: at, waits: waits, replayAfter: after,
		since: since, stored: about.Status, trace: cmp.Or(at.Trace, about.Labels[labelTrace]),
	}
	err = m.countWaits(ctx)
	m.counted = m.at.usage
	return m, err
}

// stageOf returns the session and the stage of an iteration, given its run.
func (r *runners) stageOf(ctx context.Context, about durable.Run) (*session, int, error) {
	s, err := readSession(ctx, r.store, about.Parent)
	if err != nil {
		return nil, 0, fmt.Errorf("run %s: the session of the iteration: %w", about.ID, err)
	}
	stage, err := s.find(about.Labels[durable.LabelStage])
	if err != nil {
		return nil, 0, fmt.Errorf("run %s: %w", about.ID, err)
	}
	return s, stage, nil
}

// agentRunner executes iterations by agents.
type agentRunner struct{ *runners }

// Has reports whether the name is a stage's.
func (r *agentRunner) Has(name string) bool { return r.options.Agents != nil && r.hasStage(name) }

// Execute runs a stage's agent.
func (r *agentRunner) Execute(ctx context.Context, about durable.Run) (err error) {
	ctx = withTrace(ctx, about.Labels[labelTrace])
	s, i, err := r.stageOf(ctx, about)
	if err != nil {
		return err
	}
	stage := &s.Stages[i]
	wanted := s.agentStage(stage)
	wanted.Workspace = s.workspace
	if stage.Termination.Type == Judgment {
		wanted.Tools = []toolexec.Tool{newDecideTool()}
	}
	a, closeAgent, err := r.options.Agents(ctx, wanted)
	if closeAgent != nil {
		defer func() { err = errors.Join(err, closeAgent()) }()
	}
	if err != nil {
		ctx, x := r.keeper.Open(ctx, about)
		defer x.Close()
		if cancelled, ok := errors.AsType[*durable.CancelledError](context.Cause(ctx)); ok {
			return x.End(context.WithoutCancel(ctx), durable.StatusCancelled, agent.StopUser, durable.Result{Error: cancelled.Error()})
		}
		return fmt.Errorf("run %s: agent %q of stage %q: %w", about.ID, stage.Agent, stage.Name, err)
	}
	return durable.AgentRunner(r.keeper, durable.AgentMap{about.Name: a}).Execute(ctx, about)
}

// commandRunner executes iterations by commands.
type commandRunner struct{ *runners }

// Has reports whether the name is a stage's.
func (r *commandRunner) Has(name string) bool { return r.hasStage(name) }

// Suspend lets programs run to their ends. The worker kills programs that take too long.
func (*commandRunner) Suspend() {}

// Execute runs a stage's command.
func (r *commandRunner) Execute(ctx context.Context, about durable.Run) error {
	ctx = withTrace(ctx, about.Labels[labelTrace])
	s, i, err := r.stageOf(ctx, about)
	if err != nil {
		return err
	}
	data, _, err := durable.InputOf(ctx, r.store, about.ID)
	if err != nil {
		return err
	}
	var in commandInput
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("run %s: reading its input: %w", about.ID, err)
	}
	c, err := s.command(i, in.Variables)
	if err == nil {
		err = s.prepareCommand(in.Variables["STATUS"])
	}
	var runner durable.Runner
	if err == nil {
		runner, err = command.Runner(r.keeper, map[string]command.Command{about.Name: c})
	}
	if err != nil { // the program does not exist, and will not later
		_, x := r.keeper.Open(ctx, about)
		defer x.Close()
		_ = x.End(ctx, durable.StatusFailed, agent.StopError, durable.Result{Error: err.Error()})
		return nil
	}
	return runner.Execute(ctx, about)
}

// command returns a stage's command with the iteration's environment.
func (s *session) command(stage int, variables map[string]string) (command.Command, error) {
	own := s.Stages[stage].Command
	if own == nil {
		return command.Command{}, fmt.Errorf("stage %q has no command", s.Stages[stage].Name)
	}
	dir := s.workspace
	if own.Dir != "" && filepath.IsAbs(own.Dir) {
		dir = own.Dir
	} else if own.Dir != "" {
		dir = filepath.Join(dir, own.Dir)
	}
	path, err := lookUp(dir, own.Argv[0])
	return command.Command{
		Argv: append([]string{path}, own.Argv[1:]...), Dir: dir, Env: environment(own.Inherit, own.Env, variables), Timeout: own.Timeout,
		Repeat: own.Repeat == nil || *own.Repeat,
	}, err
}

// prepareCommand removes the decision that an earlier attempt has written.
func (s *session) prepareCommand(status string) error {
	err := s.base.Remove(status)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
