package hooks

import (
	"sync"

	"github.com/grapnel-go/grapnel/agent"
)

// CountedCalls records, for each run, which calls of the current step a control has
// counted. A control can be asked several times about one call, if another hook or a
// person changes the arguments; the id of the call stays the same.
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

// countedCalls are the calls of one step of a run, by their ids.
type countedCalls struct {
	mu   sync.Mutex
	step int
	ids  map[string]bool
}

// CountCalls returns a CountedCalls in which no call is counted.
func CountCalls() *CountedCalls { return &CountedCalls{agent.NewScratch[countedCalls](nil)} }

// Has reports whether the call of c was counted.
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
