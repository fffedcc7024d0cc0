package hooks

import (
	"context"
	"errors"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// Context is what a hook is given at any point. It cannot be changed, and nothing
// that was kept from it changes later. The concrete contexts have the methods that
// make the answers of their point.
type Context interface {
	// Point is the point's name.
	Point() PointName
	// State is the state as the hook sees it, earlier effects included.
	State() agent.State
	// Run says which run this is: ids of session, run, parent and root, depth,
	// agent, stage, iteration.
	Run() agent.Run
	// StepIndex is the index of the step under way, or of the next one.
	StepIndex() int
	// Frozen is what the controls decided, for observers. It passes for controls.
	Frozen() *Outcome

	shared() *base
}

// base is the part of a payload that all points have. A payload is written before
// a hook sees it and never again.
type base struct {
	state  agent.State
	point  PointName
	frozen *Outcome
	step   int
	call   *agent.ToolCall // at tool points
	kind   agent.StepKind  // of the step under way, as far as it is known

	// first is the context of the first hook that is called with this payload, so
	// that one hook costs no allocation of its own.
	first     lazyContext
	firstUsed bool
}

// lazy is a fresh context for one hook. Hooks of one payload are called one after
// the other, but for detached ones, which do not use it.
func (b *base) lazy(ctx context.Context) *lazyContext {
	if b.firstUsed {
		return &lazyContext{Context: ctx}
	}
	b.firstUsed = true
	b.first.Context = ctx
	return &b.first
}

// Common is the part that every context has.
type Common struct{ b *base }

// Point is the point's name.
func (c Common) Point() PointName { return c.b.point }

// State is the state as the hook sees it, earlier effects included.
func (c Common) State() agent.State { return c.b.state }

// Run says which run this is.
func (c Common) Run() agent.Run { return c.b.state.Run() }

// StepIndex is the index of the step under way, counted from zero in its run; at
// points outside of steps, the number of steps taken.
func (c Common) StepIndex() int { return c.b.step }

// Time is the time now.
func (c Common) Time() time.Time { return time.Now() }

// Elapsed is how long the run has taken.
func (c Common) Elapsed() time.Duration { return time.Since(c.Run().Started) }

// Frozen is what the controls decided, for observers. It passes for controls.
func (c Common) Frozen() *Outcome { return c.b.frozen }

// Pass has no opinion.
func (c Common) Pass() Result { return Result{} }

// Fail says that the hook could not decide. What then happens is up to its
// failure policy; a control that fails is not a yes.
func (c Common) Fail(err error) Result {
	if err == nil {
		err = errors.New("the hook failed without saying why")
	}
	return mo.Err[*Outcome](err)
}

func (c Common) shared() *base { return c.b }

func (c Common) answer(o Outcome, effects []agent.Effect) Result {
	o.point = c.b.point
	o.effects = agent.EffectsOf(effects...)
	return mo.Ok(&o)
}

func (c Common) allow(effects []agent.Effect) Result {
	if len(effects) == 0 {
		return mo.Ok(allowed[c.b.point])
	}
	return c.answer(Outcome{decision: Allow}, effects)
}
