package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samber/mo"
)

// ErrParked is the error of a run that was asked for on a state in which another one
// stands in the middle of a step.
var ErrParked = errors.New("a run of this state is parked or was cut off in a step: answer what it waits for, and go on with Resume")

// ErrSuspended is why a run is parked that waits for nobody: its process is going away.
// As the error of a processor around a step, or the cause that its context is cancelled
// with, it parks the run where it stands; Resume goes on with it. No hook is told of an
// end: there is none. A step that was cancelled so may have left calls in doubt, so that
// only a state that was stored before is good to go on from.
var ErrSuspended = errors.New("the run is suspended")

// Resume goes on with a run that was parked, once its questions are answered, or that
// was cut off, from a state that was stored on the way. The run keeps its id; hooks at
// InputSubmitted and ExecutionStart are not asked again. In an open step the model is
// not asked again, and StepStart does not fire; the controls judge every call that has
// no answer yet, and a yes counts only for what the person saw.
//
// Steps and Stream go on with a run when RunSettings.Resume is set.
//
// Input is for the next run: a state that has some, behind what the run was begun with,
// is an error, for no hook would be asked about it.
//
// A state that still waits for an answer, or whose run has ended, is returned as it
// is. With a ctx that is done, a parked run ends as cancelled.
func (a *Agent) Resume(ctx context.Context, s State) mo.Result[State] {
	return a.RunWith(ctx, RunSettings{Resume: true}, s)
}

func (a *Agent) resume(ctx context.Context, settings RunSettings, s State) mo.Result[State] {
	switch status := s.Status(); {
	case status == StatusNew:
		return mo.Err[State](errors.New("resuming a run: no run has touched this state: use Run"))
	case status.Terminal():
		return mo.Ok(s)
	case s.hasInput():
		return mo.Err[State](fmt.Errorf("resuming run %s: there is input that no hook has let in: resume without it, and give it to the next run", s.Run().ID))
	case s.Waiting() && ctx.Err() == nil:
		return mo.Ok(s)
	case s.Run().Agent != a.config.Name:
		return mo.Err[State](fmt.Errorf("resuming run %s: it is of agent %q, and this is agent %q", s.Run().ID, s.Run().Agent, a.config.Name))
	}
	if err := a.missing(ctx, s); err != nil {
		return mo.Err[State](err)
	}
	l := &live{observer: a.config.Observer, onDelta: settings.onDelta, onStep: settings.onStep, resumed: true}
	l.clock.begin(time.Now())
	l.tell(ctx, RunResumed{s})
	s = a.withControls(s.resumed(a.requestOf(&settings), l))
	return a.finish(ctx, &settings, s, a.run(ctx, s))
}

// hasInput reports whether there is input that nobody has let in.
func (s State) hasInput() bool {
	for range s.Input() {
		return true
	}
	return false
}
