package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/events"
	"github.com/grapnel-go/grapnel/coordinator/client"
	"github.com/grapnel-go/grapnel/durable"
)

// openedStore is an open store, with the keeper that records runs in it.
type openedStore struct {
	address storeAddress
	// client uses the coordinator at the address, or one in this process on the store. store is what it reads.
	client *client.Client
	store  *client.OperatorStore
	// direct is the store itself, for commands that execute runs, maintain the store, or record a name that a flag gives: a coordinator
	// records the name of the token, and offers operators no more than store.
	direct durable.Store
	keeper *durable.Keeper
	// served reports whether the coordinator executes the runs, not this process.
	served bool

	// waits reports whether questions park the run, because no person is asked at the terminal.
	waits bool
	// going is done as soon as the run must be suspended.
	going   context.Context //nolint:containedctx // it is a signal, not of any call
	suspend context.CancelFunc
	// running reports whether a run has begun, so that it can be suspended.
	running atomic.Bool
}

// beganDemand is the demand of runs that the command line begins, so that no worker claims them: they are resumed with
// the definition that is stored with them.
const beganDemand = "grapnel.cli"

// keeperOptions returns the options of the keeper of runs that the command line begins.
func keeperOptions() durable.Options {
	return durable.Options{Demands: map[string]string{beganDemand: "run"}, By: identityName(), Events: events.Stored}
}

// openStore opens the store at an address.
func openStore(ctx context.Context, at string, create bool) (*openedStore, error) {
	p, err := storeAddressOf(at)
	if err != nil {
		return nil, err
	}
	k := &openedStore{address: p, served: p.server()}
	if k.served {
		k.client, err = p.openServer(create)
	} else if k.direct, err = p.open(ctx, create); err == nil {
		k.client, err = localClient(k.direct)
	}
	if err != nil {
		return nil, err
	}
	if k.store = k.client.OperatorStore(); k.served {
		k.direct = k.store
	}
	k.keeper = durable.Keep(k.direct, keeperOptions())
	k.going, k.suspend = context.WithCancel(context.WithoutCancel(ctx))
	return k, nil
}

func (k *openedStore) close() error {
	k.suspend()
	if err := errors.Join(k.store.Close(), k.direct.Close()); err != nil {
		return fmt.Errorf("closing the store: %w", err)
	}
	return nil
}

// parks reports whether every call that needs approval parks the run.
func (k *openedStore) parks(in *input) bool { return in.terminal == nil || k.waits }

// approver asks the person at the terminal, until the run is suspended. Without a terminal, with --no-wait, and
// for a call that the person cannot approve, the run parks.
func (k *openedStore) approver(in *input, v *view) agent.Approver {
	if k.parks(in) {
		return agent.ParkApprover
	}
	ask := in.approver(v)
	return agent.ApproverFunc(func(ctx context.Context, s agent.State, p *agent.Prepared) (agent.Approval, error) {
		if len(beyondTerminal(p.Questions())) > 0 {
			return agent.Approval{Verdict: agent.Park}, nil
		}
		asking, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(k.going, cancel)()
		var answers []agent.Approval
		var err error
		if k.going.Err() == nil {
			answers, err = ask.Approve(asking, s, []*agent.Prepared{p}).Get()
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

// suspendable returns a context for a durable run. The first signal suspends the run, the second cancels the context,
// and the third ends the program immediately, after calling last. Before the run begins, the first signal cancels the
// context.
func (k *openedStore) suspendable(ctx context.Context, v *view, last func()) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := onSignal(func(before int, by *signalError) bool {
		switch {
		case before == 0 && k.running.Load():
			k.keeper.Suspend()
			k.suspend()
			go v.note("Suspending: the run stops at the end of this step. Interrupt again to cancel it.")
		case context.Cause(ctx) == nil:
			cancel(by)
			if k.running.Load() {
				go v.note(cancelling)
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

const cancelling = "Interrupted: ending the run. Interrupt again to exit at once."

// finish works like made.finish, for a run that may be parked.
func (k *openedStore) finish(ctx context.Context, m *made, v *view, final agent.State, err error) error {
	k.running.Store(false)
	ended := m.finish(ctx, v, final, err)
	if final.Parked() {
		v.note(k.howToGoOn(final))
	}
	return ended
}

// howToGoOn returns instructions for a parked run.
func (k *openedStore) howToGoOn(s agent.State) string {
	id, at := short(s.Run().ID), k.address.flag()
	if !s.Waiting() {
		return fmt.Sprintf("Resume it:\n  grapnel runs resume %s%s", id, at)
	}
	if !agent.Checkpoint(s).WithExpired(time.Now()).Waiting() {
		return fmt.Sprintf("The time for an answer has passed. Resume it:\n  grapnel runs resume %s%s", id, at)
	}
	return k.howToAnswer(s.Run().ID, waitingCalls(s))
}

// howToAnswer returns the commands that answer what a run waits for.
func (k *openedStore) howToAnswer(run agent.RunID, waiting []agent.Intervention) string {
	id, at, card := short(run), k.address.flag(), "CARD"
	if len(waiting) == 1 {
		card = shortWait(waiting[0].ID)
	}
	lines := []string{
		"Answer to resume it:",
		fmt.Sprintf("  grapnel runs approve %s %s%s", id, card, at),
		fmt.Sprintf("  grapnel runs reject %s %s%s", id, card, at),
	}
	if len(waiting) > 1 {
		lines = append(lines, "where CARD is one of")
		for _, w := range waiting {
			lines = append(lines, "  "+shortWait(w.ID)+"  "+describeCall(w))
		}
	}
	for _, w := range waiting {
		if r, asks := w.Questions.Asked(); asks && r.Schema != "" {
			lines = append(lines, fmt.Sprintf("%s is approved with --input NAME=VALUE for each field: \"grapnel approvals show %s%s\" lists the fields.",
				w.CallID(), id, at))
		}
		for _, q := range beyondTerminal(w.Questions) {
			lines = append(lines, fmt.Sprintf("About %s, %s asks: %s.", w.CallID(), q.By, q.Needs()))
		}
	}
	return strings.Join(lines, "\n")
}

// waitingCalls returns the calls of a parked run that have no answer.
func waitingCalls(s agent.State) []agent.Intervention {
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

// short returns a run's id for messages: a prefix of ids that this module creates, and the whole of other
// ids.
func short(id agent.RunID) string {
	if strings.HasPrefix(string(id), "run_") && len(id) > shortID {
		return string(id[:shortID])
	}
	return string(id)
}
