package hooks

import "github.com/grapnel-go/grapnel/agent"

// runTotals are a run's totals for its StepEnd hooks, so that no hook iterates over its steps.
type runTotals struct {
	tools int    // number of tool calls
	text  string // the model's last text
}

var totals = agent.NewScratch[runTotals](nil)

// addStep adds a step and returns the totals so far. A run's steps are added one after the other.
func (t *runTotals) addStep(r agent.StepRecord) runTotals {
	t.tools += r.Message().CallCount()
	if said := r.Message().Text(); said != "" {
		t.text = said
	}
	return *t
}
