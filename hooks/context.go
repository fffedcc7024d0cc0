package hooks

import (
	"context"
	"errors"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// A Context is the argument of a hook at any point. It is immutable, and so is everything that it returns. The concrete
// contexts have the methods that create their point's answers.
type Context interface {
	// Point returns the point's name.
	Point() PointName
	// State returns the current state, including the effects of earlier hooks.
	State() agent.State
	// Run returns the run: the IDs of session, run, parent and root, depth, agent, stage, iteration.
	Run() agent.Run
	// StepIndex returns the current step's index, or at points outside of steps the next step's index.
	StepIndex() int
	// Frozen returns the controls' decision, for an observer. For a control it is Pass.
	Frozen() *Outcome
	// Tell sends an event about a hook to the run's observer. At points where filters apply, the event is sent after
	// all the point's hooks were asked, with the filters applied.
	Tell(ctx context.Context, e Event)

	// stepKind returns the current step's kind, if it is known.
	stepKind() agent.StepKind
	// toolCall returns the effective call at a tool call's points, nil elsewhere.
	toolCall() *agent.ToolCall
	// vet makes the checks of an outcome that need the context.
	vet(ctx context.Context, o *Outcome) (*Outcome, error)
}

// base is the common part of the payloads at all points except a tool call's points. A payload is complete before a
// hook sees it, and is not modified afterwards.
type base struct {
	state  agent.State
	point  PointName
	frozen *Outcome
	step   int
	kind   agent.StepKind // the current step's kind, if it is known
}

// common returns the part of b that all contexts have.
func (b *base) common() contextView {
	info, _ := infoOf(b.point)
	return contextView{b.state, info, b.frozen, b}
}

// contextView is the part that every context has. It is a value of a few words, so asking a hook about a tool call
// costs no allocation. The name is unexported, because go doc lists the methods of an embedded type only if the type is
// unexported.
type contextView struct {
	state  agent.State
	info   *pointInfo
	frozen *Outcome
	at     *base // nil if the state has all data
}

// Point returns the point's name.
func (c contextView) Point() PointName { return c.info.name }

// State returns the current state, including the effects of earlier hooks.
func (c contextView) State() agent.State { return c.state }

// Run returns the run.
func (c contextView) Run() agent.Run { return c.state.Run() }

// StepIndex returns the current step's index, counted from zero in its run. At points outside of steps, it returns the
// number of steps taken.
func (c contextView) StepIndex() int {
	if c.at == nil {
		return c.state.RunStepCount()
	}
	return c.at.step
}

// Time returns the current time.
func (c contextView) Time() time.Time { return time.Now() }

// Elapsed returns how long the run has taken.
func (c contextView) Elapsed() time.Duration { return time.Since(c.Run().Started) }

// Resumed reports whether the run was resumed in this process, after it was parked or cut off
// in this or another process.
func (c contextView) Resumed() bool { return agent.Checkpoint(c.state).Resumed() }

// Frozen returns the controls' decision, for an observer. For a control it is Pass.
func (c contextView) Frozen() *Outcome { return c.frozen }

// Tell sends an event about a hook to the run's observer. At points where filters apply, the event is sent after all
// the point's hooks were asked, with the filters applied.
func (c contextView) Tell(ctx context.Context, e Event) { c.state.Emit(ctx, e) }

// Pass returns the answer of a hook without an opinion.
func (c contextView) Pass() Result { return Result{} }

// Fail returns the answer that the hook could not decide. The hook's failure policy applies. By default a control that
// fails denies.
func (c contextView) Fail(err error) Result {
	if err == nil {
		err = errNoReason
	}
	return mo.Err[*Outcome](err)
}

var errNoReason = errors.New("the hook failed with a nil error")

func (c contextView) stepKind() agent.StepKind {
	switch {
	case c.at != nil:
		return c.at.kind
	case len(c.info.kinds) == 1:
		return c.info.kinds[0]
	}
	return ""
}

func (contextView) toolCall() *agent.ToolCall { return nil }

func (contextView) vet(_ context.Context, o *Outcome) (*Outcome, error) { return o, nil }

func (c contextView) newAnswer(o Outcome, effects []agent.Effect) Result {
	o.point = c.info.name
	o.effects = agent.EffectsOf(effects...)
	if err := o.effects.Validate(); err != nil && o.invalid == nil {
		o.invalid = err
	}
	return mo.Ok(&o)
}

func (c contextView) allowWith(effects []agent.Effect) Result {
	if len(effects) == 0 {
		return mo.Ok(c.info.allowed)
	}
	return c.newAnswer(Outcome{decision: Allow}, effects)
}
