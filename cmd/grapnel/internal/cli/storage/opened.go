package storage

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/durable"
)

// Store is an open store, with the keeper that records runs in it.
type Store struct {
	Address Address
	// Client uses the coordinator at the address, or one in this process on the store. store is what it reads.
	Client *client.Client
	Store  *client.OperatorStore
	// Control is the store itself or, if a coordinator has it, Store, which records the name of the token in the place of other names.
	Control Control
	// Direct and Keeper are for commands that execute runs or maintain the store. They are nil if a coordinator has it: see RequireDirect.
	Direct durable.Store
	Keeper *durable.Keeper

	// Waits reports whether questions park the run, because no person is asked at the terminal.
	Waits bool
	// going is done as soon as the run must be suspended.
	going   context.Context //nolint:containedctx // it is a signal, not of any call
	suspend context.CancelFunc
	// Running reports whether a run has begun, so that it can be suspended.
	Running atomic.Bool
}

// Control reads waits, and answers and steers runs.
type Control interface {
	durable.AnswerStore
	Signal(ctx context.Context, id agent.RunID, s durable.Signal) error
	SetDenyTools(ctx context.Context, s durable.Switch) error
	RevokeWaiver(ctx context.Context, id, by string) error
}

// Served reports whether a coordinator executes the runs, not this process.
func (k *Store) Served() bool { return k.Direct == nil }

// RequireDirect returns an error if a coordinator has the store, for commands that it does not offer.
func (k *Store) RequireDirect() error {
	if k.Direct != nil {
		return nil
	}
	return console.Usagef("%s is a coordinator: this command needs a store", k.Address)
}

// BeganDemand is the demand of runs that the command line begins, so that no worker claims them: they are resumed with
// the definition that is stored with them.
const BeganDemand = "grapnel.cli"

// KeeperOptions returns the options of the keeper of runs that the command line begins.
func KeeperOptions() durable.Options {
	return durable.Options{Demands: map[string]string{BeganDemand: "run"}, By: console.IdentityName(), Events: events.Stored}
}

// Open opens the store at an address.
func Open(ctx context.Context, at string, create bool) (*Store, error) {
	p, err := AddressOf(at)
	if err != nil {
		return nil, err
	}
	k := &Store{Address: p}
	if p.Server() {
		k.Client, err = p.openServer()
	} else if k.Direct, err = p.openDirectly(ctx, create); err == nil {
		k.Client, err = localClient(k.Direct)
	}
	if err != nil {
		return nil, err
	}
	k.Store = k.Client.OperatorStore()
	k.Control = k.Store
	if k.Direct != nil {
		k.Control, k.Keeper = k.Direct, durable.Keep(k.Direct, KeeperOptions())
	}
	k.going, k.suspend = context.WithCancel(context.WithoutCancel(ctx))
	return k, nil
}

// Prune deletes the runs that ended before a time, and returns their number.
func (k *Store) Prune(ctx context.Context, before time.Time) (int, error) {
	if k.Served() {
		return k.Client.Prune(ctx, before)
	}
	return k.Direct.Prune(ctx, before)
}

// Close releases the runs of this process and closes the store.
func (k *Store) Close() error {
	k.suspend()
	if k.Direct == nil {
		return nil
	}
	if err := k.Direct.Close(); err != nil {
		return fmt.Errorf("closing the store: %w", err)
	}
	return nil
}

// Parks reports whether every call that needs approval parks the run.
func (k *Store) Parks(in *agents.Input) bool { return in.Terminal == nil || k.Waits }

// Approver asks the person at the terminal, until the run is suspended. Without a terminal, with --no-wait, and
// for a call that the person cannot approve, the run parks.
func (k *Store) Approver(in *agents.Input, v *agents.View) agent.Approver {
	if k.Parks(in) {
		return agent.ParkApprover
	}
	ask := in.Approver(v)
	return agent.ApproverFunc(func(ctx context.Context, s agent.State, p *agent.Prepared) (agent.Approval, error) {
		if len(agents.BeyondTerminal(p.Questions())) > 0 {
			return agent.Approval{Verdict: agent.Park}, nil
		}
		asking, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(k.going, cancel)()
		var answers []agent.Approval
		var err error
		if k.going.Err() == nil {
			answers, err = ask.Approve(asking, s, []*agent.Prepared{p})
		}
		if ctx.Err() == nil && k.going.Err() != nil {
			return agent.Approval{Verdict: agent.Park}, nil
		}
		if err != nil {
			return agent.Approval{}, err
		}
		return answers[0], nil
	})
}

// Suspendable returns a context for a durable run. The first signal suspends the run, the second cancels the context,
// and the third ends the program immediately, after calling last. Before the run begins, the first signal cancels the
// context.
func (k *Store) Suspendable(ctx context.Context, v *agents.View, last func()) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := console.OnSignal(func(before int, by *console.SignalError) bool {
		switch {
		case before == 0 && k.Running.Load():
			k.Keeper.Suspend()
			k.suspend()
			go v.Note("Suspending: the run stops at the end of this step. Interrupt again to cancel it.")
		case context.Cause(ctx) == nil:
			cancel(by)
			if k.Running.Load() {
				go v.Note(Cancelling)
			}
		default:
			return false
		}
		return true
	}, last)
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Cancelling tells a person that an interrupted run is about to end.
const Cancelling = "Interrupted: ending the run. Interrupt again to exit at once."

// Finish works like made.finish, for a run that may be parked.
func (k *Store) Finish(ctx context.Context, m *agents.Built, v *agents.View, final agent.State, err error) error {
	k.Running.Store(false)
	ended := m.Finish(ctx, v, final, err)
	if final.Parked() {
		v.Note(k.HowToGoOn(final))
	}
	return ended
}

// HowToGoOn returns instructions for a parked run.
func (k *Store) HowToGoOn(s agent.State) string {
	id, at := Short(s.Run().ID), k.Address.Flag()
	if !s.Waiting() {
		return fmt.Sprintf("Resume it:\n  grapnel runs resume %s%s", id, at)
	}
	if !agent.Checkpoint(s).WithExpired(time.Now()).Waiting() {
		return fmt.Sprintf("The time for an answer has passed. Resume it:\n  grapnel runs resume %s%s", id, at)
	}
	return k.HowToAnswer(s.Run().ID, WaitingCalls(s))
}

// HowToAnswer returns the commands that answer what a run waits for.
func (k *Store) HowToAnswer(run agent.RunID, waiting []agent.Intervention) string {
	id, at, card := Short(run), k.Address.Flag(), "CARD"
	if len(waiting) == 1 {
		card = ShortWait(waiting[0].ID)
	}
	lines := []string{
		"Answer to resume it:",
		fmt.Sprintf("  grapnel runs approve %s %s%s", id, card, at),
		fmt.Sprintf("  grapnel runs reject %s %s%s", id, card, at),
	}
	if len(waiting) > 1 {
		lines = append(lines, "where CARD is one of")
		for _, w := range waiting {
			lines = append(lines, "  "+ShortWait(w.ID)+"  "+describeCall(w))
		}
	}
	for _, w := range waiting {
		if r, asks := w.Questions.Asked(); asks && r.Schema != "" {
			lines = append(lines, fmt.Sprintf("%s is approved with --input NAME=VALUE for each field: \"grapnel approvals show %s%s\" lists the fields.",
				w.CallID(), id, at))
		}
		for _, q := range agents.BeyondTerminal(w.Questions) {
			lines = append(lines, fmt.Sprintf("About %s, %s asks: %s.", w.CallID(), q.By, q.Needs()))
		}
	}
	return strings.Join(lines, "\n")
}

// WaitingCalls returns the calls of a parked run that have no answer.
func WaitingCalls(s agent.State) []agent.Intervention {
	var out []agent.Intervention
	for _, i := range s.Interventions() {
		if i.Answer() == nil {
			out = append(out, i)
		}
	}
	return out
}

// shortID is the number of characters of a run's id in messages.
const shortID = 12

// Short returns a run's id for messages: a prefix of ids that this module creates, and the whole of other
// ids.
func Short(id agent.RunID) string {
	if strings.HasPrefix(string(id), "run_") && len(id) > shortID {
		return string(id[:shortID])
	}
	return string(id)
}
