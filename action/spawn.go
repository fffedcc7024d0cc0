package action

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// Spawn runs a pipeline in its own workspace. The pipeline receives its inputs and nothing else from the calling run.
// The pipeline's output is the action's output.
//
// Like Agent, Spawn is disabled in a run that a hook started. Pipelines nest no deeper than Host.MaxDepth.
type Spawn struct {
	// Pipeline is the pipeline's name. Required.
	Pipeline string
	// Inputs are the pipeline's inputs. ${NAME} in their strings stands for a variable. Nil means no inputs.
	Inputs map[string]any
	// Timeout is the time limit. Zero means one hour.
	Timeout time.Duration
}

var _ Declared = Spawn{}

// Type returns "spawn".
func (Spawn) Type() string { return "spawn" }

// Limit returns the longest time that Do may take.
func (s Spawn) Limit() time.Duration { return cmp.Or(s.Timeout, defaultSpawnTimeout) + ending }

// Lint returns no warnings.
func (Spawn) Lint() []Warning { return nil }

// Validate returns an error for each invalid field.
func (s Spawn) Validate() error {
	var p problems
	if s.Pipeline == "" {
		p.say("pipeline", "missing: name the pipeline")
	}
	p.body("inputs", s.Inputs)
	p.times(map[string]time.Duration{"timeout": s.Timeout})
	return p.join()
}

// Action returns the action, ready to run with h.
func (s Spawn) Action(h Host) (Action, error) {
	var p problems
	if h.Spawner == nil {
		p.say("type", "no spawner configured: set Host.Spawner")
	}
	if h.MaxDepth < 0 {
		p.say("type", "Host.MaxDepth is %d: it must not be negative", h.MaxDepth)
	}
	if err := errors.Join(s.Validate(), p.join()); err != nil {
		return nil, err
	}
	most := cmp.Or(h.MaxDepth, defaultSpawnDepth)
	inputs := s.Inputs
	if inputs == nil {
		inputs = map[string]any{}
	}
	return actionFunc(func(ctx context.Context, r *Request) (*Answer, error) {
		if IsStarted(ctx) {
			return &Answer{Off: true}, nil
		}
		depth := Depth(ctx) + 1
		if depth > most {
			return nil, newFault(s.Type(), FaultSetup,
				"pipeline %q is not started: its depth would be %d and the limit is %d", s.Pipeline, depth, most)
		}
		in, err := r.fillJSON(inputs)
		if err != nil {
			return nil, &Error{Type: s.Type(), Fault: FaultSetup, Err: err}
		}
		start := SpawnStart{
			Pipeline: s.Pipeline, Inputs: in, Hook: r.Hook, Point: string(r.Point), Run: r.Run, Attempt: r.Attempt, Depth: depth,
		}
		output, err := callWithin(WithDepth(ctx, depth), s.Type(), cmp.Or(s.Timeout, defaultSpawnTimeout), func(ctx context.Context) (string, error) {
			return h.Spawner.Spawn(ctx, start)
		})
		if err != nil {
			return nil, err
		}
		return r.completeAnswer(s.Type(), output)
	}), nil
}
