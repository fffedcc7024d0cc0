package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Status is a session's current work or its ending.
type Status struct {
	Session  string         `json:"session"`
	Pipeline string         `json:"pipeline"`
	Run      agent.RunID    `json:"run"`
	Status   durable.Status `json:"status"`
	// Paused says that the session is paused, or will be after its iteration.
	Paused bool `json:"paused,omitempty"`
	// Stage and Iteration are the position: the current iteration, or the last one.
	Stage         string `json:"stage,omitempty"`
	Iteration     int    `json:"iteration,omitempty"`
	MaxIterations int    `json:"max_iterations,omitempty"`
	// IterationRun is the iteration's run.
	IterationRun agent.RunID `json:"iteration_run,omitempty"`
	// Decision is the stage's last decision, Why its reason.
	Decision string `json:"decision,omitempty"`
	Why      string `json:"why,omitempty"`
	// Reason says why the session has ended, Error more.
	Reason Reason `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
	// Steps, Tokens and Cost are usage by agents.
	Steps  int     `json:"steps,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
	Cost   float64 `json:"cost,omitempty"`
	// Parts are the stages in the running parallel block.
	Parts []Status `json:"parts,omitempty"`
	// WaitsFor are the gates that the session waits for.
	WaitsFor []WaitingGate `json:"waits_for,omitempty"`
	// Dir is the session's directory.
	Dir     string    `json:"dir,omitempty"`
	Updated time.Time `json:"updated"`
}

// StatusOf returns a session's status, given its run.
func StatusOf(ctx context.Context, store durable.Lister, about durable.Run) (Status, error) {
	s, _, err := statusAt(ctx, store, about)
	return s, err
}

// statusAt returns a session's status and position.
func statusAt(ctx context.Context, store durable.Lister, about durable.Run) (out Status, at position, err error) {
	if about.Kind != durable.KindPipeline {
		return out, at, fmt.Errorf("run %s is of kind %s and no session of a pipeline", about.ID, about.Kind)
	}
	s, err := readSession(ctx, store, about.ID)
	if err != nil {
		return out, at, err
	}
	waits, err := store.Waits(ctx, about.ID)
	if err != nil {
		return out, at, err
	}
	entries, err := store.Entries(ctx, about.ID, replayAfterOf(waits))
	if err == nil {
		at, _, err = lastPosition(entries)
	}
	if err != nil {
		return out, at, err
	}
	out = s.status(about, at)
	out.WaitsFor = openGates(waits)
	for _, id := range at.Children {
		part, err := store.Run(ctx, id)
		if err != nil {
			return out, at, err
		}
		status, err := StatusOf(ctx, store, part)
		if err != nil {
			return out, at, err
		}
		out.Parts = append(out.Parts, status)
	}
	return out, at, nil
}

// SessionNames returns the names of a session's pipeline and the pipelines that its hooks may start: see Options.Pipelines.
func SessionNames(ctx context.Context, j durable.Reader, id agent.RunID) ([]string, error) {
	s, err := readSession(ctx, j, id)
	if err != nil {
		return nil, err
	}
	names := []string{s.Name}
	for _, src := range s.source.Pipelines {
		p, err := parse(src)
		if err != nil {
			return nil, err
		}
		names = append(names, p.Name)
	}
	return names, nil
}

// status returns the session's status at a position.
func (s *session) status(about durable.Run, at position) Status {
	out := Status{
		Session: s.name, Pipeline: s.Name, Run: about.ID, Status: about.Status, Paused: about.Paused, Dir: s.dir, Updated: about.Updated.UTC(),
		Steps: at.Spent.Steps, Tokens: at.Spent.Tokens, Cost: at.Spent.Cost, IterationRun: at.Child, Decision: at.Decision, Why: at.Why,
	}
	if at.Phase != phaseOpen {
		stage := &s.Stages[at.Stage]
		out.Stage, out.Iteration, out.MaxIterations = stage.Name, at.Iteration, stage.maximum()
	}
	if at.Error != nil {
		out.Error = *at.Error
	}
	if at.End != nil {
		out.Reason, out.Error = at.End.Reason, at.End.Text
	}
	return out
}

// status returns the session's last committed status.
func (m *machine) status() Status {
	about := m.about
	about.Status, about.Updated = m.stored, time.Now()
	out := m.session.status(about, m.at)
	if m.stored == durable.StatusWaiting {
		out.WaitsFor = openGates(m.parked)
	}
	return out
}
