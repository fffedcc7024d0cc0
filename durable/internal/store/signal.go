package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Signal implements durable.Store.
func (s *Store) Signal(ctx context.Context, id agent.RunID, g durable.Signal) error {
	switch g.Kind {
	case durable.SignalCancel, durable.SignalPause, durable.SignalResume, durable.SignalContext:
	default:
		return fmt.Errorf("signal to run %q: unknown kind %q", id, g.Kind)
	}
	g.Run = id
	if hasText(g) {
		if err := s.CheckKey(ctx); err != nil {
			return err
		}
		g.Text = string(s.keys.seal([]byte(g.Text), signalPlace(g)))
	}
	return s.change(ctx, "sending a signal", id, func(t tx, r *Run) (err error) {
		if r.Status.Ended() {
			return nil
		}
		t.Notify()
		switch g.Kind {
		case durable.SignalCancel:
			return t.cancel(r, durable.CancelRequest, g.Text)
		case durable.SignalPause:
			t.pause(r)
			return nil
		case durable.SignalResume:
			if err := t.resume(r); err != nil || g.Text == "" {
				return err
			}
		}
		r.Signals++
		r.Updated = t.Now()
		g.Seq, g.At, g.Cause = r.Signals, t.Now(), ""
		return t.AddSignal(g)
	})
}

// hasText reports whether the signal adds text to a conversation.
func hasText(g durable.Signal) bool {
	return g.Kind == durable.SignalContext || g.Kind == durable.SignalResume && g.Text != ""
}

// cancel requests the end of a run that has not ended. If no process holds it, it ends when it has never started, and is ready
// otherwise, so that a worker ends it.
func (t tx) cancel(r *Run, cause durable.CancelCause, reason string) error {
	t.Notify()
	if r.CancelCause == "" {
		r.CancelCause, r.CancelReason, r.Updated = cause, cmp.Or(reason, "cancelled"), t.Now()
	}
	switch {
	case r.IsHeld(t.Now()):
	case r.Attempts == 0:
		r.Reason = agent.StopUser
		return t.end(r, durable.StatusCancelled)
	case r.Status == durable.StatusPending, r.Status == durable.StatusWaiting:
		t.free(r, durable.StatusReady)
	}
	return nil
}

// pause pauses a run. One that is to be cancelled stays ready.
func (t tx) pause(r *Run) {
	if r.Paused {
		return
	}
	r.Paused, r.Updated = true, t.Now()
	if !r.IsHeld(t.Now()) && r.CancelCause == "" && (r.Status == durable.StatusPending || r.Status == durable.StatusReady) {
		t.setStatus(r, durable.StatusWaiting)
	}
}

// resume ends a pause.
func (t tx) resume(r *Run) error {
	if !r.Paused {
		return nil
	}
	r.Paused, r.Updated = false, t.Now()
	if r.Status != durable.StatusWaiting || r.IsHeld(t.Now()) {
		return nil
	}
	next, err := t.place(*r, false)
	if err == nil && next != r.Status {
		t.free(r, next)
	}
	return err
}

// Signals implements durable.Store.
func (s *Store) Signals(ctx context.Context, owner string) (all []durable.Signal, err error) {
	if owner == "" {
		return nil, ctx.Err()
	}
	runs, err := readRows(ctx, s, "reading signals", func(rows Rows) ([]Signalled, error) { return rows.Signals(owner) })
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		for _, g := range r.Added {
			text, err := s.keys.open([]byte(g.Text), signalPlace(g))
			if err != nil {
				return nil, err
			}
			g.Text = string(text)
			all = append(all, g)
		}
		if r.Paused {
			all = append(all, durable.Signal{Run: r.Run, Kind: durable.SignalPause})
		}
		if r.CancelCause != "" {
			all = append(all, durable.Signal{Run: r.Run, Kind: durable.SignalCancel, Text: r.CancelReason, Cause: r.CancelCause})
		}
	}
	return all, nil
}
