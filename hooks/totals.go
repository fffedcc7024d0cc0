package hooks

import "github.com/grapnel-go/grapnel/agent"

// runTotals sums up a run for its StepEnd hooks, so that no hook walks its steps.
type runTotals struct {
	tools int
	text  string
}

var totals = agent.NewScratch[runTotals](nil)

// add counts a step. Steps of one run come one after the other.
func (t *runTotals) add(_ agent.State, r agent.StepRecord) (tools int, text string) {
	t.tools += r.Message().CallCount()
	if said := r.Message().Text(); said != "" {
		t.text = said
	}
	return t.tools, t.text
}
