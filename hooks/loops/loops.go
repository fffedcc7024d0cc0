package loops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// Options says what a loop is and when it ends. The zero value is the default.
type Options struct {
	// Deny is how often calls may come round before the next one is denied; zero means 3. Negative: none is denied.
	Deny int
	// Stop is how often calls may come round, denied ones included, before the run is stopped; zero means twice Deny, or 6.
	// Negative: no run is stopped.
	Stop int
	// Cycle is how many different calls a round may have; zero means 4. One sees only the same call in a row.
	Cycle int
	// IgnoreResults takes a call for the same whatever was answered.
	IgnoreResults bool
	// Except names tools whose calls are passed over, as if they had not been made.
	Except []string
}

// Hooks are a control at PreToolUse, "loops", that denies, and one at StepEnd, "loops.stop", that stops. The first is
// asked after the other hooks of its point.
func Hooks(o Options) []hooks.Hook {
	o.Stop = cmp.Or(o.Stop, 2*max(o.Deny, 0), 6)
	o.Deny = cmp.Or(o.Deny, 3)
	if o.Cycle = max(o.Cycle, 0); o.Cycle == 0 {
		o.Cycle = 4
	}
	o.Except = slices.Clone(o.Except)
	w := &watch{Options: o}
	w.of = agent.NewScratch(w.fresh)
	return []hooks.Hook{
		hooks.On(hooks.AtPreToolUse, nameDeny, w.deny).WithPriority(hooks.PriorityAfterwork),
		hooks.On(hooks.AtStepEnd, "loops.stop", w.stop),
	}
}

const nameDeny = "loops"

type watch struct {
	Options

	of *agent.Scratch[seen]
}

// seen is what is known of a run. Only one hook of a run looks at it at a time.
type seen struct {
	recorded rounds // of the steps that were recorded
	steps    int    // so many of them

	pending  rounds // and with the calls of the step under way
	step     int    // which is the one with this index; none before the first
	lastCall int    // the last one that was added
	denied   []int  // the ones of that step that this hook denied, whoever may have changed what the model was told of it
}

func (w *watch) deny(_ context.Context, c hooks.ToolContext) hooks.Result {
	if slices.Contains(w.Except, c.Tool()) || w.Deny < 0 {
		return c.Pass()
	}
	seen := w.caughtUp(c.State())
	// A step that is tried again begins again with its first call.
	if seen.pending.of == nil || seen.step != c.StepIndex() || c.Index() <= seen.lastCall {
		seen.pending, seen.step, seen.denied = seen.recorded.clone(), c.StepIndex(), nil
	}
	seen.lastCall = c.Index()
	seen.pending.add(made{call: keyOf(c.Original().ToolCall), tool: c.Tool(), anyResult: true})
	if times, length := seen.pending.find(w.Deny, 1); length > 0 {
		seen.denied = append(seen.denied, c.Index())
		return c.Deny(w.sentence(&seen.pending, times, length) +
			"; once more will not help: use what you have, try something else, or say what keeps you from going on")
	}
	return c.Pass()
}

func (w *watch) stop(_ context.Context, c hooks.StepEndContext) hooks.Result {
	if w.Stop < 0 {
		return c.Pass()
	}
	seen := w.caughtUp(c.State())
	if times, length := seen.recorded.find(w.Stop, 0); length > 0 {
		return c.Stop("the run goes round in circles: " + w.sentence(&seen.recorded, times, length))
	}
	return c.Pass()
}

// sentence says what came round how often.
func (w *watch) sentence(r *rounds, times, length int) string {
	what := "same call of "
	made := "was"
	if length > 1 {
		what, made = "same calls of ", "were, in turn,"
	}
	nothing := " and came to nothing new"
	if w.IgnoreResults {
		nothing = ""
	}
	return fmt.Sprintf("the %s%s %s made %d times in a row%s", what, strings.Join(r.tools(length), ", "), made, times, nothing)
}

// caughtUp is what is known of the run, with all of its steps.
func (w *watch) caughtUp(s agent.State) *seen {
	seen := w.of.Of(s)
	if s.RunStepCount() < seen.steps { // somebody went back
		*seen = *w.fresh()
	}
	var steps []agent.StepRecord
	for i, step := range s.RunStepsBackward() {
		if i < seen.steps {
			break
		}
		steps = append(steps, step)
	}
	seen.steps = s.RunStepCount()
	for back, step := range slices.Backward(steps) {
		for i, r := range step.Results() {
			if call := r.Original(); !slices.Contains(w.Except, call.Name) {
				denied := seen.steps-1-back == seen.step && slices.Contains(seen.denied, i)
				seen.recorded.add(w.madeOf(&r, denied))
			}
		}
	}
	return seen
}

func (w *watch) fresh() *seen { return &seen{recorded: newRounds(w.Cycle)} }

// madeOf is a call that was answered. What this hook says to it is no result: it counts.
func (w *watch) madeOf(r *agent.ToolResult, denied bool) made {
	call := r.Original()
	m := made{call: keyOf(call), tool: call.Name}
	if m.anyResult = w.IgnoreResults || denied || r.Denied() && r.DecidedBy == nameDeny; !m.anyResult {
		m.result = resultOf(r)
	}
	return m
}
