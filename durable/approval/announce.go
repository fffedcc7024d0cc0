package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Announcer sends notices about waits that have no token yet, such as those of runs whose process has no notifier. It
// makes the token, whose hash the store keeps, and then notifies: each wait is announced at most once, by one of all
// announcers of a store.
type Announcer struct {
	// Store holds the waits. Required.
	Store durable.Store
	// Notify are the notifiers, called one after the other. Required.
	Notify []durable.Notifier
	// Every is how often the store is asked for new waits. Zero means five seconds.
	Every time.Duration
	// Log receives failures; nil disables logging.
	Log *slog.Logger
}

const (
	defaultEvery = 5 * time.Second
	// overlap is how far the clocks of processes may differ: a wait with an earlier time than the last known one by less
	// than this is still found.
	overlap = time.Minute
)

// Run announces waits until ctx is done, and returns nil then.
func (a Announcer) Run(ctx context.Context) error {
	log := a.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var after *durable.Wait
	for {
		last, err := a.announce(ctx, after)
		if err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, "approval: announcing what waits failed", "error", err)
		}
		if last != nil {
			after = &durable.Wait{Asked: last.Asked.Add(-overlap)}
		}
		timer := time.NewTimer(cmp.Or(a.Every, defaultEvery))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// announce announces the waits after one, and returns the last wait that it has seen.
func (a Announcer) announce(ctx context.Context, after *durable.Wait) (last *durable.Wait, err error) {
	f := durable.WaitFilter{Kinds: []durable.WaitKind{durable.WaitApproval, durable.WaitDoubt, durable.WaitInput}, After: after, Limit: inboxLength}
	var failed []error
	for {
		waits, err := a.Store.OpenWaits(ctx, f)
		if err != nil {
			return nil, errors.Join(append(failed, fmt.Errorf("listing what runs wait for: %w", err))...)
		}
		for run, ofRun := range lo.GroupBy(waits, func(w durable.Wait) agent.RunID { return w.Run }) {
			if err := a.announceRun(ctx, run, ofRun); err != nil {
				failed = append(failed, err)
			}
		}
		if len(waits) > 0 {
			last = &waits[len(waits)-1]
		}
		if len(waits) < f.Limit {
			return last, errors.Join(failed...)
		}
		f.After = last
	}
}

// announceRun announces waits of one run.
func (a Announcer) announceRun(ctx context.Context, run agent.RunID, waits []durable.Wait) error {
	var calls []durable.WaitingCall
	for _, w := range waits {
		if w.TokenHash != [32]byte{} || !w.Deadline.IsZero() && time.Now().After(w.Deadline) {
			continue
		}
		i, err := durable.InterventionOf(w)
		if err != nil {
			return err
		}
		token, sum := NewToken()
		switch err := a.Store.SetToken(ctx, run, w.ID, sum); {
		case errors.Is(err, durable.ErrExists), errors.Is(err, durable.ErrNotFound): // announced or answered meanwhile
		case err != nil:
			return fmt.Errorf("making a link for %s of run %s: %w", w.ID, run, err)
		default:
			calls = append(calls, durable.WaitingCall{Intervention: i, Token: token})
		}
	}
	if len(calls) == 0 {
		return nil
	}
	about, err := a.Store.Run(ctx, run)
	if err != nil {
		return fmt.Errorf("announcing that run %s waits: %w", run, err)
	}
	notice := durable.Notice{Run: agent.Run{ID: run, Session: about.Session, Agent: about.Name}, Calls: calls}
	return errors.Join(lo.Map(a.Notify, func(n durable.Notifier, _ int) error { return n.Notify(ctx, notice) })...)
}
