package capability

import (
	"errors"
	"fmt"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/processor"
)

// defaultSteps is the default limit of steps of a run, so that an agent in a loop comes to an
// end.
const defaultSteps = 100

// UseGuards limits each run of the agent together with the runs that it starts, sub-agents
// and those of hooks and tools: see agent.Spending. When a limit is reached, all of them are
// stopped, each after the reply that it is waiting for. A field that is zero sets no limit,
// except Steps. The limits are hard: no hook can make a run go on past them.
type UseGuards struct {
	// Steps is the number of model turns. Zero means 100, also for an agent without
	// UseGuards, unless it has a criterion that limits them; -1 means no limit.
	Steps int
	// Tokens is input and output together. If a reply comes without usage, the guard ends the
	// run.
	Tokens int64
	// Cost is in US dollars. When the cost of a model call is not known, the guard
	// ends the run.
	Cost float64
	// Time also interrupts the current step.
	Time time.Duration
	// FinishReasons ends the run when the model stops for one of them. This limit is soft: a
	// Stop hook may make the run go on.
	FinishReasons []agent.FinishReason
	// Continuations is how often Stop hooks may make the run go on; zero means
	// hooks.DefaultContinuations.
	Continuations int
}

// Name returns "guards": an agent has one set of them.
func (UseGuards) Name() string { return "guards" }

// Install adds the limits that are set.
func (g UseGuards) Install(p Plan) mo.Result[Plan] {
	if err := g.check(); err != nil {
		return mo.Err[Plan](err)
	}
	switch {
	case g.Steps > 0:
		p = p.WithCriteria(continuation.Steps(g.Steps))
	case g.Steps < 0:
		p.unlimited = true
	}
	if g.Tokens > 0 {
		p = p.WithCriteria(continuation.Tokens(g.Tokens))
	}
	if g.Cost > 0 {
		p = p.WithCriteria(continuation.Cost(g.Cost))
	}
	if g.Time > 0 {
		p = p.WithCriteria(continuation.Time(g.Time)).AroundRun(Inside, "deadline", processor.Deadline(g.Time))
	}
	if len(g.FinishReasons) > 0 {
		p = p.WithCriteria(continuation.FinishReason(g.FinishReasons...))
	}
	if g.Continuations > 0 {
		p = p.WithContinuations(g.Continuations)
	}
	return mo.Ok(p)
}

func (g UseGuards) check() error {
	var wrong []error
	if g.Steps < -1 {
		wrong = append(wrong, fmt.Errorf("the limit of steps is %d: it must not be less than -1, which means none, and zero means %d", g.Steps, defaultSteps))
	}
	for _, limit := range []struct {
		name  string
		value any
		ok    bool
	}{
		{"tokens", g.Tokens, g.Tokens >= 0},
		{"cost", g.Cost, g.Cost >= 0}, // which NaN is not
		{"time", g.Time, g.Time >= 0},
		{"continuations", g.Continuations, g.Continuations >= 0},
	} {
		if !limit.ok {
			wrong = append(wrong, fmt.Errorf("the limit of %s is %v: it must not be negative, and zero means none", limit.name, limit.value))
		}
	}
	return errors.Join(wrong...)
}
