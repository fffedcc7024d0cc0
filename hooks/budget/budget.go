package budget

import (
	"context"
	"fmt"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Limits limits a run's usage, including the runs that it starts: see agent.Spending. A zero field sets no limit. A
// negative value, or NaN, allows nothing.
type Limits struct {
	// Cost is the maximum cost in US dollars.
	Cost float64
	// Tokens is the maximum of input and output tokens together.
	Tokens int64
	// ToolCalls is the maximum number of tool calls.
	ToolCalls int
	// Deny lets a run that has reached its cost or token limit continue. Its tool calls are denied, but the model can
	// still answer.
	Deny bool
}

// Hooks returns the hooks that enforce the limits. Their names begin with "budget". They run after the other hooks of their
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
	counted *hooks.CountedCalls // the allowed calls
}

// spending is the usage of the topmost run that has the hooks, with all runs below it.
type spending struct {
	mu    sync.Mutex
	owner agent.State // a state of the topmost run
	// calls is the number of allowed calls. It is nil until it is counted for the first time.
	calls *int
}

// spending returns the spending to which the run of s contributes, and the reason why the run must stop. The reason is
// empty if the run may continue.
func (b *budget) spending(s agent.State) (spent *spending, reason string) {
	spent = b.of.GetTree(s)
	spent.mu.Lock()
	defer spent.mu.Unlock()
	if spent.owner == (agent.State{}) {
		spent.owner = s
	}
	over, _ := agent.Limits{Cost: b.limits.Cost, Tokens: b.limits.Tokens}.StopFor(spent.owner)
	return spent, over.Message
}

// step stops a run that has reached a limit.
func (b *budget) step(_ context.Context, c hooks.StepContext) hooks.Result {
	if _, reason := b.spending(c.State()); reason != "" && !b.limits.Deny {
		return c.Stop(reason)
	}
	return c.Allow()
}

// call stops a run whose last reply reached a limit, and denies tool calls beyond the limit of tool calls.
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
	if spent.calls == nil {
		spent.calls = new(countExecuted(spent.owner))
	}
	if *spent.calls >= b.limits.ToolCalls {
		return c.Deny(fmt.Sprintf("%d of at most %d tool calls made; %s", *spent.calls, max(b.limits.ToolCalls, 0), finish))
	}
	*spent.calls++
	b.counted.Add(c)
	return c.Allow()
}

const finish = "call no more tools, and finish with what you have"

// countExecuted returns the run's number of executed calls. When a run resumes from a stored state, they count as the
// allowed calls.
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
