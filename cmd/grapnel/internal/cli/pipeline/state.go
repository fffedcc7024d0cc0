package pipeline

import (
	"context"
	"errors"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

// sessionState says in one word what a session is doing.
type sessionState string

// The states of a session that has not ended. One that has ended has the status of its run.
const (
	stateRunning   sessionState = "running"
	statePausing   sessionState = "pausing" // it is paused after its iteration
	statePaused    sessionState = "paused"
	stateWaiting   sessionState = "waiting"   // for the answer to a gate
	stateSuspended sessionState = "suspended" // no process runs it
)

// sessionReport is a session as commands report it.
type sessionReport struct {
	pipeline.Status

	State sessionState `json:"state"`
	// Alive says that a process runs the session, and so watches its gates: for a run of a blueprint, the coordinator.
	Alive bool `json:"alive"`
	gates []openGate
}

// report returns the report of a session of this folder or of a coordinator.
func report(ctx context.Context, k *storage.Store, about durable.Run) (r sessionReport, err error) {
	s, err := pipeline.StatusOf(ctx, k.Store, about)
	if err != nil {
		return r, err
	}
	r.Status, r.State = s, sessionState(s.Status)
	if s.Status.Ended() {
		return r, nil
	}
	served := k.Served() || s.Session == string(s.Run)
	if r.Alive = served || isLocked(s.Dir); !r.Alive {
		if r.Alive, err = isExecuted(ctx, k, s.Run); err != nil {
			return r, err
		}
	}
	if r.gates, err = allOpenGates(ctx, k, s); err != nil {
		return r, err
	}
	switch {
	case s.Paused && (!r.Alive || served && s.Status != durable.StatusRunning):
		r.State = statePaused
	case len(r.gates) > 0:
		r.State = stateWaiting
	case s.Paused:
		r.State = statePausing
	case !r.Alive:
		r.State = stateSuspended
	default:
		r.State = stateRunning
	}
	return r, nil
}

// isExecuted reports whether the process of a session above executes a run, which a hook has started without awaiting it.
func isExecuted(ctx context.Context, k *storage.Store, id agent.RunID) (bool, error) {
	about, err := k.Store.Run(ctx, id)
	if err != nil || about.Labels[pipeline.LabelDetached] == "" {
		return false, err
	}
	for about.Parent != "" {
		if about, err = k.Store.Run(ctx, about.Parent); err != nil {
			return false, lo.Ternary(errors.Is(err, durable.ErrNotFound), nil, err) // it was deleted
		}
		status, err := pipeline.StatusOf(ctx, k.Store, about)
		if err != nil || isLocked(status.Dir) {
			return err == nil, err
		}
	}
	return false, nil
}

// remedy says what a person can do for the session to go on; empty when nothing is needed.
func (r sessionReport) remedy(flags string) string {
	switch {
	case r.State == statePaused:
		return "grapnel pipeline resume " + r.Session + flags
	case r.Alive || r.Status.Status.Ended():
		return ""
	}
	text := "no process runs it: grapnel pipeline resume " + r.Session + flags
	if lo.SomeBy(r.gates, func(g openGate) bool { return g.For != durable.WaitApproval }) {
		text = "no process watches its gates, and callbacks do not arrive: grapnel pipeline resume " + r.Session + flags
	}
	return text
}
