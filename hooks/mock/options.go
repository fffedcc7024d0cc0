package mock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Unmatched says what happens to a call that there is no answer for.
type Unmatched uint8

const (
	// Deny keeps the tool from running and tells the model that there is no answer.
	Deny Unmatched = iota
	// Pass leaves the call to the tool, or to other hooks.
	Pass
)

// Options says how mocks answer. The zero value is the default.
type Options struct {
	// Name is the name of the hook; empty means "mock". Hooks of one agent have different names.
	Name string
	// Unmatched is what happens to a call that there is no answer for. Zero denies it.
	Unmatched Unmatched
	// Timed lets recorded answers take as long as they took. It means nothing for a table.
	Timed bool
}

// reply is what a mock answers with.
type reply struct {
	content agent.Content
	failure bool
	latency time.Duration
}

// occasion is the asking about one call of a run, to know whether some mock answers it already.
type occasion struct {
	step, call int
	asked      []any // which mocks
	answered   bool
}

// occasions is shared by all mocks of a run.
var occasions = agent.NewScratch[occasion](nil)

// hook makes a hook that answers with what find finds, and says with denial why there is nothing. Longest is the longest
// latency.
func (o Options) hook(self any, longest time.Duration, find func(hooks.ToolContext) (reply, bool), denial func(hooks.ToolContext) string) hooks.Hook {
	hook := hooks.On(hooks.AtPreToolUse, cmp.Or(o.Name, "mock"), func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		if c.Invalid() != nil {
			return c.Pass() // the model is told what is wrong with the call
		}
		now := occasions.Of(c.State())
		if now.step != c.StepIndex() || now.call != c.Index() || slices.Contains(now.asked, self) { // the last: a step is tried again
			*now = occasion{step: c.StepIndex(), call: c.Index()}
		}
		now.asked = append(now.asked, self)
		if now.answered {
			return c.Pass()
		}
		r, found := find(c)
		switch {
		case !found && o.Unmatched == Pass:
			return c.Pass()
		case !found:
			return c.Deny(denial(c))
		}
		now.answered = true
		if err := sleep(ctx, r.latency); err != nil {
			return c.Fail(err)
		}
		if r.failure {
			return c.MockFailure(r.content.Text())
		}
		return c.MockContent(r.content)
	}).WithPriority(hooks.PriorityAfterwork)
	if longest > 0 {
		hook = hook.WithTimeout(longest + hooks.DefaultTimeout)
	}
	return hook
}

// sleep waits, at most until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
