package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/worker"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/pipeline"
	"github.com/grapnel-go/grapnel/registry"
)

// sessionRun runs a session in this process.
type sessionRun struct {
	*pipelines

	sessionLook

	kept  *storage.Store
	about durable.Run
	names []string      // of the pipelines
	left  []agent.RunID // the pipelines that other sessions have left behind
	in    *agents.Input
	view  *sessionView  // nil when lines are written
	stop  func()        // suspends the session
	asked chan struct{} // has an element when there may be a new question for the person at the terminal

	mu       sync.Mutex
	followed map[agent.RunID]int64 // by run, the number of the last event that was written
}

// run runs the session until it has ended or is suspended.
func (s *sessionRun) run(ctx context.Context) error {
	var again func(name string) bool
	if s.redo {
		again = action.Kept
	}
	folder, err := folderKey()
	if err != nil {
		return err
	}
	keeper := durable.Keep(s.kept.Direct, durable.Options{Events: events.Stored, Again: again})
	watch, stop, err := s.watchGates(ctx, keeper.Owner(), folder)
	if err != nil {
		return err
	}
	defer stop()
	runners := pipeline.Runners(s.kept.Direct, keeper, pipeline.Options{
		Pipelines: s.names, Host: Host(), Events: events.Stored, Again: again,
		GateHost: func(session durable.Run) string { return cmp.Or(session.Demands[sessionDemand], folder) },
		Agents: func(ctx context.Context, stage pipeline.AgentStage) (*agent.Agent, func() error, error) {
			return s.buildAgent(ctx, keeper, stage)
		},
	})
	cut, cutOff := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cutOff(nil)
	for kind, runner := range runners {
		runners[kind] = &worker.Cuttable{Runner: runner, Cut: cut, Once: false}
	}
	w, err := durable.NewWorker(s.kept.Direct, durable.WorkerOptions{
		Runners: runners, Labels: map[string]string{sessionDemand: s.key(), folderDemand: folder},
		Poll: 200 * time.Millisecond, Watch: watch, Observe: s.observe,
	})
	if err != nil {
		return err
	}
	claiming, stopClaiming := context.WithCancel(ctx)
	defer stopClaiming()
	s.in, s.stop, s.asked = agents.NewInput(s.Std), stopClaiming, make(chan struct{}, 1)
	closeView, err := s.openView(ctx)
	if err != nil {
		return err
	}
	defer closeView()
	release := console.OnSignal(func(before int, _ *console.SignalError) bool {
		switch before {
		case 0:
			stopClaiming()
			go s.note("Suspending: the session stops when its current work is done. Interrupt again to cut it off.")
		case 1:
			cutOff(agent.ErrSuspended)
		default:
			return false
		}
		return true
	}, func() { s.in.Restore(); s.showCursor() })
	defer release()
	var working sync.WaitGroup
	working.Go(func() { _ = w.Run(claiming) }) // it returns nil
	working.Go(func() { s.stopWhenIdle(claiming, stopClaiming) })
	if s.in.Terminal != nil && !s.asJSON && !s.noWait {
		working.Go(func() { s.askPerson(claiming) })
	}
	watching := s.follow(claiming)
	if watching == nil {
		watching = s.awaitSpawned(claiming, s.about.ID)
	}
	if watching == nil {
		watching = s.awaitLeft(claiming)
	}
	broken := watching != nil && !errors.Is(watching, context.Canceled)
	w.Drain()
	stopClaiming()
	working.Wait()
	closeView()
	if broken {
		return watching
	}
	if s.noWait {
		if err := s.writeRest(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return s.finish(context.WithoutCancel(ctx))
}

// runSession runs a session whose lock this process has.
func (p *pipelines) runSession(ctx context.Context, k *storage.Store, about durable.Run, look sessionLook) error {
	names, err := pipeline.SessionNames(ctx, k.Store, about.ID)
	if err == nil {
		err = freeSession(ctx, k, about)
	}
	if err != nil {
		return err
	}
	s := &sessionRun{pipelines: p, sessionLook: look, kept: k, about: about, names: names}
	release, err := s.adopt(ctx)
	defer release()
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// adopt lets this process also execute the pipelines that other sessions have left behind. Release ends their locks.
func (s *sessionRun) adopt(ctx context.Context) (release func(), err error) {
	var unlocks []func()
	release = func() {
		for _, unlock := range unlocks {
			unlock()
		}
	}
	left, err := leftBehind(ctx, s.kept, "")
	if err != nil {
		return release, err
	}
	for _, child := range left {
		if child.ID == s.about.ID {
			continue
		}
		_, unlock, err := lock(ctx, s.kept, child)
		if err != nil {
			continue // another process executes it
		}
		unlocks = append(unlocks, unlock)
		names, err := pipeline.SessionNames(ctx, s.kept.Store, child.ID)
		if err == nil {
			err = freeSession(ctx, s.kept, child)
		}
		if err != nil {
			return release, err
		}
		s.names, s.left = append(s.names, names...), append(s.left, child.ID)
		s.note(child.Labels[pipeline.LabelSession] + " continues, too: the session that has started it has ended.")
	}
	return release, nil
}

// openView begins to draw the view of the session, if standard output is a terminal. The returned func draws it a last time.
func (s *sessionRun) openView(ctx context.Context) (closeView func(), err error) {
	if s.asJSON || !isLive(s.Std.Out) {
		return func() {}, nil
	}
	if s.view, err = newSessionView(ctx, s.Std, s.kept, s.about); err != nil {
		return nil, err
	}
	drawing, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { _ = s.view.run(drawing) }) // the session continues without its view
	return func() {
		stop()
		done.Wait()
		s.view.close(context.WithoutCancel(ctx))
	}, nil
}

// showCursor shows the cursor that the view hides.
func (s *sessionRun) showCursor() {
	if s.view != nil {
		s.view.showCursor()
	}
}

// key returns the label of the workers of the session.
func (s *sessionRun) key() string { return cmp.Or(s.about.Demands[sessionDemand], sessionKey(s.dir)) }

// stopWhenIdle calls stop when the session is paused and nothing of it runs, or when it waits for gates and the command shall not.
func (s *sessionRun) stopWhenIdle(ctx context.Context, stop func()) {
	every := time.NewTicker(300 * time.Millisecond)
	defer every.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if s.noWait {
			if waits, err := isAtGates(ctx, s.kept, s.about.ID); err == nil && waits {
				stop()
				return
			}
		}
		about, err := s.kept.Store.Run(ctx, s.about.ID)
		if err != nil || !about.Paused || about.Owner != "" {
			continue
		}
		below, err := s.kept.Store.List(ctx, durable.Filter{
			Parent: s.about.ID, Status: []durable.Status{durable.StatusReady, durable.StatusRunning}, Limit: 1,
		})
		if err == nil && len(below) == 0 {
			stop()
		}
	}
}

// awaitSpawned waits until the pipelines have ended that hooks of a session have started.
func (s *sessionRun) awaitSpawned(ctx context.Context, id agent.RunID) error {
	if s.noWait {
		return nil
	}
	for child, err := range s.kept.Runs(ctx, durable.Filter{Parent: id, Kind: durable.KindPipeline}) {
		if err == nil {
			err = s.awaitEnd(ctx, child.ID, child.Events)
		}
		if err == nil {
			err = s.awaitSpawned(ctx, child.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitEnd waits until a run has ended that has had a number of events.
func (s *sessionRun) awaitEnd(ctx context.Context, run agent.RunID, after int64) error {
	for _, err := range durable.Watch(ctx, s.kept.Store, run, after) {
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitLeft waits until the pipelines have ended that other sessions have left behind.
func (s *sessionRun) awaitLeft(ctx context.Context) error {
	for _, id := range s.left {
		if err := s.awaitEnd(ctx, id, 0); err != nil {
			return err
		}
	}
	return nil
}

// finish writes how the session has ended and returns the exit code.
func (s *sessionRun) finish(ctx context.Context) error {
	about, err := s.kept.Store.Run(ctx, s.about.ID)
	if err != nil {
		return err
	}
	status, err := pipeline.StatusOf(ctx, s.kept.Store, about)
	if err != nil {
		return err
	}
	switch about.Status {
	case durable.StatusCompleted:
		return nil
	case durable.StatusFailed, durable.StatusCancelled:
		return errors.New(strings.TrimSuffix(fmt.Sprintf("session %s: %s: %s", status.Session, status.Reason, status.Error), ": "))
	case durable.StatusStopped:
		s.note(fmt.Sprintf("session %s: %s: %s", status.Session, status.Reason, status.Error))
		return console.Exit(console.ExitStopped)
	default:
		if about.Paused {
			s.note(fmt.Sprintf("Session %s is paused: \"grapnel pipeline resume %s%s\" continues it.", status.Session, status.Session, s.kept.Address.Flag()))
			return nil
		}
		if gates, err := allOpenGates(ctx, s.kept, status); err != nil || len(gates) > 0 {
			s.note(fmt.Sprintf("Session %s waits for a gate: start it again to continue it.", status.Session))
			return console.Exit(console.ExitParked)
		}
		s.note(fmt.Sprintf("Session %s is suspended: start it again to continue it.", status.Session))
		return console.Exit(console.ExitSuspended)
	}
}

// buildAgent builds the agent of a stage.
func (s *sessionRun) buildAgent(ctx context.Context, keeper *durable.Keeper, stage pipeline.AgentStage) (*agent.Agent, func() error, error) {
	return BuildStage(ctx, keeper, s.kept.Direct, stage, func(registry.Definition) error { return nil })
}

// BuildStage builds the agent of a stage for one iteration, if check accepts its definition.
func BuildStage(
	ctx context.Context, keeper *durable.Keeper, waivers waiver.Source, stage pipeline.AgentStage, check func(registry.Definition) error,
) (*agent.Agent, func() error, error) {
	o := &agents.Options{File: stage.Path, Texts: map[string]string{stage.Path: stage.Text}, Color: "auto", Dir: stage.Workspace}
	file, err := o.Resolve()
	if err != nil {
		return nil, nil, err
	}
	file.Name = agents.AgentName(file.Definition)
	if err := check(file.Definition); err != nil {
		return nil, nil, err
	}
	m, err := agents.Build(ctx, file, agents.Watchers{
		Approver: agent.ParkApprover, Keeper: keeper, Rules: o.Rules, Parks: true, Waivers: waivers, Tools: stage.Tools,
		Dir: stage.Workspace, InStage: true,
	})
	if err != nil {
		return nil, nil, err
	}
	return m.Agent, m.Stop, nil
}

// observe reports what a worker could not do, and agents that wait for a person.
func (s *sessionRun) observe(e durable.WorkerEvent) {
	if e.Kind == durable.WorkerReleased && e.Run.Kind == durable.KindAgent && e.Run.Status == durable.StatusWaiting {
		s.note(fmt.Sprintf("%s waits for an answer: grapnel runs show %s%s", e.Run.Name, storage.Short(e.Run.ID), s.kept.Address.Flag()))
	}
	if e.Err != nil {
		s.note(fmt.Sprintf("%s %s: %v", e.Run.Kind, e.Run.Name, storage.ExplainError(e.Err)))
	}
}

func (s *sessionRun) note(text string) { s.line(s.Std.Err, "grapnel: "+timeline.Clean(text)) }

func (s *sessionRun) line(w io.Writer, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view != nil {
		s.view.above(func() { fmt.Fprintln(w, text) })
		return
	}
	fmt.Fprintln(w, text)
}
