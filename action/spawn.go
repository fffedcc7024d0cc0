package action

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/samber/mo"
)

// Spawn is a pipeline that is run, in a place of its own. It gets its inputs and nothing else of the run that asks. What it
// puts out is the action's output.
//
// In a run that a hook started it is off, as Agent is; pipelines stand no deeper than Host.MaxDepth above one another.
type Spawn struct {
	// Pipeline is the pipeline's name. Required.
	Pipeline string
	// Inputs are what it is given; ${NAME} in their strings stands for a variable. Nil is nothing.
	Inputs map[string]any
	// Timeout is how long it may take. Zero means one hour.
	Timeout time.Duration
}

var _ Declared = Spawn{}

// Type returns "spawn".
func (Spawn) Type() string { return "spawn" }

// Limit returns how long Do may take.
func (s Spawn) Limit() time.Duration { return cmp.Or(s.Timeout, defaultSpawnTimeout) + ending }

// Lint finds nothing.
func (Spawn) Lint() []Warning { return nil }

// Validate finds what is wrong with it.
func (s Spawn) Validate() error {
	var p problems
	if s.Pipeline == "" {
		p.say("pipeline", "it is missing: name the pipeline")
	}
	p.body("inputs", s.Inputs)
	p.times(map[string]time.Duration{"timeout": s.Timeout})
	return p.join()
}

// Action makes it ready.
func (s Spawn) Action(h Host) mo.Result[Action] {
	var p problems
	if h.Spawner == nil {
		p.say("type", "the program cannot run pipelines: set Host.Spawner")
	}
	if h.MaxDepth < 0 {
		p.say("type", "the depth of the host is %d: it must not be negative", h.MaxDepth)
	}
	if err := errors.Join(s.Validate(), p.join()); err != nil {
		return mo.Err[Action](err)
	}
	most := cmp.Or(h.MaxDepth, defaultSpawnDepth)
	inputs := s.Inputs
	if inputs == nil {
		inputs = map[string]any{}
	}
	return mo.Ok[Action](actionFunc(func(ctx context.Context, r *Request) (*Answer, error) {
		if IsStarted(ctx) {
			return &Answer{Off: true}, nil
		}
		depth := Depth(ctx) + 1
		if depth > most {
			return nil, newFault(s.Type(), FaultSetup,
				"pipeline %q is not started: it would be number %d below the first, and %d is the limit", s.Pipeline, depth, most)
		}
		in, err := r.fillJSON(inputs)
		if err != nil {
			return nil, &Error{s.Type(), FaultSetup, err}
		}
		start := SpawnStart{
			Pipeline: s.Pipeline, Inputs: in, Hook: r.Hook, Point: string(r.Point), Run: r.Run, Attempt: r.Attempt, Depth: depth,
		}
		output, err := callWithin(WithDepth(ctx, depth), s.Type(), cmp.Or(s.Timeout, defaultSpawnTimeout), func(ctx context.Context) (string, error) {
			return h.Spawner.Spawn(ctx, start).Get()
		})
		if err != nil {
			return nil, err
		}
		return r.completeAnswer(s.Type(), output)
	}))
}
