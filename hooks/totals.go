package hooks

import "github.com/grapnel-go/grapnel/agent"

// runTotals sums up a run for its StepEnd hooks, so that no hook walks its steps.
type runTotals struct {
	tools int    // calls
	text  string // what the model last said
}

var totals = agent.NewScratch[runTotals](nil)

// addStep counts a step and returns the sum so far. Steps of one run come one after
// the other.
func (t *runTotals) addStep(r agent.StepRecord) runTotals {
	t.tools += r.Message().CallCount()
	if said := r.Message().Text(); said != "" {
		t.text = said
	}
	return *t
}
