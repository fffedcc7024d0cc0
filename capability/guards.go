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

// defaultSteps is a run's default step limit, so that an agent in an endless loop stops.
const defaultSteps = 100

// UseGuards limits each of the agent's runs together with the runs that it starts, as sub-agents or from hooks and
// tools: see agent.Spending. When a limit is reached, all these runs are stopped, each after the reply that it is
// waiting for. A zero field sets no limit, except Steps. The limits are hard: a hook cannot make a run continue past
// them.
type UseGuards struct {
	// Steps is the maximum number of model turns. Zero means 100, also for an agent without UseGuards, unless the agent
	// has a criterion that limits the steps. -1 means no limit.
	Steps int
	// Tokens is the maximum sum of input and output tokens. If a reply comes without usage, the guard ends the run.
	Tokens int64
	// Cost is the maximum cost in US dollars. If a model call's cost is unknown, the guard ends the run.
	Cost float64
	// Time is the maximum time that a run is running, without its time as a parked run. This limit also interrupts the
	// current step.
	Time time.Duration
	// FinishReasons ends the run when the model stops for one of these reasons. This limit is soft: a Stop hook can
	// make the run continue.
	FinishReasons []agent.FinishReason
	// Continuations is how often Stop hooks can make the run continue. Zero means hooks.DefaultContinuations.
	Continuations int
}

// Name returns "guards": an agent can have only one UseGuards.
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
		{"cost", g.Cost, g.Cost >= 0}, // false for NaN
		{"time", g.Time, g.Time >= 0},
		{"continuations", g.Continuations, g.Continuations >= 0},
	} {
		if !limit.ok {
			wrong = append(wrong, fmt.Errorf("the limit of %s is %v: it must not be negative, and zero means none", limit.name, limit.value))
		}
	}
	return errors.Join(wrong...)
}
