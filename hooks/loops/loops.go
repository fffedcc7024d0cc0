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

// Options defines a loop and when the hooks act. The zero value holds the defaults.
type Options struct {
	// Deny is how often a round may be made before its next call is denied. Zero means 3, negative means never.
	Deny int
	// Stop is how often a round may be made, denied calls included, before the run is stopped. Zero means twice Deny,
	// or 6; negative means never.
	Stop int
	// Cycle is the maximum number of calls in a round. Zero means 4. With 1, only repetitions of a single call are
	// detected.
	Cycle int
	// IgnoreResults treats repeated calls as the same even if their results differ.
	IgnoreResults bool
	// Except lists tools whose calls are ignored.
	Except []string
}

// Hooks returns two controls: "loops" at PreToolUse denies calls, and "loops.stop" at StepEnd stops the run. The first one
// runs after the other hooks of its point.
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

// seen is a run's record. Only one hook in the run uses it at a time.
type seen struct {
	recorded rounds // the recorded steps' rounds
	steps    int    // the number of recorded steps

	step    int           // the index of the current step
	pending []pendingCall // this step's calls for which the hook was called, by their index
	sum     rounds        // the rounds in the recorded steps and in the first summed pending calls
	summed  int
}

// pendingCall is a call in the current step.
type pendingCall struct {
	index  int
	id     string
	made   made
	denied bool // by this hook, even if another hook replaced the result
}

// put stores a call at its index and returns the position. A stored call with the same ID means that the hook was
// called for this call before. A stored call with another ID means that the step is being retried.
func (s *seen) put(c pendingCall) int {
	at, found := slices.BinarySearchFunc(s.pending, c.index, func(p pendingCall, index int) int { return p.index - index })
	switch {
	case !found:
		s.pending = slices.Insert(s.pending, at, c)
	case s.pending[at].id == c.id:
		s.pending[at] = c
	default:
		s.pending = append(s.pending[:at], c)
	}
	if s.summed > at {
		s.summed = 0
	}
	return at
}

// roundsUpTo returns the run's rounds, including the pending calls up to the position at. The result is valid until
// roundsUpTo is called again.
func (s *seen) roundsUpTo(at int) *rounds {
	if s.summed == 0 {
		s.sum = s.recorded.clone()
	}
	for ; s.summed <= at; s.summed++ {
		s.sum.add(s.pending[s.summed].made)
	}
	return &s.sum
}

func (w *watch) deny(_ context.Context, c hooks.ToolContext) hooks.Result {
	if slices.Contains(w.Except, c.Tool()) || w.Deny < 0 {
		return c.Pass()
	}
	seen := w.caughtUp(c.State())
	if seen.step != c.StepIndex() {
		seen.step, seen.pending, seen.summed = c.StepIndex(), nil, 0
	}
	at := seen.put(pendingCall{
		index: c.Index(), id: c.Original().ID,
		made: made{call: keyOf(c.Original().ToolCall), tool: c.Tool(), anyResult: true},
	})
	rounds := seen.roundsUpTo(at)
	if times, length := rounds.find(w.Deny, 1); length > 0 {
		seen.pending[at].denied = true
		return c.Deny(w.sentence(rounds, times, length) +
			"; the same call will not help: use the results that you have, try something else, or explain why you cannot continue")
	}
	return c.Pass()
}

func (w *watch) stop(_ context.Context, c hooks.StepEndContext) hooks.Result {
	if w.Stop < 0 {
		return c.Pass()
	}
	seen := w.caughtUp(c.State())
	if times, length := seen.recorded.find(w.Stop, 0); length > 0 {
		return c.Stop("the run is in a loop: " + w.sentence(&seen.recorded, times, length))
	}
	return c.Pass()
}

// sentence describes a loop: the tools and how often they were called.
func (w *watch) sentence(r *rounds, times, length int) string {
	what := "same call of "
	made := "was"
	if length > 1 {
		what, made = "same calls of ", "were, in turn,"
	}
	nothing := " and returned nothing new"
	if w.IgnoreResults {
		nothing = ""
	}
	return fmt.Sprintf("the %s%s %s made %d times in a row%s", what, strings.Join(r.tools(length), ", "), made, times, nothing)
}

// caughtUp returns the run's record after adding the missing steps.
func (w *watch) caughtUp(s agent.State) *seen {
	seen := w.of.Get(s)
	if s.RunStepCount() < seen.steps { // the caller returned to an earlier state
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
				denied := seen.steps-1-back == seen.step && seen.denied(i)
				seen.recorded.add(w.madeOf(&r, denied))
			}
		}
	}
	return seen
}

// denied reports whether this hook denied the call with that index in the current step.
func (s *seen) denied(index int) bool {
	return slices.ContainsFunc(s.pending, func(p pendingCall) bool { return p.index == index && p.denied })
}

func (w *watch) fresh() *seen { return &seen{recorded: newRounds(w.Cycle)} }

// madeOf converts a result to a made. The text of this hook's own denial does not count as a result.
func (w *watch) madeOf(r *agent.ToolResult, denied bool) made {
	call := r.Original()
	m := made{call: keyOf(call), tool: call.Name}
	if m.anyResult = w.IgnoreResults || denied || r.Denied() && r.DecidedBy == nameDeny; !m.anyResult {
		m.result = resultOf(r)
	}
	return m
}
