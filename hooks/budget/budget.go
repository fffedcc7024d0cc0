package budget

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Limits is what one run may use. A field that is zero sets no limit; one that is negative, or no number, allows
// nothing.
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

// Hooks are the hooks that keep the limits. Their names begin with "budget". They are asked after the others of their
// points.
func Hooks(limits Limits) []hooks.Hook {
	b := &budget{limits, agent.NewScratch[spending](nil), hooks.CountCalls()}
	return []hooks.Hook{
		hooks.On(hooks.AtStepStart, "budget", b.step).WithPriority(hooks.PriorityAfterwork),
		hooks.Observe(hooks.AtPostInference, "budget.reply", b.reply).WithFailure(hooks.Abort),
		hooks.On(hooks.AtPreToolUse, "budget.call", b.call).WithPriority(hooks.PriorityAfterwork),
	}
}

type budget struct {
	limits  Limits
	of      *agent.Scratch[spending]
	counted *hooks.CountedCalls // that were let through
}

// spending is what the state of a run does not say yet.
type spending struct {
	// replies is what the model calls of the step under way used; none are there before the first.
	replies mo.Option[agent.Usage]
	// calls is how many calls were let through; none before it was counted for the first time.
	calls mo.Option[int]
	// unclear is whether there was a reply of which nobody can tell what it used; none before the steps were looked at.
	unclear mo.Option[bool]
}

// spent is what is known of the run besides its state.
func (b *budget) spent(s agent.State) *spending {
	spent := b.of.Of(s)
	if spent.unclear.IsAbsent() {
		unclear := false
		for _, step := range s.RunSteps() {
			unclear = unclear || step.Message().Role() == agent.RoleAssistant && isUnclear(step.Usage())
		}
		spent.unclear = mo.Some(unclear)
	}
	return spent
}

// isUnclear reports whether a usage says nothing, or something that cannot be.
func isUnclear(u agent.Usage) bool {
	cost, known := u.Cost.Get()
	return u.Tokens() == 0 && !known || u.InputTokens < 0 || u.OutputTokens < 0 || u.Tokens() < 0 || cost < 0
}

// step stops a run that has used what it may.
func (b *budget) step(_ context.Context, c hooks.StepContext) hooks.Result {
	spent := b.spent(c.State())
	spent.replies = mo.None[agent.Usage]()
	if reason := b.limits.exceeded(c.State().RunUsage(), spent.unclear.OrEmpty()); reason != "" && !b.limits.Deny {
		return c.Stop(reason)
	}
	return c.Allow()
}

// reply counts what a reply used.
func (b *budget) reply(_ context.Context, c hooks.ReplyContext) error {
	if c.Err() != nil {
		return nil //nolint:nilerr // there is no reply; the loop has the error
	}
	spent := b.spent(c.State())
	used := c.Reply().Usage
	spent.unclear = mo.Some(spent.unclear.OrEmpty() || isUnclear(used))
	if before, ok := spent.replies.Get(); ok {
		used = before.Plus(used)
	}
	spent.replies = mo.Some(used)
	return nil
}

// call stops a run whose last reply was too much, and denies the calls that are too many.
func (b *budget) call(_ context.Context, c hooks.ToolContext) hooks.Result {
	spent, used := b.spent(c.State()), c.State().RunUsage()
	if replies, ok := spent.replies.Get(); ok {
		used = used.Plus(replies)
	}
	if reason := b.limits.exceeded(used, spent.unclear.OrEmpty()); reason != "" {
		if b.limits.Deny {
			return c.Deny(reason + "; " + finish)
		}
		return c.Stop(reason)
	}
	if b.limits.ToolCalls == 0 || c.Invalid() != nil || b.counted.Has(c) {
		return c.Allow()
	}
	calls, known := spent.calls.Get()
	if !known {
		calls = executed(c.State())
	}
	if calls >= b.limits.ToolCalls {
		return c.Deny(fmt.Sprintf("%d of at most %d tool calls made; %s", calls, max(b.limits.ToolCalls, 0), finish))
	}
	spent.calls = mo.Some(calls + 1)
	b.counted.Add(c)
	return c.Allow()
}

const finish = "call no more tools, and finish with what you have"

// executed is how many calls of the run were run: in a run that goes on from a stored state, what was let through.
func executed(s agent.State) (n int) {
	for _, step := range s.RunSteps() {
		for _, r := range step.Results() {
			if r.Executed() {
				n++
			}
		}
	}
	return n
}

// exceeded says which limit has been reached; empty when none has.
func (l Limits) exceeded(used agent.Usage, unclear bool) string {
	cost, known := used.Cost.Get()
	switch {
	case l.Cost != 0 && !known:
		return fmt.Sprintf("the cost of the run is not known, so that the limit of %s cannot be kept", dollars(l.Cost))
	case l.Cost != 0 && !(cost < l.Cost): // so that no comparison with NaN lets the run go on
		return fmt.Sprintf("%s of at most %s spent", dollars(cost), dollars(l.Cost))
	case l.Cost != 0 && cost < 0 || l.Tokens != 0 && used.Tokens() < 0: // added up beyond what a number can hold, too
		return "what the run used is less than nothing, so that its limits cannot be kept"
	case l.Tokens != 0 && used.Tokens() >= l.Tokens:
		return fmt.Sprintf("%d of at most %d tokens used", used.Tokens(), l.Tokens)
	case (l.Cost != 0 || l.Tokens != 0) && unclear:
		return "a reply came with a usage that says nothing, or less than nothing, so that the limits of the run cannot be kept"
	}
	return ""
}

// dollars is an amount, without the dust of floating point.
func dollars(amount float64) string {
	const millionths = 1e6
	return "$" + strconv.FormatFloat(math.Round(amount*millionths)/millionths, 'f', -1, 64)
}
