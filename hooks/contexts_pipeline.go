package hooks

import (
	"context"

	"github.com/grapnel-go/grapnel/agent"
)

// Pipeline describes the run's pipeline. The stage and the iteration are in the Run. A pipeline has stages, a stage has
// iterations, and an iteration is one run of an agent.
type Pipeline struct {
	// Name is the pipeline's name.
	Name string `json:"name,omitempty"`
	// NextStage is the stage after this one. It is empty at the last stage.
	NextStage string `json:"next_stage,omitempty"`
	// MaxIterations is the stage's maximum number of iterations. Zero means no limit.
	MaxIterations int `json:"max_iterations,omitempty"`
	// Progress, Status and Context are the paths of the session's files.
	Progress string `json:"progress,omitempty"`
	Status   string `json:"status,omitempty"`
	Context  string `json:"context,omitempty"`
	// LastDecision is the previous iteration's decision, such as continue or stop.
	LastDecision string `json:"last_decision,omitempty"`
	// ChangedFiles are the files that the iteration changed. StageOutputs are the stage's outputs so far.
	ChangedFiles []string `json:"changed_files,omitempty"`
	StageOutputs []string `json:"stage_outputs,omitempty"`
	// Reason says why the pipeline, or the stage, is complete.
	Reason string `json:"reason,omitempty"`
	// Err is the error of a failed iteration, otherwise nil.
	Err error `json:"-"`
}

// PipelineContext is the context of AtSessionStart, AtIterationStart,
// AtIterationComplete, AtIterationFailed and AtStageComplete.
type PipelineContext struct {
	aroundView
	about Pipeline
}

// Pipeline returns the pipeline's description.
func (c PipelineContext) Pipeline() Pipeline { return c.about }

// Allow lets the pipeline continue, and can add effects.
func (c PipelineContext) Allow(effects ...agent.Effect) Result { return c.allowWith(effects) }

// Stop ends the pipeline.
func (c PipelineContext) Stop(reason string, effects ...agent.Effect) Result {
	return c.newAnswer(Outcome{decision: StopRun, reason: reason}, effects)
}

// PipelineEndContext is the context of AtSessionComplete.
type PipelineEndContext struct {
	aroundView
	about Pipeline
}

// Pipeline returns the pipeline's description.
func (c PipelineEndContext) Pipeline() Pipeline { return c.about }

// firePipeline asks the hooks at a pipeline's point, in turn. Each sees the changes by earlier hooks. It returns the
// state with the hooks' changes, and a hook's stop signal.
func (c *Compiled) firePipeline(ctx context.Context, s agent.State, f Firing, about Pipeline) (agent.State, error) {
	if f.Point == SessionComplete {
		return s, pointsOf(c).sessionComplete.announce(ctx, c.pool, PipelineEndContext{viewAround(s, f, nil), about})
	}
	m := pointsOf(c).pipeline[f.Point]
	view := func(frozen *Outcome) PipelineContext { return PipelineContext{viewAround(s, f, frozen), about} }
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
		tellConflicts(ctx, s, f.Point, effects, o.effects)
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

// pipelinePoints lists the pipeline points at which controls can decide.
var pipelinePoints = []Point[PipelineContext]{AtSessionStart, AtIterationStart, AtIterationComplete, AtIterationFailed, AtStageComplete}

// pipelinePointNames lists all points of a pipeline, blueprintPointNames all points of a coordinator's run.
var (
	pipelinePointNames  = []PointName{SessionStart, IterationStart, IterationComplete, IterationFailed, StageComplete, SessionComplete}
	blueprintPointNames = []PointName{RunStart, RunResult, RunFailed, RunTimeout, RunFinish}
)
