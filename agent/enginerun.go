package agent

import (
	"cmp"
	"context"
	"time"

	"github.com/grapnel-go/grapnel/internal/startedrun"
)

// EngineRun is a run that an engine such as a pipeline executes, without an agent. It gives the states that enter it an
// identity, an observer and one set of Scratch values, as hooks find them in an agent's run. It needs no closing and is
// safe for concurrent use. Package hooks makes one for each of its scopes: see hooks.RunScope.
type EngineRun struct {
	run  Run
	live *live
}

// NewEngineRun returns a run with the given identity. It fills in an empty ID, Session or Root, and a zero Number or
// Started. Observer receives the run's events. Nil means none. If ctx belongs to an agent's run, that run counts the
// spending of agents below this run.
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

// Run returns the run's identity.
func (r *EngineRun) Run() Run { return r.run }

// Enter returns s as a state of this run, at a position in a pipeline. Outside of pipelines, stage is empty and
// iteration zero. The state has taken no step in this run. Agents started with the returned context run below this run.
func (r *EngineRun) Enter(ctx context.Context, s State, stage string, iteration int) (context.Context, State) {
	run := r.run
	run.Stage, run.Iteration = stage, iteration
	return startedrun.Within(ctx, r.live), r.stateAt(s, run)
}

// Leave returns s, with everything that was added since it entered, as a state of before's run. The stop signal of s is
// dropped. A state without a session gets this run's session.
func (r *EngineRun) Leave(s, before State) State {
	d, was := s.copyData(), before.read()
	d.frame, d.usage, d.failures, d.signal, d.overrides = was.frame, was.usage, was.failures, was.signal, nil
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
	d.usage, d.failures, d.signal, d.overrides = &noUsage, 0, nil, nil
	return State{d}
}
