package hooks

import (
	"sync"

	"github.com/grapnel-go/grapnel/agent"
)

// CountedCalls records, for each run, which calls of the current step a control has counted. A control can be asked
// several times about one call, if another hook or a person changes the arguments. The call ID stays the same.
//
//	counted := hooks.CountCalls()
//	limit := func(_ context.Context, c hooks.ToolContext) hooks.Result {
//		if !counted.Has(c) {
//			counted.Add(c) // and subtract it from the budget
//		}
//		return c.Pass()
//	}
//
// Create one with CountCalls for each hook that counts. It is safe for concurrent use.
type CountedCalls struct{ ofRun *agent.Scratch[countedCalls] }

// countedCalls are the counted calls in a run's step, by their IDs.
type countedCalls struct {
	mu   sync.Mutex
	step int
	ids  map[string]bool
}

// CountCalls returns a CountedCalls without counted calls.
func CountCalls() *CountedCalls { return &CountedCalls{agent.NewScratch[countedCalls](nil)} }

// Has reports whether the call of c has been counted in this step.
func (k *CountedCalls) Has(c ToolContext) bool {
	calls := k.ofRun.Get(c.State())
	calls.mu.Lock()
	defer calls.mu.Unlock()
	return calls.step == c.StepIndex() && calls.ids[c.Original().ID]
}

// Add counts the call of c.
func (k *CountedCalls) Add(c ToolContext) {
	calls := k.ofRun.Get(c.State())
	calls.mu.Lock()
	defer calls.mu.Unlock()
	if calls.step != c.StepIndex() || calls.ids == nil {
		calls.step, calls.ids = c.StepIndex(), map[string]bool{}
	}
	calls.ids[c.Original().ID] = true
}
