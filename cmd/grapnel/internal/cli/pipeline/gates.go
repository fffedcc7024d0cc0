package pipeline

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/worker"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/gate"
	"github.com/grapnel-go/grapnel/pipeline"
)

// openGate is a gate that a session, or a stage of its parallel block, waits for.
type openGate struct {
	pipeline.WaitingGate

	run agent.RunID
}

// describe returns a gate for a person.
func (g openGate) describe() string {
	return strings.TrimSuffix(fmt.Sprintf("%s of %s: %s", g.For, g.Hook, g.Reason), ": ")
}

// openGates returns the open gates of a session and its parallel stages.
func openGates(s pipeline.Status) (all []openGate) {
	for _, g := range s.WaitsFor {
		if g.For != durable.WaitChild {
			all = append(all, openGate{g, s.Run})
		}
	}
	for _, part := range s.Parts {
		all = append(all, openGates(part)...)
	}
	return all
}

// statusAndGates returns the status of a session, and its open gates with those below it.
func statusAndGates(ctx context.Context, k *storage.Store, about durable.Run) (s pipeline.Status, all []openGate, err error) {
	if s, err = pipeline.StatusOf(ctx, k.Store, about); err == nil {
		all, err = allOpenGates(ctx, k, s)
	}
	return s, all, err
}

// allOpenGates returns a session's open gates, with those in its parallel stages and in pipelines that its hooks have started.
func allOpenGates(ctx context.Context, k *storage.Store, s pipeline.Status) (all []openGate, err error) {
	all = openGates(s)
	for _, above := range append([]pipeline.Status{s}, s.Parts...) {
		below := k.Runs(ctx, durable.Filter{
			Parent: above.Run, Kind: durable.KindPipeline, Status: []durable.Status{durable.StatusReady, durable.StatusWaiting},
		})
		for child, err := range below {
			if err != nil {
				return nil, err
			}
			if child.Labels[durable.LabelStage] != "" { // a stage of the block
				continue
			}
			_, more, err := statusAndGates(ctx, k, child)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
	}
	return all, nil
}

// isAtGates reports whether all that is left of a run waits.
func isAtGates(ctx context.Context, k *storage.Store, id agent.RunID) (bool, error) {
	about, err := k.Store.Run(ctx, id)
	if err != nil || about.Status != durable.StatusWaiting {
		return false, err
	}
	for child, err := range k.Runs(ctx, durable.Filter{Parent: id, Status: open}) {
		if err != nil {
			return false, err
		}
		waits, err := isAtGates(ctx, k, child.ID)
		if err != nil || !waits {
			return false, err
		}
	}
	return true, nil
}

// open are the statuses of runs that have not ended.
var open = []durable.Status{durable.StatusPending, durable.StatusReady, durable.StatusRunning, durable.StatusWaiting}

// newAnswer returns the command that answers the gates of a session: approve or reject.
func (p *pipelines) newAnswer(verdict agent.ApprovalVerdict) *cobra.Command {
	var reason string
	word, short, long := "approve", "Open the gate of a person that a session waits for",
		`Approve what a session waits for. The process of the session, or the next one, goes on. Gates by callback, file or command cannot
be approved, only rejected. CARD names what was asked: without it, the command shows the commands that answer what is asked.`
	if verdict != agent.Approve {
		word, short, long = "reject", "Keep a gate closed that a session waits for",
			`Reject what a session waits for: a person, a callback, a file or a command. The session then ends as aborted.`
	}
	c := &cobra.Command{
		Use: word + " SESSION CARD", Short: short, Long: long, Example: "  grapnel pipeline " + word + ` friday 5f0c8e31ab97 --reason "as discussed"`,
		Args: console.Takes(1, 2, "needs the name of one session, and the card of what it asks"),
		RunE: func(c *cobra.Command, args []string) error {
			return p.withSession(c.Context(), args[0], func(k *storage.Store, about durable.Run) error {
				status, gates, err := statusAndGates(c.Context(), k, about)
				if err != nil {
					return err
				}
				typed := strings.Join(args[1:], "")
				answer := agent.Approval{Verdict: verdict, Reason: reason, By: console.UserName(), Identity: console.IdentityName()}
				g, ok := lo.Find(gates, func(g openGate) bool { return storage.IsNamed(g.Wait, typed) })
				switch {
				case ok:
				case storage.IsCard(typed): // the session asks something else now: the error tells whose answer counted
					g.run = about.ID
					if g.Wait, err = k.CardOf(c.Context(), about.ID, typed); err != nil {
						return err
					}
				default:
					err := newUnnamedGateError(k, c, args[0], gates, verdict == agent.Approve)
					return console.Usagef("session %q, which is %s: %w", args[0], status.Status, err)
				}
				if err := durable.Approve(c.Context(), k.Control, g.run, g.Wait, answer); err != nil {
					return err
				}
				_, err = fmt.Fprintf(p.Std.Out, "Answered the gate of %s: %s.\n", timeline.Clean(g.Hook), word)
				return err
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "a `sentence` that says why")
	return c
}

// newUnnamedGateError returns the error for a command that names no gate: the commands for the open ones. Only people's gates can be
// approved.
func newUnnamedGateError(k *storage.Store, c *cobra.Command, session string, gates []openGate, approves bool) error {
	possible := lo.Filter(gates, func(g openGate, _ int) bool { return !approves || g.For == durable.WaitApproval })
	lines := lo.Map(possible, func(g openGate, _ int) string {
		return "  " + k.CommandLine(c, session, storage.ShortWait(g.Wait)) + "\n      " + timeline.OneLine(g.describe())
	})
	switch {
	case len(gates) == 0:
		return errors.New("it waits for no gate")
	case len(possible) == 0:
		waits := lo.Map(gates, func(g openGate, _ int) string { return g.describe() })
		return fmt.Errorf("no person can approve what it waits for: %s", strings.Join(waits, ", "))
	}
	return fmt.Errorf("name what you answer, so that the command answers nothing else: it asks\n%s", strings.Join(lines, "\n"))
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
	_, open, err := statusAndGates(ctx, s.kept, about)
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
