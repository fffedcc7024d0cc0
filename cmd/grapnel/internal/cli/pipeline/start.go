package pipeline

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/worker"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/gate"
	"github.com/grapnel-go/grapnel/pipeline"
	"github.com/grapnel-go/grapnel/registry"
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

// defaultCallbackPort is the port where callbacks arrive unless a hook names another one.
const defaultCallbackPort = 8765

// callbackPort returns the port that the hooks of a pipeline name for callbacks: the first one that is not the default.
func callbackPort(p *pipeline.Pipeline) (int, error) {
	plan, err := p.Plan(Host(), pipeline.SessionOptions{})
	for _, s := range plan {
		for _, r := range s.Hooks {
			if r.CallbackPort != 0 && r.CallbackPort != defaultCallbackPort {
				return r.CallbackPort, nil
			}
		}
	}
	return defaultCallbackPort, err
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

// writeRest writes the events so far that were not followed.
func (s *sessionRun) writeRest(ctx context.Context) error {
	sources := []*eventSource{{run: s.about.ID, after: s.followedOf(s.about.ID)}}
	err := eachBelow(ctx, s.kept, s.about.ID, "", func(below durable.Run, name string) {
		sources = append(sources, &eventSource{run: below.ID, name: name, after: s.followedOf(below.ID)})
	})
	if err != nil {
		return err
	}
	return eachEvent(ctx, s.kept, sources, func(e durable.Event, from *eventSource) error {
		return s.writeEvent(e, from.name, from.run == s.about.ID)
	})
}

// followedOf returns the number of the last event of a run that was written.
func (s *sessionRun) followedOf(run agent.RunID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.followed[run]
}

func (s *sessionRun) setFollowed(run agent.RunID, seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed == nil {
		s.followed = map[agent.RunID]int64{}
	}
	s.followed[run] = seq
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

// callbackFile is the file of a session with the address of its callbacks, so that links stay valid over a restart.
const callbackFile = "callbacks"

// watchGates returns what watches the gates of the session, and serves their callbacks until stop is called.
func (s *sessionRun) watchGates(ctx context.Context, owner, folder string) (watch func(context.Context), stop func(), err error) {
	key, err := s.callbackKey()
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(s.dir, callbackFile)
	before, _ := sessionBase().ReadFile(path, 1<<10) // there is none at first
	var listener net.Listener
	for _, address := range []string{strings.TrimSpace(string(before)), fmt.Sprintf("127.0.0.1:%d", cmp.Or(s.port, defaultCallbackPort)), "127.0.0.1:0"} {
		if address == "" {
			continue
		}
		if listener, err = worker.ListenLocally(ctx, "callbacks", address); err == nil {
			break
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if err := sessionBase().WriteFile(path, []byte(listener.Addr().String()+"\n")); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("storing the address of callbacks: %w", err), listener.Close())
	}
	stop = worker.ServeCallbacks(listener, s.kept.Direct, gate.HandlerOptions{})
	host, err := os.Hostname()
	var w *gate.Watcher
	if err == nil {
		w, err = gate.NewWatcher(s.kept.Direct, gate.Options{
			Host: Host(), Hosts: []string{s.key(), folder, host}, Owner: owner, Callbacks: "http://" + listener.Addr().String(), Key: key,
		})
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return w.Run, stop, nil
}

// callbackKey returns the secret of the tokens of the session, which it makes at the first start. It is not among the files of the
// session, which agents may read: an agent that knows it could answer its own gates.
func (s *sessionRun) callbackKey() ([]byte, error) {
	folder, err := storage.StateFolder()
	if err != nil {
		return nil, fmt.Errorf("the secret of callbacks: %w", err)
	}
	path := filepath.Join(folder, "callbacks", s.key())
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key = []byte(rand.Text())
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = os.WriteFile(path+".new", key, 0o600) // the file never has a part of the key
		}
		if err == nil {
			err = os.Rename(path+".new", path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the secret of callbacks: %w", err)
	}
	return key, nil
}

// follow writes the events of the session, of its parallel stages, and of the pipelines that it waits for, until it has ended.
func (s *sessionRun) follow(ctx context.Context) error {
	var others sync.WaitGroup
	below, cancel := context.WithCancel(ctx)
	defer others.Wait()
	defer cancel()
	var also func(run agent.RunID, after int64, name string)
	begin := func(run agent.RunID, name string) { also(run, 0, name) }
	also = func(run agent.RunID, after int64, name string) {
		others.Go(func() { _ = s.followRun(below, run, after, name, begin) }) // the session itself reports errors
	}
	if s.about.Events > 0 {
		if err := eachBelow(ctx, s.kept, s.about.ID, "", func(part durable.Run, name string) {
			s.setFollowed(part.ID, part.Events)
			if !part.Status.Ended() {
				also(part.ID, part.Events, name)
			}
		}); err != nil {
			return err
		}
	}
	s.setFollowed(s.about.ID, s.about.Events)
	signal(s.asked) // it may have waited for a person before
	err := s.followRun(ctx, s.about.ID, s.about.Events, "", begin)
	if err == nil && !s.noWait {
		others.Wait() // they have ended, but their last events may not be written
	}
	return err
}

// eachBelow calls do with the stages of parallel blocks below a run, and with the pipelines that hooks have started. The name is what
// their lines begin with: the names of the pipelines below that of the session; empty for its own stages.
func eachBelow(ctx context.Context, k *storage.Store, run agent.RunID, name string, do func(below durable.Run, name string)) error {
	for below, err := range k.Runs(ctx, durable.Filter{Parent: run, Kind: durable.KindPipeline}) {
		if err != nil {
			return err
		}
		name := name
		if below.Labels[durable.LabelStage] == "" {
			name += below.Name + "/"
		}
		do(below, name)
		if err := eachBelow(ctx, k, below.ID, name, do); err != nil {
			return err
		}
	}
	return nil
}

// signal puts an element into a channel that has room for one, unless there is one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// askPerson asks the person at the terminal about the gates of people below the session, one after the other, until ctx is done.
func (s *sessionRun) askPerson(ctx context.Context) {
	for {
		gates, err := s.gatesOfPeople(ctx)
		if err == nil && len(gates) > 0 {
			if !s.askAbout(ctx, gates[0]) {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-s.asked:
		}
	}
}

// gatesOfPeople returns the open gates of people.
func (s *sessionRun) gatesOfPeople(ctx context.Context) ([]openGate, error) {
	about, err := s.kept.Store.Run(ctx, s.about.ID)
	if err != nil || about.Status.Ended() {
		return nil, err
	}
	status, err := pipeline.StatusOf(ctx, s.kept.Store, about)
	if err != nil {
		return nil, err
	}
	open, err := allOpenGates(ctx, s.kept, status)
	return lo.Filter(open, func(g openGate, _ int) bool { return g.For == durable.WaitApproval }), err
}

// askAbout asks about a gate until it is answered, here or elsewhere. It returns false when no more questions can be asked.
func (s *sessionRun) askAbout(ctx context.Context, g openGate) bool {
	if s.view != nil {
		defer s.view.hold(ctx)()
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		defer cancel()
		for s.isOpen(asking, g) {
			select {
			case <-asking.Done():
				return
			case <-time.After(300 * time.Millisecond):
			}
		}
	})
	s.in.Keys.Forget(s.in.Std.In) // earlier input does not answer this question
	s.in.Renew()
	for {
		said, err := s.in.Line(asking, timeline.Clean(cmp.Or(g.Reason, "Go on?"))+" [y/n] ")
		if errors.Is(err, agents.ErrInterrupted) {
			s.stop()
		}
		if err != nil {
			return ctx.Err() == nil && asking.Err() != nil
		}
		verdict, known := map[string]agent.ApprovalVerdict{
			"y": agent.Approve, "yes": agent.Approve, "n": agent.RejectAndContinue, "no": agent.RejectAndContinue,
		}[strings.ToLower(strings.TrimSpace(said))]
		if !known {
			continue
		}
		err = durable.Approve(ctx, s.kept.Control, g.run, g.Wait, agent.Approval{Verdict: verdict, By: console.UserName(), Identity: console.IdentityName()})
		if err != nil && s.isOpen(ctx, g) { // otherwise it was answered elsewhere
			s.note(storage.ExplainError(err).Error())
			<-asking.Done() // such as a gate whose time is over: the session goes on, and may have other gates
			return ctx.Err() == nil
		}
		return true
	}
}

// isOpen reports whether a gate has no answer yet, and its deadline has not passed.
func (s *sessionRun) isOpen(ctx context.Context, g openGate) bool {
	waits, err := s.kept.Store.Waits(ctx, g.run)
	return err != nil || lo.SomeBy(waits, func(w durable.Wait) bool { return w.ID == g.Wait && w.Answer == nil })
}

// followRun writes the events of a run until it has ended. Its lines begin with the name: see eachBelow. Below is called with each run
// of a parallel stage, and of a pipeline that the run waits for.
func (s *sessionRun) followRun(ctx context.Context, id agent.RunID, after int64, name string, below func(run agent.RunID, name string)) error {
	top := id == s.about.ID
	for e, err := range durable.Watch(ctx, s.kept.Store, id, after) {
		if err != nil {
			return err
		}
		if err := s.writeEvent(e, name, top); err != nil {
			return err
		}
		s.setFollowed(id, e.Seq)
		switch e.Name {
		case "pipeline.waiting":
			if signal(s.asked); s.noWait && top {
				return nil
			}
		case "pipeline.stage_start", "pipeline.spawned":
			var d sessionEvent
			if json.Unmarshal(e.Data, &d) == nil {
				below(d.Run, name+lo.Ternary(e.Name == "pipeline.spawned", d.Why+"/", ""))
			}
		}
	}
	return nil
}

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
	ctx context.Context, keeper *durable.Keeper, waivers durable.Audits, stage pipeline.AgentStage, check func(registry.Definition) error,
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

// sessionEvent is the data of an event of a session.
type sessionEvent struct {
	Stage     string      `json:"stage"`
	Iteration int         `json:"iteration"`
	Run       agent.RunID `json:"run"`
	Decision  string      `json:"decision"`
	Why       string      `json:"why"`
	Changed   int         `json:"changed_files"`
	Reason    string      `json:"reason"`
	Error     errorText   `json:"error"`
	For       string      `json:"for"`
	Hook      string      `json:"hook"`
}

// errorText is the error of an event: a text, or an object with a text in the events of hooks.
type errorText string

// UnmarshalJSON reads both forms.
func (t *errorText) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*t = errorText(text)
		return nil
	}
	var object struct {
		Text string `json:"text"`
	}
	err := json.Unmarshal(data, &object)
	*t = errorText(object.Text)
	return err
}

// writeEvent writes an event as a line, or updates the view. The line begins with the name, unless the run is that of the session: see
// eachBelow.
func (s *sessionRun) writeEvent(e durable.Event, name string, top bool) error {
	if s.asJSON {
		object, err := events.Object(e)
		if err == nil {
			s.line(s.Std.Out, string(object))
		}
		return err
	}
	if s.view != nil {
		signal(s.view.updates)
		return nil
	}
	var d sessionEvent
	_ = json.Unmarshal(e.Data, &d) // events.Object checks it; what is missing is not shown
	var text string
	at, of := fmt.Sprintf("%s%s %d", name, d.Stage, d.Iteration), lo.Ternary(name == "", "", strings.TrimSuffix(name, "/")+": ")
	switch e.Name {
	case "pipeline.session_start":
		text = of + "session started"
	case "pipeline.stage_restart":
		text = name + d.Stage + ": begins again"
	case "pipeline.stage_start":
		text = fmt.Sprintf("%s%s: started %s", name, d.Stage, storage.Short(d.Run))
	case "pipeline.iteration_start":
		text = fmt.Sprintf("%s: started %s", at, storage.Short(d.Run))
	case "pipeline.iteration_complete":
		text = at + ": complete"
		if d.Decision != "" {
			text += ", decided " + d.Decision
		}
		if d.Changed > 0 {
			text += fmt.Sprintf(", %s changed", console.Plural(d.Changed, "file"))
		}
	case "pipeline.iteration_failed":
		text = at + ": failed: " + string(d.Error)
	case "pipeline.spawned":
		text = fmt.Sprintf("%s: started pipeline %s, %s", at, d.Why, storage.Short(d.Run))
	case "pipeline.waiting":
		text = at + ": waits for a gate: " + strings.TrimSuffix(d.For+": "+d.Why, ": ")
	case "pipeline.stage_complete":
		text = strings.TrimSuffix(at, " 0") + ": stage complete: " + d.Why
	case "pipeline.session_complete":
		if !top && name == "" {
			return nil // a stage of a block is no session for the user
		}
		text = of + "session ended: " + d.Reason
	case "hook.failed", "hook.blocked", "hook.timeout":
		text = of + strings.TrimSuffix(fmt.Sprintf("hook %s: %s: %s", d.Hook, strings.TrimPrefix(e.Name, "hook."), d.Error), ": ")
	default:
		return nil
	}
	text = strings.ReplaceAll(text, "\n", " ") // one event, one line
	s.line(s.Std.Out, timeline.Clean(e.At.Local().Format("15:04:05")+"  "+text))
	return nil
}

// lockFile is the name of the file that the process of a session locks.
const lockFile = "lock"

func lockPath(dir string) string { return filepath.Join(dir, lockFile) }
