package hooks

import (
	"context"
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// mostRounds is how often a point's controls are asked, including the first time. If they still rewrite after that, it
// counts as a failure.
const mostRounds = 4

// subject is the value that a point's controls judge and can rewrite: a call, an input, an instruction, parameters.
type subject[V any] interface {
	same(V) bool //nolint:inamedparam // the type says it
	// applyRewrite returns the new subject after a control has answered with o about the receiver. It also returns the
	// subject that this control has judged by its answer. again reports whether the control had been asked about
	// another subject before.
	applyRewrite(o *Outcome, again bool) (now, judged V)
}

// deliberation is the control phase at a point where subjects can be rewritten. It holds each control's latest answer,
// and ends when all answers are about the same subject.
type deliberation[V subject[V]] struct {
	now    V              // the current subject
	latest []judgement[V] // one for each control, in the order of asking; nil while all have passed
	final  *Outcome       // the Stop or Deny that ended the phase
}

// judgement is one control's latest answer.
type judgement[V any] struct {
	outcome *Outcome // nil: the control passed, or did not match
	about   V        // the subject that the control was asked about, or its rewrite
	given   bool     // false before the first answer
}

// recordOutcome records the answer of control i, out of n, about the current subject.
func (d *deliberation[V]) recordOutcome(i, n int, o *Outcome) {
	if d.latest == nil { // all earlier controls have passed on this subject
		d.latest = make([]judgement[V], n)
		for k := range i {
			d.latest[k] = judgement[V]{about: d.now, given: true}
		}
	}
	about := d.now
	switch {
	case o == nil:
	case o.decision == StopRun, o.decision == Deny:
		d.final = o
	case o.decision == Rewrite:
		d.now, about = d.now.applyRewrite(o, d.latest[i].given)
	}
	d.latest[i] = judgement[V]{o, about, true}
}

// deliberate asks the controls, in order, and asks again the controls that have not judged the current subject. view
// returns the context for control i. After an error, d has the answers until then.
func deliberate[C Context, V subject[V]](
	ctx context.Context, d *deliberation[V], at PointName, controls []*entry[C], view func(i int) C,
) error {
	for i, e := range controls {
		o, err := e.consult(ctx, view(i))
		if err != nil {
			return err
		}
		if d.recordOutcome(i, len(controls), o); d.final != nil {
			return nil
		}
	}
	return askAgain(ctx, d, at, controls, view)
}

// askAgain asks every control that has not judged the current subject, in order, until all have judged the same one.
// After mostRounds rounds it denies. view returns the context for control i.
func askAgain[C Context, V subject[V]](
	ctx context.Context, d *deliberation[V], at PointName, controls []*entry[C], view func(i int) C,
) error {
	for round := 1; d.final == nil && !d.agreed(); round++ {
		if round == mostRounds {
			d.final = d.disagreement(at)
			break
		}
		for i, e := range controls {
			if d.final != nil || d.judged(i) {
				continue
			}
			o, err := e.consult(ctx, view(i))
			if err != nil {
				return err
			}
			d.recordOutcome(i, len(controls), o)
		}
	}
	return nil
}

// judged reports whether control i's latest answer is about the current subject.
func (d *deliberation[V]) judged(i int) bool {
	return d.latest[i].given && d.latest[i].about.same(d.now)
}

// agreed reports whether all controls have judged the current subject.
func (d *deliberation[V]) agreed() bool {
	for i := range d.latest {
		if !d.judged(i) {
			return false
		}
	}
	return true
}

// disagreement returns the denial of a subject that the controls keep rewriting.
func (d *deliberation[V]) disagreement(at PointName) *Outcome {
	var names []string
	for o := range d.answers {
		if o.decision == Rewrite {
			names = append(names, o.hook)
		}
	}
	return &Outcome{
		decision: Deny, point: at, hook: lo.LastOrEmpty(names), failed: true,
		reason: fmt.Sprintf("the hooks did not agree in %d rounds: %s rewrote the call again", mostRounds, strings.Join(names, ", ")),
	}
}

// answers iterates over the latest answers, except Pass, in the order of asking.
func (d *deliberation[V]) answers(yield func(*Outcome) bool) {
	for _, j := range d.latest {
		if j.outcome != nil && !yield(j.outcome) {
			return
		}
	}
}

// joinEffects joins the latest answers' effects, in the order of asking. It leaves out the control with index without,
// unless without is negative.
func (d *deliberation[V]) joinEffects(without int) agent.Effects {
	var all agent.Effects
	for i, j := range d.latest {
		if j.outcome != nil && i != without {
			all = all.Add(j.outcome.effects)
		}
	}
	return all
}

// tellConflicts tells the run's observer which metadata several controls have set.
func (d *deliberation[V]) tellConflicts(ctx context.Context, s agent.State, at PointName) {
	if !s.Observed() {
		return
	}
	var earlier agent.Effects
	for o := range d.answers {
		if o.effects.Len() > 0 {
			tellConflicts(ctx, s, at, earlier, o.effects)
			earlier = earlier.Add(o.effects)
		}
	}
}

// observedOutcome returns the outcome for observers: the outcome that ended the phase. Without one, it is the last
// answer that is more than an Allow, or else the first answer.
func (d *deliberation[V]) observedOutcome() *Outcome {
	frozen := d.final
	for o := range d.answers {
		if d.final == nil && (frozen == nil || o.decision != Allow) {
			frozen = o
		}
	}
	return frozen
}

// first returns the first latest answer with a decision, or nil. An Allow without effects does not count.
func (d *deliberation[V]) first(decision Decision) *Outcome {
	for o := range d.answers {
		if o.decision == decision && !o.plain() {
			return o
		}
	}
	return nil
}

// last returns the last latest answer with a decision, or nil.
func (d *deliberation[V]) last(decision Decision) (found *Outcome) {
	for o := range d.answers {
		if o.decision == decision {
			found = o
		}
	}
	return found
}

// sameArguments reports whether two JSON objects, as text, have the same value. Empty text is an empty object.
func sameArguments(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := parseJSON(lo.CoalesceOrEmpty(a, "{}"))
	y, errY := parseJSON(lo.CoalesceOrEmpty(b, "{}"))
	return errX == nil && errY == nil && sameJSON(x, y)
}
