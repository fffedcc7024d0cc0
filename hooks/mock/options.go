package mock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Unmatched says how to treat a call without an answer.
type Unmatched uint8

const (
	// Deny denies the call and tells the model that there is no answer.
	Deny Unmatched = iota
	// Pass leaves the call to the tool, or to other hooks.
	Pass
)

// Options configures mocks. The zero value holds the defaults.
type Options struct {
	// Name is the hook's name. Empty means "mock". An agent's hooks must have different names.
	Name string
	// Unmatched says how to treat a call without an answer. Zero denies the call.
	Unmatched Unmatched
	// Timed delays each recorded answer by the time that the tool took. It has no effect on a table.
	Timed bool
}

// reply is a mock's answer.
type reply struct {
	content agent.Content
	failure bool
	latency time.Duration
}

// mockAnswers holds the answers from the run's mocks for one call.
type mockAnswers struct {
	order     []any  // the mocks, in the order in which they run
	by        any    // the mock that answers the call, nil if there is none,
	arguments string // and the call's arguments
	said      map[any]saying
}

// saying is a mock's last answer, with the call's arguments.
type saying struct {
	arguments string
	undo      func()
}

// stepAnswers holds one step's answers by call ID. All mocks in a run share it.
type stepAnswers struct {
	step  int
	calls map[string]*mockAnswers
}

var allAnswers = agent.NewScratch[stepAnswers](nil)

// answersOf returns a call's answers. It creates them for the first mock that is called.
func answersOf(c hooks.ToolContext) *mockAnswers {
	now := allAnswers.Get(c.State())
	if now.calls == nil || now.step != c.StepIndex() {
		*now = stepAnswers{c.StepIndex(), map[string]*mockAnswers{}}
	}
	id := c.Original().ID
	if now.calls[id] == nil {
		now.calls[id] = &mockAnswers{said: map[any]saying{}}
	}
	return now.calls[id]
}

// takeBack undoes the mock's earlier answer to the call. A mock is called again for the same call only if its arguments
// have changed. With the same arguments the step is being retried, and its calls count again.
func (o *mockAnswers) takeBack(self any, arguments string) {
	if before, ok := o.said[self]; ok && before.arguments != arguments {
		before.undo()
	}
	delete(o.said, self)
	if o.by == self {
		o.by = nil
	}
	if !slices.Contains(o.order, self) {
		o.order = append(o.order, self)
	}
}

// yields reports whether an earlier mock answers the call.
func (o *mockAnswers) yields(self any, arguments string) bool {
	return o.by != nil && o.arguments == arguments && slices.Index(o.order, o.by) < slices.Index(o.order, self)
}

// answerWith records that the mock answers the call, instead of any later mock.
func (o *mockAnswers) answerWith(self any, arguments string) {
	if o.by != nil && o.arguments == arguments {
		o.said[o.by].undo()
	}
	o.by, o.arguments = self, arguments
}

// finding looks up the answer to a call. undo reverts the call's count. It is never nil.
type finding func(hooks.ToolContext) (r reply, undo func(), found bool)

// newHook returns a hook that answers with find's result, or denies with denial's text. longest is the longest latency.
func (o Options) newHook(self any, longest time.Duration, find finding, denial func(hooks.ToolContext) string) hooks.Hook {
	hook := hooks.On(hooks.AtPreToolUse, cmp.Or(o.Name, "mock"), func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		if c.Invalid() != nil {
			return c.Pass() // the model receives the error in the call
		}
		now := answersOf(c)
		now.takeBack(self, c.Call().Arguments)
		if now.yields(self, c.Call().Arguments) {
			return c.Pass()
		}
		r, undo, found := find(c)
		now.said[self] = saying{c.Call().Arguments, undo}
		switch {
		case !found && o.Unmatched == Pass:
			return c.Pass()
		case !found:
			return c.Deny(denial(c))
		}
		now.answerWith(self, c.Call().Arguments)
		if err := sleepFor(ctx, r.latency); err != nil {
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

// sleepFor waits for d or until ctx is done.
func sleepFor(ctx context.Context, d time.Duration) error {
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
