package budget

import (
	"context"
	"fmt"
	"sync"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Limits is what a run may use together with the runs that it starts: see agent.Spending. A field that is zero sets no
// limit; one that is negative, or no number, allows nothing.
type Limits struct {
	// Cost is in US dollars.
	Cost float64
	// Tokens is input and output together.
	Tokens int64
	// ToolCalls is how many calls may be let through.
	ToolCalls int
	// Deny lets a run go on that has reached its cost or tokens: its calls are denied, and it may still answer.
	Deny bool
}

// Hooks returns the hooks that keep the limits. Their names begin with "budget". They are asked after the others of their
// points.
func Hooks(limits Limits) []hooks.Hook {
	b := &budget{limits, agent.NewScratch[spending](nil), hooks.CountCalls()}
	return []hooks.Hook{
		hooks.On(hooks.AtStepStart, "budget", b.step).WithPriority(hooks.PriorityAfterwork),
		hooks.On(hooks.AtPreToolUse, "budget.call", b.call).WithPriority(hooks.PriorityAfterwork),
	}
}

type budget struct {
	limits  Limits
	of      *agent.Scratch[spending]
	counted *hooks.CountedCalls // that were let through
}

// spending is that of the topmost run that has the hooks, and of those below it.
type spending struct {
	mu    sync.Mutex
	owner agent.State // of that run
	// calls is how many calls were let through; none before it was counted for the first time.
	calls mo.Option[int]
}

// spending returns the spending that the run of s is part of, with the reason why there may be no more; empty when there may.
func (b *budget) spending(s agent.State) (spent *spending, reason string) {
	spent = b.of.GetTree(s)
	spent.mu.Lock()
	defer spent.mu.Unlock()
	if spent.owner == (agent.State{}) {
		spent.owner = s
	}
	over := agent.Limits{Cost: b.limits.Cost, Tokens: b.limits.Tokens}.StopFor(spent.owner)
	return spent, over.OrEmpty().Message
}

// step stops a run that has used what it may.
func (b *budget) step(_ context.Context, c hooks.StepContext) hooks.Result {
	if _, reason := b.spending(c.State()); reason != "" && !b.limits.Deny {
		return c.Stop(reason)
	}
	return c.Allow()
}

// call stops a run whose last reply was too much, and denies the calls that are too many.
func (b *budget) call(_ context.Context, c hooks.ToolContext) hooks.Result {
	spent, reason := b.spending(c.State())
	if reason != "" {
		if b.limits.Deny {
			return c.Deny(reason + "; " + finish)
		}
		return c.Stop(reason)
	}
	if b.limits.ToolCalls == 0 || c.Invalid() != nil || b.counted.Has(c) {
		return c.Allow()
	}
	spent.mu.Lock()
	defer spent.mu.Unlock()
	calls, known := spent.calls.Get()
	if !known {
		calls = countExecuted(spent.owner)
	}
	if calls >= b.limits.ToolCalls {
		return c.Deny(fmt.Sprintf("%d of at most %d tool calls made; %s", calls, max(b.limits.ToolCalls, 0), finish))
	}
	spent.calls = mo.Some(calls + 1)
	b.counted.Add(c)
	return c.Allow()
}

const finish = "call no more tools, and finish with what you have"

// countExecuted returns how many calls of the run were run: in a run that goes on from a stored state, what was let through.
func countExecuted(s agent.State) (n int) {
	for _, step := range s.RunSteps() {
		for _, r := range step.Results() {
			if r.Executed() {
				n++
			}
		}
	}
	return n
}
