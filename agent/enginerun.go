package agent

import (
	"cmp"
	"context"
	"time"

	"github.com/grapnel-go/grapnel/internal/startedrun"
)

// EngineRun is a run that an engine executes and no agent, such as the run of a pipeline.
// It gives the states that enter it what hooks find in the run of an agent: an identity,
// an observer, and one set of Scratch values. It needs no closing and is safe for
// concurrent use. Package hooks makes one for each of its scopes: see hooks.RunScope.
type EngineRun struct {
	run  Run
	live *live
}

// NewEngineRun returns a run with the given identity. An empty ID, Session or Root, and a
// zero Number or Started, are filled in. Observer receives the events of the run; nil means none. If
// ctx belongs to the run of an agent, that run counts what agents below this run spend.
func NewEngineRun(ctx context.Context, run Run, o Observer) *EngineRun {
	if run.ID == "" {
		run.ID = NewRunID()
	}
	if run.Session == "" {
		run.Session = newSessionID()
	}
	run.Root = cmp.Or(run.Root, run.Parent, run.ID)
	run.Number = max(run.Number, 1)
	if run.Started.IsZero() {
		run.Started = time.Now()
	}
	r := &EngineRun{run, &live{observer: o}}
	r.live.account.start(ctx, r.stateAt(State{}, run), Limits{}, Limits{})
	return r
}

// Run returns the identity of the run.
func (r *EngineRun) Run() Run { return r.run }

// Enter returns s as a state of this run, at a position in a pipeline; stage and iteration
// are empty and zero elsewhere. The state has taken no step in this run. Runs of agents that
// are started with the returned context belong to this run.
func (r *EngineRun) Enter(ctx context.Context, s State, stage string, iteration int) (context.Context, State) {
	run := r.run
	run.Stage, run.Iteration = stage, iteration
	return startedrun.Within(ctx, r.live), r.stateAt(s, run)
}

// Leave returns s with everything that was added to it since before entered the run, as a
// state of the run that before belongs to. The stop signal of s is dropped. A state that had
// no session gets that of the run.
func (r *EngineRun) Leave(s, before State) State {
	d, was := s.copyData(), before.read()
	d.frame, d.usage, d.failures, d.signal, d.asking = was.frame, was.usage, was.failures, was.signal, nil
	if d.session == "" {
		d.frame = new(*was.frame)
		d.session = r.run.Session
	}
	return State{d}
}

func (r *EngineRun) stateAt(s State, run Run) State {
	d := s.copyData()
	d.frame = &frame{
		session: run.Session, run: run, status: StatusRunning,
		first: d.steps.Len(), before: d.before.Add(*d.usage), live: r.live,
	}
	d.usage, d.failures, d.signal, d.asking = &noUsage, 0, nil, nil
	return State{d}
}
