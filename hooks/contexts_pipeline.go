package hooks

import (
	"context"

	"github.com/grapnel-go/grapnel/agent"
)

// Pipeline describes the pipeline of a run, in addition to the stage and the iteration,
// which are in the Run. A pipeline has stages, a stage has iterations, and an iteration
// is one run of an agent.
type Pipeline struct {
	// Name is the pipeline's name.
	Name string `json:"name,omitempty"`
	// NextStage is the stage after this one; empty at the last.
	NextStage string `json:"next_stage,omitempty"`
	// MaxIterations is the maximum number of iterations of the stage; zero means no
	// limit.
	MaxIterations int `json:"max_iterations,omitempty"`
	// Progress, Status and Context are the paths of the session's files.
	Progress string `json:"progress,omitempty"`
	Status   string `json:"status,omitempty"`
	Context  string `json:"context,omitempty"`
	// LastDecision is the decision of the iteration before, such as continue or stop.
	LastDecision string `json:"last_decision,omitempty"`
	// ChangedFiles are the files that the iteration changed, StageOutputs the outputs of
	// the stage so far.
	ChangedFiles []string `json:"changed_files,omitempty"`
	StageOutputs []string `json:"stage_outputs,omitempty"`
	// Reason is why the pipeline, or the stage, is complete.
	Reason string `json:"reason,omitempty"`
	// Err is the error of a failed iteration, otherwise nil.
	Err error `json:"-"`
}

// PipelineContext is the context of AtSessionStart, AtIterationStart,
// AtIterationComplete, AtIterationFailed and AtStageComplete.
type PipelineContext struct {
	contextView
	about Pipeline
}

// Pipeline returns the description of the pipeline.
func (c PipelineContext) Pipeline() Pipeline { return c.about }

// Allow lets the pipeline go on, and may add to the state.
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

// Pipeline returns the description of the pipeline.
func (c PipelineEndContext) Pipeline() Pipeline { return c.about }

// Pipeline asks the hooks at a point of a pipeline, in turn; each sees the changes of
// the ones before. It returns the state with the hooks' changes; the state has a stop
// signal if a hook ended the pipeline. The error is that of a hook whose failure aborts,
// or of ctx. At other points, and on a nil receiver, Pipeline does nothing.
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
