package capability

import (
	"fmt"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/processor"
	"github.com/grapnel-go/grapnel/toolexec"
)

// adding is a capability that cannot go wrong by itself: what is wrong with what
// it adds is found when the agent is built.
func adding(add func(Plan) Plan) Capability {
	return Func(func(p Plan) (Plan, error) { return add(p), nil })
}

// UseTools gives the agent tools, in the order in which the model is told of them.
func UseTools(tools ...toolexec.Tool) Capability {
	return adding(func(p Plan) Plan { return p.WithTools(tools...) })
}

// UseToolOptions says how tools are run that do not say so themselves.
func UseToolOptions(o toolexec.Options) Capability {
	return adding(func(p Plan) Plan { return p.WithToolOptions(o) })
}

// UseHooks gives the agent hooks: a HookProcessor around run and step, a
// HookedToolExecutor around its tools, a HookContinuationCriterion around its
// criteria, and a wrapper around its driver. An agent can use it several times:
// all hooks come together in one set, in the order they were given, and their
// names must be unique.
func UseHooks(list ...hooks.Hook) Capability {
	return adding(func(p Plan) Plan { return p.WithHooks(list...) })
}

// UseCriteria lets more criteria judge whether to go on.
func UseCriteria(criteria ...agent.Criterion) Capability {
	return adding(func(p Plan) Plan { return p.WithCriteria(criteria...) })
}

// UseErrorPolicy says what failures end a run, are tried again, or do not matter.
func UseErrorPolicy(policy continuation.ErrorPolicy) Capability { return UseCriteria(policy) }

// UseApproval gives the agent somebody who is asked when a hook wants a person's
// yes. Without it, such a call is denied.
func UseApproval(approver agent.Approver) Capability {
	return adding(func(p Plan) Plan { return p.WithApprover(approver) })
}

// UseInstructions sets the system prompt.
func UseInstructions(text string) Capability {
	return adding(func(p Plan) Plan {
		return p.WithRequest(func(r agent.Request) agent.Request { r.Instructions = text; return r })
	})
}

// UseObserver tells somebody of everything that happens.
func UseObserver(o agent.Observer) Capability {
	return adding(func(p Plan) Plan { return p.WithObserver(o) })
}

// UseStepProcessor puts middleware around each step, inside of the hooks.
func UseStepProcessor(name string, processor agent.Processor) Capability {
	return adding(func(p Plan) Plan { return p.AroundStep(Inside, name, processor) })
}

// UseRunProcessor puts middleware around the run, inside of the hooks.
func UseRunProcessor(name string, processor agent.Processor) Capability {
	return adding(func(p Plan) Plan { return p.AroundRun(Inside, name, processor) })
}

// UseGuards limits each run of the agent. A field that is zero sets no limit. The
// limits are hard: no hook can make a run go on past them.
type UseGuards struct {
	// Steps is the number of model turns.
	Steps int
	// Tokens is input and output together.
	Tokens int64
	// Cost is in US dollars. When the cost of a model call is not known, the guard
	// ends the run.
	Cost float64
	// Time also interrupts a step that is under way.
	Time time.Duration
	// FinishReasons lets the run end when the model gives one of them. This limit is
	// soft: a Stop hook may make the run go on.
	FinishReasons []agent.FinishReason
}

// Name is "guards": an agent has one set of them.
func (UseGuards) Name() string { return "guards" }

// Install adds the limits that are set.
func (g UseGuards) Install(p Plan) mo.Result[Plan] {
	if err := g.check(); err != nil {
		return mo.Err[Plan](err)
	}
	if g.Steps > 0 {
		p = p.WithCriteria(continuation.Steps(g.Steps))
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
	return mo.Ok(p)
}

func (g UseGuards) check() error {
	if g.Steps < 0 || g.Tokens < 0 || g.Cost < 0 || g.Time < 0 {
		return fmt.Errorf("a limit is negative: %+v", g)
	}
	return nil
}
