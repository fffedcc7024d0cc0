package pipeline

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

// countWaits adds the time for which the session has waited for a gate, and the usage of an awaited pipeline. A wait stays in the
// store until the next one, so that each is counted once.
func (m *machine) countWaits(ctx context.Context) error {
	until := m.at.Counted
	for _, w := range m.waits {
		if !w.Asked.After(m.at.Counted) || strings.HasPrefix(w.Subject, iterationWait) {
			continue
		}
		if w.Asked.After(until) {
			until = w.Asked
		}
		if w.Kind != durable.WaitChild {
			end := m.now()
			if w.Answer != nil && w.Answer.At.After(w.Asked) {
				end = w.Answer.At
			}
			m.at.Waited += end.Sub(w.Asked)
			continue
		}
		child, err := m.store.Run(ctx, w.Child)
		if err != nil {
			return err
		}
		_, used, err := statusAt(ctx, m.store, child)
		if err != nil {
			return err
		}
		m.at.Spent, m.at.Waited = m.at.Spent.plus(used.Spent), m.at.Waited+used.Waited
	}
	m.at.Counted = until
	return nil
}

// now returns the time for deadlines. It is not before the time at which the store made the run ready.
func (m *machine) now() time.Time {
	now := time.Now()
	if m.about.Updated.After(now) {
		return m.about.Updated
	}
	return now
}

// waitForGate records that the run waits for a gate. When the gate has its answer, everything since the last position is repeated
// from its records.
func (m *machine) waitForGate(ctx context.Context) error {
	m.at = m.last                                                                                   // everything since then is repeated
	if !slices.ContainsFunc(m.waits, func(w durable.Wait) bool { return w.ID == m.parked[0].ID }) { // a new wait
		m.at.usage = m.counted
	}
	for _, w := range m.parked {
		if w.Kind == durable.WaitChild {
			if len(m.parkedJobs) > 0 {
				m.events.add(eventSpawned, m.eventData(eventData{Run: w.Child, Why: m.parkedJobs[0].Name}))
			}
			continue
		}
		about, err := durable.InterventionOf(w)
		if err != nil {
			return err
		}
		m.events.add(eventWaiting, m.eventData(eventData{Wait: w.ID, For: w.Kind, Why: about.Questions[0].Reason}))
	}
	if err := m.commit(ctx, durable.Update{Status: durable.StatusWaiting, Waits: m.parked}, m.parkedJobs...); err != nil {
		return err
	}
	m.awaitDetached(ctx)
	return nil
}

// awaitDetached waits until no detached action runs. It returns false when the session must be released before.
func (m *machine) awaitDetached(ctx context.Context) bool {
	for {
		switch {
		case m.drain(ctx, time.Second):
			return true
		case m.suspended() || ctx.Err() != nil:
			return false
		}
	}
}

// WaitingGate is a gate that a session waits for, or a pipeline that a hook has started.
type WaitingGate struct {
	// Wait identifies it among the run's waits: see durable.Wait.
	Wait string `json:"wait"`
	// For names the awaited event: a callback, a file, a command, a person's approval, or the end of a child.
	For      durable.WaitKind `json:"for"`
	Hook     string           `json:"hook,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Deadline time.Time        `json:"deadline,omitzero"`
}

// openGates returns the open gates among a session's waits.
func openGates(waits []durable.Wait) (gates []WaitingGate) {
	for _, w := range waits {
		if w.Kind == durable.WaitChild && !strings.HasPrefix(w.Subject, iterationWait) {
			gates = append(gates, WaitingGate{Wait: w.ID, For: w.Kind, Reason: "run " + string(w.Child), Deadline: w.Deadline.UTC()})
		}
		about, err := durable.InterventionOf(w)
		if w.Kind == durable.WaitChild || w.Answer != nil || err != nil || len(about.Questions) == 0 {
			continue
		}
		q := about.Questions[0]
		gates = append(gates, WaitingGate{Wait: w.ID, For: w.Kind, Hook: q.By, Reason: q.Reason, Deadline: w.Deadline.UTC()})
	}
	return gates
}
