package hooks

import (
	"context"

	"github.com/grapnel-go/grapnel/agent"
)

// Pipeline is what is known at the points of a pipeline, besides the stage and the
// iteration, which the run says. A pipeline has stages, a stage has iterations, and an
// iteration is one run of an agent.
type Pipeline struct {
	// Name is the pipeline's name.
	Name string `json:"name,omitempty"`
	// NextStage is the stage after this one; empty at the last.
	NextStage string `json:"next_stage,omitempty"`
	// MaxIterations is how many iterations the stage may have; zero means no limit.
	MaxIterations int `json:"max_iterations,omitempty"`
	// Progress, Status and Context are the paths of the session's files.
	Progress string `json:"progress,omitempty"`
	Status   string `json:"status,omitempty"`
	Context  string `json:"context,omitempty"`
	// LastDecision is what the iteration before decided, such as continue or stop.
	LastDecision string `json:"last_decision,omitempty"`
	// ChangedFiles are the files that the iteration changed, StageOutputs what the stage
	// has given so far.
	ChangedFiles []string `json:"changed_files,omitempty"`
	StageOutputs []string `json:"stage_outputs,omitempty"`
	// Reason is why the pipeline, or the stage, is complete.
	Reason string `json:"reason,omitempty"`
	// Err is why the iteration failed; nil unless it did.
	Err error `json:"-"`
}

// PipelineContext is the context of AtSessionStart, AtIterationStart,
// AtIterationComplete, AtIterationFailed and AtStageComplete.
type PipelineContext struct {
	contextView
	about Pipeline
}

// Pipeline returns what is known of it.
func (c PipelineContext) Pipeline() Pipeline { return c.about }

// Allow lets it go on, and may add to the state.
func (c PipelineContext) Allow(effects ...agent.Effect) Result { return c.allowWith(effects) }

// Stop ends the pipeline.
func (c PipelineContext) Stop(reason string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: StopRun, reason: reason}, effects)
}

// PipelineEndContext is the context of AtSessionComplete.
type PipelineEndContext struct {
	contextView
	about Pipeline
}

// Pipeline returns what is known of it.
func (c PipelineEndContext) Pipeline() Pipeline { return c.about }

// Pipeline asks the hooks at a point of a pipeline, in turn, each on what the ones before
// added. The state comes back with what they added; it has a stop signal when one ended
// the pipeline. The error is of a hook whose failure aborts, or of ctx. At other points,
// and on nil, it does nothing.
func (c *Compiled) Pipeline(ctx context.Context, s agent.State, at PointName, about Pipeline) (agent.State, error) {
	if c == nil {
		return s, nil
	}
	info, _ := infoOf(at)
	if at == SessionComplete {
		_ = c.sessionComplete.announce(ctx, c.pool, PipelineEndContext{contextView{state: s, info: info}, about})
		return s, nil
	}
	m := c.pipeline[at]
	if m.empty() {
		return s, nil
	}
	view := func(frozen *Outcome) PipelineContext {
		return PipelineContext{contextView{state: s, info: info, frozen: frozen}, about}
	}
	var last *Outcome
	var effects agent.Effects
	for _, e := range m.controls {
		o, err := e.consult(ctx, view(nil))
		if err != nil {
			return s, err
		}
		if o == nil {
			continue
		}
		tellConflicts(ctx, s, at, effects, o.effects)
		effects = effects.Add(o.effects)
		s = s.Apply(o.effects)
		if last == nil || o.decision == StopRun {
			last = o
		}
		if o.decision == StopRun {
			s = s.WithStop(*signalOf(o))
			break
		}
	}
	return s, m.announce(ctx, c.pool, view(last))
}

// pipelinePoints are the points that Compiled.Pipeline folds.
var pipelinePoints = []Point[PipelineContext]{AtSessionStart, AtIterationStart, AtIterationComplete, AtIterationFailed, AtStageComplete}
